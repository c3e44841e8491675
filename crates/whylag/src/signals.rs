//! SIGINT, SIGTERM and SIGHUP end a measurement, not whylag: what was measured is stored and judged.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;

use crate::failure::Failure;

/// The signals that ask for the end.
#[derive(Clone, Default)]
pub struct Asked {
    /// Number of the last one that came.
    last: Arc<AtomicUsize>,
    is_kept: Arc<AtomicBool>,
}

impl Asked {
    /// From now on signals ask for the end. A command that is to be measured has to be started
    /// before: it inherits that a signal is ignored (nohup, `&` in a script), but not that it is
    /// handled. That the terminal goes away ends nothing under nohup.
    pub fn listen() -> Result<Asked, Failure> {
        let asked = Asked::default();
        let hangup = (!is_ignored(SIGHUP)).then_some(SIGHUP);
        for number in [SIGINT, SIGTERM].into_iter().chain(hangup) {
            flag::register_conditional_default(number, Arc::clone(&asked.is_kept))
                .and_then(|_| {
                    flag::register_usize(number, Arc::clone(&asked.last), number as usize)
                })
                .context("cannot handle signals")?;
        }
        Ok(asked)
    }

    /// As the reason for the end of a run, once one has come.
    pub fn reason(&self) -> Option<&'static str> {
        match self.last.load(Ordering::Relaxed) as i32 {
            0 => None,
            SIGINT => Some("Ctrl-C (SIGINT)"),
            SIGHUP => Some("SIGHUP"),
            _ => Some("SIGTERM"),
        }
    }

    /// What was measured is kept, and only the report is left: signals end whylag again.
    pub fn nothing_can_be_lost(&self) {
        self.is_kept.store(true, Ordering::SeqCst);
    }
}

/// Makes a write beyond the limit of the size of files (`ulimit -f`) fail, as on a full disk,
/// instead of ending whylag without a word. A handler, because a command that is started later is
/// to have what whylag was given: it does not inherit handlers.
pub fn fail_at_the_limit_of_file_size() -> io::Result<()> {
    if is_ignored(SIGXFSZ) {
        return Ok(());
    }
    flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false))).map(drop)
}

fn is_ignored(number: i32) -> bool {
    // SAFETY: a structure of integers, pointers and a set of bits, for which zero is a value.
    let mut now: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: changes nothing, and fills in `now`, which is there.
    let asked = unsafe { libc::sigaction(number, std::ptr::null(), &raw mut now) };
    asked == 0 && now.sa_sigaction == libc::SIG_IGN
}

/// How often it is looked whether a command that is waited for has ended.
const LOOK: Duration = Duration::from_millis(20);

/// Waits for a command, which goes on without being recorded, and passes on to it the signals that
/// came or come: they are meant for it too. Not Ctrl-C, which has reached it from the terminal.
/// Gives its exit status as a shell reports it.
pub fn pass_on_until_end(pid: u32, asked: &Asked) -> JoinHandle<i32> {
    let last = Arc::clone(&asked.last);
    let pid = Pid::from_raw(pid as i32);
    std::thread::spawn(move || {
        loop {
            let passed_on = match last.swap(0, Ordering::Relaxed) as i32 {
                SIGTERM => Some(Signal::TERM),
                SIGHUP => Some(Signal::HUP),
                _ => None,
            };
            if let (Some(pid), Some(signal)) = (pid, passed_on) {
                // It may have ended by itself just now.
                let _ = kill_process(pid, signal);
            }
            match waitpid(pid, WaitOptions::NOHANG) {
                Ok(None) => std::thread::sleep(LOOK),
                Ok(Some((_, status))) => {
                    let killed = || 128 + status.terminating_signal().unwrap_or(0);
                    return status.exit_status().unwrap_or_else(killed);
                }
                Err(_) => return 1,
            }
        }
    })
}
