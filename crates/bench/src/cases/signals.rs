//! A handler that does nothing: what the cases with signals share.

use std::mem::zeroed;

use rustix::io::Errno;

use super::last_error;

/// A handler for a signal, for the whole process; without it again when dropped.
pub struct Handler {
    signal: libc::c_int,
    before: libc::sigaction,
}

extern "C" fn nothing(_: libc::c_int) {}

impl Handler {
    /// From now on `signal` is caught.
    pub fn install(signal: libc::c_int) -> Result<Handler, Errno> {
        // SAFETY: zero is a valid value: an empty mask, no flags.
        let (mut action, mut before): (libc::sigaction, libc::sigaction) =
            unsafe { (zeroed(), zeroed()) };
        action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as usize;
        // SAFETY: both are valid, and the handler does nothing.
        match unsafe { libc::sigaction(signal, &raw const action, &raw mut before) } {
            0 => Ok(Handler { signal, before }),
            _ => Err(last_error()),
        }
    }
}

impl Drop for Handler {
    fn drop(&mut self) {
        // SAFETY: as it was before.
        unsafe { libc::sigaction(self.signal, &raw const self.before, std::ptr::null_mut()) };
    }
}

/// A set of these signals.
pub fn set(signals: &[libc::c_int]) -> libc::sigset_t {
    // SAFETY: the set is emptied, then filled with signals that there are.
    unsafe {
        let mut set = zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in signals {
            libc::sigaddset(&raw mut set, *signal);
        }
        set
    }
}
