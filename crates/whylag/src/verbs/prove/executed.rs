//! Executes the program once, recorded or not.

use std::ffi::OsString;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use model::{Better, OwnFigure, RunFigures, RunId, RunSummary, Trial, TrialSide};
use regex::Regex;
use store::{Sqlite, Store};

use super::Planned;
use super::change::Change;
use super::undone::Undone;
use crate::failure::Failure;
use crate::signals::Asked;
use crate::stored::{self, StoreOptions};

/// The last bytes of a program's output are looked through for its figure.
const KEPT_OUTPUT: usize = 1 << 20;
/// How long a program may take to end when its time is over.
const PATIENCE: Duration = Duration::from_secs(10);
/// So long it is waited for the end of what a program prints once it has ended: a process that it has
/// left behind may hold its output for as long as it lives.
const LINGER: Duration = Duration::from_secs(1);
/// How often a child and the signals are looked at.
const LOOK: Duration = Duration::from_millis(5);

/// How the program is executed and judged, on both sides.
#[derive(Clone, Default)]
pub struct Manner {
    /// Finds the program's own figure.
    pub metric: Option<Regex>,
    /// Which values of it are better.
    pub better: Better,
    /// After so long each execution is ended, ns.
    pub limit_ns: Option<u64>,
    /// Its children are recorded, too.
    pub follow: bool,
    /// It prints its ticks, and these are judged.
    pub ticks: bool,
}

/// Executes a side.
pub struct Executor<'a> {
    store: &'a StoreOptions,
    change: Change,
    manner: Manner,
    limit: Option<Duration>,
    undone: Undone,
    /// Label of all runs of this proof.
    proof: String,
}

