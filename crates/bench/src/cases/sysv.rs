//! System V semaphores and shared memory: the system calls, and objects that are removed when
//! dropped. Not a case itself.

use rustix::io::Errno;

use super::Request;
use crate::tidy;

/// Keys of what workers make begin here; below are those of populations.
pub const WORKERS: u16 = 0xF000;

/// The key slot of what all workers share.
pub const SHARED: u16 = 0xFFFF;

/// A key for each worker.
pub fn keys(request: &Request<'_>) -> Vec<i32> {
    (0..request.workers).map(|id| request.traces.key(WORKERS + id as u16)).collect()
}

/// A set of one semaphore.
pub struct Semaphore(i32);

impl Semaphore {
    /// Makes it; fails if its key is in use.
    pub fn create(key: i32) -> Result<Semaphore, Errno> {
        // SAFETY: takes no pointer.
        check(unsafe { libc::semget(key, 1, libc::IPC_CREAT | libc::IPC_EXCL | 0o600) })
            .map(Semaphore)
    }

    /// Lets `many` pass without waiting.
    pub fn set(&self, many: u32) -> Result<(), Errno> {
        // SAFETY: SETVAL takes an int.
        check(unsafe { libc::semctl(self.0, 0, libc::SETVAL, many as libc::c_int) }).map(drop)
    }

    /// Adds `by`, which is 1 or -1; waits as long as it would become negative.
    pub fn change(&self, by: i16) -> Result<(), Errno> {
        let mut change = libc::sembuf { sem_num: 0, sem_op: by, sem_flg: 0 };
        // SAFETY: one operation, which is valid during the call.
        check(unsafe { libc::semop(self.0, &raw mut change, 1) }).map(drop)
    }
}

impl Drop for Semaphore {
    fn drop(&mut self) {
        tidy::remove_semaphores(self.0);
    }
}

/// A segment of shared memory.
pub struct Segment(i32);

impl Segment {
    /// Makes it; fails if its key is in use.
    pub fn create(key: i32, bytes: usize) -> Result<Segment, Errno> {
        // SAFETY: takes no pointer.
        check(unsafe { libc::shmget(key, bytes, libc::IPC_CREAT | libc::IPC_EXCL | 0o600) })
            .map(Segment)
    }

    /// Attaches it and detaches it.
    pub fn attach_and_detach(&self) -> Result<(), Errno> {
        // SAFETY: an address of the kernel's choice.
        let memory = unsafe { libc::shmat(self.0, std::ptr::null(), 0) };
        if memory.addr() == usize::MAX {
            return Err(last());
        }
        // SAFETY: attached above, and nothing refers to it.
        check(unsafe { libc::shmdt(memory) }).map(drop)
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        tidy::remove_segment(self.0);
    }
}

fn check(result: i32) -> Result<i32, Errno> {
    if result < 0 { Err(last()) } else { Ok(result) }
}

fn last() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL)
}
