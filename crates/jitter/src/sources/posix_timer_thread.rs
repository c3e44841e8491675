//! A periodic POSIX timer that calls a function in a thread of its own (SIGEV_THREAD): the C
//! library makes one for each tick.

use std::ffi::c_void;
use std::fs::File;
use std::io::{Read, pipe};
use std::os::fd::{IntoRawFd, OwnedFd};

use rustix::io::Errno;

use super::posix_timer::TimerId;
use super::{Beat, Served, Source, Ticker};

pub const SOURCE: Source = Source {
    id: "posix-timer-thread",
    says: "POSIX timer that starts a thread for each tick (SIGEV_THREAD)",
    usual_ns: super::USUAL_NS,
    make: |beat| Ok(Box::new(Timer::new(beat)?)),
};

/// `struct sigevent` of the C library with the members that the libc crate leaves out.
#[repr(C)]
struct ThreadEvent {
    value: *mut c_void,
    signal: libc::c_int,
    notify: libc::c_int,
    function: extern "C" fn(*mut c_void),
    attributes: *mut c_void,
    /// The whole is 64 bytes.
    rest: [u64; 4],
}

const SIGEV_THREAD: libc::c_int = 2;

struct Timer {
    calls: File,
    beat: Beat,
    served: u64,
    _id: TimerId,
}

impl Timer {
    fn new(beat: Beat) -> Result<Timer, Errno> {
        let (reader, writer) = pipe().map_err(|_| Errno::MFILE)?;
        // Never closed: a thread that was started before the timer was deleted may still use it.
        let writer = writer.into_raw_fd();
        let mut event = ThreadEvent {
            value: writer as usize as *mut c_void,
            signal: 0,
            notify: SIGEV_THREAD,
            function: called,
            attributes: std::ptr::null_mut(),
            rest: [0; 4],
        };
        // SAFETY: it has the layout of a sigevent with SIGEV_THREAD; the C library copies it, the
        // function lives for ever, and so does the descriptor.
        let id = unsafe { TimerId::create((&raw mut event).cast()) }?;
        id.start(beat)?;
        Ok(Timer { calls: File::from(OwnedFd::from(reader)), beat, served: 0, _id: id })
    }
}

/// What is called for a tick: says when.
extern "C" fn called(writer: *mut c_void) {
    let times = [clock::monotonic_ns(), clock::monotonic_raw_ns()];
    // SAFETY: 16 bytes of an array; pipes take so few whole. Without a reader it fails, which is
    // all right after the end.
    unsafe { libc::write(writer as usize as libc::c_int, times.as_ptr().cast(), 16) };
}

impl Ticker for Timer {
    fn wait(&mut self, _: u64) -> Result<Served, Errno> {
        loop {
            let mut times = [[0u8; 8]; 2];
            self.calls.read_exact(times.as_flattened_mut()).map_err(|_| Errno::IO)?;
            let [at, raw] = times.map(u64::from_ne_bytes);
            // Overruns are not passed on to the function: those that are due have passed. Two
            // threads may have been on their way at once; then the second finds nothing due.
            let due =
                at.checked_sub(self.beat.first_ns).map_or(0, |ns| ns / self.beat.interval_ns + 1);
            let ticks = due.saturating_sub(self.served);
            if ticks > 0 {
                self.served += ticks;
                return Ok(Served { ticks, at: Some((at, raw)) });
            }
        }
    }
}