impl<'a> Executor<'a> {
    pub fn new(
        store: &'a StoreOptions,
        change: Change,
        manner: Manner,
    ) -> Result<Executor<'a>, Failure> {
        // Also refuses a store that cannot be used, before anything is executed.
        drop(store.open_to_write()?);
        let proof = format!("{}-{}", clock::unix_ns() / 1_000_000_000, std::process::id());
        let limit = manner.limit_ns.map(Duration::from_nanos);
        Ok(Executor { store, change, manner, limit, undone: Undone::default(), proof })
    }

    /// One execution; `None` if somebody asked to end meanwhile.
    pub fn execute(&mut self, planned: &Planned, signal: &Asked) -> Result<Option<Trial>, Failure> {
        self.change.prepare(planned.side)?;
        let command = match self.is_by_whylag(planned) {
            true => self.recorder(planned)?,
            false => self.program(planned.side)?,
        };
        let Executed { wall, status, was_ended, output, errors } =
            self.start(command, planned, signal)?;
        if signal.reason().is_some() {
            return Ok(None);
        }
        let recorded = planned.is_recorded.then(|| self.recorded(planned, &errors)).transpose()?;
        let (run, mut figures) = recorded.unzip();
        let of_program = figures.as_ref().and_then(|figures| figures.exit_status);
        let of_program = of_program.or(status.code()).unwrap_or(128);
        let side = planned.side.name();
        if of_program != 0 && !was_ended {
            return Err(Failure::Failed(anyhow!(
                "the program failed {side} the change: exit status {of_program}; what fails cannot \
                 be compared{}",
                last_line(errors.lines().filter(|line| !line.starts_with(OWN)))
            )));
        }
        if let (true, Some(figures)) = (self.change.is_outside(), &figures) {
            let looked = self.undone.look(planned.side, &figures.facts);
            looked.map_err(|error| Failure::Failed(anyhow!(error)))?;
        }
        let wall_ns = figures.as_ref().map_or(wall.as_nanos() as u64, |figures| figures.length_ns);
        let metric = match &self.manner.metric {
            Some(metric) => Some(read(metric, &output, side)?),
            None if self.manner.ticks => Some(self.ticks_off(planned, &errors)?),
            None => None,
        };
        if let (Some(run), Some(figures)) = (run, &mut figures) {
            self.keep(run, figures, metric)?;
        }
        let pair = planned.pair.unwrap_or_default();
        Ok(Some(Trial { side: planned.side, pair, run, wall_ns, metric, figures }))
    }

    /// The program's own figure with the run: it is judged again by that, whenever it is.
    fn keep(
        &self,
        run: RunId,
        figures: &mut RunFigures,
        metric: Option<f64>,
    ) -> Result<(), Failure> {
        let (Some(pattern), Some(value)) = (&self.manner.metric, metric) else { return Ok(()) };
        let what = pattern.as_str().to_owned();
        figures.own = Some(OwnFigure { what, value, better: self.manner.better });
        Ok(self.store.open_to_write()?.put_figures(run, figures)?)
    }

    /// How to name the recorded runs of a side later.
    pub fn set(&self, side: TrialSide) -> String {
        format!("proof={},side={}", self.proof, side.name())
    }

    /// What makes the proof weaker.
    pub fn warning(&self) -> Option<String> {
        (self.change.is_outside() && self.undone.is_unknown()).then(|| {
            "no fact of the host or the program shows that --fix changed something and that --undo \
             took it back: only their exit status says so"
                .to_owned()
        })
    }

    /// Takes the change back.
    pub fn end(&mut self) -> Result<(), Failure> {
        self.change.prepare(TrialSide::Before)
    }

    /// Ticks are read by whylag, also where nothing is recorded.
    fn is_by_whylag(&self, planned: &Planned) -> bool {
        planned.is_recorded || self.manner.ticks
    }

    fn program(&self, side: TrialSide) -> Result<Command, Failure> {
        let words = self.change.command(side);
        let (program, arguments) =
            words.split_first().context("no command").map_err(Failure::Failed)?;
        let mut command = Command::new(program);
        command.args(arguments);
        Ok(command)
    }

    /// `whylag record` of the side: a recorder of its own gives up privileges that the next one needs.
    fn recorder(&self, planned: &Planned) -> Result<Command, Failure> {
        let own = std::env::current_exe()
            .context("cannot find whylag itself")
            .map_err(Failure::Failed)?;
        let mut command = Command::new(own);
        command.arg("--store").arg(self.store.path()?);
        if self.store.is_trusted() {
            command.arg("--trust-store");
        }
        command.arg(if self.manner.ticks { "jitter" } else { "record" });
        for (name, value) in self.labels(planned) {
            command.arg("--label").arg(format!("{name}={value}"));
        }
        if self.manner.follow {
            command.arg("--follow");
        }
        if !planned.is_recorded {
            command.arg("--no-record");
        }
        command.arg("--").args(self.change.command(planned.side));
        Ok(command)
    }

    /// A run outside of the recorded pairs is in neither set of them.
    fn labels(&self, planned: &Planned) -> [(&'static str, String); 3] {
        let (pair, side) = match planned.pair {
            Some(pair) if planned.is_recorded => (pair.to_string(), planned.side.name()),
            Some(pair) => (pair.to_string(), "unrecorded"),
            None => ("none".to_owned(), "first-look"),
        };
        [("proof", self.proof.clone()), ("pair", pair), ("side", side.to_owned())]
    }

    fn start(
        &self,
        mut command: Command,
        planned: &Planned,
        signal: &Asked,
    ) -> Result<Executed, Failure> {
        let program: OsString = command.get_program().to_owned();
        command
            .envs(self.change.environment(planned.side).iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if self.limit.is_some() {
            // What has to be killed is killed with what it started.
            command.process_group(0);
        }
        let started = Instant::now();
        let mut child = command.spawn().map_err(|error| {
            Failure::Usage(format!("cannot execute {}: {error}", program.display()))
        })?;
        let output = child.stdout.take().map(tail);
        let errors = child.stderr.take().map(tail);
        let (status, was_ended) = self.wait(&mut child, signal, self.is_by_whylag(planned))?;
        let wall = started.elapsed();
        let until = Instant::now() + LINGER;
        let text = |tail: Option<Tail>| tail.map_or_else(String::new, |tail| tail.text(until));
        Ok(Executed { wall, status, was_ended, output: text(output), errors: text(errors) })
    }

    /// The end of a child, which is asked to end when whylag is, or when its time is over; and
    /// whether that was so. A recorder passes the signal on to its command.
    fn wait(
        &self,
        child: &mut Child,
        signal: &Asked,
        is_recorder: bool,
    ) -> Result<(ExitStatus, bool), Failure> {
        let pid = rustix::process::Pid::from_child(child);
        let (mut started, mut asked) = (None, None);
        let mut is_time = false;
        loop {
            let ended =
                child.try_wait().context("cannot wait for the program").map_err(Failure::Failed)?;
            if let Some(status) = ended {
                return Ok((status, is_time));
            }
            if started.is_none() && (!is_recorder || has_started(child.id())) {
                started = Some(Instant::now());
            }
            let length = started.map_or(Duration::ZERO, |started: Instant| started.elapsed());
            is_time |= self.limit.is_some_and(|limit| length >= limit);
            if (is_time || signal.reason().is_some()) && asked.is_none() {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
                asked = Some(Instant::now());
            }
            if is_time && asked.is_some_and(|asked: Instant| asked.elapsed() > PATIENCE) {
                let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
                let _ = child.wait();
                return Err(Failure::Failed(anyhow!(
                    "the program did not end within {} s of SIGTERM, and was killed: --time needs \
                     one that does",
                    PATIENCE.as_secs()
                )));
            }
            std::thread::sleep(LOOK);
        }
    }

    /// The run that was just stored.
    fn stored(&self, planned: &Planned, errors: &str) -> Result<(Sqlite, RunSummary), Failure> {
        let store = self.store.open_to_read()?;
        let labels = self.labels(planned);
        let is_it = |run: &RunSummary| {
            labels.iter().all(|(name, value)| run.header.labels.get(*name) == Some(value))
        };
        let run = store.runs()?.into_iter().rev().find(is_it).ok_or_else(|| {
            Failure::Failed(anyhow!("an execution was not recorded{}", last_line(errors.lines())))
        })?;
        Ok((store, run))
    }

    fn recorded(&self, planned: &Planned, errors: &str) -> Result<(RunId, RunFigures), Failure> {
        let (store, run) = self.stored(planned, errors)?;
        if run.header.sampled {
            return Err(Failure::Failed(anyhow!(
                "whylag cannot record with eBPF here, so no cause can be shown to be gone{}",
                last_line(errors.lines())
            )));
        }
        Ok((run.id, stored::figures(&store, run.id)?))
    }

    /// How far the ticks of the run that was just stored are from their time, in seconds.
    fn ticks_off(&self, planned: &Planned, errors: &str) -> Result<f64, Failure> {
        let (store, run) = self.stored(planned, errors)?;
        let ns = stored::figures(&store, run.id)?.ticks_off_ns;
        ns.map(|ns| ns / 1e9).ok_or_else(|| {
            let side = planned.side.name();
            Failure::Usage(format!(
                "--ticks: the program printed no tick {side} the change: a line 'intended_ns \
                 actual_ns' for each"
            ))
        })
    }
}

/// An execution that ended.
struct Executed {
    wall: Duration,
    status: ExitStatus,
    /// Because its time was over.
    was_ended: bool,
    output: String,
    errors: String,
}

/// True once a recorder has started its command: it has a child that is no whylag any more.
fn has_started(recorder: u32) -> bool {
    let program = |pid: &str| std::fs::read_link(format!("/proc/{pid}/exe")).ok();
    let own = program("self");
    let children = observe::children_of(recorder).into_iter();
    children.map(|pid| program(&pid.to_string())).any(|child| child.is_some() && child != own)
}

/// The end of what is printed, as far as it was read.
struct Tail {
    kept: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

/// Reads all, keeps the end.
fn tail(mut from: impl Read + Send + 'static) -> Tail {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let into = Arc::clone(&kept);
    let reader = std::thread::spawn(move || {
        let mut piece = [0; 1 << 16];
        while let Ok(read @ 1..) = from.read(&mut piece) {
            let mut kept = into.lock().unwrap_or_else(PoisonError::into_inner);
            kept.extend_from_slice(&piece[..read]);
            let beyond = kept.len().saturating_sub(KEPT_OUTPUT);
            if beyond > KEPT_OUTPUT {
                kept.drain(..beyond);
            }
        }
    });
    Tail { kept, reader }
}

impl Tail {
    /// All of it, or what was read until then.
    fn text(self, until: Instant) -> String {
        while !self.reader.is_finished() && Instant::now() < until {
            std::thread::sleep(LOOK);
        }
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&kept).into_owned()
    }
}

/// The program's figure in its output.
fn read(metric: &Regex, output: &str, side: &str) -> Result<f64, Failure> {
    let found = metric.captures_iter(output).last();
    let text =
        found.and_then(|found| found.get(1).or_else(|| found.get(0))).map(|text| text.as_str());
    let Some(text) = text else {
        return Err(Failure::Usage(format!(
            "--metric {metric}: nothing that the program printed to standard output {side} the \
             change matches"
        )));
    };
    let number =
        text.trim().replace(',', "").parse::<f64>().ok().filter(|number| number.is_finite());
    number.ok_or_else(|| {
        Failure::Usage(format!(
            "--metric {metric}: '{text}' is no number; put one in a group: (...)"
        ))
    })
}

/// Before what whylag says itself.
const OWN: &str = "whylag: ";

/// The last thing that was said, if anything was.
fn last_line<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    let line = lines.map(str::trim).filter(|line| !line.is_empty()).last();
    let line = line.map(|line| line.trim_start_matches(OWN));
    line.map_or_else(String::new, |line| format!("; it said last: {line}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Only {
        #[command(flatten)]
        store: StoreOptions,
    }

    /// One execution that is not recorded, of a line for the shell.
    fn executed(line: &str, limit: Option<Duration>) -> Executed {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("whylag.db");
        let store = Only::parse_from(["x", "--store", path.to_str().unwrap()]).store;
        let change = Change::of(None, None, Some((line, line)), &[]).ok().unwrap();
        let limit_ns = limit.map(|limit| limit.as_nanos() as u64);
        let manner = Manner { limit_ns, ..Manner::default() };
        let executor = Executor::new(&store, change, manner).ok().unwrap();
        let planned = Planned { side: TrialSide::Before, pair: None, is_recorded: false };
        let program = executor.program(planned.side).ok().unwrap();
        let signal = Asked::listen().ok().unwrap();
        executor.start(program, &planned, &signal).ok().unwrap()
    }

    #[test]
    fn what_never_ends_is_ended_at_its_time_and_what_ends_is_not() {
        let limit = Duration::from_millis(200);
        let never = "trap 'exit 7' TERM; while :; do echo rate: 3; sleep 0.01; done";
        let ended = executed(never, Some(limit));
        assert!(ended.was_ended && ended.wall >= limit, "{:?}", ended.wall);
        assert_eq!(ended.status.code(), Some(7));
        assert!(ended.output.starts_with("rate: 3\n"), "{}", ended.output);
        let by_itself = executed("echo rate: 4", Some(Duration::from_secs(60)));
        assert!(!by_itself.was_ended && by_itself.status.success());
        assert_eq!(by_itself.output, "rate: 4\n");
    }

    #[test]
    fn what_a_program_leaves_behind_is_not_waited_for() {
        let began = Instant::now();
        let executed = executed("echo rate: 4; sleep 60 &", None);
        assert_eq!(executed.output, "rate: 4\n");
        assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    }

    #[test]
    fn the_figure_is_the_last_that_matches() {
        let pattern = |text| Regex::new(text).unwrap();
        let output = "p99: 1.5 ms\np99: 1,234.5 ms\n";
        assert_eq!(read(&pattern("p99: ([0-9.,]+) ms"), output, "before").ok(), Some(1234.5));
        assert_eq!(read(&pattern("[0-9]+$"), "12\n34", "before").ok(), Some(34.0));
        assert!(read(&pattern("p50: (.*)"), output, "before").is_err());
        assert!(read(&pattern("p99: (.*)"), output, "before").is_err());
    }
}
