//! The ids of the causes: stable names, as `explain --json` and `--why-not` give and take them.
//!
//! An [`Id`] can be made here only, so a cause that the catalogue does not have cannot be named.

use std::fmt;

/// Id of a cause of the catalogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Id(&'static str);

impl Id {
    /// As it is printed and typed: `mmap-lock`.
    pub const fn as_str(self) -> &'static str {
        self.0
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.0)
    }
}

pub(crate) const BARRIER_STRAGGLER: Id = Id("barrier-straggler");
pub(crate) const BLOCKED_LOG_PIPE: Id = Id("blocked-log-pipe");
pub(crate) const CGROUP_THROTTLE: Id = Id("cgroup-throttle");
pub(crate) const CLOSE_LINGER: Id = Id("close-linger");
pub(crate) const CONNECT_TIMEOUT: Id = Id("connect-timeout");
pub(crate) const CORE_DUMP: Id = Id("core-dump");
pub(crate) const CPUTIME_CLOCK_THREADS: Id = Id("cputime-clock-threads");
pub(crate) const CPU_RUNQUEUE: Id = Id("cpu-runqueue");
pub(crate) const CPU_STEAL: Id = Id("cpu-steal");
pub(crate) const DIRECT_COMPACTION: Id = Id("direct-compaction");
pub(crate) const DIRECT_RECLAIM: Id = Id("direct-reclaim");
pub(crate) const DIRTY_THROTTLE: Id = Id("dirty-throttle");
pub(crate) const DISK_READ: Id = Id("disk-read");
pub(crate) const DISK_SYNC: Id = Id("disk-sync");
pub(crate) const DNS_TIMEOUT: Id = Id("dns-timeout");
pub(crate) const EVENT_LOOP_BLOCKED: Id = Id("event-loop-blocked");
pub(crate) const FILE_LOCK: Id = Id("file-lock");
pub(crate) const FILE_MAJOR_FAULT: Id = Id("file-major-fault");
pub(crate) const FIRST_TOUCH: Id = Id("first-touch");
pub(crate) const FORK_COW: Id = Id("fork-cow");
pub(crate) const FSYNC_JOURNAL: Id = Id("fsync-journal");
pub(crate) const FUTEX_CONVOY: Id = Id("futex-convoy");
pub(crate) const GC_CPU: Id = Id("gc-cpu");
pub(crate) const HUGE_EXIT: Id = Id("huge-exit");
pub(crate) const HUGE_FORK: Id = Id("huge-fork");
pub(crate) const IRQ_INTERFERENCE: Id = Id("irq-interference");
pub(crate) const JVM_GC: Id = Id("jvm-gc");
pub(crate) const KSM_COW: Id = Id("ksm-cow");
pub(crate) const LAZY_BINDING: Id = Id("lazy-binding");
pub(crate) const LISTEN_OVERFLOW: Id = Id("listen-overflow");
pub(crate) const MALLOC_TRIM: Id = Id("malloc-trim");
pub(crate) const MANY_THREAD_VFORK: Id = Id("many-thread-vfork");
pub(crate) const MEMBARRIER_GLOBAL: Id = Id("membarrier-global");
pub(crate) const MEMCG_RECLAIM: Id = Id("memcg-reclaim");
pub(crate) const MMAP_FILE_WRITE: Id = Id("mmap-file-write");
pub(crate) const MMAP_LOCK: Id = Id("mmap-lock");
pub(crate) const MM_READER: Id = Id("mm-reader");
pub(crate) const NAGLE_DELACK: Id = Id("nagle-delack");
pub(crate) const NUMA_BALANCING: Id = Id("numa-balancing");
pub(crate) const PAGE_CACHE_EVICTED: Id = Id("page-cache-evicted");
pub(crate) const PRIORITY_INVERSION: Id = Id("priority-inversion");
pub(crate) const PROC_SCAN_VS_FORK: Id = Id("proc-scan-vs-fork");
pub(crate) const QUEUEING: Id = Id("queueing");
pub(crate) const RATE_LIMIT_BURST: Id = Id("rate-limit-burst");
pub(crate) const RCU_SYNC_FDTABLE: Id = Id("rcu-sync-fdtable");
pub(crate) const RT_STARVATION: Id = Id("rt-starvation");
pub(crate) const RT_THROTTLING: Id = Id("rt-throttling");
pub(crate) const SAFEPOINT_LATE: Id = Id("safepoint-late");
pub(crate) const SECCOMP_AUDIT: Id = Id("seccomp-audit");
pub(crate) const SHM_ATTACH: Id = Id("shm-attach");
pub(crate) const SLOW_CLOCKSOURCE: Id = Id("slow-clocksource");
pub(crate) const SLOW_PEER: Id = Id("slow-peer");
pub(crate) const SOCKET_DIAG_READER: Id = Id("socket-diag-reader");
pub(crate) const SOFTIRQ_INTERFERENCE: Id = Id("softirq-interference");
pub(crate) const SPIN_LOCK: Id = Id("spin-lock");
pub(crate) const STOPPED_OR_TRACED: Id = Id("stopped-or-traced");
pub(crate) const SWAP_IN: Id = Id("swap-in");
pub(crate) const SYSV_SEM: Id = Id("sysv-sem");
pub(crate) const TCP_RTO: Id = Id("tcp-rto");
pub(crate) const THUNDERING_HERD: Id = Id("thundering-herd");
pub(crate) const TIMER_JIFFIES: Id = Id("timer-jiffies");
pub(crate) const TIMER_MS_ROUNDING: Id = Id("timer-ms-rounding");
pub(crate) const TIMER_PROPORTIONAL: Id = Id("timer-proportional");
pub(crate) const TIMER_SLACK: Id = Id("timer-slack");
pub(crate) const TLB_SHOOTDOWN: Id = Id("tlb-shootdown");
pub(crate) const TURN_TAKING: Id = Id("turn-taking");
pub(crate) const UDP_RCVBUF_STALL: Id = Id("udp-rcvbuf-stall");
pub(crate) const UNIX_POPULATION: Id = Id("unix-population");
pub(crate) const WORKER_POOL_FULL: Id = Id("worker-pool-full");
pub(crate) const YIELD_SPIN: Id = Id("yield-spin");
