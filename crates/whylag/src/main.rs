//! The binary: parses the command line and hands over to one file per verb in `verbs/`.
//!
//! Its one important type is [`Failure`]: what went wrong decides the exit status, 1 for what
//! failed, 2 for wrong usage (an option, pid, run or file that cannot be used). Caveat: `record`
//! of a command exits with the command's own status instead.

#![deny(clippy::print_stdout, clippy::print_stderr, reason = "text goes through output.rs")]

mod failure;
mod keeper;
mod output;
mod panics;
mod place;
mod selection;
mod signals;
mod stored;
mod verbs;

use std::io::Write;
use std::process::ExitCode;
use std::time::Instant;

use clap::{Parser, Subcommand};

use failure::Failure;
use observe::Work;

/// Finds out why a Linux program was slow just now, and proves the cause.
#[derive(Parser)]
#[command(
    version,
    max_term_width = 100,
    after_help = "\
Example:
  whylag record -- ./server --port 8080     watch a command from its first instruction
  whylag record -p 1234 --time 10s          watch a running process for ten seconds
  whylag explain                            the causes again, for the newest run
  whylag prove --fix LD_BIND_NOW=1 -- CMD   whether that makes CMD faster, and why

Recording needs root, or CAP_BPF and CAP_PERFMON. The exit status is that of a
recorded command, else 0; 1 is a failure, 2 a wrong use, 3 what --expect, --strict
or --threshold did not find as they should."
)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    store: stored::StoreOptions,
}

#[derive(Subcommand)]
enum Verb {
    /// Record threads, store the run, print where the time went and the leading cause
    Record(verbs::record::Options),
    /// Measure how late timers fire, or a program's own ticks, and explain it
    Jitter(verbs::jitter::Options),
    /// Check settings of the host and of a process that cost latency; changes nothing
    Doctor(verbs::doctor::Options),
    /// Rank the causes of the lost time in a stored run
    Explain(verbs::explain::Options),
    /// Test whether a change makes a program faster and removes a cause
    Prove(verbs::prove::Options),
    /// Measure what kernel operations cost here, and how that scales
    Bench(verbs::bench::Options),
    /// Show the messages of programs that trace them: live, or what crashed ones left
    Trace(verbs::trace::Options),
    /// List stored runs, or show them in a grid of good and bad ones
    Runs(verbs::runs::Options),
    /// Find the day when a latency, an account or a cause changed, and what changed with it
    Series(verbs::series::Options),
    /// Print a run: accounts per thread, histograms, longest outliers with their stacks
    Show(verbs::show::Options),
    /// Compare two runs or sets of runs: what differs, and how sure that is
    Compare(verbs::compare::Options),
    /// Write a run as one file to send or keep, or as json, folded, svg, csv or wakers
    Export(verbs::export::Options),
    /// Write a run as one HTML file to look at, or two side by side
    Report(verbs::report::Options),
    /// Show the stored runs in a browser, on this host only
    Serve(verbs::serve::Options),
    /// Remove stored runs, and give back their space
    Forget(verbs::forget::Options),
    /// Store a run that 'export --format run' wrote, here or on another host
    Import(verbs::import::Options),
}

impl Verb {
    /// What records gives up privileges once it is attached, the server of pages once it listens,
    /// and a command of `prove` or `bench` has those of whoever started it.
    fn give_up_privileges(&self) {
        match self {
            Verb::Record(_)
            | Verb::Jitter(_)
            | Verb::Prove(_)
            | Verb::Bench(_)
            | Verb::Serve(_) => {}
            Verb::Doctor(options) if options.attaches() => {}
            Verb::Doctor(_) => observe::keep_for(Work::Checkup),
            Verb::Trace(_) => observe::keep_for(Work::Traces),
            Verb::Explain(_)
            | Verb::Runs(_)
            | Verb::Series(_)
            | Verb::Show(_)
            | Verb::Compare(_)
            | Verb::Export(_)
            | Verb::Report(_)
            | Verb::Forget(_)
            | Verb::Import(_) => observe::keep_for(Work::Files),
        }
    }
}

