//! Whether workers hinder each other as in a story. Not a case itself.

use model::{BenchStep, StoryShape};

/// The shape of a story in which each worker becomes slower the more there are: present if an
/// operation of the last step takes at least `times` as long as one of the first, beyond what
/// workers in excess of the CPUs wait for a CPU. `told` is what the story saw.
pub fn slows_each_other(steps: &[BenchStep], times: f64, told: &str) -> StoryShape {
    let (Some(first), Some(last)) = (steps.first(), steps.last()) else {
        return StoryShape { present: false, text: "nothing was measured".to_owned() };
    };
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) as f64;
    let own = |step: &BenchStep| f64::from(step.workers) / step.rate().max(1e-9);
    let waiting = |step: &BenchStep| (f64::from(step.workers) / cpus).max(1.0);
    let slower = own(last) / own(first);
    let beyond = slower * waiting(first) / waiting(last);
    let among = match waiting(last) > 1.0 {
        true => format!(" ({beyond:.1} times beyond waiting for one of {cpus} CPUs)"),
        false => String::new(),
    };
    let text = format!(
        "{slower:.1} times as long each for {} as for {}{among}; {told}",
        last.kind.count_in_words(last.workers),
        first.workers,
    );
    StoryShape { present: beyond >= times, text }
}
