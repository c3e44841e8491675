//! How its threads get a CPU, and how exact their timers are.

use std::collections::BTreeMap;

use model::Fact;

use super::Target;
use crate::counters;
use crate::doctor::entry::{Entry, Look, counted, cpus, get, thousands};
use crate::fingerprint::cgroup;

pub(super) const ENTRIES: &[Entry<Target>] = &[
    Entry {
        id: "timer-slack",
        why: "The kernel lets every sleep and timeout of an ordinary thread end this much later.",
        source: "/proc/PID/timerslack_ns",
        look: |of| timer_slack(&of.get("timerslack_ns")?),
    },
    Entry {
        id: "scheduling",
        why: "Class and nice value decide who waits when there are more threads than CPUs.",
        source: "/proc/PID/task/*/stat",
        look: |of| scheduling(of.stats()),
    },
    Entry {
        id: "affinity",
        why: "Threads bound to few CPUs wait for these while others are idle.",
        source: "/proc/PID/status",
        look: |of| {
            let allowed = cpus(of.text("Cpus_allowed_list")?).len();
            let online = cpus(&get("/sys/devices/system/cpu/online")?).len();
            Ok(affinity(of.text("Cpus_allowed_list")?, allowed, online, of.number("Threads")?))
        },
    },
    Entry {
        id: "run-queue-share",
        why: "The share of the time in which its threads could run that they spent waiting for a CPU.",
        source: "/proc/PID/task/*/schedstat",
        look: |of| run_queue_share(&schedstats(of)),
    },
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
        why: "A filter runs at each system call; the longer it is, the dearer each of them.",
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

/// Fields of /proc/PID/task/TID/stat after the name.
pub(super) type Stat = Vec<String>;

/// Those of each thread.
pub(super) fn read(of: &Target) -> Vec<Stat> {
    let of_thread = |stat: String| {
        let (_, fields) = stat.rsplit_once(')')?;
        Some(fields.split_ascii_whitespace().map(str::to_owned).collect())
    };
    of_threads(of, "stat").into_iter().filter_map(of_thread).collect()
}

/// (time on a CPU, time waiting for one) of each thread, ns.
fn schedstats(of: &Target) -> Vec<(u64, u64)> {
    let of_thread = |text: String| {
        let mut words = text.split_ascii_whitespace().map(str::parse);
        Some((words.next()?.ok()?, words.next()?.ok()?))
    };
    of_threads(of, "schedstat").into_iter().filter_map(of_thread).collect()
}

/// A file of each of its threads; of a process with very many, of the first ones.
fn of_threads(of: &Target, file: &str) -> Vec<String> {
    const MOST: usize = 5_000;
    let tasks = format!("/proc/{}/task", of.pid());
    let entries = std::fs::read_dir(tasks).into_iter().flatten().flatten().take(MOST);
    entries.filter_map(|entry| get(&entry.path().join(file).to_string_lossy()).ok()).collect()
}

fn timer_slack(text: &str) -> Result<Look, String> {
    let ns: u64 = text.parse().map_err(|_| "timerslack_ns is no number".to_owned())?;
    let fact = format!("{} us", ns as f64 / 1_000.0);
    Ok(match ns {
        10_000.. => Look::attention(
            fact,
            "prctl(PR_SET_TIMERSLACK, 1) in threads whose timers must be exact; it is inherited.",
        ),
        // Real-time threads have none.
        _ => Look::good(fact),
    })
}

/// Field of stat after the name: state is 0, nice 16, priority 37, policy 38.
fn field(stat: &[String], at: usize) -> i64 {
    stat.get(at).and_then(|field| field.parse().ok()).unwrap_or(0)
}

fn scheduling(stats: &[Stat]) -> Result<Look, String> {
    let name = |stat: &Stat| match (field(stat, 38), field(stat, 37), field(stat, 16)) {
        (1, priority, _) => format!("FIFO {priority}"),
        (2, priority, _) => format!("RR {priority}"),
        (3, ..) => "batch".to_owned(),
        (5, ..) => "idle".to_owned(),
        (6, ..) => "deadline".to_owned(),
        (_, _, 0) => "other".to_owned(),
        (_, _, nice) => format!("other, nice {nice}"),
    };
    let mut classes: BTreeMap<String, u64> = BTreeMap::new();
    for stat in stats {
        *classes.entry(name(stat)).or_default() += 1;
    }
    if classes.is_empty() {
        return Err("none of its threads can be read".to_owned());
    }
    let told: Vec<String> =
        classes.iter().map(|(class, n)| format!("{} {class}", counted(*n, "thread"))).collect();
    let fact = told.join("; ");
    let is_behind = |stat: &Stat| {
        matches!(field(stat, 38), 3 | 5) || (field(stat, 38) == 0 && field(stat, 16) > 0)
    };
    Ok(match stats.iter().any(is_behind) {
        true => {
            Look::attention(fact, "Threads that must be fast want nice 0 or less (chrt, renice).")
        }
        false => Look::good(fact),
    })
}

fn affinity(list: &str, allowed: usize, online: usize, threads: u64) -> Look {
    let fact = format!("CPUs {list}");
    match allowed < online && threads > 4 * allowed as u64 {
        true => Look::attention(
            format!("{fact} for {}", counted(threads, "thread")),
            "Give it more CPUs (taskset -ap, cpuset of its cgroup), or fewer threads.",
        ),
        false => Look::good(fact).detail(format!("{allowed} of {online}")),
    }
}

fn run_queue_share(threads: &[(u64, u64)]) -> Result<Look, String> {
    let ran: u64 = threads.iter().map(|(ran, _)| ran).sum();
    let waited: u64 = threads.iter().map(|(_, waited)| waited).sum();
    if ran == 0 {
        return Err("no thread has used a CPU yet, or the kernel does not tell".to_owned());
    }
    let percent = 100.0 * waited as f64 / (ran + waited) as f64;
    const ADVICE: &str = "whylag record -p PID shows who runs instead; CPUs of its own, a real-time \
                          class, or fewer threads.";
    let fact = format!("{percent:.1} % since its threads began");
    let detail = format!("{:.2} s waited, {:.2} s run", waited as f64 / 1e9, ran as f64 / 1e9);
    Ok(Look::by(percent, 5.0, 30.0, fact, ADVICE).detail(detail).passing())
}

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
    let fact = format!("{:.2} CPUs", quota / period);
    const ADVICE: &str = "Raise cpu.max (cpu.cfs_quota_us), allow bursts (cpu.max.burst), or run \
                          fewer threads at a time.";
    let look = match throttled {
        0 => Look::attention(&fact, ADVICE),
        _ => Look::bad(&fact, ADVICE),
    };
    Ok(look.detail(format!("throttled {} times", thousands(throttled))))
}

