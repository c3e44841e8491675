//! Threads that run before others, so that no event is lost while hundreds of watched threads are ready to
//! run: a quarter of the recordings of 2,000 threads that end at once lost some hundred events, with other
//! work beside it, and what happens on an overloaded host is what one wants to see.

use rustix::process::{getpriority_process, setpriority_process};

/// The most that an ordinary thread can have (sched(7)).
const NICE: i32 = -20;

/// The calling thread, and those that it starts, are urgent until this is dropped. To become less urgent
/// takes no privilege.
pub struct Urgency {
    nice_before: i32,
}

impl Urgency {
    /// `None` where that is not allowed.
    pub fn begin() -> Option<Urgency> {
        let nice_before = getpriority_process(None).ok()?;
        setpriority_process(None, NICE).ok()?;
        Some(Urgency { nice_before })
    }
}

impl Drop for Urgency {
    fn drop(&mut self) {
        // Only a lower value could be refused.
        let _ = setpriority_process(None, self.nice_before);
    }
}
