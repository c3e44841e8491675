//! What the cases share in which a process's table of descriptors has to grow.
//!
//! A table that more than one thread uses is replaced only after an RCU grace period. So a program
//! with threads stalls for milliseconds in the socket(), open() or dup() that needs the first
//! descriptor beyond 64, 128, 256 ... : an effect of the table, not of how many sockets there are.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;

use super::{Alone, Prepared, last_error};
use crate::{Error, Work};

/// Beyond what a new table has room for, and below what any process may have.
const FAR: RawFd = 512;

/// Each worker has a small table of its own; with `shared` a second thread has it, too.
pub fn prepare(shared: bool) -> Result<Box<dyn Prepared>, Error> {
    Ok(Box::new(Alone(move |_| Ok(Box::new(growing(shared)?) as _))))
}

fn growing(shared: bool) -> Result<Growing, Error> {
    let most = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    if most.is_some_and(|most| most <= FAR as u64) {
        return Err(Error::Refused(format!("no descriptor {FAR} is allowed (ulimit -n)")));
    }
    Ok(Growing { file: eventfd(0, EventfdFlags::CLOEXEC)?, shared, second: None })
}

struct Growing {
    file: OwnedFd,
    shared: bool,
    second: Option<Second>,
}

/// A thread that shares its maker's table of descriptors; it ends when dropped.
struct Second {
    thread: Option<JoinHandle<()>>,
    until: Option<Sender<()>>,
}

impl Second {
    fn start() -> Result<Second, Errno> {
        let (until, ended) = channel::<()>();
        let thread = std::thread::Builder::new()
            .spawn(move || {
                let _ = ended.recv();
            })
            .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::AGAIN))?;
        Ok(Second { thread: Some(thread), until: Some(until) })
    }
}

impl Drop for Second {
    fn drop(&mut self) {
        drop(self.until.take());
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Work for Growing {
    /// A table never shrinks. A new one, as small as possible, is made by leaving one that another
    /// thread uses.
    fn before(&mut self) -> Result<(), Errno> {
        let left = Second::start()?;
        // SAFETY: from now on this thread has descriptors of its own, equal to those so far.
        if unsafe { libc::unshare(libc::CLONE_FILES) } != 0 {
            return Err(last_error());
        }
        drop(left);
        if self.shared {
            self.second = Some(Second::start()?);
        }
        Ok(())
    }

    fn operate(&mut self) -> Result<(), Errno> {
        // SAFETY: nothing has this descriptor, and after() closes it.
        match unsafe { libc::dup2(self.file.as_raw_fd(), FAR) } {
            FAR => Ok(()),
            _ => Err(last_error()),
        }
    }

    fn after(&mut self) -> Result<(), Errno> {
        // SAFETY: opened by operate().
        unsafe { libc::close(FAR) };
        self.second = None;
        Ok(())
    }

    fn is_repeatable(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many descriptors the table of this thread has room for.
    fn room() -> i32 {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("FDSize:")).unwrap();
        line.trim().parse().unwrap()
    }

    #[test]
    fn the_table_grows_in_every_operation() {
        for shared in [false, true] {
            let mut work = growing(shared).unwrap();
            for _ in 0..3 {
                work.before().unwrap();
                assert!(room() <= FAR);
                work.operate().unwrap();
                assert!(room() > FAR);
                work.after().unwrap();
            }
        }
    }
}
