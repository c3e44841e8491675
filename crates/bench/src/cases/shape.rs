//! Whether what was measured has the shape of a story: workers hinder each other, or an operation
//! costs more with more objects. Not a case itself.
//!
//! More workers than CPUs wait for CPUs, whatever they do, so where workers are compared, it is only
//! in steps in which each has a CPU, and without the time in which another program had it.

use model::units::{count, fine_duration, number, percentage};
use model::{BenchStep, StoryShape};

/// Beyond this part of the time off the CPU, the slowest operations are those that lost their CPU.
const MOST_OFF_CPU: f64 = 0.1;

/// The shape of a story in which each worker becomes slower the more there are: present if an
/// operation takes at least `times` as long as for one worker. `story` is what the story saw.
pub fn slows_each_other(steps: &[BenchStep], times: f64, story: &str) -> StoryShape {
    let cpus = cpus();
    let fits = |step: &&BenchStep| u64::from(step.workers) <= cpus;
    let (Some(first), Some(last)) = (steps.first(), steps.iter().rfind(fits)) else {
        return unknown(cpus);
    };
    if first.workers >= last.workers {
        return unknown(cpus);
    }
    let (alone, together) = (mean_ns(first), mean_ns(last));
    let slower = together / alone.max(1.0);
    let text = format!(
        "an operation takes {} for {} and {} for {} on average, {} times as long; {story}",
        fine_duration(alone),
        first.kind.count_in_words(first.workers),
        fine_duration(together),
        last.kind.count_in_words(last.workers),
        number(slower),
    );
    StoryShape { present: slower >= times, text }
}

/// A worker's time for an operation, without its waits for a CPU. The mean, as in the story's tables:
/// the median does not see that one in three waits for the others.
fn mean_ns(step: &BenchStep) -> f64 {
    let all = step.wall_ns.saturating_mul(u64::from(step.workers));
    all.saturating_sub(step.queued_ns.unwrap_or(0)) as f64 / step.operations.max(1) as f64
}

/// The shape of a story in which few operations are held up for long by something that others do
/// at the same time: present if the slowest of a thousand take at least `times` as long, unless the
/// workers were off their CPUs so much that other programs may be the reason.
pub fn held_up(steps: &[BenchStep], times: f64, story: &str) -> StoryShape {
    let cpus = cpus();
    let fits = |step: &&BenchStep| u64::from(step.workers) + step.population <= cpus;
    let tail = |step: &BenchStep| step.single.quantile(0.999).unwrap_or(0) as f64;
    let most = |step: &BenchStep| step.single.max().unwrap_or(0) as f64;
    let (Some(first), Some(last)) = (steps.first(), steps.iter().rfind(fits)) else {
        return unknown(cpus);
    };
    if first.population >= last.population {
        return unknown(cpus);
    }
    let slower = tail(last) / tail(first).max(1.0);
    let text = format!(
        "p99.9 is {} with {} and {} with {} ({} times, n = {} and {}), the longest \
         {} and {}; {story}",
        fine_duration(tail(first)),
        first.population,
        fine_duration(tail(last)),
        last.population,
        number(slower),
        count(first.single.count()),
        count(last.single.count()),
        fine_duration(most(first)),
        fine_duration(most(last)),
    );
    let off = off_cpu(last);
    if slower >= times && off > MOST_OFF_CPU {
        let text = format!(
            "cannot be judged: workers were off their CPUs for {} of the time, which other \
             programs may have used (--with-kernel says why); {text}",
            percentage(off)
        );
        return StoryShape { present: false, text };
    }
    StoryShape { present: slower >= times, text }
}

/// The shape of a story in which an operation costs more the more objects there are: present if
/// the last step costs at least `times` as much as the first. `story` is what the story saw.
pub fn grows_with_population(steps: &[BenchStep], times: f64, story: &str) -> StoryShape {
    let (Some(first), Some(last)) = (steps.first(), steps.last()) else {
        return StoryShape { present: false, text: "nothing was measured".to_owned() };
    };
    let ratio = last.net_ns / first.net_ns.max(1.0);
    let text = format!(
        "{} times the cost with {} as with {}; {story}",
        number(ratio),
        last.population,
        first.population
    );
    StoryShape { present: ratio >= times, text }
}

/// The part of the time in which workers did not run.
fn off_cpu(step: &BenchStep) -> f64 {
    let there = step.wall_ns as f64 * f64::from(step.workers);
    1.0 - (step.user_ns + step.system_ns) as f64 / there.max(1.0)
}

fn unknown(cpus: u64) -> StoryShape {
    let text = format!(
        "cannot be judged from these steps: it takes a step with one worker and one with several \
         that all have one of the {cpus} CPUs"
    );
    StoryShape { present: false, text }
}

fn cpus() -> u64 {
    std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u64)
}
