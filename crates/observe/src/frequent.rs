//! What CPUs do so often that to record each of it costs them much, although less would do.
//!
//! Each run of a program costs the CPU that it is on, so it is runs on one CPU that count: what a busy
//! server's CPU loses does not get less because others of the host are idle. Half as much is too much for a CPU
//! that is never idle: what recording takes there is work that is not done, elsewhere it is a delay. What one run
//! takes differs between hosts, and with what else is in their caches, so it is that of the runs that were timed.

use model::units::{count, duration};
use model::{Cost, CpuTime, RecorderPart};

use crate::bpf::cpu;
use crate::host;
use crate::parts::probes;
use crate::wire::Program;

/// System calls may take 4 % of a CPU, or 2 %, and softirqs 1 %: where each takes 0.4 us, which neither exceeds on
/// the machine of docs/cost.md, these are 100,000 calls, 50,000, and 25,000 softirqs a second. One cause needs softirqs, 14
/// need calls, which tell of stalls that come once, too.
const LIMITS: [Limit; 2] = [
    Limit { part: RecorderPart::SystemCalls, most: 40_000_000, most_if_full: 20_000_000 },
    Limit { part: RecorderPart::Softirqs, most: 10_000_000, most_if_full: 10_000_000 },
];

/// What a call, or softirq, is taken to cost at least, and where nothing is timed, ns: a program at both ends, and
/// the tracepoints.
const LEAST_COST_NS: u64 = 400;
/// And at most: who does little is recorded whole on slow hosts, too. It is 25,000 calls, or 12,500, and 6,250
/// softirqs that are never too many.
const MOST_COST_NS: u64 = 1_600;

/// A CPU that is idle for less of the time has none to spare, %.
const IDLE_PERCENT: u64 = 10;

/// So long all of it is recorded, whatever it costs.
const WHOLE_NS: u64 = 2_000_000_000;

/// Shorter times say little of what goes on.
const LEAST_NS: u64 = 500_000_000;

const SECOND_NS: u64 = 1_000_000_000;

struct Limit {
    part: RecorderPart,
    /// What its events may take of a second on one CPU, ns.
    most: u64,
    /// The same of a CPU without idle time.
    most_if_full: u64,
}

impl Limit {
    fn of(&self, is_full: bool) -> u64 {
        if is_full { self.most_if_full } else { self.most }
    }

    /// What an event costs, ns: two runs, one at its begin and one at its end.
    fn cost_ns(&self, cost: &Cost) -> u64 {
        let counted = |name: &str| probes(self.part).any(|probe| probe.counted.name() == name);
        let of_part = cost.probes.iter().filter(|probe| counted(&probe.program));
        let (ns, runs) =
            of_part.fold((0, 0), |sum: (u64, u64), probe| (sum.0 + probe.ns, sum.1 + probe.runs));
        let mean = (2 * ns).checked_div(runs).unwrap_or(0);
        mean.clamp(LEAST_COST_NS, MOST_COST_NS)
    }
}

/// A part that is beyond its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooFrequent {
    /// The part.
    pub part: RecorderPart,
    /// The CPU with the most, how many in a second it had, and how many are still recorded.
    pub cpu: usize,
    /// See `cpu`.
    pub per_second: u64,
    /// See `cpu`.
    pub most: u64,
    /// That CPU has hardly been idle.
    pub is_full: bool,
}

/// What the CPUs had done when they were looked at last.
pub struct Frequencies {
    began_ns: u64,
    seen_ns: u64,
    /// Of each CPU.
    runs: Vec<Runs>,
    /// Idle time since boot of each CPU, ns.
    idle: Vec<u64>,
}

/// Of the programs of each limit's part.
type Runs = [u64; LIMITS.len()];

impl TooFrequent {
    /// Why it is given up, so long after recording began.
    pub fn because(&self, since_ns: u64) -> String {
        let TooFrequent { most, cpu, per_second, is_full, .. } = self;
        let without = if *is_full { " without idle time" } else { "" };
        format!(
            "recorded for the first {}, until there were more than {} a second on a CPU{without}: {} on \
             CPU {cpu}",
            duration(since_ns),
            count(*most),
            count(*per_second),
        )
    }
}

