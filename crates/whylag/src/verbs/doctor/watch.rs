//! `whylag doctor -p PID --watch`: calls as they become bound.
//!
//! When a slot became bound is known from one look to the next. How long that took is known where
//! the recorder may run and the dynamic linker touched a page that was not there: these are the
//! calls that can take milliseconds. Of the others nothing can be measured without a probe in the
//! linker, which would make each of them slower.

use std::collections::VecDeque;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use inspect::live::{Bound, Library, LiveError, Process, Watch};
use observe::{FirstCalls, SeenCall};
use report::doctor::Took;
use serde_json::json;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::failure::Failure;
use crate::output::{self, tell};

/// A look every so often: so exact is the time of a line.
const LOOK: Duration = Duration::from_millis(10);
/// Between two looks at least this many times as long as one takes: at most 5 % of a CPU.
const PAUSE: u32 = 20;
/// A signal and the end of the time are noticed so soon, also in a long pause.
const SLICE: Duration = Duration::from_millis(200);
/// Libraries that are loaded meanwhile are found so often.
const REFRESH: Duration = Duration::from_secs(1);
/// So long a line waits for what the recorder saw: the call has to go on to a system call, and
/// that to come through a ring.
const SETTLE: Duration = Duration::from_millis(200);

/// Watches until a signal, the end of the process, or `time_ns`.
pub fn run(pid: u32, time_ns: Option<u64>, as_json: bool) -> Result<ExitCode, Failure> {
    let is_over = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&is_over))
            .context("cannot handle signals")?;
    }
    let process = Process::open(pid)?;
    let recorder = FirstCalls::start(pid);
    let mut watching = Watching::new(Watch::new(process)?, recorder, as_json);
    watching.tell_begin();
    let limit = time_ns.map(Duration::from_nanos);
    let began = Instant::now();
    let is_over =
        || is_over.load(Ordering::Relaxed) || limit.is_some_and(|limit| began.elapsed() >= limit);
    let ended = loop {
        if is_over() {
            break None;
        }
        let looked = Instant::now();
        if let Err(error) = watching.look() {
            break Some(error);
        }
        watching.write(SETTLE)?;
        pause(LOOK.max(looked.elapsed() * PAUSE), is_over);
    };
    watching.write(Duration::ZERO)?;
    if let Some(error) = ended {
        tell(error);
    }
    watching.tell_end();
    Ok(ExitCode::SUCCESS)
}

fn pause(length: Duration, is_over: impl Fn() -> bool) {
    let began = Instant::now();
    while let Some(left) = length.checked_sub(began.elapsed())
        && !is_over()
    {
        std::thread::sleep(left.min(SLICE));
    }
}

/// A slot that became bound.
struct Seen {
    bound: Bound,
    /// Between these two looks, ns since 1970.
    after_ns: i64,
    by_ns: i64,
    since: Instant,
    call: Option<SeenCall>,
}

struct Watching {
    watch: Watch,
    recorder: Result<FirstCalls, String>,
    as_json: bool,
    /// Of the last look.
    looked_ns: i64,
    refreshed: Instant,
    /// Not written yet, in the order of time.
    seen: VecDeque<Seen>,
    /// Calls whose slots were not seen as bound yet.
    calls: Vec<SeenCall>,
}

impl Watching {
    fn new(watch: Watch, recorder: Result<FirstCalls, String>, as_json: bool) -> Watching {
        Watching {
            watch,
            recorder,
            as_json,
            looked_ns: clock::unix_ns(),
            refreshed: Instant::now(),
            seen: VecDeque::new(),
            calls: Vec::new(),
        }
    }

    fn unbound(&self) -> usize {
        self.watch.libraries().iter().map(|library| library.unbound().count()).sum()
    }

    fn tell_begin(&self) {
        let libraries = self.watch.libraries();
        let known = libraries.iter().filter(|library| library.counts().is_some()).count();
        tell(format_args!(
            "{} calls of {known} files are not bound yet; looking every {} ms; Ctrl-C ends it",
            self.unbound(),
            LOOK.as_millis()
        ));
        if let Err(because) = &self.recorder {
            tell(format_args!("how long each takes cannot be seen here: {because}"));
        }
        tell_unknown(libraries);
    }

