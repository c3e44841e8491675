//! Asks a process for what it can make its reader wait for.
//!
//! What /proc has of the memory of a process (`maps`, `environ`, `cmdline`, `mem`) is read under its
//! locks and from its pages. A page can be one of a file on FUSE, or be left to `userfaultfd`: then
//! the reader waits for whoever is to bring it, and that may be for ever. So a thread asks, and is
//! left behind if it gets no answer; nobody asks that process again until it has one. Who has many such
//! processes hides the others of the same user by that, and nobody else's.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How long an answer may take: a process that is in trouble has its locks for long, too.
const PATIENCE: Duration = Duration::from_secs(1);

/// Processes of one user that owe an answer; with so many no other of that user is asked.
const OF_ONE_USER: usize = 8;

/// Processes of all users that owe an answer, each with a thread that waits for it.
const OF_ALL: usize = 256;

/// Instead of a process, for what folders of the environment keep: no process has this number.
pub const OF_FOLDERS: u32 = 0;

/// Bytes of stack: nothing that is asked needs much.
const STACK: usize = 512 << 10;

/// Who owes an answer.
static WAITED_FOR: Mutex<Vec<Debtor>> = Mutex::new(Vec::new());

/// Questions without an answer, those included that were not asked.
static UNANSWERED: AtomicU64 = AtomicU64::new(0);

/// A process that owes an answer.
struct Debtor {
    pid: u32,
    /// Who started it, if that is known.
    user: Option<u32>,
}

/// Asks a question about a process. Costs some 50 us more than the question itself.
///
/// # Errors
/// `TimedOut` if there is no answer; what the system says if it has no more threads.
pub fn ask<T: Send + 'static>(
    pid: u32,
    question: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    ask_of(pid, question).inspect_err(|_| _ = UNANSWERED.fetch_add(1, Ordering::Relaxed))
}

/// Questions that got no answer, or were not asked, since the last call.
pub fn unanswered() -> u64 {
    UNANSWERED.swap(0, Ordering::Relaxed)
}

fn ask_of<T: Send + 'static>(
    pid: u32,
    question: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    may_be_asked(pid)?;
    let (answer, answers) = mpsc::channel();
    thread::Builder::new().name("ask".to_owned()).stack_size(STACK).spawn(move || {
        // Nobody may be waiting any more.
        let _ = answer.send(question());
        waited_for().retain(|debtor| debtor.pid != pid);
    })?;
    answers.recv_timeout(PATIENCE).or_else(|why| {
        if why == RecvTimeoutError::Disconnected {
            return Err(io::Error::other("the question ended without an answer"));
        }
        let user = user_of(pid);
        let mut waited_for = waited_for();
        // The answer may have come just now; one that comes later finds the process in the list.
        answers.try_recv().map_err(|_| {
            waited_for.push(Debtor { pid, user });
            in_vain(format!("{} those waiting who read its memory", keeps(pid)))
        })
    })
}

/// Nobody owes anything most of the time: then nothing is read for this.
fn may_be_asked(pid: u32) -> io::Result<()> {
    let waited_for = waited_for();
    if waited_for.is_empty() {
        return Ok(());
    }
    if waited_for.iter().any(|debtor| debtor.pid == pid) {
        return Err(in_vain(format!("{} those waiting who read its memory", keeps(pid))));
    }
    let user = user_of(pid);
    let of_user = waited_for.iter().filter(|debtor| debtor.user == user).count();
    if of_user < OF_ONE_USER && waited_for.len() < OF_ALL {
        return Ok(());
    }
    let (count, whose) = match (of_user < OF_ONE_USER, user) {
        (true, _) => (waited_for.len(), String::new()),
        (false, Some(user)) => (of_user, format!(" of user {user}")),
        (false, None) => (of_user, " of users that are not known".to_owned()),
    };
    let why =
        format!("process {pid} is not asked: {count} others{whose} keep those waiting who do");
    Err(in_vain(why))
}

fn keeps(pid: u32) -> String {
    match pid {
        OF_FOLDERS => "a folder keeps".to_owned(),
        pid => format!("process {pid} keeps"),
    }
}

fn in_vain(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, why)
}

/// The real one: a program that runs as another user by its file's mode is as slow as who started it
/// likes. No lock is needed to read that.
fn user_of(pid: u32) -> Option<u32> {
    let status = std::fs::read(format!("/proc/{pid}/status")).ok()?;
    let status = String::from_utf8_lossy(&status);
    let users = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    users.split_ascii_whitespace().next()?.parse().ok()
}

fn waited_for() -> MutexGuard<'static, Vec<Debtor>> {
    WAITED_FOR.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A question without an answer until the end is dropped.
    fn stuck(pid: u32) -> mpsc::Sender<()> {
        let (end, ends) = mpsc::channel::<()>();
        let error = ask(pid, move || ends.recv().is_err()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        end
    }

    fn wait_for_answer(pid: u32) {
        while waited_for().iter().any(|debtor| debtor.pid == pid) {
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// One test, because what it is about is one list.
    #[test]
    fn who_does_not_answer_is_not_asked_again_nor_are_many_others_of_the_same_user() {
        let nobody = u32::MAX;
        let end = stuck(nobody);
        let error = ask(nobody, || ()).unwrap_err();
        assert!(error.to_string().starts_with("process 4294967295 keeps"), "{error}");
        assert_eq!(ask(nobody - 1, || 7).unwrap(), 7, "others are");
        drop(end);
        wait_for_answer(nobody);
        assert_eq!(ask(nobody, || 8).unwrap(), 8);

        // Processes that are not there are nobody's.
        let many: Vec<_> =
            (0..OF_ONE_USER as u32).map(|n| thread::spawn(move || stuck(nobody - n))).collect();
        let ends: Vec<_> = many.into_iter().map(|one| one.join().unwrap()).collect();
        let before = unanswered();
        assert!(before > OF_ONE_USER as u64, "{before}");
        let error = ask(nobody - 100, || ()).unwrap_err().to_string();
        let expected = "process 4294967195 is not asked: 8 others of users that are not known keep";
        assert!(error.starts_with(expected), "{error}");
        assert_eq!(unanswered(), 1);
        assert_eq!(ask(std::process::id(), || 9).unwrap(), 9, "another user's");
        drop(ends);
        (0..OF_ONE_USER as u32).for_each(|n| wait_for_answer(nobody - n));
        assert_eq!(ask(nobody - 100, || 10).unwrap(), 10);
    }
}
