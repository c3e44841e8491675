//! A recording from its begin to its report.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use messages::Traced;
use model::{Batch, RunEnd};
use observe::Recorder;
use store::Store;

use super::Options;
use super::size_cap::SizeCap;
use crate::failure::Failure;
use crate::keeper::{Keeper, Kept};
use crate::output::tell;
use crate::signals::Asked;
use crate::{output, signals};

/// How often it is looked whether a command has ended, after the recording.
const LOOK: Duration = Duration::from_millis(20);
/// A command may go on for so long after the recording's end without a word.
const SILENCE: Duration = Duration::from_secs(1);
/// Slow messages in the report at the end.
const MESSAGES: usize = 3;
/// How often data is stored: what a killed recorder loses at most.
const STEP: Duration = Duration::from_secs(1);

/// Why recording stops.
pub struct Stop {
    reason: String,
    exit_status: Option<i32>,
    /// What the recorder could not do.
    failed: Option<observe::Error>,
}

impl Stop {
    fn because(reason: impl Into<String>) -> Stop {
        Stop { reason: reason.into(), exit_status: None, failed: None }
    }
}

impl From<observe::Error> for Stop {
    fn from(error: observe::Error) -> Stop {
        Stop { failed: Some(error), ..Stop::because("the recorder failed") }
    }
}

/// A recording that goes on.
pub struct Session {
    recorder: Recorder,
    traced: Traced,
    keeper: Keeper,
    size_cap: SizeCap,
    progress: ProgressBar,
    outliers: u64,
    started: Instant,
}

impl Session {
    pub fn new(recorder: Recorder, traced: Traced, keeper: Keeper, options: &Options) -> Session {
        Session {
            recorder,
            traced,
            keeper,
            size_cap: SizeCap::new(options.max_size),
            progress: progress(options),
            outliers: 0,
            started: Instant::now(),
        }
    }

    /// Stores what comes; why it stops.
    pub fn watch_until_end(&mut self, options: &Options, signal: &Asked) -> Stop {
        let mut stored = Instant::now();
        loop {
            match self.look(options, signal, &mut stored) {
                Ok(None) => {}
                Ok(Some(stop)) => return stop,
                Err(error) => return error.into(),
            }
        }
    }

    /// Takes what there is, or waits for a moment; the reason if it is time to stop.
    fn look(
        &mut self,
        options: &Options,
        signal: &Asked,
        stored: &mut Instant,
    ) -> Result<Option<Stop>, observe::Error> {
        if let Some((reason, exit_status)) = self.recorder.ended()? {
            return Ok(Some(Stop { exit_status, ..Stop::because(reason) }));
        }
        if let Some(reason) = signal.reason() {
            return Ok(Some(Stop::because(reason)));
        }
        let length = self.started.elapsed().as_nanos();
        if options.time.is_some_and(|time| length >= u128::from(time)) {
            return Ok(Some(Stop::because("--time was over")));
        }
        let also_keep = |ns| self.recorder.also_keep(ns);
        say(self.traced.look(clock::monotonic_ns(), also_keep));
        self.recorder.look_for_interpreters();
        let batch = if stored.elapsed() >= STEP || self.recorder.is_crowded() {
            *stored = Instant::now();
            Some(self.recorder.batch()?)
        } else {
            self.recorder.early_outliers()
        };
        match batch {
            Some(batch) => {
                self.show(&batch);
                keep(batch, &mut self.traced, &mut self.size_cap, &mut self.keeper);
            }
            None => self.wait(options, *stored),
        }
        Ok(None)
    }

    /// Until something is to be done; each wake-up takes more from a busy CPU than what is done then.
    fn wait(&mut self, options: &Options, stored: Instant) {
        let traced = self.traced.rest(clock::monotonic_ns());
        let batch = STEP.saturating_sub(stored.elapsed());
        let left = |time| Duration::from_nanos(time).saturating_sub(self.started.elapsed());
        let end = options.time.map_or(STEP, left);
        self.recorder.wait(traced.min(batch).min(end));
    }

