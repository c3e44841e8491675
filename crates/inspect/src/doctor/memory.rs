//! Memory: settings that make a page fault slow.

use model::units::{bytes, counted, percentage};

use super::entry::{Entry, Host, Look, choice, get, number, row};

const THP: &str = "/sys/kernel/mm/transparent_hugepage";

pub(super) const ENTRIES: &[Entry<Host>] = &[
    Entry {
        id: "thp",
        why: "With huge pages for everyone a page fault may clear 2 MiB instead of 4 KiB (about \
              100 us), and khugepaged takes mmap_lock to merge pages.",
        source: "/sys/kernel/mm/transparent_hugepage/enabled",
        look: |_| Ok(thp(&choice(&format!("{THP}/enabled"))?)),
    },
    Entry {
        id: "thp-defrag",
        why: "With direct defragmentation a page fault moves other pages about until 2 MiB are free: \
              milliseconds.",
        source: "/sys/kernel/mm/transparent_hugepage/defrag",
        look: |_| {
            let defrag = choice(&format!("{THP}/defrag"))?;
            Ok(thp_defrag(&choice(&format!("{THP}/enabled"))?, &defrag))
        },
    },
    Entry {
        id: "swappiness",
        why: "How readily the kernel swaps out a program's own memory to keep files cached.",
        source: "/proc/sys/vm/swappiness",
        look: |_| {
            let has_swap = get("/proc/swaps")?.lines().count() > 1;
            Ok(swappiness(number("/proc/sys/vm/swappiness")?, has_swap))
        },
    },
    Entry {
        id: "zone-reclaim",
        why: "With it the kernel frees memory of the own node, waiting for disks, although other \
              nodes have free memory.",
        source: "/proc/sys/vm/zone_reclaim_mode",
        look: |_| Ok(zone_reclaim(number("/proc/sys/vm/zone_reclaim_mode")?)),
    },
    Entry {
        id: "numa-balancing",
        why: "It unmaps pages to see who uses them: each then costs a page fault, and may be moved.",
        source: "/proc/sys/kernel/numa_balancing",
        look: |_| {
            let nodes = super::entry::numbered("/sys/devices/system/node", "node").len();
            Ok(numa_balancing(number("/proc/sys/kernel/numa_balancing"), nodes))
        },
    },
    Entry {
        id: "min-free",
        why: "Below this reserve a thread that allocates must free memory itself before it goes on.",
        source: "/proc/sys/vm/min_free_kbytes",
        look: |_| {
            let total = row(&get("/proc/meminfo")?, "MemTotal").unwrap_or(0);
            let kib = number("/proc/sys/vm/min_free_kbytes")?;
            Ok(min_free(u64::try_from(kib).unwrap_or(0) * 1024, total * 1024))
        },
    },
    Entry {
        id: "ksm",
        why: "A merged page has to be copied at the next write, with a page fault.",
        source: "/sys/kernel/mm/ksm/run",
        look: |_| Ok(ksm(number("/sys/kernel/mm/ksm/run")?)),
    },
    Entry {
        id: "overcommit",
        why: "With strict accounting fork and large allocations fail early; without any, the kernel \
              kills processes later.",
        source: "/proc/sys/vm/overcommit_memory",
        look: |_| Ok(overcommit(number("/proc/sys/vm/overcommit_memory")?)),
    },
    Entry {
        id: "vmstat-interval",
        why: "How often each CPU folds its memory counters, in a kernel thread that interrupts what \
              runs there.",
        source: "/proc/sys/vm/stat_interval",
        look: |_| {
            let seconds = number("/proc/sys/vm/stat_interval")?;
            let isolated = get("/sys/devices/system/cpu/isolated").unwrap_or_default();
            Ok(vmstat_interval(seconds, !isolated.is_empty()))
        },
    },
    Entry {
        id: "proactive-compaction",
        why: "kcompactd moves pages in the background; those it moves cost a fault or a wait.",
        source: "/proc/sys/vm/compaction_proactiveness",
        look: |_| {
            let n = number("/proc/sys/vm/compaction_proactiveness")?;
            Ok(Look::good(if n == 0 { "off".to_owned() } else { format!("{n} of 100") }))
        },
    },
];

fn thp(enabled: &str) -> Look {
    match enabled {
        "always" => Look::attention(
            enabled,
            "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled: only programs that ask get \
             them.",
        ),
        _ => Look::good(enabled),
    }
}