    fn tell_end(&self) {
        tell(format_args!("{} calls are still not bound", self.unbound()));
    }

    fn look(&mut self) -> Result<(), LiveError> {
        let bound = self.watch.look()?;
        let now = clock::unix_ns();
        let after_ns = std::mem::replace(&mut self.looked_ns, now);
        let seen = |bound| Seen { bound, after_ns, by_ns: now, since: Instant::now(), call: None };
        self.seen.extend(bound.into_iter().map(seen));
        if self.refreshed.elapsed() > REFRESH {
            self.watch.refresh()?;
            self.refreshed = Instant::now();
        }
        Ok(())
    }

    /// Lets the slots and what the recorder saw find each other, and writes the lines that are
    /// complete, or have waited for `patience`.
    fn write(&mut self, patience: Duration) -> Result<(), Failure> {
        let patience = match &mut self.recorder {
            Ok(recorder) => {
                self.calls.extend(recorder.take());
                patience
            }
            Err(_) => Duration::ZERO,
        };
        for seen in self.seen.iter_mut().filter(|seen| seen.call.is_none()) {
            let is_it = |call: &SeenCall| {
                call.symbol == seen.bound.symbol && call.library == seen.bound.library
            };
            seen.call = self.calls.iter().position(is_it).map(|at| self.calls.swap_remove(at));
        }
        if self.seen.is_empty() {
            return Ok(());
        }
        let (mut out, _) = output::stdout();
        while let Some(seen) = self.seen.front() {
            if seen.call.is_none() && seen.since.elapsed() < patience {
                break;
            }
            writeln!(out, "{}", self.line(seen))?;
            self.seen.pop_front();
        }
        Ok(out.flush()?)
    }

    fn line(&self, seen: &Seen) -> String {
        let Bound { library, symbol, provider } = &seen.bound;
        let began_ns = seen.call.as_ref().map(|call| unix_ns(call.start_ns));
        if !self.as_json {
            let took = match (&seen.call, &self.recorder) {
                (Some(call), _) => Took::AtMost {
                    ns: call.at_most_ns,
                    minor_faults: call.minor_faults,
                    major_faults: call.major_faults,
                },
                (None, Ok(_)) => Took::NoFault,
                (None, Err(_)) => Took::Unknown,
            };
            let at = began_ns.unwrap_or(seen.by_ns);
            return report::doctor::bound(at, library, symbol, provider.as_deref(), took);
        }
        let resolution = seen.call.as_ref().map(|call| {
            json!({
                "began_unix_ns": began_ns, "at_most_ns": call.at_most_ns,
                "minor_faults": call.minor_faults, "major_faults": call.major_faults,
            })
        });
        let because = match (&resolution, &self.recorder) {
            (Some(_), _) => None,
            (None, Ok(_)) => Some("no page fault in the dynamic linker was seen"),
            (None, Err(because)) => Some(because.as_str()),
        };
        json!({
            "after_unix_ns": seen.after_ns, "unix_ns": seen.by_ns, "library": library,
            "symbol": symbol, "provider": provider, "resolution": resolution,
            "resolution_unknown_because": because,
        })
        .to_string()
    }
}

/// A time of CLOCK_MONOTONIC that was not long ago, in ns since 1970.
fn unix_ns(monotonic_ns: u64) -> i64 {
    let ago = clock::monotonic_ns().saturating_sub(monotonic_ns);
    clock::unix_ns().saturating_sub(i64::try_from(ago).unwrap_or(0))
}

fn tell_unknown(libraries: &[Library]) {
    for library in libraries {
        let because = match &library.slots {
            Err(because) => because,
            Ok(slots) => match &slots.unbound {
                Err(because) => because,
                Ok(_) => continue,
            },
        };
        tell(format_args!("{}: {because}", library.path));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_pause_ends_when_it_is_over() {
        let began = Instant::now();
        pause(Duration::from_secs(3600), || began.elapsed() >= Duration::from_millis(300));
        let lasted = began.elapsed();
        assert!(lasted < Duration::from_secs(60), "{lasted:?}");
        let began = Instant::now();
        pause(LOOK, || false);
        assert!(began.elapsed() >= LOOK);
    }
}
