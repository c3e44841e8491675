//! mmap-file: a cached file is mapped at once, by threads of one address space (story 2).

use model::units::{fine_duration, number, percentage};
use model::{BenchStep, StoryShape};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::{Benchmark, Ladder, THREADS, folder};

/// Size of the story's file, bytes.
pub const BYTES: usize = 1_265_444;

/// The story's ladder.
pub const THREADS_TO_16: &[u32] = &[1, 2, 4, 8, 16];

pub const CASE: Benchmark = Benchmark {
    id: "mmap-file",
    measures: "mmap(1265444 bytes, MAP_POPULATE) and munmap() of a cached file of the worker's own",
    ladder: Ladder { workers: THREADS_TO_16, shape: Some(shape), ..THREADS },
    prepare: |request| {
        folder::each(request, |own| {
            let file = own.file("file", BYTES)?;
            let flags = MapFlags::PRIVATE | MapFlags::POPULATE;
            Ok(move || {
                // SAFETY: a new mapping, to which nothing refers, is unmapped.
                unsafe {
                    let start =
                        mmap(std::ptr::null_mut(), BYTES, ProtFlags::READ, flags, &file, 0)?;
                    munmap(start, BYTES)
                }
            })
        })
    },
};

/// A call that takes so many times as long as sharing the CPUs explains waits for something else.
const BEYOND_SHARING: f64 = 1.3;
/// Part of their time that workers sleep if they wait for each other. There is always some: a
/// worker's own time begins when it gets a CPU and ends before the last of the others ends.
const ASLEEP: f64 = 0.5;

/// The story's shape: with many threads a call takes longer than their sharing of the CPUs
/// explains (16 threads on 2 CPUs: 8 times as long as one alone), and they sleep rather than wait
/// for a CPU. Means, not medians: most calls find the lock free, a few wait for all the others.
fn shape(steps: &[BenchStep]) -> StoryShape {
    let few = steps.iter().min_by_key(|step| step.workers);
    let many = steps.iter().max_by_key(|step| step.workers);
    let (Some((few, few_ns)), Some((many, many_ns))) = (with_mean(few), with_mean(many)) else {
        return StoryShape { present: false, text: "nothing was measured".to_owned() };
    };
    let Some(queued_ns) = many.queued_ns else {
        let why = "cannot be judged: this kernel does not count how long threads wait for a CPU";
        return StoryShape { present: false, text: why.to_owned() };
    };
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) as f64;
    let sharing = |step: &BenchStep| (f64::from(step.workers) / cpus).max(1.0);
    let beyond = many_ns / few_ns / (sharing(many) / sharing(few));
    let awake_ns = (many.user_ns + many.system_ns + queued_ns) as f64;
    let asleep = 1.0 - awake_ns / (many.wall_ns as f64 * f64::from(many.workers));
    let text = format!(
        "a call takes {} with {} and {} with {} (means): {} times what \
         sharing {cpus} CPUs explains, and they sleep {} of the time; in the reported case 9 to 20 \
         ms with 16 threads, and half of the cores idle",
        fine_duration(few_ns),
        few.kind.count_in_words(few.workers),
        fine_duration(many_ns),
        many.kind.count_in_words(many.workers),
        number(beyond),
        percentage(asleep.max(0.0)),
    );
    StoryShape { present: beyond >= BEYOND_SHARING && asleep >= ASLEEP, text }
}

fn with_mean(step: Option<&BenchStep>) -> Option<(&BenchStep, f64)> {
    step.and_then(|step| Some((step, step.single.mean()?)))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use model::{BenchCase, WorkerKind};

    use super::*;
    use crate::clock::Clock;
    use crate::ladder::{Bench, ROUNDS, Settings};
    use crate::tidy::Traces;

    fn measure(kind: WorkerKind) -> BenchCase {
        let settings = Settings {
            cases: Vec::new(),
            tour: false,
            workers: Some((kind, vec![1, 16])),
            population: None,
            time: Duration::from_millis(500),
            pin: false,
        };
        let traces = Traces::begin().unwrap();
        let clock = Clock::choose();
        let clock_step_ns = clock.step_ns();
        let bench =
            Bench { clock, clock_step_ns, traces: &traces, empty_ns: 20.0, most_rounds: ROUNDS };
        bench.measure(&CASE, &settings, &mut |_| {}).unwrap()
    }

    /// In one of three measurements: what else runs on the host can hide the shape of one.
    fn is_seen(kind: WorkerKind, present: bool) -> bool {
        (0..3).any(|_| {
            let shape = measure(kind).shape.unwrap();
            println!("{kind:?}: {}: {}", shape.present, shape.text);
            shape.present == present
        })
    }

    #[test]
    fn threads_wait_for_their_one_address_space_and_processes_do_not() {
        let threads = measure(WorkerKind::Threads);
        if threads.steps.iter().any(|step| step.queued_ns.is_none()) {
            println!("skipped: this kernel does not count how long threads wait for a CPU");
            return;
        }
        assert!(is_seen(WorkerKind::Threads, true), "in none of three measurements");
        assert!(is_seen(WorkerKind::Processes, false), "in none of three measurements");
    }
}
