//! What ends a wait of whoever takes batches: the target's end, something that should be taken soon, a
//! signal. Without it the recorder would have to look often, and each look on a busy CPU costs the
//! target's clients or itself more than the recorder's own time (docs/cost.md).

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::Error;

/// Rung by the thread that empties the rings. Its sound lasts until it is heard.
pub struct Bell(OwnedFd);

impl Bell {
    /// One that is silent.
    pub fn new() -> Result<Bell, Error> {
        let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        fd.map(Bell).map_err(Error::io("making an eventfd"))
    }

    /// Ends a wait, or the next one if nobody waits.
    pub fn ring(&self) {
        // It fails only when it has been rung 2^64 times and nobody has heard it.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    fn hush(&self) {
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}

/// From one look to the next whether a thread or a cgroup has ended, which nothing reports.
const LOOK: Duration = Duration::from_millis(100);

/// A process whose end ends a wait.
pub struct End(Option<OwnedFd>);

impl End {
    /// Of a process; what is none is to be looked at, between waits.
    pub fn of(pid: Option<u32>) -> End {
        let pid = pid.and_then(|pid| Pid::from_raw(pid as i32));
        End(pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()))
    }

    /// Waits for it, for the bell, or for a signal. It ends one wait and no more: whoever sees nothing of
    /// it would wait for nothing at all.
    pub fn wait(&mut self, bell: Option<&Bell>, at_most: Duration) {
        let at_most = if self.0.is_some() { at_most } else { at_most.min(LOOK) };
        let Ok(at_most) = Timespec::try_from(at_most) else { return };
        let (mut rung, mut ended) = (false, false);
        {
            let fds = [bell.map(|bell| bell.0.as_fd()), self.0.as_ref().map(AsFd::as_fd)];
            let mut polled: Vec<PollFd<'_>> = fds
                .iter()
                .flatten()
                .map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN))
                .collect();
            // Interrupted by a signal, it has nothing to say.
            if poll(&mut polled, Some(&at_most)).is_err() {
                return;
            }
            let mut came = polled.iter().map(|fd| !fd.revents().is_empty());
            for (fd, came_of) in fds.iter().zip([&mut rung, &mut ended]) {
                *came_of = fd.is_some() && came.next().unwrap_or(false);
            }
        }
        if rung && let Some(bell) = bell {
            bell.hush();
        }
        if ended {
            self.0 = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::Instant;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_bell_ends_one_wait() {
        let bell = Bell::new().unwrap();
        let mut end = End::of(None);
        bell.ring();
        bell.ring();
        let began = Instant::now();
        end.wait(Some(&bell), LONG);
        assert!(began.elapsed() < LONG / 2);
        let began = Instant::now();
        end.wait(Some(&bell), Duration::from_millis(50));
        assert!(began.elapsed() >= Duration::from_millis(50));
    }

    #[test]
    fn the_end_of_a_process_ends_one_wait() {
        let mut child = Command::new("sleep").arg("0.05").spawn().unwrap();
        let mut end = End::of(Some(child.id()));
        let bell = Bell::new().unwrap();
        let began = Instant::now();
        end.wait(Some(&bell), LONG);
        assert!(began.elapsed() < LONG / 2);
        assert!(child.try_wait().unwrap().is_some(), "it has ended");
        let began = Instant::now();
        end.wait(None, Duration::from_millis(50));
        assert!(began.elapsed() >= Duration::from_millis(50));
    }
}
