//! Whether others use the machine meanwhile: then a program waits for a CPU more than for what the
//! test is about, and who is right about that cannot be told from outside.

use std::fs;
use std::time::{Duration, Instant};

/// CPU time used since boot, in clock ticks: by all, by the children of this process that it has
/// waited for, and by the kernel's own threads (a disk, a loop device), which work for those.
#[derive(Clone, Copy)]
pub struct Usage {
    at: Instant,
    all: u64,
    children: u64,
    kernel: u64,
}

/// Others may use this part of the machine.
const QUIET: f64 = 0.12;
/// So long we wait for them to end.
const PATIENCE: Duration = Duration::from_secs(15);

impl Usage {
    pub fn now() -> Usage {
        let stat = fs::read_to_string("/proc/stat").unwrap();
        let fields = stat.lines().next().unwrap().split_ascii_whitespace().skip(1);
        let ticks: Vec<u64> = fields.map(|field| field.parse().unwrap()).collect();
        // user nice system idle iowait irq softirq steal; what is stolen is missing, too.
        let all = ticks[..3].iter().sum::<u64>() + ticks[5..8].iter().sum::<u64>();
        let own = procfs::process::Process::myself().unwrap().stat().unwrap();
        let children = (own.cutime + own.cstime) as u64;
        Usage { at: Instant::now(), all, children, kernel: kernel_threads() }
    }

    /// The part of the machine that others have used since.
    pub fn by_others_since(self) -> f64 {
        let now = Usage::now();
        let known = (now.children - self.children) + now.kernel.saturating_sub(self.kernel);
        let others = (now.all - self.all).saturating_sub(known);
        let cpus = std::thread::available_parallelism().unwrap().get();
        let seconds = others as f64 / procfs::ticks_per_second() as f64;
        seconds / (now.at - self.at).as_secs_f64() / cpus as f64
    }
}

/// CPU time of kernel threads, which all are children of process 2.
fn kernel_threads() -> u64 {
    let processes = procfs::process::all_processes().unwrap().flatten();
    let stats = processes.filter_map(|process| process.stat().ok());
    stats.filter(|stat| stat.ppid == 2).map(|stat| stat.utime + stat.stime).sum()
}

/// Runs `record` until others have left it alone; `None`, and the reason printed, if they never
/// do.
pub fn alone<T>(mut record: impl FnMut() -> T) -> Option<T> {
    let mut used = 0.0;
    for _ in 0..4 {
        let waiting = Instant::now();
        while waiting.elapsed() < PATIENCE {
            let before = Usage::now();
            std::thread::sleep(Duration::from_millis(300));
            if before.by_others_since() < QUIET {
                break;
            }
        }
        let before = Usage::now();
        let recorded = record();
        used = before.by_others_since();
        if used < QUIET {
            return Some(recorded);
        }
    }
    println!("skipped: other programs use {:.0} % of this machine", used * 100.0);
    None
}