fn thp_defrag(enabled: &str, defrag: &str) -> Look {
    match (enabled, defrag) {
        ("never", _) => Look::good(defrag).detail("huge pages are off"),
        (_, "always") => Look::attention(
            defrag,
            "echo defer+madvise > /sys/kernel/mm/transparent_hugepage/defrag.",
        ),
        _ => Look::good(defrag),
    }
}

fn swappiness(value: i64, has_swap: bool) -> Look {
    match (has_swap, value) {
        (true, 11..) => Look::attention(value, "sysctl vm.swappiness=1 for latency."),
        (true, _) => Look::good(value),
        (false, _) => Look::good(value).detail("there is no swap"),
    }
}

fn zone_reclaim(mode: i64) -> Look {
    match mode {
        0 => Look::good("off"),
        _ => Look::bad(format!("mode {mode}"), "sysctl vm.zone_reclaim_mode=0."),
    }
}

fn numa_balancing(value: Result<i64, String>, nodes: usize) -> Look {
    match value {
        Ok(mode) if mode != 0 && nodes > 1 => Look::attention(
            "on",
            "Bind threads and memory to nodes (numactl) and set sysctl kernel.numa_balancing=0.",
        ),
        Ok(mode) if mode != 0 => Look::good("on").detail("one node: nothing to move"),
        Ok(_) => Look::good("off"),
        Err(_) => Look::good("not in this kernel"),
    }
}

fn min_free(reserve: u64, total: u64) -> Look {
    let share = 100.0 * reserve as f64 / total.max(1) as f64;
    let fact = bytes(reserve);
    let detail = format!("{} of {}", percentage(share / 100.0), bytes(total));
    match share < 0.1 {
        true => Look::attention(
            fact,
            "Raise vm.min_free_kbytes (0.5 to 1 % of memory), or vm.watermark_scale_factor, so that \
             kswapd starts earlier.",
        ),
        false => Look::good(fact),
    }
    .detail(detail)
}

fn ksm(run: i64) -> Look {
    match run {
        1 => Look::attention("on", "echo 2 > /sys/kernel/mm/ksm/run unmerges and stops it."),
        _ => Look::good("off"),
    }
}

fn overcommit(mode: i64) -> Look {
    match mode {
        2 => Look::attention(
            "strict",
            "Make sure that CommitLimit leaves room for fork() of the largest process.",
        ),
        0 => Look::good("heuristic"),
        _ => Look::good("always"),
    }
}

fn vmstat_interval(seconds: i64, is_isolated: bool) -> Look {
    let fact = counted(u64::try_from(seconds).unwrap_or(0), "second");
    match is_isolated && seconds <= 1 {
        true => Look::attention(fact, "With isolated CPUs: sysctl vm.stat_interval=120."),
        false => Look::good(fact),
    }
}

#[cfg(test)]
mod tests {
    use model::CheckResult::{Attention, Bad, Good};

    use super::*;

    #[test]
    fn settings() {
        assert_eq!(
            ["always", "madvise", "never"].map(|how| thp(how).verdict),
            [Attention, Good, Good]
        );
        assert_eq!(thp_defrag("always", "always").verdict, Attention);
        assert_eq!(thp_defrag("never", "always").verdict, Good);
        assert_eq!(
            (swappiness(60, true).verdict, swappiness(60, false).verdict),
            (Attention, Good)
        );
        assert_eq!((zone_reclaim(0).verdict, zone_reclaim(1).verdict), (Good, Bad));
        assert_eq!(numa_balancing(Ok(1), 2).verdict, Attention);
        assert_eq!(numa_balancing(Ok(1), 1).verdict, Good);
        assert_eq!(numa_balancing(Err("none".into()), 2).verdict, Good);
        assert_eq!((ksm(0).verdict, ksm(1).verdict, ksm(2).verdict), (Good, Attention, Good));
        assert_eq!([0, 1, 2].map(|mode| overcommit(mode).verdict), [Good, Good, Attention]);
        assert_eq!(min_free(64 << 20, 24 << 30).verdict, Good);
        assert_eq!(min_free(8 << 20, 24 << 30).verdict, Attention);
        assert_eq!(
            (vmstat_interval(1, true).verdict, vmstat_interval(1, false).verdict),
            (Attention, Good)
        );
    }
}