#[cfg(test)]
mod tests {
    use model::Verdict::{Attention, Bad, Good};

    use super::*;

    fn stat(state: &str, nice: i64, priority: i64, policy: i64) -> Stat {
        let mut fields = vec!["0".to_owned(); 50];
        fields[0] = state.to_owned();
        fields[16] = nice.to_string();
        fields[37] = priority.to_string();
        fields[38] = policy.to_string();
        fields
    }

    #[test]
    fn classes_and_states() {
        let look =
            scheduling(&[stat("S", 0, 0, 0), stat("R", 0, 10, 1), stat("S", 0, 0, 0)]).unwrap();
        assert_eq!((look.fact.as_str(), look.verdict), ("1 thread FIFO 10; 2 threads other", Good));
        assert_eq!(scheduling(&[stat("S", 5, 0, 0)]).unwrap().verdict, Attention);
        assert_eq!(scheduling(&[stat("S", 0, 0, 5)]).unwrap().verdict, Attention);
        assert!(scheduling(&[]).is_err());
        let state = |state| thread_states(&[stat(state, 0, 0, 0)]).unwrap().verdict;
        assert_eq!(["S", "D", "T", "t", "R"].map(state), [Good, Attention, Bad, Bad, Good]);
    }

    #[test]
    fn this_thread_has_the_class_that_the_kernel_tells() {
        let process = crate::live::Process::open(std::process::id()).unwrap();
        let target = Target::new(process, Ok(Vec::new()));
        let stats = target.stats();
        assert!(stats.len() > 1);
        // SAFETY: asks for the class of the calling thread.
        let policy = unsafe { libc::sched_getscheduler(0) };
        assert!(stats.iter().any(|stat| field(stat, 38) == i64::from(policy)));
        let share = run_queue_share(&[(900, 100)]).unwrap();
        assert_eq!(
            (share.verdict, run_queue_share(&[(50, 50)]).unwrap().verdict),
            (Attention, Bad)
        );
    }

    #[test]
    fn limits_and_watchers() {
        assert_eq!(timer_slack("50000").unwrap().verdict, Attention);
        assert_eq!(timer_slack("1").unwrap().fact, "0.001 us");
        assert_eq!((traced(0).verdict, traced(7).verdict), (Good, Bad));
        assert_eq!((seccomp(0, 0).verdict, seccomp(2, 3).fact), (Good, "3 filters".to_owned()));
        assert_eq!(affinity("0", 1, 8, 20).verdict, Attention);
        assert_eq!(affinity("0-7", 8, 8, 200).verdict, Good);
        let fact = |name: &str, value: &str| Fact {
            name: name.into(),
            value: value.into(),
            source: "x".into(),
        };
        let quota = [fact("cgroup.cpu.quota_us", "20000"), fact("cgroup.cpu.period_us", "100000")];
        assert_eq!(cpu_quota(&quota, 0).unwrap().fact, "0.20 CPUs");
        assert_eq!(cpu_quota(&quota, 9).unwrap().verdict, Bad);
        assert_eq!(cpu_quota(&[fact("cgroup.cpu.quota_us", "none")], 0).unwrap().verdict, Good);
        assert!(cpu_quota(&[], 0).is_err());
    }
}
