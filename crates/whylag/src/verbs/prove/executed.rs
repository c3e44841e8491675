//! Executes the program once, recorded or not.

use std::ffi::OsString;
use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use model::{RunFigures, RunId, Trial, TrialSide};
use regex::Regex;
use store::Store;

use super::Planned;
use super::change::Change;
use crate::failure::Failure;
use crate::signals::Asked;
use crate::stored::StoreOptions;

/// The last bytes of a program's output are looked through for its figure.
const KEPT_OUTPUT: usize = 1 << 20;
/// How often a child and the signals are looked at.
const LOOK: Duration = Duration::from_millis(5);

/// Executes a side.
pub struct Executor<'a> {
    store: &'a StoreOptions,
    change: Change,
    metric: Option<Regex>,
    /// Label of all runs of this proof.
    proof: String,
}

impl<'a> Executor<'a> {
    pub fn new(
        store: &'a StoreOptions,
        change: Change,
        metric: Option<Regex>,
    ) -> Result<Executor<'a>, Failure> {
        // Also refuses a store that cannot be used, before anything is executed.
        drop(store.open_to_write()?);
        let proof = format!("{}-{}", clock::unix_ns() / 1_000_000_000, std::process::id());
        Ok(Executor { store, change, metric, proof })
    }

    /// One execution; `None` if somebody asked to end meanwhile.
    pub fn execute(&mut self, planned: &Planned, signal: &Asked) -> Result<Option<Trial>, Failure> {
        self.change.prepare(planned.side)?;
        let Executed { wall, status, output, errors } = match planned.is_recorded {
            true => self.start(self.recorder(planned)?, planned.side, signal)?,
            false => self.start(self.program(planned.side)?, planned.side, signal)?,
        };
        if signal.reason().is_some() {
            return Ok(None);
        }
        let recorded = planned.is_recorded.then(|| self.recorded(planned, &errors)).transpose()?;
        let (run, figures) = recorded.unzip();
        let of_program = figures.as_ref().and_then(|figures| figures.exit_status);
        let of_program = of_program.or(status.code()).unwrap_or(128);
        let side = planned.side.name();
        if of_program != 0 {
            return Err(Failure::Failed(anyhow!(
                "the program failed {side} the change: exit status {of_program}; what fails cannot \
                 be compared{}",
                last_line(&errors)
            )));
        }
        let wall_ns = figures.as_ref().map_or(wall.as_nanos() as u64, |figures| figures.length_ns);
        let metric = self.metric.as_ref().map(|metric| read(metric, &output, side)).transpose()?;
        Ok(Some(Trial { side: planned.side, pair: planned.pair, run, wall_ns, metric, figures }))
    }

    /// Takes the change back.
    pub fn end(&mut self) -> Result<(), Failure> {
        self.change.prepare(TrialSide::Before)
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
        command.arg("record");
        for (name, value) in self.labels(planned) {
            command.arg("--label").arg(format!("{name}={value}"));
        }
        command.arg("--").args(self.change.command(planned.side));
        Ok(command)
    }

    fn labels(&self, planned: &Planned) -> [(&'static str, String); 3] {
        [
            ("proof", self.proof.clone()),
            ("pair", planned.pair.to_string()),
            ("side", planned.side.name().to_owned()),
        ]
    }

    fn start(
        &self,
        mut command: Command,
        side: TrialSide,
        signal: &Asked,
    ) -> Result<Executed, Failure> {
        let program: OsString = command.get_program().to_owned();
        command.envs(self.change.environment(side).iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let started = Instant::now();
        let mut child = command.spawn().map_err(|error| {
            Failure::Usage(format!("cannot execute {}: {error}", program.display()))
        })?;
        let output = child.stdout.take().map(tail);
        let errors = child.stderr.take().map(tail);
        let status = wait(&mut child, signal)?;
        let wall = started.elapsed();
        let text = |reader: Option<JoinHandle<String>>| {
            reader.and_then(|reader| reader.join().ok()).unwrap_or_default()
        };
        Ok(Executed { wall, status, output: text(output), errors: text(errors) })
    }

    /// The run that was just recorded.
    fn recorded(&self, planned: &Planned, errors: &str) -> Result<(RunId, RunFigures), Failure> {
        let store = self.store.open_to_read()?;
        let labels = self.labels(planned);
        let is_it = |run: &model::RunSummary| {
            labels.iter().all(|(name, value)| run.header.labels.get(*name) == Some(value))
        };
        let run = store.runs()?.into_iter().rev().find(is_it).ok_or_else(|| {
            Failure::Failed(anyhow!("an execution was not recorded{}", last_line(errors)))
        })?;
        if run.header.sampled {
            return Err(Failure::Failed(anyhow!(
                "whylag cannot record with eBPF here, so no cause can be shown to be gone{}",
                last_line(errors)
            )));
        }
        Ok((run.id, super::stored_runs::figures(&store, run.id)?))
    }
}

/// An execution that ended.
struct Executed {
    wall: Duration,
    status: ExitStatus,
    output: String,
    errors: String,
}

/// The end of a child, which is asked to end when whylag is.
fn wait(child: &mut Child, signal: &Asked) -> Result<ExitStatus, Failure> {
    let mut was_asked = false;
    loop {
        let ended =
            child.try_wait().context("cannot wait for the program").map_err(Failure::Failed)?;
        if let Some(status) = ended {
            return Ok(status);
        }
        if signal.reason().is_some() && !was_asked {
            let pid = rustix::process::Pid::from_child(child);
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
            was_asked = true;
        }
        std::thread::sleep(LOOK);
    }
}

/// Reads all, keeps the end.
fn tail(mut from: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        let mut piece = [0; 1 << 16];
        while let Ok(read @ 1..) = from.read(&mut piece) {
            kept.extend_from_slice(&piece[..read]);
            if kept.len() > 2 * KEPT_OUTPUT {
                kept.drain(..kept.len() - KEPT_OUTPUT);
            }
        }
        String::from_utf8_lossy(&kept).into_owned()
    })
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

/// The last thing that was said, if anything was.
fn last_line(errors: &str) -> String {
    let line = errors.lines().rev().find(|line| !line.trim().is_empty());
    let line = line.map(|line| line.trim().trim_start_matches("whylag: "));
    line.map_or_else(String::new, |line| format!("; it said last: {line}"))
}

#[cfg(test)]
mod tests {
    use super::*;

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