fn main() -> ExitCode {
    let started = Instant::now();
    panics::install();
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(answer) => return write_answer(&answer),
    };
    if let Err(error) = signals::fail_at_the_limit_of_file_size() {
        output::tell(format_args!("cannot handle signals: {error}"));
    }
    arguments.verb.give_up_privileges();
    let store = &arguments.store;
    let result = match arguments.verb {
        Verb::Record(options) => verbs::record::run(&options, store, started),
        Verb::Jitter(options) => verbs::jitter::run(&options, store),
        Verb::Doctor(options) => verbs::doctor::run(&options, store),
        Verb::Explain(options) => verbs::explain::run(&options, store),
        Verb::Prove(options) => verbs::prove::run(&options, store),
        Verb::Bench(options) => verbs::bench::run(&options, store, started),
        Verb::Trace(options) => verbs::trace::run(&options, store),
        Verb::Runs(options) => verbs::runs::run(&options, store),
        Verb::Series(options) => verbs::series::run(&options, store),
        Verb::Show(options) => verbs::show::run(&options, store),
        Verb::Compare(options) => verbs::compare::run(&options, store),
        Verb::Export(options) => verbs::export::run(&options, store),
        Verb::Report(options) => verbs::report::run(&options, store),
        Verb::Serve(options) => verbs::serve::run(&options, store),
        Verb::Forget(options) => verbs::forget::run(&options, store),
        Verb::Import(options) => verbs::import::run(&options, store),
    };
    match result {
        Ok(code) => code,
        Err(Failure::ReaderLeft) => ExitCode::SUCCESS,
        Err(failure) => {
            output::tell(&failure);
            if let Failure::Ambiguous { choices, .. } = &failure {
                choices.iter().for_each(|choice| output::tell_plainly(format_args!("  {choice}")));
            }
            failure.exit_code()
        }
    }
}

/// Help, version, or what is wrong with the command line.
fn write_answer(answer: &clap::Error) -> ExitCode {
    let (mut out, style): (Box<dyn Write>, _) = if answer.use_stderr() {
        let (out, style) = output::stderr();
        (Box::new(out), style)
    } else {
        let (out, style) = output::stdout();
        (Box::new(out), style)
    };
    let text = answer.render();
    let text = if style.color { text.ansi().to_string() } else { text.to_string() };
    // Where nobody can read it, the exit status still says it.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    ExitCode::from(answer.exit_code() as u8)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use clap::CommandFactory;

    /// Each `whylag ...` of a line for the shell has to be one that this binary takes.
    fn assert_parses(line: &str) {
        for command in line.split("&&") {
            let words = shlex::split(command).unwrap();
            assert_eq!(words[0], "whylag", "{line}");
            // What stands for something that only the user knows.
            let words = words.iter().map(|word| if word == "PID" { "1" } else { word.as_str() });
            if let Err(error) = Arguments::try_parse_from(words) {
                panic!("{line}: {error}");
            }
        }
    }

    /// As the reviewed texts have it of each recorded run (tests/recorded_runs.rs).
    #[test]
    fn what_verifies_a_fix_can_be_typed_as_it_is() {
        Arguments::command().debug_assert();
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
        let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
        let mut lines = std::collections::BTreeSet::new();
        for path in files.filter(|path| path.extension().is_some_and(|found| found == "snap")) {
            let text = std::fs::read_to_string(path).unwrap();
            let found = text.lines().filter_map(|line| line.trim_start().strip_prefix("verify  "));
            lines.extend(found.map(|line| line.trim().to_owned()));
        }
        lines.iter().for_each(|line| assert_parses(line));
        assert!(lines.len() > 40, "{lines:?}");
    }

    /// Up to what explains it, two spaces or a number sign later, and to what the shell takes.
    fn command_in(line: &str) -> Option<String> {
        let line = line.trim_start().trim_start_matches("sudo ");
        let end = ["  ", " #"].iter().filter_map(|end| line.find(end)).min();
        let words = shlex::split(&line[..end.unwrap_or(line.len())])?;
        let is_of_shell = |word: &String| ["|", ">", "&", "\n"].contains(&word.as_str());
        let words = words.iter().take_while(|word| !is_of_shell(word)).map(String::as_str);
        let command = shlex::try_join(words).ok()?;
        command.starts_with("whylag ").then_some(command)
    }

    #[test]
    fn examples_of_the_help_and_the_readme_can_be_typed_as_they_are() {
        let mut program = Arguments::command();
        let mut text = program.render_long_help().to_string();
        for verb in program.get_subcommands_mut().filter(|verb| verb.get_name() != "help") {
            let help = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("  whylag "), "{} has no example", verb.get_name());
            text = format!("{text}\n{help}\n");
        }
        text.push_str(include_str!("../../../README.md"));
        let lines = text.lines().filter(|line| line.starts_with("  "));
        let commands: Vec<String> = lines.filter_map(command_in).collect();
        commands.iter().for_each(|command| assert_parses(command));
        assert!(commands.len() > 60, "{commands:?}");
    }
}