    fn show(&mut self, batch: &Batch) {
        self.outliers += batch.outliers.len() as u64;
        self.progress.set_message(format!(
            "recording run {}: {} s, {} outliers; Ctrl-C ends it",
            self.keeper.number(),
            self.started.elapsed().as_secs(),
            self.outliers
        ));
        self.progress.tick();
    }

    /// Reads what is left, passes a signal on to a command only then, stores the rest, waits for
    /// the command, and prints the report.
    pub fn finish(mut self, stop: Stop, signal: &Asked) -> Result<ExitCode, Failure> {
        let mut failed = stop.failed;
        let stopped = self.recorder.stop();
        let child = self.recorder.child_pid().filter(|_| stop.exit_status.is_none());
        let waiter = child.map(|pid| signals::pass_on_until_end(pid, signal));
        self.progress.finish_and_clear();
        let ended_ns = stopped.unwrap_or_else(|error| {
            failed.get_or_insert(error);
            clock::monotonic_ns()
        });
        self.keeper.ends();
        self.traced.finish(ended_ns);
        let finished = self.recorder.finish(|batch| {
            keep(batch, &mut self.traced, &mut self.size_cap, &mut self.keeper);
        });
        if let Err(error) = finished {
            failed.get_or_insert(error);
        }
        let status = stop
            .exit_status
            .or_else(|| child.zip(waiter).and_then(|(pid, waiter)| exit_status(pid, waiter)));
        let end = RunEnd { ended_ns, exit_status: status, reason: stop.reason };
        let mut kept = self.keeper.finish(&end)?;
        if kept.is_kept() {
            signal.nothing_can_be_lost();
        }
        let reported = report(&mut kept);
        kept.tell_where("has the rest");
        if kept.is_kept() {
            say(self.traced.remove_abandoned());
        }
        reported?;
        if let Some(error) = failed {
            return Err(error.into());
        }
        Ok(kept.exit_code(status))
    }
}

/// A line that moves, unless a command owns the terminal.
fn progress(options: &Options) -> ProgressBar {
    if options.command.is_empty() && std::io::stderr().is_terminal() {
        ProgressBar::new_spinner()
    } else {
        ProgressBar::hidden()
    }
}

/// Of a command that was recorded for a part of its life: waits for it to end, and says so.
fn exit_status(pid: u32, waiter: JoinHandle<i32>) -> Option<i32> {
    let waiting = Instant::now();
    while !waiter.is_finished() && waiting.elapsed() < SILENCE {
        std::thread::sleep(LOOK);
    }
    if !waiter.is_finished() {
        tell(format_args!(
            "recording has ended; the report comes when the command (pid {pid}) has ended too: \
             Ctrl-C or 'kill {pid}' ends it"
        ));
    }
    waiter.join().ok()
}

/// Adds what the programs traced themselves, and stores what the run has room for.
fn keep(mut batch: Batch, traced: &mut Traced, size_cap: &mut SizeCap, keeper: &mut Keeper) {
    traced.complete(&mut batch);
    if let Some(line) = size_cap.trim(&mut batch, keeper.stored_bytes()) {
        tell(line);
    }
    keeper.append(batch);
}

fn say(lines: Vec<String>) {
    lines.iter().for_each(tell);
}

/// Explains the run, keeps the findings, and prints both.
fn report(kept: &mut Kept) -> Result<(), Failure> {
    let id = kept.id;
    let run = kept.store.load(id)?;
    let explanation = explain::explain(&run);
    kept.put_findings(&explanation.findings);
    kept.put_figures(&explain::figures(&run, &explanation));
    let (mut out, style) = output::stderr();
    writeln!(out)?;
    report::accounts::write_summary(&mut out, &run, &style)?;
    writeln!(out)?;
    report::explanation::write(&mut out, &explanation, &run, &style)?;
    if !run.messages.is_empty() {
        let slow = explain::slow_messages(&run);
        writeln!(out)?;
        report::messages::write(&mut out, &run, &id.to_string(), &slow, MESSAGES, &style)?;
    }
    writeln!(out)?;
    Ok(out.flush()?)
}
