//! How its threads get a CPU, and how exact their timers are.

use std::collections::BTreeMap;

use model::units::{counted, duration, percentage};

use super::Target;
use crate::doctor::entry::{Entry, Look, get};
use crate::read::cpu_list;

pub(super) const ENTRIES: &[Entry<Target>] = &[
    Entry {
        id: "timer-slack",
        why: "The kernel lets every sleep and timeout of an ordinary thread end this much later.",
        source: "/proc/TID/timerslack_ns of its threads",
        look: |of| {
            // Each thread has its own; the first one shows whether they may be read.
            of.get("timerslack_ns")?;
            let of_thread = |tid: String| get(&format!("/proc/{tid}/timerslack_ns")).ok();
            let slacks = threads(of).filter_map(of_thread).filter_map(|ns| ns.parse().ok());
            timer_slack(&slacks.collect::<Vec<u64>>())
        },
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
            let allowed = cpu_list(of.text("Cpus_allowed_list")?).len();
            let online = cpu_list(&get("/sys/devices/system/cpu/online")?).len();
            Ok(affinity(of.text("Cpus_allowed_list")?, allowed, online, of.number("Threads")?))
        },
    },
    Entry {
        id: "run-queue-share",
        why: "The share of the time in which its threads could run that they spent waiting for a CPU.",
        source: "/proc/PID/task/*/schedstat",
        look: |of| run_queue_share(&schedstats(of)),
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

/// A file of each of its threads.
fn of_threads(of: &Target, file: &str) -> Vec<String> {
    let path = |tid: String| format!("/proc/{}/task/{tid}/{file}", of.pid());
    threads(of).filter_map(|tid| get(&path(tid)).ok()).collect()
}

/// The numbers of its threads; of a process with very many, of the first ones.
fn threads(of: &Target) -> impl Iterator<Item = String> {
    const MOST: usize = 5_000;
    let tasks = std::fs::read_dir(format!("/proc/{}/task", of.pid()));
    let entries = tasks.into_iter().flatten().flatten().take(MOST);
    entries.filter_map(|entry| entry.file_name().into_string().ok())
}

fn timer_slack(threads: &[u64]) -> Result<Look, String> {
    let (least, most) =
        threads.iter().min().zip(threads.iter().max()).ok_or("no thread could be read")?;
    let fact = match least == most {
        true => duration(*most),
        false => format!("{} to {}", duration(*least), duration(*most)),
    };
    Ok(match most {
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
    let counts: Vec<String> =
        classes.iter().map(|(class, n)| format!("{} {class}", counted(*n, "thread"))).collect();
    let fact = counts.join("; ");
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
        return Err("no thread has used a CPU yet, or the kernel does not count it".to_owned());
    }
    let percent = 100.0 * waited as f64 / (ran + waited) as f64;
    const ADVICE: &str = "whylag record -p PID shows who runs instead; CPUs of its own, a real-time \
                          class, or fewer threads.";
    let fact = format!("{} since its threads began", percentage(percent / 100.0));
    let detail = format!("{} waited, {} run", duration(waited), duration(ran));
    Ok(Look::by(percent, 5.0, 30.0, fact, ADVICE).detail(detail).passing())
}

#[cfg(test)]
mod tests {
    use model::CheckResult::{Attention, Bad, Good};

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
    fn classes() {
        let look =
            scheduling(&[stat("S", 0, 0, 0), stat("R", 0, 10, 1), stat("S", 0, 0, 0)]).unwrap();
        assert_eq!((look.fact.as_str(), look.verdict), ("1 thread FIFO 10; 2 threads other", Good));
        assert_eq!(scheduling(&[stat("S", 5, 0, 0)]).unwrap().verdict, Attention);
        assert_eq!(scheduling(&[stat("S", 0, 0, 5)]).unwrap().verdict, Attention);
        assert!(scheduling(&[]).is_err());
    }

    #[test]
    fn this_thread_has_the_class_that_the_kernel_reports() {
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
    fn slack_and_affinity() {
        assert_eq!(timer_slack(&[50_000]).unwrap().verdict, Attention);
        assert_eq!(timer_slack(&[1, 1]).unwrap().fact, "1 ns");
        let mixed = timer_slack(&[1, 50_000, 0]).unwrap();
        assert_eq!((mixed.fact.as_str(), mixed.verdict), ("0 ns to 50.0 us", Attention));
        assert!(timer_slack(&[]).is_err());
        assert_eq!(affinity("0", 1, 8, 20).verdict, Attention);
        assert_eq!(affinity("0-7", 8, 8, 200).verdict, Good);
    }
}
