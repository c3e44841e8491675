//! Helper processes: until they are dropped they hold a share of a population, or keep doing
//! something while the workers are measured.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, PoisonError};

use crate::{Error, stop};

/// Helper processes that have not been dropped.
static WANTED: Mutex<BTreeSet<libc::pid_t>> = Mutex::new(BTreeSet::new());

/// True if a helper has ended by itself or been killed: what it held is gone, so a step does not
/// measure what its title says.
pub(crate) fn one_has_died() -> bool {
    let wanted = WANTED.lock().unwrap_or_else(PoisonError::into_inner);
    wanted.iter().any(|pid| {
        // SAFETY: zero is a value of this structure; it is valid for writing; the child, if it has
        // ended, is left to be waited for.
        unsafe {
            let mut ended: libc::siginfo_t = std::mem::zeroed();
            let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
            libc::waitid(libc::P_PID, *pid as libc::id_t, &raw mut ended, flags) == 0
                && ended.si_pid() != 0
        }
    })
}

/// Processes that die with this one, at the latest.
pub struct Helpers(Vec<libc::pid_t>);

impl Helpers {
    /// Has `make` make objects 0 to `n` in processes of at most `each`, and keep what it returns.
    /// Returns when all are made.
    pub fn hold<T>(
        n: u64,
        each: u64,
        make: impl Fn(Range<u64>) -> Result<T, Error>,
    ) -> Result<Helpers, Error> {
        let mut helpers = Helpers(Vec::new());
        let mut from = 0;
        while from < n {
            let to = n.min(from + each);
            helpers.start(|ready| {
                let kept = make(from..to)?;
                ready()?;
                wait_for_ever();
                drop(kept);
                Ok(())
            })?;
            from = to;
        }
        Ok(helpers)
    }

    /// Starts `count` processes that do `act` again and again; returns when each has done it once.
    pub fn repeat(count: u64, act: impl Fn(u64) -> Result<(), Error>) -> Result<Helpers, Error> {
        let mut helpers = Helpers(Vec::new());
        for id in 0..count {
            helpers.start(|ready| {
                act(id)?;
                ready()?;
                loop {
                    act(id)?;
                }
            })?;
        }
        Ok(helpers)
    }

    /// No helper.
    pub fn none() -> Helpers {
        Helpers(Vec::new())
    }

    fn start(
        &mut self,
        body: impl FnOnce(&dyn Fn() -> Result<(), Error>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if stop::requested() {
            return Err(Error::Stopped);
        }
        let failed = |doing: &str| {
            let doing = doing.to_owned();
            move |source| Error::Os { doing, source }
        };
        let (mut ours, theirs) = UnixStream::pair().map_err(failed("making a socket pair"))?;
        let parent = std::process::id();
        // SAFETY: this process has no other thread while a case prepares (see lib.rs); the child
        // leaves by _exit.
        match unsafe { libc::fork() } {
            -1 => return Err(Error::os("starting a helper process")),
            0 => {
                die_with(parent);
                drop(ours);
                let ready = || (&theirs).write_all(b"+").map_err(failed("telling the parent"));
                if let Err(error) = body(&ready) {
                    let _ = (&theirs).write_all(error.to_string().as_bytes());
                }
                // SAFETY: ends this process without running what the parent registered.
                unsafe { libc::_exit(1) };
            }
            pid => {
                self.0.push(pid);
                WANTED.lock().unwrap_or_else(PoisonError::into_inner).insert(pid);
            }
        }
        drop(theirs);
        let mut first = [0];
        let bytes = ours.read(&mut first).map_err(failed("waiting for a helper process"))?;
        if (bytes, first[0]) == (1, b'+') {
            return Ok(());
        }
        let mut rest = Vec::from(&first[..bytes]);
        ours.read_to_end(&mut rest).map_err(failed("waiting for a helper process"))?;
        Err(Error::Refused(match rest.is_empty() {
            true => "a helper process died".to_owned(),
            false => String::from_utf8_lossy(&rest).into_owned(),
        }))
    }
}

impl Drop for Helpers {
    fn drop(&mut self) {
        let mut wanted = WANTED.lock().unwrap_or_else(PoisonError::into_inner);
        for pid in &self.0 {
            wanted.remove(pid);
            // SAFETY: children that were not waited for, so the pids are still theirs.
            unsafe { libc::kill(*pid, libc::SIGKILL) };
        }
        drop(wanted);
        for pid in self.0.drain(..) {
            // SAFETY: a child of ours; its status is not wanted.
            unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
        }
    }
}

/// Has the calling process killed when `parent`, which forked it, ends.
pub(crate) fn die_with(parent: u32) {
    // SAFETY: plain system calls with constants.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if libc::getppid() as u32 != parent {
            libc::_exit(1);
        }
    }
}

fn wait_for_ever() {
    loop {
        // SAFETY: takes nothing, returns after a signal.
        unsafe { libc::pause() };
    }
}
