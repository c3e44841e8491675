//! Who gets the CPUs, and who waits for them.

use model::units::{count, counted, duration, percentage};

use super::cgroups;
use super::cpu::CPUS;
use super::entry::{Entry, Host, Look, get, number, pressure};
use crate::fingerprint::kernel;
use crate::read::cpu_list;

pub(super) const ENTRIES: &[Entry<Host>] = &[
    Entry {
        id: "steal",
        why: "Time that the hypervisor gives to somebody else is missing in whatever thread runs, \
              and nothing in the guest shows it.",
        source: "/proc/stat",
        look: |_| steal(&get("/proc/stat")?),
    },
    Entry {
        id: "cpu-pressure",
        why: "The share of the last ten seconds in which some thread was ready and had no CPU.",
        source: "/proc/pressure/cpu",
        look: |_| Ok(cpu_pressure(pressure("/proc/pressure/cpu")?)),
    },
    Entry {
        id: "rt-throttling",
        why: "Real-time threads may together use 95 % of each second; one that computes for longer \
              is stopped for 50 ms, at the end of each second.",
        source: "/proc/sys/kernel/sched_rt_runtime_us",
        look: |_| {
            let runtime = number("/proc/sys/kernel/sched_rt_runtime_us")?;
            Ok(rt_throttling(runtime, number("/proc/sys/kernel/sched_rt_period_us")?))
        },
    },
    Entry {
        id: "autogroup",
        why: "With autogroups each session gets the same share: a nice value counts only within its \
              own session.",
        source: "/proc/sys/kernel/sched_autogroup_enabled",
        look: |_| Ok(autogroup(number("/proc/sys/kernel/sched_autogroup_enabled")?)),
    },
    Entry {
        id: "preemption",
        why: "A kernel that is not preemptible lets a woken thread wait until a system call of \
              another one ends: milliseconds for large ones.",
        source: "the kernel's configuration",
        look: |_| preemption(&kernel::preemption().value),
    },
    Entry {
        id: "cgroup-throttling",
        why: "A cgroup that has used its quota is stopped until the next period: up to 100 ms, with \
              CPUs idle.",
        source: "cpu.stat of all cgroups",
        look: |_| cgroup_throttling(cgroups::throttled()?),
    },
    Entry {
        id: "run-queue",
        why: "Threads beyond the number of CPUs wait for a turn, a few milliseconds each time.",
        source: "/proc/loadavg",
        look: |_| {
            let load = get("/proc/loadavg")?;
            let running =
                load.split_ascii_whitespace().nth(3).and_then(|part| part.split_once('/'));
            let running = running.and_then(|(running, _)| running.parse::<u64>().ok());
            let online = cpu_list(&get(&format!("{CPUS}/online"))?).len() as u64;
            // One of them is whylag.
            let running = running.ok_or("/proc/loadavg has no count of running threads")?;
            Ok(run_queue(running.saturating_sub(1), online))
        },
    },
];

fn steal(stat: &str) -> Result<Look, String> {
    let fields: Vec<u64> = stat
        .lines()
        .next()
        .unwrap_or_default()
        .split_ascii_whitespace()
        .skip(1)
        .filter_map(|field| field.parse().ok())
        .collect();
    let stolen = *fields.get(7).ok_or("/proc/stat has no stolen time")?;
    // Guest time, behind it, is in user time already.
    let all: u64 = fields[..8].iter().sum();
    let percent = 100.0 * stolen as f64 / all.max(1) as f64;
    let fact = format!("{} of all CPU time since boot", percentage(percent / 100.0));
    const ADVICE: &str = "A virtual machine with CPUs of its own, or a less crowded host; whylag \
                          record shows which intervals were hit.";
    Ok(Look::by(percent, 0.5, 5.0, fact, ADVICE).passing())
}

fn cpu_pressure(percent: f64) -> Look {
    const ADVICE: &str = "whylag record -a shows who runs while others wait.";
    let fact = format!("{} of the last 10 s", percentage(percent / 100.0));
    Look::by(percent, 10.0, 50.0, fact, ADVICE).passing()
}

