//! What the cases share in which a worker and its partner wake each other in turn: an operation is
//! there and back. The partner is a thread if the workers are threads, a process if they are
//! processes.

use std::os::fd::OwnedFd;
use std::thread::JoinHandle;

use model::WorkerKind;
use rustix::io::Errno;

use super::{Alone, Prepared, Request};
use crate::{Error, Work, helpers};

/// What goes there and back; 1 and 2 suit eventfds, futexes and signals alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ball {
    /// To be returned.
    Play = 1,
    /// The partner is to end.
    Last = 2,
}

impl Ball {
    /// What arrived as a number.
    pub fn of(number: u64) -> Ball {
        if number == Ball::Play as u64 { Ball::Play } else { Ball::Last }
    }
}

/// One of the two ends between which the ball goes.
pub trait End: Send + 'static {
    /// Wakes the other end.
    fn send(&mut self, ball: Ball) -> Result<(), Errno>;

    /// Sleeps until the other end has sent.
    fn receive(&mut self) -> Result<Ball, Errno>;
}

/// Each worker has two ends that `ends` makes, one for itself and one for its partner.
pub fn prepare<E: End>(
    request: &Request<'_>,
    ends: fn() -> Result<(E, E), Error>,
) -> Result<Box<dyn Prepared>, Error> {
    let kind = request.kind;
    // If it cannot be had, it is known before anybody works.
    drop(ends()?);
    Ok(Box::new(Alone(move |_| player(kind, ends()?))))
}

/// The worker that calls, and a partner for it.
pub fn player<E: End>(kind: WorkerKind, ends: (E, E)) -> Result<Box<dyn Work>, Error> {
    let (ours, theirs) = ends;
    let partner = match kind {
        WorkerKind::Threads => Partner::thread(theirs)?,
        WorkerKind::Processes => Partner::process(theirs)?,
    };
    Ok(Box::new(Player { ours, partner }))
}

/// A worker.
struct Player<E: End> {
    ours: E,
    partner: Partner,
}

impl<E: End> Work for Player<E> {
    fn operate(&mut self) -> Result<(), Errno> {
        self.ours.send(Ball::Play)?;
        self.ours.receive().map(drop)
    }
}

impl<E: End> Drop for Player<E> {
    fn drop(&mut self) {
        match &mut self.partner {
            Partner::Thread(thread) => {
                // Between two operations it waits for a ball. If none can be sent, it ends with
                // the process.
                let sent = self.ours.send(Ball::Last);
                if let Some(thread) = thread.take().filter(|_| sent.is_ok()) {
                    let _ = thread.join();
                }
            }
            Partner::Process(pid) => {
                let _ = on_child_end(None);
                // SAFETY: a child of ours that was not waited for; its status is not wanted.
                unsafe {
                    libc::kill(*pid, libc::SIGKILL);
                    libc::waitpid(*pid, std::ptr::null_mut(), 0);
                }
            }
        }
    }
}

enum Partner {
    Thread(Option<JoinHandle<()>>),
    Process(libc::pid_t),
}

impl Partner {
    fn thread<E: End>(theirs: E) -> Result<Partner, Error> {
        let thread = std::thread::Builder::new()
            .name("bench-partner".to_owned())
            .spawn(move || answer(theirs))
            .map_err(|source| Error::Os { doing: "starting a partner".to_owned(), source })?;
        Ok(Partner::Thread(Some(thread)))
    }

    fn process<E: End>(theirs: E) -> Result<Partner, Error> {
        let parent = std::process::id();
        // A worker that waits for a partner which was killed would wait for ever.
        on_child_end(Some(partner_died))?;
        // SAFETY: a worker process has no other thread; the child leaves by _exit.
        match unsafe { libc::fork() } {
            -1 => Err(Error::os("starting a partner")),
            0 => {
                helpers::die_with(parent);
                answer(theirs);
                // SAFETY: ends this process without running what the parent registered.
                unsafe { libc::_exit(0) };
            }
            pid => Ok(Partner::Process(pid)),
        }
    }
}

fn answer<E: End>(mut theirs: E) {
    while theirs.receive() == Ok(Ball::Play) && theirs.send(Ball::Play).is_ok() {}
}

extern "C" fn partner_died(_: libc::c_int) {
    // SAFETY: allowed in a signal handler. The round sees that a worker died.
    unsafe { libc::_exit(1) };
}

/// What this process does when a child ends: nothing without a handler.
fn on_child_end(handler: Option<extern "C" fn(libc::c_int)>) -> Result<(), Error> {
    // SAFETY: zero is a valid value: an empty mask, no flags, the default action.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    if let Some(handler) = handler {
        action.sa_sigaction = handler as *const () as usize;
        // Not when it is merely stopped.
        action.sa_flags = libc::SA_NOCLDSTOP;
    }
    // SAFETY: the action is a valid one, the old one is not wanted.
    match unsafe { libc::sigaction(libc::SIGCHLD, &raw const action, std::ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(Error::os("watching the partner")),
    }
}

/// An end that reads from one descriptor and writes to another, eight bytes each time (an eventfd
/// takes no other number).
pub struct Descriptors {
    from: OwnedFd,
    to: OwnedFd,
}

impl Descriptors {
    /// Two ends, made from two channels of one way: read from `.0` what is written to `.1`.
    pub fn two(one: (OwnedFd, OwnedFd), other: (OwnedFd, OwnedFd)) -> (Descriptors, Descriptors) {
        (Descriptors { from: one.0, to: other.1 }, Descriptors { from: other.0, to: one.1 })
    }

    /// Two ends, made from sockets that are connected to each other.
    pub fn sockets(one: OwnedFd, other: OwnedFd) -> Result<(Descriptors, Descriptors), Error> {
        let copy = |socket: &OwnedFd| rustix::io::fcntl_dupfd_cloexec(socket, 0);
        let (one_to, other_to) = (copy(&one)?, copy(&other)?);
        Ok((Descriptors { from: one, to: one_to }, Descriptors { from: other, to: other_to }))
    }
}

impl End for Descriptors {
    fn send(&mut self, ball: Ball) -> Result<(), Errno> {
        rustix::io::write(&self.to, &(ball as u64).to_ne_bytes()).map(drop)
    }

    fn receive(&mut self) -> Result<Ball, Errno> {
        let mut number = [0; 8];
        match rustix::io::read(&self.from, &mut number)? {
            0 => Err(Errno::PIPE),
            _ => Ok(Ball::of(u64::from_ne_bytes(number))),
        }
    }
}
