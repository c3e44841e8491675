//! What is to be measured.

use model::units::fine_duration;
use rustix::io::Errno;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::Error;
use crate::sources::Source;

/// Intervals that make sense: below, reading the clock takes a noticeable part.
const SHORTEST_NS: u64 = 10_000;
const LONGEST_NS: u64 = 3_600_000_000_000;
/// Ticks of one series: what an hour at 10 us has.
const MOST_TICKS: u64 = 360_000_000;
/// Length of a series if none is given: alone, and as one of several.
const ALONE_NS: u64 = 10_000_000_000;
const ONE_OF_MANY_NS: u64 = 2_000_000_000;
/// Ticks that one of several has at least: those that a law needs.
const FEWEST_TICKS: u64 = 20;

/// One source at one interval.
#[derive(Clone, Copy)]
pub struct Step {
    /// The source.
    pub source: &'static Source,
    /// From tick to tick.
    pub interval_ns: u64,
    /// Ticks.
    pub ticks: u64,
}

impl Step {
    /// How long it takes.
    pub fn length_ns(&self) -> u64 {
        self.ticks.saturating_mul(self.interval_ns)
    }
}

/// What is changed for the measuring thread, on request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Setting {
    /// Bind it to this CPU.
    pub cpu: Option<usize>,
    /// Give it SCHED_FIFO with this priority.
    pub fifo: Option<i32>,
}

impl Setting {
    /// In words.
    pub fn changed(&self) -> Vec<String> {
        let cpu = self.cpu.map(|cpu| format!("the measuring thread is bound to CPU {cpu}"));
        let fifo = self.fifo.map(|priority| format!("it has SCHED_FIFO {priority}"));
        cpu.into_iter().chain(fifo).collect()
    }

    /// Binds the calling thread and gives it its priority.
    pub fn apply(&self) -> Result<(), Error> {
        if let Some(cpu) = self.cpu {
            let refused = |because: String| Error::Cpu { cpu, because };
            if cpu >= CpuSet::MAX_CPU {
                return Err(refused(format!(
                    "CPUs are numbered from 0 to {}",
                    CpuSet::MAX_CPU - 1
                )));
            }
            let mut set = CpuSet::new();
            set.set(cpu);
            sched_setaffinity(None, &set).map_err(|error| refused(allowed(error)))?;
        }
        if let Some(priority) = self.fifo {
            let parameters = libc::sched_param { sched_priority: priority };
            // SAFETY: changes the calling thread only; the parameters are read.
            if unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameters) } != 0 {
                let because = format!(
                    "{}; it takes root, CAP_SYS_NICE or a limit of real-time priority (ulimit -r)",
                    std::io::Error::last_os_error()
                );
                return Err(Error::Fifo { priority, because });
            }
        }
        Ok(())
    }
}

/// Which CPUs there are for us.
fn allowed(error: Errno) -> String {
    let Ok(set) = sched_getaffinity(None) else { return error.to_string() };
    let cpus: Vec<String> =
        (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).map(|cpu| cpu.to_string()).collect();
    format!("whylag may use {}", cpus.join(", "))
}

/// The steps of a measurement: every source at every interval (`default` of the source if none is
/// given), `time_ns` each.
pub fn steps(
    sources: &[&'static Source],
    intervals: &[u64],
    time_ns: Option<u64>,
) -> Result<Vec<Step>, Error> {
    let mut steps = Vec::new();
    let several = sources.len() * intervals.len().max(1) > 1;
    for source in sources {
        let own = [source.usual_ns];
        for interval_ns in if intervals.is_empty() { &own } else { intervals } {
            let usual = if several {
                ONE_OF_MANY_NS.max(FEWEST_TICKS.saturating_mul(*interval_ns))
            } else {
                ALONE_NS.max(*interval_ns)
            };
            steps.push(step(source, *interval_ns, time_ns.unwrap_or(usual))?);
        }
    }
    Ok(steps)
}

fn step(source: &'static Source, interval_ns: u64, time_ns: u64) -> Result<Step, Error> {
    let interval = fine_duration(interval_ns as f64);
    if !(SHORTEST_NS..=LONGEST_NS).contains(&interval_ns) {
        return Err(Error::Plan(format!("an interval of {interval} is none: 10 us to 1 h")));
    }
    let ticks = time_ns / interval_ns;
    if ticks == 0 {
        let time = fine_duration(time_ns as f64);
        return Err(Error::Plan(format!(
            "--time {time} has no tick at an interval of {interval}: make it longer"
        )));
    }
    if ticks > MOST_TICKS {
        return Err(Error::Plan(format!(
            "{ticks} ticks are too many: at most {MOST_TICKS}; lengthen the interval"
        )));
    }
    Ok(Step { source, interval_ns, ticks })
}

/// `100us..100ms` as its two ends.
pub fn ladder(low_ns: u64, high_ns: u64) -> Result<Vec<u64>, Error> {
    if low_ns >= high_ns || low_ns == 0 {
        return Err(Error::Plan(format!(
            "a ladder goes from a shorter to a longer interval, such as 100us..100ms, not from {} \
             to {}",
            fine_duration(low_ns as f64),
            fine_duration(high_ns as f64)
        )));
    }
    // 1 and 3 of each decade, in between the ends.
    let rungs = (0..19).flat_map(|decade| [10u64.pow(decade), 3 * 10u64.pow(decade)]);
    let between = rungs.filter(|rung| (low_ns + 1..high_ns).contains(rung));
    Ok([low_ns].into_iter().chain(between).chain([high_ns]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources;

    #[test]
    fn a_ladder_has_its_ends_and_round_rungs() {
        let ms = 1_000_000;
        let rungs = [100_000, 300_000, ms, 3 * ms, 10 * ms, 30 * ms, 100 * ms];
        assert_eq!(ladder(100_000, 100 * ms).unwrap(), rungs);
        assert_eq!(ladder(250_000, 2 * ms).unwrap(), [250_000, 300_000, ms, 2 * ms]);
        assert!(ladder(2 * ms, ms).is_err() && ladder(ms, ms).is_err() && ladder(0, ms).is_err());
    }

    #[test]
    fn ticks_fill_the_time_and_absurd_plans_are_refused() {
        let one = sources::named("timerfd").unwrap();
        let plan = steps(&one, &[1_000_000], Some(5_000_000_000)).unwrap();
        assert_eq!(plan[0].ticks, 5_000);
        assert_eq!(plan[0].length_ns(), 5_000_000_000);
        for (interval, time) in
            [(1, 1_000), (20_000_000, 1_000_000), (u64::MAX, 1), (10_000, u64::MAX)]
        {
            assert!(steps(&one, &[interval], Some(time)).err().unwrap().is_usage());
        }
        let ladder = steps(&one, &[100_000, 300_000_000], None).unwrap();
        assert_eq!((ladder[0].ticks, ladder[1].ticks), (20_000, 20));
    }
}
