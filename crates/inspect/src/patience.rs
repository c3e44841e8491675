//! Asks a process for what it can make its reader wait for.
//!
//! What /proc has of the memory of a process (`maps`, `environ`, `cmdline`, `mem`) is read under its
//! locks and from its pages. A page can be one of a file on FUSE, or be left to `userfaultfd`: then
//! the reader waits for whoever is to bring it, and that may be for ever. So a thread asks, and is
//! left behind if it gets no answer; nobody asks that process again until it has one.

use std::io;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How long an answer may take: a process that is in trouble has its locks for long, too.
const PATIENCE: Duration = Duration::from_secs(1);

/// Questions without an answer; with so many no process is asked any more.
const UNANSWERED: usize = 8;

/// Instead of a process, for what folders of the environment keep: no process has this number.
pub const OF_FOLDERS: u32 = 0;

/// Bytes of stack: nothing that is asked needs much.
const STACK: usize = 512 << 10;

/// Processes that owe an answer.
static WAITED_FOR: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// Asks a question about a process. Costs some 50 us more than the question itself.
///
/// # Errors
/// `TimedOut` if there is no answer; what the system says if it has no more threads.
pub fn ask<T: Send + 'static>(
    pid: u32,
    question: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    let in_vain = || {
        let why = format!("process {pid} keeps those waiting who read its memory");
        io::Error::new(io::ErrorKind::TimedOut, why)
    };
    {
        let waited_for = waited_for();
        if waited_for.contains(&pid) || waited_for.len() >= UNANSWERED {
            return Err(in_vain());
        }
    }
    let (answer, answers) = mpsc::channel();
    thread::Builder::new().name("ask".to_owned()).stack_size(STACK).spawn(move || {
        // Nobody may be waiting any more.
        let _ = answer.send(question());
        waited_for().retain(|waited_for| *waited_for != pid);
    })?;
    answers.recv_timeout(PATIENCE).or_else(|why| {
        if why == RecvTimeoutError::Disconnected {
            return Err(io::Error::other("the question ended without an answer"));
        }
        let mut waited_for = waited_for();
        // The answer may have come just now; one that comes later finds the process in the list.
        answers.try_recv().map_err(|_| {
            waited_for.push(pid);
            in_vain()
        })
    })
}

fn waited_for() -> MutexGuard<'static, Vec<u32>> {
    WAITED_FOR.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_does_not_answer_is_not_asked_again_until_it_has() {
        let (end, ends) = mpsc::channel::<()>();
        let stuck = u32::MAX;
        let error = ask(stuck, move || ends.recv().is_err()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(error.to_string().starts_with("process 4294967295 keeps"), "{error}");
        assert!(ask(stuck, || ()).is_err(), "not asked");
        assert_eq!(ask(stuck - 1, || 7).unwrap(), 7, "others are");
        drop(end);
        while waited_for().contains(&stuck) {
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(ask(stuck, || 8).unwrap(), 8);
    }
}
