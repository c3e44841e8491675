//! Pairs of causes that can look the same, and the measurement that tells them apart.
//!
//! Read when the evidence of a run excludes neither of two. Each pair is written once; the order
//! of its two names does not matter.

const PAIRS: &[(&str, &str, &str)] = &[
    (
        "mmap-lock",
        "mm-reader",
        "stop whatever reads /proc/PID/smaps or maps of the process and record again: waiting for \
         mmap_lock that stays is the program's own",
    ),
    (
        "cpu-runqueue",
        "cgroup-throttle",
        "read nr_throttled in cpu.stat of the program's cgroup before and after: a quota counts \
         there, a full run queue does not",
    ),
    (
        "cpu-runqueue",
        "rt-starvation",
        "record the whole host (-a) and see the scheduling policy of who ran ('ps -eLo \
         tid,cls,rtprio,comm'): FF or RR is starvation",
    ),
    (
        "cpu-runqueue",
        "priority-inversion",
        "record with --follow and see whether the thread that waited for a CPU held a lock that a \
         thread of higher priority waited for; a mutex with PTHREAD_PRIO_INHERIT cures only that",
    ),
    (
        "futex-convoy",
        "priority-inversion",
        "give the lock PTHREAD_PRIO_INHERIT and record again: an inversion goes, a convoy stays",
    ),
    (
        "futex-convoy",
        "blocked-log-pipe",
        "send the program's output to /dev/null and record again: waits behind a thread that logs \
         go, a convoy stays",
    ),
    (
        "futex-convoy",
        "mmap-lock",
        "see what the owner of the lock slept for: record with a lower --threshold and follow the \
         waker of the longest futex wait",
    ),
    (
        "futex-convoy",
        "thundering-herd",
        "compare wake-ups with the work done by them: a herd wakes many threads for one event, a \
         convoy wakes one at a time",
    ),
    (
        "futex-convoy",
        "cgroup-throttle",
        "read nr_throttled in cpu.stat of the program's cgroup before and after: an owner that is \
         throttled holds its lock for the rest of the period",
    ),
    (
        "priority-inversion",
        "rt-starvation",
        "see whether the thread that waited for a CPU held a lock: without one it is starvation",
    ),
    (
        "socket-diag-reader",
        "softirq-interference",
        "stop whoever lists sockets and record again: what packets take from the CPU stays",
    ),
    (
        "udp-rcvbuf-stall",
        "cpu-runqueue",
        "see what the receiving thread did while the queue filled ('whylag explain --window' from \
         the time that 'whylag show' gives to the drops): without a CPU it was runnable",
    ),
    (
        "udp-rcvbuf-stall",
        "rt-starvation",
        "see who ran on the receiver's CPU while the queue filled ('whylag explain --window'): a \
         real-time thread is starvation",
    ),
    (
        "udp-rcvbuf-stall",
        "cgroup-throttle",
        "read nr_throttled in cpu.stat of the receiver's cgroup before and after: a quota counts \
         there, a stall of its own does not",
    ),
    (
        "queueing",
        "cpu-runqueue",
        "see whether the thread that handles the messages ran while they waited ('whylag explain \
         --thread TID'): behind others it ran, without a CPU it was runnable",
    ),
    (
        "unix-population",
        "rcu-sync-fdtable",
        "count the process's descriptors and the host's AF_UNIX sockets ('whylag doctor -p PID'): \
         a table of descriptors grows at powers of two, a search is as long at any of them",
    ),
    (
        "slow-clocksource",
        "cpu-runqueue",
        "compare what a read of the clock costs in CPU time ('whylag bench clock-monotonic') with \
         another host: waiting for a CPU is not in that",
    ),
    (
        "slow-clocksource",
        "cputime-clock-threads",
        "compare 'whylag bench clock-monotonic' with 'whylag bench clock-process-cputime': the \
         first is cheap wherever the clock of the host is",
    ),
    (
        "yield-spin",
        "cpu-runqueue",
        "count sched_yield calls per second: threads that only queue do not yield",
    ),
    (
        "file-major-fault",
        "mmap-file-write",
        "see what the fault waited for: folio_wait_writeback in its kernel stack is a write, a \
         read of the disk counts as a major fault",
    ),
    (
        "file-major-fault",
        "memcg-reclaim",
        "raise the cgroup's memory limit and record again: pages that were evicted by the limit \
         then stay",
    ),
    (
        "fsync-journal",
        "dirty-throttle",
        "see the call: fsync waits for the journal, write() is paused in balance_dirty_pages",
    ),
    (
        "fsync-journal",
        "mmap-file-write",
        "see the call: fsync is a system call, a store into a mapping is a page fault",
    ),
    (
        "dirty-throttle",
        "blocked-log-pipe",
        "see what was written to: a pipe has an inode and a reader, a file has a disk",
    ),
    (
        "first-touch",
        "malloc-trim",
        "count brk and madvise calls: memory that is given back is touched first again and again",
    ),
    (
        "first-touch",
        "fork-cow",
        "see the kernel stack of the fault: do_wp_page copies a shared page, do_anonymous_page \
         makes a new one",
    ),
    (
        "fork-cow",
        "ksm-cow",
        "read pages_shared in /sys/kernel/mm/ksm and see whether the process forked: KSM merges \
         without any fork",
    ),
    (
        "first-touch",
        "memcg-reclaim",
        "read memory.failcnt (or memory.events) of the cgroup before and after: only reclaim \
         raises it",
    ),
    (
        "tlb-shootdown",
        "mmap-lock",
        "see whether threads were asleep for the lock or interrupted on their CPUs by function \
         call interrupts",
    ),
    (
        "membarrier-global",
        "rcu-sync-fdtable",
        "both wait for a grace period: the system call says which",
    ),
    (
        "softirq-interference",
        "cpu-runqueue",
        "see what ran instead: ksoftirqd, or softirqs in the time of the thread itself, against an \
         ordinary thread",
    ),
    ("sysv-sem", "futex-convoy", "see the call that waits: semop and semget against futex"),
    (
        "sysv-sem",
        "shm-attach",
        "see the call that waits: semget and semop against shmget and shmat",
    ),
    (
        "huge-exit",
        "core-dump",
        "read the exit status and ulimit -c: a core dump needs a fatal signal and a limit above 0",
    ),
];

/// What would tell the two apart, in words for people.
pub fn measurement(one: &str, other: &str) -> String {
    let is_pair = |(a, b): (&str, &str)| (a, b) == (one, other) || (b, a) == (one, other);
    let known = PAIRS.iter().find(|(a, b, _)| is_pair((a, b)));
    known.map_or_else(
        || format!("apply the fix of {one} alone and record again: what stays is {other}"),
        |(_, _, text)| (*text).to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_pair_is_written_once_and_read_both_ways() {
        let mut seen = BTreeSet::new();
        for (a, b, text) in PAIRS {
            assert!(a != b && !text.is_empty());
            assert!(seen.insert((a.min(b), a.max(b))), "{a} and {b} twice");
            assert_eq!(measurement(a, b), measurement(b, a));
        }
    }

    #[test]
    fn all_of_them_are_in_the_catalogue() {
        let known = |id: &str| crate::catalogue::ALL.iter().any(|cause| cause.id == id);
        for (a, b, _) in PAIRS {
            assert!(known(a) && known(b), "{a}, {b}");
        }
    }

    #[test]
    fn a_pair_without_a_measurement_of_its_own_gets_a_plain_one() {
        let text = measurement("mmap-lock", "core-dump");
        assert!(text.contains("the fix of mmap-lock alone"), "{text}");
    }
}
