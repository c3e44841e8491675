//! Reading a clock. Not a case itself: one file per clock, and the judgement of story 5.
//!
//! The CPU time of a read is compared, not its duration: many readers wait for CPUs, which says
//! nothing about the clock.

use model::units::fine_duration;
use model::{BenchStep, StoryShape};
use rustix::io::Errno;

use super::{Alone, Ladder, Prepared, THREADS};
use crate::{Error, Work};

/// The readers of the story.
pub const READERS: Ladder = Ladder { workers: &[1, 4, 16], ..THREADS };

/// Where the kernel names the clock that it reads.
const CLOCKSOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
/// A vDSO read of tsc takes 25 ns; one of four times that is not a vDSO read of tsc.
const SLOW_NS: f64 = 100.0;
/// On tsc a read costs 16 readers what it costs one.
const GROWS: f64 = 2.0;

/// Workers that read `clock`.
pub fn prepare(clock: libc::clockid_t) -> Result<Box<dyn Prepared>, Error> {
    Ok(Box::new(Alone(move |_| Ok(Box::new(move || read(clock)) as Box<dyn Work>))))
}

fn read(clock: libc::clockid_t) -> Result<(), Errno> {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is valid for writing and of the right type.
    match unsafe { libc::clock_gettime(clock, &raw mut now) } {
        0 => Ok(()),
        _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL)),
    }
}

/// Present if a read is slow, or costs more the more readers there are.
pub fn shape(steps: &[BenchStep]) -> StoryShape {
    let (Some(first), Some(last)) = (steps.first(), steps.last()) else {
        return StoryShape { present: false, text: "nothing was measured".to_owned() };
    };
    let source = std::fs::read_to_string(CLOCKSOURCE).unwrap_or_default();
    let (alone, many) = (cpu_ns(first), cpu_ns(last));
    let text = format!(
        "clocksource {}: {} a read; with the harness {} of CPU time for {} and \
         {} for {}; in the reported case 25 ns on tsc however many read, on hpet 612 ns alone, \
         1,443 and 7,949 ns for 4 and 16 readers",
        source.trim(),
        fine_duration(first.net_ns),
        fine_duration(alone),
        first.kind.count_in_words(first.workers),
        fine_duration(many),
        last.kind.count_in_words(last.workers),
    );
    StoryShape { present: first.net_ns > SLOW_NS || many > GROWS * alone, text }
}

/// CPU time of an operation.
fn cpu_ns(step: &BenchStep) -> f64 {
    (step.user_ns + step.system_ns) as f64 / step.operations.max(1) as f64
}
