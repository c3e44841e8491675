//! What holds its threads up from outside.

use model::Fact;
use model::units::{self, count, counted};

use super::Target;
use super::scheduling::Stat;
use crate::counters;
use crate::doctor::entry::{Entry, Look};
use crate::fingerprint::cgroup;

pub(super) const ENTRIES: &[Entry<Target>] = &[
    Entry {
        id: "thread-states",
        why: "A stopped thread does nothing; one in state D waits for a disk or a lock of the kernel.",
        source: "/proc/PID/task/*/stat",
        look: |of| thread_states(of.stats()),
    },
    Entry {
        id: "traced",
        why: "A tracer stops the process at each system call or signal: 60 to 70 us each.",
        source: "/proc/PID/status",
        look: |of| Ok(traced(of.number("TracerPid")?)),
    },
    Entry {
        id: "seccomp",
        why: "A filter runs at each system call; the longer it is, the more each of them costs.",
        source: "/proc/PID/status",
        look: |of| Ok(seccomp(of.number("Seccomp")?, of.number("Seccomp_filters").unwrap_or(1))),
    },
    Entry {
        id: "cpu-quota",
        why: "When its cgroup has used the quota, all of its threads stop until the next period, \
              with CPUs idle.",
        source: "cgroup of the process",
        look: |of| {
            let facts = cgroup::facts(&of.pid().to_string());
            let throttled = counters::process(of.pid()).into_iter();
            let throttled = throttled.filter(|one| one.name == "cgroup.cpu.nr_throttled");
            cpu_quota(&facts, throttled.map(|one| one.value).max().unwrap_or(0))
        },
    },
    Entry {
        id: "threads",
        why: "Reading the process's CPU time, signals and exit walk through all of its threads.",
        source: "/proc/PID/status",
        look: |of| {
            let threads = of.number("Threads")?;
            const ADVICE: &str = "Fewer threads, or several processes.";
            let fact = counted(threads, "thread");
            Ok(Look::by(threads as f64, 1_000.0, f64::INFINITY, fact, ADVICE).passing())
        },
    },
];

fn thread_states(stats: &[Stat]) -> Result<Look, String> {
    let count = |states: &str| {
        let is_so =
            |stat: &&Stat| stat.first().is_some_and(|state| states.contains(state.as_str()));
        stats.iter().filter(is_so).count() as u64
    };
    if stats.is_empty() {
        return Err("none of its threads can be read".to_owned());
    }
    let (stopped, waiting) = (count("Tt"), count("D"));
    Ok(match (stopped, waiting) {
        (1.., _) => Look::bad(
            format!("{} stopped", counted(stopped, "thread")),
            "kill -CONT, or end the debugger that holds it.",
        ),
        (_, 1..) => Look::attention(
            format!("{} in state D", counted(waiting, "thread")),
            "whylag record -p PID shows what for.",
        ),
        _ => Look::good("none stopped or in state D"),
    }
    .passing())
}

fn traced(tracer: u64) -> Look {
    match tracer {
        0 => Look::good("no").passing(),
        _ => Look::bad(format!("by process {tracer}"), "End the tracer (strace, gdb, an agent).")
            .passing(),
    }
}

fn seccomp(mode: u64, filters: u64) -> Look {
    match mode {
        0 => Look::good("none"),
        _ => Look::attention(
            counted(filters, "filter"),
            "Shorter filters, most frequent calls first; or none for this program (docker run \
             --security-opt seccomp=unconfined).",
        ),
    }
}

fn cpu_quota(facts: &[Fact], throttled: u64) -> Result<Look, String> {
    let value = |name: &str| facts.iter().find(|fact| fact.name == name).map(|fact| &*fact.value);
    let quota = value("cgroup.cpu.quota_us").ok_or("it is in no cgroup that can be read")?;
    if let Some(because) = quota.strip_prefix("unknown: ") {
        return Err(because.to_owned());
    }
    let number = |text: Option<&str>| text.and_then(|text| text.parse::<f64>().ok());
    let (Some(quota), Some(period)) = (number(Some(quota)), number(value("cgroup.cpu.period_us")))
    else {
        return Ok(Look::good("none"));
    };
    let fact = format!("{} CPUs", units::number(quota / period));
    const ADVICE: &str = "Raise cpu.max (cpu.cfs_quota_us), allow bursts (cpu.max.burst), or run \
                          fewer threads at a time.";
    let look = match throttled {
        0 => Look::attention(&fact, ADVICE),
        _ => Look::bad(&fact, ADVICE),
    };
    Ok(look.detail(format!("throttled {} times", count(throttled))))
}

#[cfg(test)]
mod tests {
    use model::CheckResult::{Attention, Bad, Good};

    use super::*;

    #[test]
    fn stopped_and_watched() {
        let state = |state: &str| thread_states(&[vec![state.to_owned()]]).unwrap().verdict;
        assert_eq!(["S", "D", "T", "t", "R"].map(state), [Good, Attention, Bad, Bad, Good]);
        assert!(thread_states(&[]).is_err());
        assert_eq!((traced(0).verdict, traced(7).verdict), (Good, Bad));
        assert_eq!((seccomp(0, 0).verdict, seccomp(2, 3).fact), (Good, "3 filters".to_owned()));
    }

    #[test]
    fn quotas() {
        let fact = |name: &str, value: &str| Fact {
            name: name.into(),
            value: value.into(),
            source: "x".into(),
        };
        let quota = [fact("cgroup.cpu.quota_us", "20000"), fact("cgroup.cpu.period_us", "100000")];
        assert_eq!(cpu_quota(&quota, 0).unwrap().fact, "0.200 CPUs");
        assert_eq!(cpu_quota(&quota, 9).unwrap().verdict, Bad);
        assert_eq!(cpu_quota(&[fact("cgroup.cpu.quota_us", "none")], 0).unwrap().verdict, Good);
        assert!(cpu_quota(&[], 0).is_err());
    }
}
