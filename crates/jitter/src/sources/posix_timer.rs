//! A periodic POSIX timer that sends a signal to the thread that waits for it.

use std::mem::{MaybeUninit, zeroed};
use std::ptr::null_mut;

use rustix::io::Errno;

use super::timerfd::timespec;
use super::{Beat, Served, Source, Ticker, last_error};

pub const SOURCE: Source = Source {
    id: "posix-timer",
    says: "POSIX timer by a signal to the thread, taken with sigwaitinfo",
    usual_ns: super::USUAL_NS,
    make: |beat| Ok(Box::new(Timer::new(beat)?)),
};

struct Timer {
    id: TimerId,
    signals: libc::sigset_t,
}

impl Timer {
    fn new(beat: Beat) -> Result<Timer, Errno> {
        let signal = libc::SIGRTMIN();
        let mut signals = MaybeUninit::uninit();
        // SAFETY: sigemptyset makes the set that the calls after it use.
        let signals = unsafe {
            libc::sigemptyset(signals.as_mut_ptr());
            let mut signals = signals.assume_init();
            libc::sigaddset(&mut signals, signal);
            libc::pthread_sigmask(libc::SIG_BLOCK, &signals, null_mut());
            signals
        };
        // SAFETY: all zero is a sigevent.
        let mut event: libc::sigevent = unsafe { zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = signal;
        event.sigev_notify_thread_id = rustix::thread::gettid().as_raw_nonzero().get();
        // SAFETY: the event is one, with a thread that lives.
        let id = unsafe { TimerId::create(&mut event) }?;
        id.start(beat)?;
        Ok(Timer { id, signals })
    }
}

impl Ticker for Timer {
    fn wait(&mut self, _: u64) -> Result<Served, Errno> {
        loop {
            // SAFETY: the set is initialised; no information is asked for.
            if unsafe { libc::sigwaitinfo(&self.signals, null_mut()) } != -1 {
                return Ok(Served::now(1 + self.id.overrun()));
            }
            if last_error() != Errno::INTR {
                return Err(last_error());
            }
        }
    }
}

/// A timer, deleted when dropped.
pub struct TimerId(libc::timer_t);

impl TimerId {
    /// Creates one on CLOCK_MONOTONIC.
    ///
    /// # Safety
    /// `event` points to a sigevent, and what it names must live as long as the timer.
    pub unsafe fn create(event: *mut libc::sigevent) -> Result<TimerId, Errno> {
        let mut id = null_mut();
        // SAFETY: as the caller promises; the id is written to.
        match unsafe { libc::timer_create(libc::CLOCK_MONOTONIC, event, &mut id) } {
            0 => Ok(TimerId(id)),
            _ => Err(last_error()),
        }
    }

    /// Arms it.
    pub fn start(&self, beat: Beat) -> Result<(), Errno> {
        let (interval, first) = (timespec(beat.interval_ns), timespec(beat.first_ns));
        let times = libc::itimerspec {
            it_interval: libc::timespec { tv_sec: interval.tv_sec, tv_nsec: interval.tv_nsec },
            it_value: libc::timespec { tv_sec: first.tv_sec, tv_nsec: first.tv_nsec },
        };
        // SAFETY: the timer is ours, the times are read.
        match unsafe { libc::timer_settime(self.0, libc::TIMER_ABSTIME, &times, null_mut()) } {
            0 => Ok(()),
            _ => Err(last_error()),
        }
    }

    /// Ticks that passed beside the one of the last signal.
    fn overrun(&self) -> u64 {
        // SAFETY: the timer is ours.
        u64::try_from(unsafe { libc::timer_getoverrun(self.0) }).unwrap_or(0)
    }
}

impl Drop for TimerId {
    fn drop(&mut self) {
        // SAFETY: the timer is ours, and not used after this.
        unsafe { libc::timer_delete(self.0) };
    }
}
