//! SIGINT, SIGTERM and SIGHUP end a measurement, not whylag: what was measured is stored and judged.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};

use crate::failure::Failure;

/// Number of the signal that asked for the end; 0 as long as none did.
///
/// A command that is to be measured has to be started before: it inherits that a signal is ignored
/// (nohup, `&` in a script), but not that it is handled. That the terminal goes away ends nothing
/// under nohup.
pub fn asking_for_the_end() -> Result<Arc<AtomicUsize>, Failure> {
    let signal = Arc::new(AtomicUsize::new(0));
    let hangup = (!is_ignored(SIGHUP)).then_some(SIGHUP);
    for number in [SIGINT, SIGTERM].into_iter().chain(hangup) {
        signal_hook::flag::register_usize(number, Arc::clone(&signal), number as usize)
            .context("cannot handle signals")?;
    }
    Ok(signal)
}

/// Makes a write beyond the limit of the size of files (`ulimit -f`) fail, as on a full disk,
/// instead of ending whylag without a word. A handler, because a command that is started later is
/// to have what whylag was given: it does not inherit handlers.
pub fn fail_at_the_limit_of_file_size() -> io::Result<()> {
    if is_ignored(SIGXFSZ) {
        return Ok(());
    }
    signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false))).map(drop)
}

fn is_ignored(number: i32) -> bool {
    // SAFETY: a structure of integers, pointers and a set of bits, for which zero is a value.
    let mut now: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: changes nothing, and fills in `now`, which is there.
    let asked = unsafe { libc::sigaction(number, std::ptr::null(), &raw mut now) };
    asked == 0 && now.sa_sigaction == libc::SIG_IGN
}

/// As the reason for the end of a run.
pub fn name(number: usize) -> &'static str {
    match number as i32 {
        SIGINT => "Ctrl-C (SIGINT)",
        SIGHUP => "SIGHUP",
        _ => "SIGTERM",
    }
}

/// How often it is looked whether a command that is waited for has ended.
const LOOK: Duration = Duration::from_millis(20);

/// Waits for a command, which goes on without being recorded, and passes on to it the signals that
/// came or come: they are meant for it too. Not Ctrl-C, which has reached it from the terminal.
/// Gives its exit status as a shell reports it.
pub fn pass_on_until_end(pid: u32, signal: Arc<AtomicUsize>) -> JoinHandle<i32> {
    let pid = Pid::from_raw(pid as i32);
    std::thread::spawn(move || {
        loop {
            let passed_on = match signal.swap(0, Ordering::Relaxed) as i32 {
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