impl Frequencies {
    /// Of a recording that began then.
    pub fn new(began_ns: u64) -> Frequencies {
        Frequencies {
            began_ns,
            seen_ns: began_ns,
            runs: Vec::new(),
            idle: idle(&host::cpu_times()),
        }
    }

    /// What is beyond its limit since the last look, once all has been recorded for long enough.
    pub fn look(&mut self, now_ns: u64, cpus: &[cpu], cost: &Cost) -> Vec<TooFrequent> {
        if now_ns.saturating_sub(self.seen_ns) < LEAST_NS {
            return Vec::new();
        }
        let costs = LIMITS.each_ref().map(|limit| limit.cost_ns(cost));
        let runs = cpus.iter().map(runs_of).collect();
        self.compare(now_ns, runs, idle(&host::cpu_times()), costs)
    }

    fn compare(
        &mut self,
        now_ns: u64,
        runs: Vec<Runs>,
        idle: Vec<u64>,
        costs: [u64; LIMITS.len()],
    ) -> Vec<TooFrequent> {
        let ns = now_ns.saturating_sub(self.seen_ns);
        self.seen_ns = now_ns;
        let runs_before = std::mem::replace(&mut self.runs, runs);
        let idle_before = std::mem::replace(&mut self.idle, idle);
        if now_ns.saturating_sub(self.began_ns) < WHOLE_NS {
            return Vec::new();
        }
        let is_full = |cpu: usize| {
            let (now, before) = (self.idle.get(cpu), idle_before.get(cpu));
            let idle_ns = now.zip(before).map(|(now, before)| now.saturating_sub(*before));
            idle_ns.is_some_and(|idle_ns| idle_ns < ns / 100 * IDLE_PERCENT)
        };
        let beyond = LIMITS.iter().enumerate().filter_map(|(n, limit)| {
            let of_cpus = self.runs.iter().enumerate().filter_map(|(cpu, runs)| {
                // At first there were none.
                let before = runs_before.get(cpu).map_or(0, |runs| runs[n]);
                let per_second = per_second(runs[n].saturating_sub(before) / 2, ns);
                let is_full = is_full(cpu);
                let most = limit.of(is_full) / costs[n];
                let one = TooFrequent { part: limit.part, cpu, per_second, most, is_full };
                (per_second > most).then_some(one)
            });
            of_cpus.max_by_key(|one| one.per_second)
        });
        beyond.collect()
    }
}

/// Idle time since boot by number of the CPU, ns. Of those that are offline it is 0: they do nothing.
fn idle(times: &[CpuTime]) -> Vec<u64> {
    let mut idle = vec![0; times.iter().map(|one| one.cpu as usize + 1).max().unwrap_or(0)];
    for one in times {
        idle[one.cpu as usize] = one.idle_ns;
    }
    idle
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
    (u128::from(events) * u128::from(SECOND_NS) / u128::from(ns.max(1))) as u64
}

#[cfg(test)]
mod tests {
    use model::ProbeCost;

    use super::*;

    const SECOND: u64 = SECOND_NS;
    const USUAL: [u64; 2] = [LEAST_COST_NS; 2];

    /// Idle time of two CPUs of which the first has been idle for half of each second, and the second not.
    fn half_idle(seconds: u64) -> Vec<u64> {
        vec![seconds * SECOND / 2, 0]
    }

    /// What is said when two CPUs have so many calls and softirqs in the second that ends `at` seconds
    /// after the recording began.
    fn said(at: u64, first: [u64; 2], second: [u64; 2]) -> Vec<TooFrequent> {
        let mut frequencies = Frequencies::new(SECOND);
        frequencies.compare(at * SECOND, vec![[1_000, 1_000]; 2], half_idle(at), USUAL);
        let runs = |events: [u64; 2]| events.map(|events| 1_000 + 2 * events);
        let runs = vec![runs(first), runs(second)];
        frequencies.compare((at + 1) * SECOND, runs, half_idle(at + 1), USUAL)
    }