fn rt_throttling(runtime_us: i64, period_us: i64) -> Look {
    match runtime_us {
        ..0 => Look::good("off"),
        _ if runtime_us >= period_us => Look::good("off"),
        _ => {
            let of_us = |us: i64| duration(us.unsigned_abs() * 1_000);
            let detail = "only matters to real-time threads that never sleep";
            Look::good(format!("{} of each {}", of_us(period_us - runtime_us), of_us(period_us)))
                .detail(detail)
        }
    }
}

fn autogroup(enabled: i64) -> Look {
    match enabled {
        0 => Look::good("off"),
        _ => Look::attention(
            "on",
            "On a server: sysctl kernel.sched_autogroup_enabled=0, so that nice values hold for the \
             whole host.",
        ),
    }
}

fn preemption(model: &str) -> Result<Look, String> {
    if let Some(reason) = model.strip_prefix("unknown: ") {
        return Err(reason.to_owned());
    }
    Ok(match model {
        "none" | "voluntary" => {
            Look::attention(model, "Boot with preempt=full, if the kernel has PREEMPT_DYNAMIC.")
        }
        _ => Look::good(model),
    })
}

fn cgroup_throttling(throttled: cgroups::Throttled) -> Result<Look, String> {
    let seen = counted(throttled.seen, "cgroup");
    let seen = match throttled.are_more {
        true => format!("the first {seen} of more looked at"),
        false => format!("{seen} looked at"),
    };
    let look = match throttled.worst {
        None => Look::good("none throttled since it was made"),
        Some((path, times)) => Look::attention(
            format!("{path} {} times", count(times)),
            "Raise its CPU quota (cpu.max, cpu.cfs_quota_us) or spread its bursts; whylag record -p \
             shows the stalls as throttled.",
        ),
    };
    Ok(look.detail(seen).passing())
}

fn run_queue(running: u64, cpus: u64) -> Look {
    const ADVICE: &str = "whylag record -a shows who runs while others wait.";
    let fact = format!("{} ready on {}", counted(running, "thread"), counted(cpus, "CPU"));
    Look::by(running as f64 / cpus.max(1) as f64, 1.01, 4.0, fact, ADVICE).passing()
}

#[cfg(test)]
mod tests {
    use model::CheckResult::{Attention, Bad, Good};

    use super::*;

    #[test]
    fn shares_and_settings() {
        let stat = |stolen: u64| format!("cpu  100 0 100 {} 0 0 0 {stolen} 7 0\n", 800 - stolen);
        let verdict = |stolen| steal(&stat(stolen)).unwrap().verdict;
        assert_eq!([0, 10, 100].map(verdict), [Good, Attention, Bad]);
        assert!(steal("cpu 1 2 3\n").is_err());
        assert_eq!((cpu_pressure(1.0).verdict, cpu_pressure(60.0).verdict), (Good, Bad));
        assert_eq!(rt_throttling(-1, 1_000_000).fact, "off");
        assert_eq!(rt_throttling(950_000, 1_000_000).fact, "50.0 ms of each 1.00 s");
        assert_eq!(preemption("none").unwrap().verdict, Attention);
        assert_eq!((run_queue(2, 2).verdict, run_queue(9, 2).verdict), (Good, Bad));
        assert_eq!((autogroup(0).verdict, autogroup(1).verdict), (Good, Attention));
        let throttled = |worst| cgroups::Throttled { seen: 7, worst, ..Default::default() };
        assert_eq!(cgroup_throttling(throttled(None)).unwrap().verdict, Good);
        let worst = Some(("/shop".to_owned(), 12));
        assert_eq!(cgroup_throttling(throttled(worst)).unwrap().fact, "/shop 12 times");
        let part = cgroups::Throttled { seen: 4_000, are_more: true, worst: None };
        let look = format!("{:?}", cgroup_throttling(part).unwrap());
        assert!(look.contains("the first 4,000 cgroups of more looked at"), "{look}");
    }
}
