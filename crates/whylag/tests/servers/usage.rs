//! CPU time that others than this test use.

use std::fs;
use std::time::Instant;

use procfs::process::{Process, Stat};

use crate::common::family::descendants;

/// Others may use this part of the CPUs.
const BY_OTHERS: f64 = 0.08;

/// CPU time since boot, in clock ticks, of others than this test, its descendants and the kernel.
pub struct Usage {
    at: Instant,
    others: u64,
}

impl Usage {
    pub fn now() -> Usage {
        let stat = fs::read_to_string("/proc/stat").unwrap();
        let fields = stat.lines().next().unwrap().split_ascii_whitespace().skip(1);
        let ticks: Vec<u64> = fields.map(|field| field.parse().unwrap()).collect();
        // user nice system; what is stolen or spent in interrupts is nobody's.
        let all: u64 = ticks[..3].iter().sum();
        let own = std::process::id();
        let family = descendants(own).into_iter().chain([own]);
        let ours: u64 = family.filter_map(|pid| stat_of(pid as i32)).map(|s| with_waited(&s)).sum();
        let others = all.saturating_sub(ours).saturating_sub(kernel_threads());
        Usage { at: Instant::now(), others }
    }

    /// What others have used since, if that was too much.
    pub fn disturbed(&self) -> Option<String> {
        let now = Usage::now();
        let used = now.others.saturating_sub(self.others) as f64;
        let cpus = std::thread::available_parallelism().unwrap().get() as f64;
        let seconds = (now.at - self.at).as_secs_f64();
        let part = used / procfs::ticks_per_second() as f64 / (seconds * cpus);
        (part > BY_OTHERS)
            .then(|| format!("other programs, which used {:.0} % of the CPUs", part * 100.0))
    }
}

fn stat_of(pid: i32) -> Option<Stat> {
    Process::new(pid).and_then(|process| process.stat()).ok()
}

fn with_waited(stat: &Stat) -> u64 {
    stat.utime + stat.stime + (stat.cutime + stat.cstime) as u64
}

/// Kernel threads are children of process 2.
fn kernel_threads() -> u64 {
    let processes = procfs::process::all_processes().unwrap().flatten();
    let stats = processes.filter_map(|process| process.stat().ok());
    stats.filter(|stat| stat.ppid == 2).map(|stat| stat.utime + stat.stime).sum()
}
