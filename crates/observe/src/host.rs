//! Small facts of the host that a recording needs while it runs.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use model::{Batch, CpuTime, EventDetail, EventKind, Process};
use procfs::{CurrentSI, KernelStats};

/// CPUs that are online.
pub fn cpu_count() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Process of a thread, `None` if there is no such thread.
pub fn process_of(tid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("Tgid:"))?.trim().parse().ok()
}

/// True if a process has ended, or is a zombie that its parent has not fetched yet. Asked of its
/// main thread: /proc/PID/stat sums over all threads, under a lock that threads need to end.
pub fn is_gone(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/task/{pid}/stat"));
    let Ok(stat) = stat else { return true };
    let state = stat.rsplit(')').next().and_then(|rest| rest.trim().chars().next());
    // A main thread that ended before the others is a zombie, too: then there are others.
    state == Some('Z') && fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count) <= 1
}

/// Times of the CPUs since boot, from /proc/stat (resolution: 10 ms).
pub fn cpu_times() -> Vec<CpuTime> {
    let Ok(stats) = KernelStats::current() else { return Vec::new() };
    let tick_ns = 1_000_000_000 / procfs::ticks_per_second();
    let times = stats.cpu_time.iter().enumerate();
    times
        .map(|(cpu, time)| CpuTime {
            cpu: cpu as u32,
            idle_ns: (time.idle + time.iowait.unwrap_or(0)) * tick_ns,
            busy_ns: (time.user
                + time.nice
                + time.system
                + time.irq.unwrap_or(0)
                + time.softirq.unwrap_or(0))
                * tick_ns,
            stolen_ns: time.steal.unwrap_or(0) * tick_ns,
        })
        .collect()
}

/// The same since an earlier reading.
pub fn cpu_times_since(before: &[CpuTime]) -> Vec<CpuTime> {
    let now = cpu_times();
    now.into_iter()
        .zip(before)
        .map(|(now, before)| CpuTime {
            cpu: now.cpu,
            idle_ns: now.idle_ns.saturating_sub(before.idle_ns),
            busy_ns: now.busy_ns.saturating_sub(before.busy_ns),
            stolen_ns: now.stolen_ns.saturating_sub(before.stolen_ns),
        })
        .collect()
}

/// Processes that this batch mentions and earlier ones did not, or that have a new name.
pub fn processes(batch: &Batch, known: &mut HashMap<u32, Process>) -> Vec<Process> {
    let mut new = Vec::new();
    let executed: HashMap<u32, &str> = batch
        .events
        .iter()
        .filter_map(|event| match (event.kind, &event.detail) {
            (EventKind::Exec, EventDetail::Program(path)) => Some((event.tgid, path.as_str())),
            _ => None,
        })
        .collect();
    let mut see = |tgid: u32, comm: &str, a_thread: &str, watched: bool| {
        let program = executed.get(&tgid).copied();
        let same = known.get(&tgid).is_some_and(|p| {
            (p.watched || !watched) && program.is_none() && (p.comm == comm || comm.is_empty())
        });
        if tgid == 0 || same {
            return;
        }
        let mut process = process(tgid, comm, watched, program, known.get(&tgid));
        if process.comm.is_empty() {
            process.comm = a_thread.to_owned();
        }
        known.insert(tgid, process.clone());
        new.push(process);
    };
    for thread in batch.threads.iter().filter(|thread| thread.tid == thread.tgid) {
        see(thread.tgid, &thread.comm, "", true);
    }
    for thread in batch.threads.iter().filter(|thread| thread.tid != thread.tgid) {
        see(thread.tgid, "", &thread.comm, true);
    }
    for wait in &batch.sums.waits {
        see(wait.waker_tgid, "", &wait.waker_comm, false);
    }
    for hold in &batch.sums.holds {
        see(hold.holder_tgid, "", &hold.holder_comm, false);
    }
    for runner in &batch.sums.runners {
        see(runner.runner_tgid, "", &runner.runner_comm, false);
    }
    new
}

/// A process as /proc shows it now, else as it was known before, else as its exec said.
fn process(
    tgid: u32,
    comm: &str,
    watched: bool,
    program: Option<&str>,
    before: Option<&Process>,
) -> Process {
    let exe = fs::read_link(format!("/proc/{tgid}/exe")).ok();
    let exe = exe.map(|path| path.to_string_lossy().into_owned());
    let exe = exe.or_else(|| program.map(str::to_owned));
    let exe = exe.or_else(|| before.map(|p| p.exe.clone())).unwrap_or_default();
    let in_proc = fs::read_to_string(format!("/proc/{tgid}/comm")).ok();
    let name = || {
        let last = Path::new(&exe).file_name()?.to_string_lossy().into_owned();
        Some(last).filter(|name| !name.is_empty())
    };
    let comm = match comm {
        "" => in_proc.map(|comm| comm.trim_end().to_owned()).or_else(name).unwrap_or_default(),
        comm => comm.to_owned(),
    };
    // A path within a container names another file here, or none.
    let build_id = inspect::elf::build_id(format!("/proc/{tgid}/exe"));
    let build_id = build_id.or_else(|| inspect::elf::build_id(&exe)).unwrap_or_default();
    let watched = watched || before.is_some_and(|p| p.watched);
    Process { tgid, comm, exe, build_id, watched }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_thread_belongs_to_this_process_and_lives() {
        let tid = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        assert_eq!(process_of(tid), Some(std::process::id()));
        assert!(!is_gone(std::process::id()));
        assert_eq!(process_of(u32::MAX), None);
    }

    #[test]
    fn an_unfetched_child_that_ended_is_gone() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        while !is_gone(child.id()) {
            std::thread::yield_now();
        }
        assert!(child.wait().unwrap().success());
    }

    #[test]
    fn the_cpus_are_counted_and_their_time_advances() {
        let before = cpu_times();
        assert!(before.len() >= cpu_count());
        let start = clock::monotonic_ns();
        while clock::monotonic_ns() - start < 50_000_000 {}
        let since = cpu_times_since(&before);
        assert!(since.iter().map(|cpu| cpu.busy_ns).sum::<u64>() > 0);
    }
}
