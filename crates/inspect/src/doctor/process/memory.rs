//! Its memory: what of it may have to come from a disk.

use model::units::{bytes, count, counted, percentage};

use super::Target;
use crate::counters;
use crate::doctor::entry::{Entry, Look, get, number, pressure, row};
use crate::fingerprint::cgroup;

pub(super) const ENTRIES: &[Entry<Target>] = &[
    Entry {
        id: "locked-memory",
        why: "Code and data that are not locked can be dropped from memory at any moment; the next \
              touch then waits for the disk.",
        source: "/proc/PID/status, /proc/vmstat",
        look: |of| {
            let kib = |name| of.number(name).map(|kib| kib * 1024);
            let vmstat = get("/proc/vmstat").unwrap_or_default();
            let again = row(&vmstat, "workingset_refault_file");
            Ok(locked(kib("VmLck")?, kib("VmRSS")?, kib("RssFile").unwrap_or(0), again))
        },
    },
    Entry {
        id: "mlock-limit",
        why: "Without the right to lock its memory mlockall() fails, and many programs ignore that.",
        source: "/proc/PID/limits",
        look: |of| mlock_limit(limit(&of.get("limits")?, "Max locked memory")?, of.text("CapEff")?),
    },
    Entry {
        id: "swapped",
        why: "Each page that was swapped out costs a disk read when it is touched.",
        source: "/proc/PID/status",
        look: |of| Ok(swapped(of.number("VmSwap")? * 1024)),
    },
    Entry {
        id: "major-faults",
        why: "How often a thread of it waited for a page from disk.",
        source: "/proc/PID/stat",
        look: |of| major_faults(&of.get("stat")?),
    },
    Entry {
        id: "mappings",
        why: "A long list of mappings makes fork, exit and every reader of /proc/PID/smaps slow, and \
              has a limit.",
        source: "/proc/PID/maps",
        look: |of| {
            let most = number("/proc/sys/vm/max_map_count")?;
            let list = of.process.mappings().map_err(|error| error.to_string())?;
            match list.is_whole {
                true => Ok(mappings(list.all.len() as u64, most.unsigned_abs())),
                false => Err("the list is too long to be read to its end".to_owned()),
            }
        },
    },
    Entry {
        id: "environment",
        why: "Every child that it starts gets a copy of the environment.",
        source: "/proc/PID/environ",
        look: |of| {
            let length = of.get("environ")?.len() as u64;
            const ADVICE: &str = "Start it with a smaller environment (env -i).";
            Ok(Look::by(length as f64, 131_072.0, f64::INFINITY, bytes(length), ADVICE))
        },
    },
    Entry {
        id: "memory-limit",
        why: "At the limit of its cgroup each allocation first frees memory, which drops its own \
              cached files.",
        source: "cgroup of the process",
        look: |of| {
            let readings = counters::process(of.pid());
            let of = |name: &str| {
                readings.iter().filter(|one| one.name == name).map(|one| one.value).max()
            };
            let limit = of("cgroup.memory.limit_bytes");
            let usage =
                of("cgroup.memory.usage_bytes").ok_or("its cgroup has no memory controller")?;
            Ok(memory_limit(limit, usage, of("cgroup.memory.failcnt").unwrap_or(0)))
        },
    },
    Entry {
        id: "cgroup-memory-pressure",
        why: "The share of the last ten seconds in which some thread of its cgroup waited for memory: \
              at its limit that can be much while the host has plenty.",
        source: "memory.pressure of its cgroup (version 2)",
        look: |of| {
            let cgroup = cgroup::directory(&of.pid().to_string(), "");
            let cgroup = cgroup.ok_or("it is in no cgroup of version 2 that can be read")?;
            let percent = pressure(&cgroup.join("memory.pressure").to_string_lossy())?;
            Ok(cgroup_pressure(percent))
        },
    },
    Entry {
        id: "core-limit",
        why: "A process that crashes is not restarted before its memory is written: 700 ms for each \
              GiB, and the disk is busy meanwhile.",
        source: "/proc/PID/limits",
        look: |of| {
            let limit = limit(&of.get("limits")?, "Max core file size")?;
            Ok(core_limit(limit, of.number("VmRSS")? * 1024))
        },
    },
];

