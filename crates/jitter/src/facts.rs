//! What the kernel says of a thread that waits for timers.

use std::fs;

use model::JitterThread;
use procfs::process::Process;

/// Threads of a process that are looked at.
const MOST: usize = 256;

/// A thread as it is now; `None` if it is gone.
pub fn thread(pid: u32, tid: u32) -> Option<JitterThread> {
    let task = Process::new(pid as i32).ok()?.task_from_tid(tid as i32).ok()?;
    let stat = task.stat().ok()?;
    Some(JitterThread {
        tid,
        comm: stat.comm,
        slack_ns: slack_ns(tid),
        policy: policy(stat.policy.unwrap_or(0)).to_owned(),
        priority: stat.rt_priority.unwrap_or(0),
    })
}

/// The calling thread.
pub fn this_thread() -> JitterThread {
    let tid = rustix::thread::gettid().as_raw_nonzero().get() as u32;
    let mut facts = thread(std::process::id(), tid).unwrap_or_default();
    // SAFETY: reads a number of the calling thread.
    let slack = unsafe { libc::prctl(libc::PR_GET_TIMERSLACK) };
    facts.slack_ns = u64::try_from(slack).ok();
    facts
}

/// All threads of a process; empty if it is gone.
pub fn threads(pid: u32) -> Vec<JitterThread> {
    let Ok(folder) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let tids = folder.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    tids.take(MOST).filter_map(|tid| thread(pid, tid)).collect()
}

/// The file is in the folder of a thread, too, though the listing does not show it. Reading it of
/// another process takes CAP_SYS_NICE.
fn slack_ns(tid: u32) -> Option<u64> {
    fs::read_to_string(format!("/proc/{tid}/timerslack_ns")).ok()?.trim().parse().ok()
}

/// Numbers of linux/sched.h.
fn policy(number: u32) -> &'static str {
    match number {
        0 => "SCHED_OTHER",
        1 => "SCHED_FIFO",
        2 => "SCHED_RR",
        3 => "SCHED_BATCH",
        5 => "SCHED_IDLE",
        6 => "SCHED_DEADLINE",
        7 => "SCHED_EXT",
        _ => "another policy",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slack_is_that_of_the_thread() {
        std::thread::spawn(|| {
            // SAFETY: changes a number of this thread, which ends soon.
            assert_eq!(unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 123_456) }, 0);
            let facts = this_thread();
            assert_eq!((facts.slack_ns, facts.policy.as_str()), (Some(123_456), "SCHED_OTHER"));
            let seen = threads(std::process::id());
            assert!(seen.iter().any(|thread| thread.tid == facts.tid), "{seen:?}");
        })
        .join()
        .unwrap();
        assert!(threads(u32::MAX).is_empty());
    }
}
