//! What threads are called in a sentence.

use model::{Context, Waker};

/// A thread: `scan (tid 81)`, and its process if it is not its own.
pub fn thread(comm: &str, tid: u32, tgid: u32) -> String {
    if tid == tgid || tgid == 0 {
        format!("{comm} (tid {tid})")
    } else {
        format!("{comm} (tid {tid} of pid {tgid})")
    }
}

/// Who ended a wait, and in which context.
pub fn waker(waker: &Waker) -> String {
    let thread = thread(&waker.comm, waker.tid, waker.tgid);
    match waker.context {
        Context::Task => thread,
        Context::SoftIrq => format!("a softirq that interrupted {thread}"),
        Context::HardIrq => format!("a hardware interrupt that interrupted {thread}"),
    }
}