/// A soft limit; `u64::MAX` if there is none.
pub(super) fn limit(limits: &str, name: &str) -> Result<u64, String> {
    let line = limits.lines().find_map(|line| line.strip_prefix(name));
    let soft = line.and_then(|line| line.split_ascii_whitespace().next());
    match soft {
        Some("unlimited") => Ok(u64::MAX),
        Some(number) => number.parse().map_err(|_| format!("{name} is no number")),
        None => Err(format!("no {name} in its limits")),
    }
}

/// Nearly no program locks its memory; that costs something where the host drops pages of files
/// that are needed again: `dropped` of them since boot.
fn locked(locked: u64, resident: u64, of_files: u64, dropped: Option<u64>) -> Look {
    let detail = format!("{} resident, {} of it from files", bytes(resident), bytes(of_files));
    match locked {
        0 if dropped == Some(0) => {
            Look::good("nothing is locked, and this host has not dropped a page that was needed")
        }
        0 => Look::attention(
            "nothing is locked",
            "mlockall(MCL_CURRENT | MCL_FUTURE) at start, with LimitMEMLOCK=infinity; it costs \
             memory, and makes the start slower.",
        ),
        // Not all of what is resident is the process's own.
        _ if locked * 2 < resident => Look::attention(
            format!("{} are locked", bytes(locked)),
            "mlockall(MCL_CURRENT | MCL_FUTURE) covers what is mapped later, too.",
        ),
        _ => Look::good(format!("{} are locked", bytes(locked))),
    }
    .detail(detail)
    .passing()
}

fn mlock_limit(limit: u64, capabilities: &str) -> Result<Look, String> {
    const CAP_IPC_LOCK: u32 = 14;
    let capabilities = u64::from_str_radix(capabilities, 16).map_err(|error| error.to_string())?;
    if capabilities >> CAP_IPC_LOCK & 1 == 1 {
        return Ok(Look::good("may lock all (CAP_IPC_LOCK)"));
    }
    Ok(match limit {
        u64::MAX => Look::good("may lock all"),
        0..0x400_0000 => {
            Look::attention(bytes(limit), "LimitMEMLOCK=infinity in its service, or CAP_IPC_LOCK.")
        }
        _ => Look::good(bytes(limit)),
    })
}

fn swapped(amount: u64) -> Look {
    const ADVICE: &str =
        "memory.swap.max=0 for its cgroup, mlockall() in the program, or more memory.";
    Look::by(amount as f64, 1.0, 16.0 * 1024.0 * 1024.0, bytes(amount), ADVICE).passing()
}

fn major_faults(stat: &str) -> Result<Look, String> {
    let fields = stat.rsplit_once(')').map(|(_, fields)| fields).unwrap_or_default();
    let faults = fields.split_ascii_whitespace().nth(9).and_then(|field| field.parse::<u64>().ok());
    let faults = faults.ok_or("its stat has no count of major faults")?;
    const ADVICE: &str = "See locked-memory and memory-pressure; whylag record -p PID shows the \
                          faults that took long.";
    let fact = format!("{} since it began", count(faults));
    Ok(Look::by(faults as f64, 1_000.0, f64::INFINITY, fact, ADVICE).passing())
}

fn mappings(count: u64, most: u64) -> Look {
    let share = 100.0 * count as f64 / most.max(1) as f64;
    const ADVICE: &str = "Fewer and larger mappings (guard pages and mprotect split them); raise \
                          vm.max_map_count if it is near.";
    let fact = counted(count, "mapping");
    let look = match (share, count) {
        (90.0.., _) => Look::bad(fact, ADVICE),
        (50.0.., _) | (_, 20_000..) => Look::attention(fact, ADVICE),
        _ => Look::good(fact),
    };
    look.detail(format!("{} of what is allowed", percentage(share / 100.0))).passing()
}

