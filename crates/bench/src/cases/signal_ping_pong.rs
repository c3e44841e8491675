//! signal-ping-pong: two wait for each other's signals.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::io::Errno;

use super::ping_pong::{self, Ball, End};
use super::shared::Shared;
use super::{Alone, Benchmark, THREADS, last_error, signals};
use crate::Error;

pub const CASE: Benchmark = Benchmark {
    id: "signal-ping-pong",
    measures: "tgkill() of a partner that waits in sigwaitinfo(), and it does the same",
    ladder: THREADS,
    prepare: |request| {
        let kind = request.kind;
        Ok(Box::new(Alone(move |_| ping_pong::player(kind, ends()?))))
    },
};

const BALLS: [(libc::c_int, Ball); 2] = [(libc::SIGUSR1, Ball::Play), (libc::SIGUSR2, Ball::Last)];

/// Process and thread of one end, the thread 0 until it is known.
#[derive(Default)]
struct Address {
    process: AtomicI32,
    thread: AtomicI32,
}

struct Signals {
    addresses: Arc<Shared<[Address; 2]>>,
    own: usize,
    awaited: libc::sigset_t,
}

/// The first is for the calling thread.
fn ends() -> Result<(Signals, Signals), Error> {
    let addresses = Arc::new(Shared::new(<[Address; 2]>::default())?);
    let awaited = signals::set(&BALLS.map(|(signal, _)| signal));
    // SAFETY: a valid set; the old one is not wanted: this thread works for one round. The partner
    // inherits it.
    unsafe {
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const awaited, std::ptr::null_mut());
    }
    let end = |own| Signals { addresses: Arc::clone(&addresses), own, awaited };
    let (ours, theirs) = (end(0), end(1));
    ours.announce();
    Ok((ours, theirs))
}

impl Signals {
    /// Says to the other end where this one is.
    fn announce(&self) {
        let own = &self.addresses[self.own];
        let process = rustix::process::getpid().as_raw_nonzero().get();
        own.process.store(process, Ordering::Relaxed);
        let thread = rustix::thread::gettid().as_raw_nonzero().get();
        own.thread.store(thread, Ordering::Release);
    }
}

impl End for Signals {
    fn send(&mut self, ball: Ball) -> Result<(), Errno> {
        let other = &self.addresses[1 - self.own];
        let thread = loop {
            match other.thread.load(Ordering::Acquire) {
                // The partner is only starting.
                0 => std::thread::yield_now(),
                thread => break thread,
            }
        };
        let signal = BALLS.iter().find(|(_, of)| *of == ball).map_or(0, |(signal, _)| *signal);
        // SAFETY: takes no address. The partner lives until it has got the last ball.
        match unsafe { libc::tgkill(other.process.load(Ordering::Relaxed), thread, signal) } {
            0 => Ok(()),
            _ => Err(last_error()),
        }
    }

    fn receive(&mut self) -> Result<Ball, Errno> {
        if self.addresses[self.own].thread.load(Ordering::Relaxed) == 0 {
            self.announce();
        }
        loop {
            // SAFETY: a valid set; what else is known of the signal is not wanted.
            let got = unsafe { libc::sigwaitinfo(&raw const self.awaited, std::ptr::null_mut()) };
            if let Some((_, ball)) = BALLS.iter().find(|(signal, _)| *signal == got) {
                return Ok(*ball);
            }
            match last_error() {
                Errno::INTR => {}
                error => return Err(error),
            }
        }
    }
}
