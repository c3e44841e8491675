//! How many there are of things that somebody walks through one by one.

use model::units::{count, counted, percentage};

use super::entry::{Entry, Host, Look, get, number};

pub(super) const ENTRIES: &[Entry<Host>] = &[
    Entry {
        id: "tasks",
        why: "Every ps, top and monitoring agent walks through all threads: 45 us for each thousand, \
              with locks that fork and exit need.",
        source: "/proc/loadavg",
        look: |_| {
            let load = get("/proc/loadavg")?;
            let all = load.split_ascii_whitespace().nth(3).and_then(|part| part.split_once('/'));
            let all = all.and_then(|(_, all)| all.parse().ok()).ok_or("no count of threads")?;
            let most = number("/proc/sys/kernel/threads-max")?;
            Ok(tasks(all, most.min(number("/proc/sys/kernel/pid_max")?)))
        },
    },
    Entry {
        id: "sockets",
        why: "netstat, ss and scrapers walk through all sockets of a family and hold the locks that \
              creating one needs.",
        source: "/proc/net/protocols",
        look: |_| Ok(sockets(&get("/proc/net/protocols")?)),
    },
    Entry {
        id: "unix-sockets",
        why: "Bound AF_UNIX sockets share hash chains: binding one gets slower with each that \
              exists.",
        source: "/proc/net/protocols",
        look: |_| {
            let protocols = get("/proc/net/protocols")?;
            let unix = families(&protocols).into_iter().find(|(name, _)| *name == "UNIX");
            Ok(unix_sockets(unix.map_or(0, |(_, count)| count)))
        },
    },
    Entry {
        id: "sysv-ids",
        why: "Semaphores and shared memory of System V share one table and its lock; leftovers of \
              killed programs stay for ever.",
        source: "semctl(SEM_INFO), shmctl(IPC_INFO), msgctl(MSG_INFO)",
        look: |_| {
            let [semaphores, memory, queues] = system_v()?;
            Ok(sysv(semaphores, memory, queues))
        },
    },
    Entry {
        id: "max-map-count",
        why: "A process that reaches this number of mappings cannot map any more: mmap and \
              pthread_create fail.",
        source: "/proc/sys/vm/max_map_count",
        look: |_| Ok(max_map_count(number("/proc/sys/vm/max_map_count")?)),
    },
    Entry {
        id: "descriptors",
        why: "When the host has no descriptors left, open() and accept() fail for everybody.",
        source: "/proc/sys/fs/file-nr",
        look: |_| {
            let numbers: Vec<u64> = get("/proc/sys/fs/file-nr")?
                .split_ascii_whitespace()
                .filter_map(|word| word.parse().ok())
                .collect();
            match numbers[..] {
                [used, _, most] => Ok(descriptors(used, most)),
                _ => Err("/proc/sys/fs/file-nr has no three numbers".to_owned()),
            }
        },
    },
    Entry {
        id: "dentries",
        why: "Ten million cached names, most of them of files that are gone, make path look-ups and \
              reclaim slow.",
        source: "/proc/sys/fs/dentry-state",
        look: |_| Ok(dentries(number("/proc/sys/fs/dentry-state")?)),
    },
    Entry {
        id: "cgroups",
        why: "Deleted cgroups that still own cached pages stay, and each is walked by reclaim and \
              statistics.",
        source: "/proc/cgroups",
        look: |_| Ok(cgroups(&get("/proc/cgroups")?)),
    },
    Entry {
        id: "mounts",
        why: "Every read of the mount table, by df, systemd and container runtimes, walks all of \
              them under a lock.",
        source: "/proc/self/mountinfo",
        look: |_| {
            let mounts = get("/proc/self/mountinfo")?.lines().count();
            const ADVICE: &str =
                "Unmount what is left over; give containers namespaces of their own.";
            let fact = counted(mounts as u64, "mount");
            Ok(Look::by(mounts as f64, 1_000.0, 10_000.0, fact, ADVICE).passing())
        },
    },
];

