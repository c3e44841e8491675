//! What CPUs do so often that to record each of it costs them much, although less would do.
//!
//! Each run of a program costs the CPU that it is on, so it is runs on one CPU that count: what a busy
//! server's CPU loses does not get less because others of the host are idle.

use model::RecorderPart;
use model::units::{count, duration};

use crate::bpf::cpu;
use crate::parts::probes;
use crate::wire::Program;

/// From so many on in a second system calls take 2 % of a CPU, and softirqs 1 %: 220 ns for a call and 390 for a
/// softirq, what the tracepoints at both ends cost with it (docs/cost.md). One cause needs softirqs, 15 need
/// calls, which tell of stalls that come once, too.
const LIMITS: [Limit; 2] = [
    Limit { part: RecorderPart::SystemCalls, most: 100_000 },
    Limit { part: RecorderPart::Softirqs, most: 25_000 },
];

/// So long all of it is recorded, whatever it costs.
const WHOLE_NS: u64 = 2_000_000_000;

/// Shorter times say little of what goes on.
const LEAST_NS: u64 = 500_000_000;

struct Limit {
    part: RecorderPart,
    /// Events in a second on one CPU; each runs two programs, one at its begin and one at its end.
    most: u64,
}

/// A part that is beyond its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooFrequent {
    /// The part.
    pub part: RecorderPart,
    /// Events in a second that are still recorded.
    pub most: u64,
    /// The CPU with the most, and how many in a second it had.
    pub cpu: usize,
    /// See `cpu`.
    pub per_second: u64,
}

/// Counts of runs, as they were when they were looked at last.
pub struct Frequencies {
    began_ns: u64,
    seen_ns: u64,
    /// Of each CPU.
    runs: Vec<Runs>,
}

/// Of the programs of each limit's part.
type Runs = [u64; LIMITS.len()];

impl TooFrequent {
    /// Why it is given up, so long after recording began.
    pub fn because(&self, since_ns: u64) -> String {
        let TooFrequent { most, cpu, per_second, .. } = self;
        format!(
            "recorded for the first {}, until there were more than {} a second on a CPU: {} on CPU {cpu}",
            duration(since_ns),
            count(*most),
            count(*per_second),
        )
    }
}

impl Frequencies {
    /// Of a recording that began then.
    pub fn new(began_ns: u64) -> Frequencies {
        Frequencies { began_ns, seen_ns: began_ns, runs: Vec::new() }
    }

    /// What is beyond its limit since the last look, once all has been recorded for long enough.
    pub fn look(&mut self, now_ns: u64, cpus: &[cpu]) -> Vec<TooFrequent> {
        self.compare(now_ns, cpus.iter().map(runs_of).collect())
    }

    fn compare(&mut self, now_ns: u64, runs: Vec<Runs>) -> Vec<TooFrequent> {
        let ns = now_ns.saturating_sub(self.seen_ns);
        if ns < LEAST_NS {
            return Vec::new();
        }
        self.seen_ns = now_ns;
        let before = std::mem::replace(&mut self.runs, runs);
        if now_ns.saturating_sub(self.began_ns) < WHOLE_NS {
            return Vec::new();
        }
        // At first there were none.
        let before = before.into_iter().chain(std::iter::repeat([0; LIMITS.len()]));
        let beyond = LIMITS.iter().enumerate().filter_map(|(n, limit)| {
            let of_cpus = self.runs.iter().zip(before.clone());
            let of_cpus = of_cpus.map(|(now, then)| now[n].saturating_sub(then[n]));
            let (cpu, runs) = of_cpus.enumerate().max_by_key(|(_, runs)| *runs)?;
            let per_second = per_second(runs / 2, ns);
            let Limit { part, most } = *limit;
            (per_second > most).then_some(TooFrequent { part, most, cpu, per_second })
        });
        beyond.collect()
    }
}

/// Runs on a CPU of the programs of each limit's part, but for calls in vain: who polls all the time is
/// to be recorded whole.
fn runs_of(cpu: &cpu) -> Runs {
    LIMITS.each_ref().map(|limit| {
        let counters = Program::ALL.into_iter().zip(cpu.runs);
        let is_its = |counted| probes(limit.part).any(|probe| probe.counted == counted);
        let runs: u64 =
            counters.filter(|(counted, _)| is_its(*counted)).map(|(_, runs)| runs).sum();
        let in_vain = match limit.part {
            RecorderPart::SystemCalls => 2 * cpu.vain_calls,
            _ => 0,
        };
        runs.saturating_sub(in_vain)
    })
}

fn per_second(events: u64, ns: u64) -> u64 {
    (u128::from(events) * 1_000_000_000 / u128::from(ns.max(1))) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// What is said when two CPUs have so many calls and softirqs in the second that ends `at` seconds
    /// after the recording began.
    fn said(at: u64, first: [u64; 2], second: [u64; 2]) -> Vec<TooFrequent> {
        let mut frequencies = Frequencies::new(SECOND);
        frequencies.compare(at * SECOND, vec![[1_000, 1_000]; 2]);
        let runs = |events: [u64; 2]| events.map(|events| 1_000 + 2 * events);
        frequencies.compare((at + 1) * SECOND, vec![runs(first), runs(second)])
    }

    #[test]
    fn what_one_cpu_has_too_much_of_is_said_and_what_all_have_together_is_not() {
        assert_eq!(said(3, [100_000, 25_000], [100_000, 25_000]), []);
        let calls = TooFrequent {
            part: RecorderPart::SystemCalls,
            most: 100_000,
            cpu: 1,
            per_second: 100_001,
        };
        assert_eq!(said(3, [99_999, 0], [100_001, 25_000]), [calls]);
        assert!(
            calls.because(3 * SECOND).contains("first 3.00 s"),
            "{}",
            calls.because(3 * SECOND)
        );
        let parts = |said: Vec<TooFrequent>| said.iter().map(|one| one.part).collect::<Vec<_>>();
        let softirqs = parts(said(3, [0, 30_000], [0, 0]));
        assert_eq!(softirqs, [RecorderPart::Softirqs]);
    }

    #[test]
    fn the_first_two_seconds_are_recorded_whole() {
        assert_eq!(said(1, [900_000; 2], [900_000; 2]), []);
        assert_eq!(said(2, [900_000; 2], [900_000; 2]).len(), 2);
        // At the first look, too.
        let mut frequencies = Frequencies::new(SECOND);
        assert_eq!(frequencies.compare(3 * SECOND, vec![[900_000; 2]; 2]).len(), 2);
    }

    #[test]
    fn a_short_time_says_nothing_and_is_part_of_the_next() {
        let mut frequencies = Frequencies::new(SECOND);
        frequencies.compare(4 * SECOND, vec![[0, 0]]);
        assert_eq!(frequencies.compare(4 * SECOND + SECOND / 10, vec![[100_000, 0]]), []);
        let said = frequencies.compare(5 * SECOND, vec![[240_000, 0]]);
        assert_eq!(said.iter().map(|one| one.per_second).collect::<Vec<_>>(), [120_000]);
    }

    #[test]
    fn the_counters_are_those_of_the_parts() {
        let mut cpu = cpu::default();
        for (counted, runs) in Program::ALL.into_iter().zip(&mut cpu.runs) {
            *runs = match counted {
                Program::SysEnter => 10,
                Program::SysExit => 20,
                Program::Softirq => 300,
                _ => 7_000,
            };
        }
        assert_eq!(runs_of(&cpu), [30, 300]);
        cpu.vain_calls = 5;
        assert_eq!(runs_of(&cpu), [20, 300]);
    }
}