fn memory_limit(limit: Option<u64>, usage: u64, reached: u64) -> Look {
    // Version 1 writes no limit as the largest multiple of a page.
    let limit = limit.filter(|limit| *limit < 1 << 60);
    let Some(limit) = limit else {
        return Look::good("none").detail(format!("{} used", bytes(usage)));
    };
    let share = 100.0 * usage as f64 / limit.max(1) as f64;
    let fact = format!("{} of {}", percentage(share / 100.0), bytes(limit));
    const ADVICE: &str = "Raise memory.max (memory.limit_in_bytes), or have the program use less.";
    let look = match (share, reached) {
        (95.0.., 1..) => Look::bad(fact, ADVICE),
        (90.0.., _) | (_, 1..) => Look::attention(fact, ADVICE),
        _ => Look::good(fact),
    };
    look.detail(format!("reached {}", counted(reached, "time"))).passing()
}

fn cgroup_pressure(percent: f64) -> Look {
    const ADVICE: &str = "A higher memory.high and memory.max, or fewer cached files of its own; \
                          whylag record -p PID shows who waits.";
    let fact = format!("{} of the last 10 s", percentage(percent / 100.0));
    Look::by(percent, 1.0, 10.0, fact, ADVICE).passing()
}

fn core_limit(limit: u64, resident: u64) -> Look {
    const GIB: u64 = 1 << 30;
    match limit.min(resident) {
        GIB.. => Look::attention(
            format!("a crash writes up to {}", bytes(limit.min(resident))),
            "LimitCORE=0, or a smaller coredump_filter.",
        )
        .passing(),
        _ if limit == 0 => Look::good("none is written"),
        _ => Look::good("less than a GiB would be written").passing(),
    }
}

#[cfg(test)]
mod tests {
    use model::CheckResult::{Attention, Bad, Good};

    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn what_may_be_dropped() {
        let verdict = |much, resident, dropped| locked(much, resident, MIB, dropped).verdict;
        assert_eq!(
            [None, Some(7), Some(0)].map(|n| verdict(0, MIB, n)),
            [Attention, Attention, Good]
        );
        assert_eq!(verdict(MIB, 9 * MIB, Some(7)), Attention);
        assert_eq!(verdict(9 * MIB, 9 * MIB, Some(7)), Good);
        assert_eq!([0, MIB, 99 * MIB].map(|n| swapped(n).verdict), [Good, Attention, Bad]);
        assert_eq!(mlock_limit(65_536, "0000000000000000").unwrap().verdict, Attention);
        assert_eq!(mlock_limit(65_536, "0000000000004000").unwrap().verdict, Good);
        assert_eq!(mlock_limit(u64::MAX, "0").unwrap().verdict, Good);
    }

    #[test]
    fn limits() {
        const LIMITS: &str =
            "Limit  Soft Limit Hard Limit Units\nMax core file size   0   unlimited bytes\n";
        assert_eq!(limit(LIMITS, "Max core file size"), Ok(0));
        assert!(limit(LIMITS, "Max open files").is_err());
        assert_eq!(core_limit(u64::MAX, 4 << 30).verdict, Attention);
        assert_eq!(core_limit(0, 4 << 30).verdict, Good);
        assert_eq!(
            [0.0, 3.0, 40.0].map(|percent| cgroup_pressure(percent).verdict),
            [Good, Attention, Bad]
        );
        assert_eq!(memory_limit(None, MIB, 0).verdict, Good);
        assert_eq!(memory_limit(Some(i64::MAX as u64 & !4095), MIB, 0).fact, "none");
        assert_eq!(memory_limit(Some(100 * MIB), 99 * MIB, 7).verdict, Bad);
        assert_eq!(memory_limit(Some(100 * MIB), 50 * MIB, 7).verdict, Attention);
        assert_eq!((mappings(70, 65_530).verdict, mappings(64_000, 65_530).verdict), (Good, Bad));
        assert_eq!(mappings(30_000, 1 << 20).verdict, Attention);
    }
}