fn tasks(all: u64, most: i64) -> Look {
    let share = 100.0 * all as f64 / most.max(1) as f64;
    const ADVICE: &str = "Fewer threads; slower monitoring agents, or agents that read only what they \
                          need; kernel.pid_max and kernel.threads-max if the limit is near.";
    let fact = counted(all, "thread");
    match (share, all) {
        (90.0.., _) => Look::bad(fact, ADVICE),
        // As many as this made a scan of /proc 30 times as long as on an idle host.
        (50.0.., _) | (_, 20_000..) => Look::attention(fact, ADVICE),
        _ => Look::good(fact),
    }
    .detail(format!("{} of what is allowed", percentage(share / 100.0)))
    .passing()
}

/// Sockets by protocol, 6 and 4 together; stream and other sockets of AF_UNIX together.
fn families(protocols: &str) -> Vec<(&'static str, u64)> {
    let count = |names: &[&str]| {
        let of = |line: &str| {
            let mut fields = line.split_ascii_whitespace();
            names.contains(&fields.next()?).then(|| fields.nth(1)?.parse::<u64>().ok())?
        };
        protocols.lines().filter_map(of).sum()
    };
    vec![
        ("TCP", count(&["TCP", "TCPv6"])),
        ("UDP", count(&["UDP", "UDPv6"])),
        ("UNIX", count(&["UNIX", "UNIX-STREAM"])),
        ("NETLINK", count(&["NETLINK"])),
    ]
}

fn sockets(protocols: &str) -> Look {
    let families = families(protocols);
    let all: u64 = families.iter().map(|(_, count)| count).sum();
    let counts: Vec<String> =
        families.iter().map(|(name, n)| format!("{name} {}", count(*n))).collect();
    const ADVICE: &str = "Close what is not used; have nobody read all of them more than once a \
                          minute.";
    Look::by(all as f64, 50_000.0, f64::INFINITY, counted(all, "socket"), ADVICE)
        .detail(counts.join(", "))
        .passing()
}

fn unix_sockets(count: u64) -> Look {
    const ADVICE: &str = "Reuse connections, use path names instead of abstract ones, or another network name space.";
    let fact = counted(count, "socket");
    Look::by(count as f64, 10_000.0, f64::INFINITY, fact, ADVICE).passing()
}

/// Semaphore sets, shared memory segments and queues. The counts are asked for by system calls,
/// because reading /proc/sysvipc walks through all of them, under the lock that making one needs.
/// Of the segments the kernel gives only the highest index without a walk.
fn system_v() -> Result<[u64; 3], String> {
    let failed = |what: &str| format!("{what}: {}", std::io::Error::last_os_error());
    // SAFETY: all zero is a valid seminfo and msginfo: they are numbers.
    let (mut semaphores, mut queues): (libc::seminfo, libc::msginfo) =
        unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
    // struct shminfo64 has nine words.
    let mut memory = [0u64; 16];
    // SAFETY: with SEM_INFO the argument is a pointer to a seminfo, which is valid for writing.
    if unsafe { libc::semctl(0, 0, libc::SEM_INFO, &raw mut semaphores) } < 0 {
        return Err(failed("semctl"));
    }
    // SAFETY: with MSG_INFO the buffer is a msginfo, which is valid for writing.
    if unsafe { libc::msgctl(0, libc::MSG_INFO, (&raw mut queues).cast()) } < 0 {
        return Err(failed("msgctl"));
    }
    // SAFETY: with IPC_INFO at most nine words are written, and there is room for them.
    let highest = unsafe { libc::shmctl(0, libc::IPC_INFO, memory.as_mut_ptr().cast()) };
    let highest = u64::try_from(highest).map_err(|_| failed("shmctl"))?;
    let count = |n: libc::c_int| u64::try_from(n).unwrap_or(0);
    Ok([count(semaphores.semusz), highest, count(queues.msgpool)])
}

fn sysv(semaphores: u64, memory: u64, queues: u64) -> Look {
    let all = (semaphores + memory + queues) as f64;
    let sets = counted(semaphores, "semaphore set");
    let fact = format!("{sets}, {}", counted(queues, "queue"));
    const ADVICE: &str = "ipcs -p shows whose they are; remove leftovers with ipcrm; POSIX semaphores \
                          have no common table.";
    let detail = format!("numbers of shared memories up to {memory}");
    Look::by(all, 1_000.0, 30_000.0, fact, ADVICE).detail(detail).passing()
}

fn max_map_count(most: i64) -> Look {
    match most {
        ..65_530 => Look::attention(most, "sysctl vm.max_map_count=262144."),
        _ => Look::good(most),
    }
}

