//! How much memory is in use, and who has waited for some.

use model::units::{self, bytes, percentage};

use super::entry::{Entry, Host, Look, get, pressure, row};

const PAGE: u64 = 4096;

pub(super) const ENTRIES: &[Entry<Host>] = &[
    Entry {
        id: "swap",
        why: "A page that was swapped out costs a disk read when it is touched again.",
        source: "/proc/swaps, /proc/meminfo",
        look: |_| {
            let meminfo = get("/proc/meminfo")?;
            let of = |name: &str| row(&meminfo, name).unwrap_or(0) * 1024;
            Ok(swap(of("SwapTotal"), of("SwapFree")))
        },
    },
    Entry {
        id: "dirty-limits",
        why: "Above the limit every writer is paused while the disk catches up; the more may be \
              dirty, the longer each burst of writeback.",
        source: "/proc/vmstat",
        look: |host| {
            let background = host.vmstat("nr_dirty_background_threshold")? * PAGE;
            Ok(dirty_limits(background, host.vmstat("nr_dirty_threshold")? * PAGE))
        },
    },
    Entry {
        id: "memory-pressure",
        why: "The share of the last ten seconds in which some thread waited for memory.",
        source: "/proc/pressure/memory",
        look: |_| Ok(memory_pressure(pressure("/proc/pressure/memory")?)),
    },
    Entry {
        id: "memory-available",
        why: "When little is available, caches are dropped and programs' files must be read from \
              disk again.",
        source: "/proc/meminfo",
        look: |_| {
            let meminfo = get("/proc/meminfo")?;
            let of = |name: &str| row(&meminfo, name).map(|kib| kib * 1024);
            let available = of("MemAvailable").ok_or("no MemAvailable in /proc/meminfo")?;
            Ok(available_memory(available, of("MemTotal").unwrap_or(0)))
        },
    },
    Entry {
        id: "direct-reclaim",
        why: "How often a thread that asked for memory had to free some itself first.",
        source: "/proc/vmstat",
        look: |host| Ok(so_far(host.vmstat_sum("allocstall_"), 100.0, RECLAIM)),
    },
    Entry {
        id: "compaction-stalls",
        why: "How often a thread that asked for memory had to move pages about first.",
        source: "/proc/vmstat",
        look: |host| Ok(so_far(host.vmstat("compact_stall")?, 100.0, COMPACTION)),
    },
    Entry {
        id: "oom-kills",
        why: "Before each the host or a cgroup was out of memory, and all who asked for some waited.",
        source: "/proc/vmstat",
        look: |host| Ok(so_far(host.vmstat("oom_kill")?, 1.0, OOM)),
    },
];

const RECLAIM: &str = "More memory, or a higher vm.min_free_kbytes, so that kswapd frees it ahead; \
                       whylag record shows who waits.";
const COMPACTION: &str = "See thp-defrag; reserve huge pages at boot if they are needed.";
const OOM: &str = "The kernel's log has the victims; see log-oom.";

fn swap(total: u64, free: u64) -> Look {
    let used = total.saturating_sub(free);
    match (total, used) {
        (0, _) => Look::good("none"),
        (_, 0) => Look::good("not used").detail(bytes(total)),
        _ => Look::attention(
            format!("{} used", bytes(used)),
            "mlockall() in programs that must not wait for disks, memory.swap.max=0 for their \
             cgroup, or swapoff.",
        )
        .detail(format!("of {}", bytes(total)))
        .passing(),
    }
}

fn dirty_limits(background: u64, limit: u64) -> Look {
    let fact = format!("written from {}, paused at {}", bytes(background), bytes(limit));
    const GIB: u64 = 1 << 30;
    match limit >= GIB {
        true => Look::attention(
            "a gibibyte or more",
            "vm.dirty_background_bytes and vm.dirty_bytes at what the disk writes in 0.1 and 1 s.",
        )
        .detail(fact),
        false => Look::good("below a gibibyte").detail(fact),
    }
}

fn memory_pressure(percent: f64) -> Look {
    const ADVICE: &str = "See memory-available and the limits of cgroups; whylag record shows who \
                          waits in reclaim.";
    let fact = format!("{} of the last 10 s", percentage(percent / 100.0));
    Look::by(percent, 1.0, 10.0, fact, ADVICE).passing()
}

fn available_memory(available: u64, total: u64) -> Look {
    let share = 100.0 * available as f64 / total.max(1) as f64;
    let fact = percentage(share / 100.0);
    const ADVICE: &str = "Find the largest (ps aux --sort -rss | head), or add memory.";
    Look::by(100.0 - share, 90.0, 97.0, fact, ADVICE)
        .detail(format!("{} of {}", bytes(available), bytes(total)))
        .passing()
}

/// A count since boot.
fn so_far(count: u64, attention: f64, advice: &str) -> Look {
    let fact = format!(
        "{} since boot",
        if count == 1 { "once".to_owned() } else { format!("{} times", units::count(count)) }
    );
    Look::by(count as f64, attention, f64::INFINITY, fact, advice).passing()
}

#[cfg(test)]
mod tests {
    use model::CheckResult::{Attention, Bad, Good};

    use super::*;

    #[test]
    fn amounts() {
        assert_eq!(swap(0, 0).verdict, Good);
        assert_eq!(dirty_limits(512 << 20, 5 << 30).verdict, Attention);
        assert_eq!(dirty_limits(64 << 20, 512 << 20).verdict, Good);
        assert_eq!(swap(8 << 30, 8 << 30).fact, "not used");
        assert_eq!(swap(8 << 30, 7 << 30).fact, "1 GiB used");
        assert_eq!((memory_pressure(0.0).verdict, memory_pressure(30.0).verdict), (Good, Bad));
        assert_eq!(available_memory(1 << 30, 100 << 30).verdict, Bad);
        assert_eq!(available_memory(5 << 30, 100 << 30).verdict, Attention);
        assert_eq!(so_far(1, 1.0, OOM).fact, "once since boot");
        assert_eq!(so_far(20, 100.0, RECLAIM).verdict, Good);
    }
}
