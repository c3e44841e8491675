//! What `jitter` watches: whylag's own timers, or a program that prints its ticks.

use jitter::plan::Step;
use jitter::{Program, Recording, Series, Started, Timers};

use super::{Options, setting};
use crate::failure::Failure;
use crate::output;

/// Timers of our own, or of a program.
pub enum Watched {
    Timers(Timers),
    Program(Box<Program>),
}

impl Watched {
    /// Begins, and with it the recording; without one, says why.
    pub fn start(options: &Options, plan: Vec<Step>) -> Result<(Watched, Started), Failure> {
        if !options.command.is_empty() {
            return Watched::start_command(options);
        }
        // What nobody asked about is not recorded: even little is seen at the shortest intervals.
        let recording = match options.over {
            Some(over) if !options.no_record => Recording::of_ourselves(over)?,
            Some(_) => Err("--no-record".to_owned()),
            None => Err("say with --over which ticks are late".to_owned()),
        };
        let length = plan.iter().map(Step::length_ns).fold(0, u64::saturating_add);
        let timers = Timers::start(plan, setting(options), options.over)?;
        let length = model::units::duration(length);
        output::tell(format!("measuring timers for {length}; Ctrl-C ends it"));
        Ok((Watched::Timers(timers), recording))
    }

    fn start_command(options: &Options) -> Result<(Watched, Started), Failure> {
        let started_ns = clock::monotonic_ns();
        let (recording, child) = match options.no_record {
            true => (Err("--no-record".to_owned()), None),
            false => Recording::of_command(&options.command)?,
        };
        let program = match child {
            Some(child) => Program::of(child, started_ns, options.over),
            None => Program::start(&options.command, options.over)?,
        };
        Ok((Watched::Program(Box::new(program)), recording))
    }

    /// All series.
    pub fn series(&mut self) -> &mut [Series] {
        match self {
            Watched::Timers(timers) => timers.series_mut(),
            Watched::Program(program) => std::slice::from_mut(program.series_mut()),
        }
    }

    /// Takes what has come; true at the end.
    pub fn drain(&mut self) -> Result<bool, Failure> {
        match self {
            Watched::Timers(timers) => Ok(timers.drain()?),
            Watched::Program(program) => Ok(program.drain()),
        }
    }

    /// The series that grows.
    pub fn newest(&mut self) -> Option<&mut Series> {
        match self {
            Watched::Timers(timers) => timers.series_mut().last_mut(),
            Watched::Program(program) => Some(program.series_mut()),
        }
    }
}