fn descriptors(used: u64, most: u64) -> Look {
    let share = 100.0 * used as f64 / most.max(1) as f64;
    const ADVICE: &str = "Find who has them (ls /proc/*/fd | wc -l); raise fs.file-max.";
    Look::by(share, 50.0, 90.0, format!("{} in use", count(used)), ADVICE)
        .detail(format!("{} of what is allowed", percentage(share / 100.0)))
        .passing()
}

fn dentries(count: i64) -> Look {
    const ADVICE: &str = "Find who looks up so many names that do not exist (perf trace, opensnoop); \
                          echo 2 > /proc/sys/vm/drop_caches drops them once, and stalls meanwhile.";
    let fact = counted(count.unsigned_abs(), "name");
    Look::by(count as f64, 1e7, f64::INFINITY, fact, ADVICE).passing()
}

fn cgroups(table: &str) -> Look {
    let number = |line: &str| line.split_ascii_whitespace().nth(2)?.parse::<u64>().ok();
    let count = table.lines().skip(1).filter_map(number).max().unwrap_or(0);
    const ADVICE: &str = "Fewer and longer-lived cgroups; memory.force_empty before one is removed \
                          (version 1), memory.reclaim (version 2).";
    Look::by(count as f64, 2_000.0, f64::INFINITY, counted(count, "cgroup"), ADVICE).passing()
}

#[cfg(test)]
mod tests {
    use model::CheckResult::{Attention, Bad, Good};

    use super::*;

    #[test]
    fn counts() {
        assert_eq!(tasks(500, 32_768).verdict, Good);
        assert_eq!(tasks(25_000, 4_000_000).verdict, Attention);
        assert_eq!(tasks(30_000, 32_768).verdict, Bad);
        assert_eq!([10, 30_000].map(|n| unix_sockets(n).verdict), [Good, Attention]);
        assert_eq!((sysv(1, 2, 3).verdict, sysv(2_000, 0, 0).verdict), (Good, Attention));
        assert_eq!([65_530, 1_000].map(|n| max_map_count(n).verdict), [Good, Attention]);
        assert_eq!((descriptors(1, 100).verdict, descriptors(95, 100).verdict), (Good, Bad));
        assert_eq!((dentries(1_000).verdict, dentries(20_000_000).verdict), (Good, Attention));
        let table =
            |n: u64| format!("#name hierarchy num_cgroups enabled\ncpu 1 1 1\nmemory 4 {n} 1\n");
        assert_eq!(
            (cgroups(&table(70)).fact.as_str(), cgroups(&table(5_000)).verdict),
            ("70 cgroups", Attention)
        );
    }

    /// The kernel's own count of what this test makes.
    #[test]
    fn semaphore_sets_and_queues_are_counted() {
        let [sets, _, queues] = system_v().unwrap();
        // SAFETY: these take no pointers; what is made is removed below.
        let (set, queue) = unsafe {
            (libc::semget(libc::IPC_PRIVATE, 1, 0o600), libc::msgget(libc::IPC_PRIVATE, 0o600))
        };
        assert!(set >= 0 && queue >= 0);
        let [more_sets, _, more_queues] = system_v().unwrap();
        // SAFETY: the objects from above, which nobody else knows.
        unsafe {
            libc::semctl(set, 0, libc::IPC_RMID);
            libc::msgctl(queue, libc::IPC_RMID, std::ptr::null_mut());
        }
        // Other programs may make or remove some meanwhile.
        assert!(more_sets > sets.saturating_sub(3) && more_sets >= 1, "{sets} {more_sets}");
        assert!(more_queues >= 1 && more_queues > queues.saturating_sub(3));
    }

    #[test]
    fn sockets_of_two_versions_are_one_family() {
        const TABLE: &str = "protocol  size sockets  memory\nTCPv6 2432 3 159\nUNIX-STREAM 1152 40000 -1\n\
                             UNIX 1152 20000 -1\nTCP 2304 4 159\nUDP-Lite 1344 9 1\n";
        assert_eq!(families(TABLE), [("TCP", 7), ("UDP", 0), ("UNIX", 60_000), ("NETLINK", 0)]);
        assert_eq!(sockets(TABLE).verdict, Attention);
    }
}