    #[test]
    fn what_one_cpu_has_too_much_of_is_said_and_what_all_have_together_is_not() {
        assert_eq!(said(3, [100_000, 25_000], [50_000, 25_000]), []);
        let calls = TooFrequent {
            part: RecorderPart::SystemCalls,
            cpu: 0,
            per_second: 100_001,
            most: 100_000,
            is_full: false,
        };
        assert_eq!(said(3, [100_001, 25_000], [49_999, 0]), [calls]);
        let because = calls.because(3 * SECOND);
        assert!(because.contains("first 3.00 s"), "{because}");
        assert!(!because.contains("idle"), "{because}");
        let parts = |said: Vec<TooFrequent>| said.iter().map(|one| one.part).collect::<Vec<_>>();
        let softirqs = parts(said(3, [0, 30_000], [0, 0]));
        assert_eq!(softirqs, [RecorderPart::Softirqs]);
    }

    #[test]
    fn for_a_cpu_without_idle_time_half_as_many_are_too_many() {
        let [one] = said(3, [90_000, 0], [60_000, 0])[..] else { panic!("one of them is") };
        assert_eq!((one.cpu, one.per_second, one.most), (1, 60_000, 50_000));
        let because = one.because(SECOND);
        assert!(
            because.contains("50,000 a second on a CPU without idle time: 60,000"),
            "{because}"
        );
    }

    #[test]
    fn where_each_takes_longer_fewer_are_too_many() {
        let timed = |program: &str, runs, ns| ProbeCost { program: program.to_owned(), runs, ns };
        let cost = |enter_ns, exit_ns| Cost {
            probes: vec![timed("sys_enter", 1_000, enter_ns), timed("sys_exit", 1_000, exit_ns)],
            ..Cost::default()
        };
        let [calls, softirqs] = LIMITS;
        assert_eq!(calls.cost_ns(&cost(200_000, 600_000)), 800);
        assert_eq!(softirqs.cost_ns(&cost(200_000, 600_000)), LEAST_COST_NS);
        assert_eq!(calls.cost_ns(&cost(1_000, 1_000)), LEAST_COST_NS);
        assert_eq!(calls.cost_ns(&cost(9_000_000, 9_000_000)), MOST_COST_NS);
        let mut frequencies = Frequencies::new(SECOND);
        frequencies.compare(3 * SECOND, vec![[0, 0]], half_idle(3), [800; 2]);
        let said = frequencies.compare(4 * SECOND, vec![[2 * 51_000, 0]], half_idle(4), [800; 2]);
        let numbers: Vec<_> = said.iter().map(|one| (one.per_second, one.most)).collect();
        assert_eq!(numbers, [(51_000, 50_000)]);
    }

    #[test]
    fn of_a_cpu_that_has_just_come_it_is_not_known_whether_it_is_idle() {
        let mut frequencies = Frequencies::new(SECOND);
        frequencies.compare(3 * SECOND, vec![[0, 0]], vec![0], USUAL);
        let runs = vec![[0, 0], [2 * 90_000, 0]];
        assert_eq!(frequencies.compare(4 * SECOND, runs, vec![0, 0], USUAL), []);
    }

    #[test]
    fn cpus_that_are_offline_have_a_place_among_the_idle_times() {
        let time = |cpu, idle_ns| CpuTime { cpu, idle_ns, busy_ns: 1, stolen_ns: 2 };
        assert_eq!(idle(&[time(0, 5), time(2, 7)]), [5, 0, 7]);
    }

    #[test]
    fn the_first_two_seconds_are_recorded_whole() {
        assert_eq!(said(1, [900_000; 2], [900_000; 2]), []);
        assert_eq!(said(2, [900_000; 2], [900_000; 2]).len(), 2);
        // At the first look, too.
        let mut frequencies = Frequencies::new(SECOND);
        let said = frequencies.compare(3 * SECOND, vec![[900_000; 2]; 2], half_idle(3), USUAL);
        assert_eq!(said.len(), 2);
    }

    #[test]
    fn a_short_time_says_nothing_and_is_part_of_the_next() {
        let mut frequencies = Frequencies::new(SECOND);
        frequencies.look(4 * SECOND, &[], &Cost::default());
        assert_eq!(frequencies.look(4 * SECOND + SECOND / 10, &[], &Cost::default()), []);
        assert_eq!(frequencies.seen_ns, 4 * SECOND);
        let said = frequencies.compare(5 * SECOND, vec![[240_000, 0]], half_idle(1), USUAL);
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
