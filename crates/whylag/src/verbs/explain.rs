//! `whylag explain`: the causes of a stored run, or of a part of it.

use std::io::Write;
use std::process::ExitCode;

use clap::Args;
use explain::{JudgedTimers, PartialRun, Question};
use model::{Run, Window};
use store::Store;

use crate::failure::Failure;
use crate::output;
use crate::stored::{self, RunName, StoreOptions};

/// Options of `explain`.
#[derive(Args)]
#[command(after_help = "\
Accounts are kept per thread over the whole run. A window or an outlier is
explained from the intervals kept whole ('record --threshold'); the answer says
how many they are. With --why-not and a part, the cause is looked for there.

Example:
  whylag explain                        the newest run
  whylag explain 7 --json               run 7 as one JSON object
  whylag explain x.whylag               the run of a file
  whylag explain 7 --outlier 1          its longest outlier alone
  whylag explain 7 --message 1          its slowest message, part by part
  whylag explain 7 --window 1.2..1.5s   what happened in these 300 ms
  whylag explain 7 --thread 4711        one thread, by its own accounts
  whylag explain --why-not mmap-lock    which evidence of it was missing
  whylag explain --cause mmap-lock      what that cause is, and how to see it")]
pub struct Options {
    /// Number of the run, as 'whylag runs' lists it, or a file that 'export --format run' wrote
    /// [default: the newest]
    run: Option<RunName>,
    /// Explain one outlier alone, by its number in 'whylag show': 1 is the longest
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    outlier: Option<u32>,
    /// Explain one slow message or request alone, by its number in 'whylag show': 1 is the slowest
    #[arg(long, visible_alias = "request", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    message: Option<u32>,
    /// Explain a window alone: from..to, in seconds (or with ms, us) since the start of the run
    #[arg(long, value_name = "T1..T2", value_parser = model::units::parse_window)]
    window: Option<(u64, u64)>,
    /// Explain one thread alone
    #[arg(long, value_name = "TID")]
    thread: Option<u32>,
    /// Say which piece of this cause's evidence was missing, or how it ranks
    #[arg(long, value_name = "CAUSE")]
    why_not: Option<String>,
    /// Print the page of a cause: what it is, its evidence, look-alikes and fix
    #[arg(long, value_name = "CAUSE", conflicts_with_all = ["run", "outlier", "message", "window", "thread", "why_not", "json"])]
    cause: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Options {
    fn question(&self) -> Result<Option<Question>, Failure> {
        match (self.outlier, self.message, self.window, self.thread) {
            (None, None, None, None) => Ok(None),
            (Some(number), None, None, None) => Ok(Some(Question::Outlier(number as usize))),
            (None, Some(number), None, None) => Ok(Some(Question::Message(number as usize))),
            (None, None, Some((from, to)), None) => Ok(Some(Question::Window(from, to))),
            (None, None, None, Some(tid)) => Ok(Some(Question::Thread(tid))),
            _ => Err(Failure::Usage(
                "--outlier, --message, --window and --thread exclude each other: ask about one \
                 part at a time"
                    .to_owned(),
            )),
        }
    }
}

/// Explains.
pub fn run(options: &Options, store: &StoreOptions) -> Result<ExitCode, Failure> {
    if let Some(cause) = &options.cause {
        let (mut out, _) = output::stdout();
        report::page::write(&mut out, &explain::page(cause)?)?;
        out.flush()?;
        return Ok(ExitCode::SUCCESS);
    }
    let question = options.question()?;
    let (store, run) = stored::load(store, options.run.as_ref())?;
    stored::must_be_recorded(&run, options.run.as_ref())?;
    let Some(question) = question else {
        if let Some(cause) = &options.why_not {
            write_why_not(options, &explain::why_not(&run, cause)?)?;
        } else if let Some(judged) = explain::timers(&run) {
            write_timers(options, judged, &run)?;
        } else {
            write_explanation(options, &explain::explain(&run), &run)?;
        }
        return Ok(ExitCode::SUCCESS);
    };

    let part = question.part(&run)?;
    // Chains lead from an outlier to the intervals of other threads.
    let wanted = if options.outlier.is_some() { Window { tid: None, ..part } } else { part };
    let (run, in_part) = store.load_part(run.id, &wanted)?;
    let mut partial = PartialRun::new(&run, &question)?;
    if options.outlier.is_none() && options.message.is_none() {
        partial = partial.stored(in_part);
    }
    match (&options.why_not, options.message) {
        (Some(cause), _) => {
            write_why_not(options, &explain::why_not_part(&partial, cause)?)?;
        }
        (None, Some(number)) => {
            write_message(options, number as usize, &explain::explain_part(&partial), &run)?;
        }
        (None, None) => write_explanation(options, &explain::explain_part(&partial), &run)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The message in full, and its causes.
fn write_message(
    options: &Options,
    number: usize,
    answer: &model::Explanation,
    run: &Run,
) -> Result<(), Failure> {
    let message = number.checked_sub(1).and_then(|place| run.messages.slow.get(place));
    let (mut out, style) = output::stdout();
    let broken_down = explain::break_down(run, message);
    if options.json {
        report::json::write_explanation(&mut out, answer, run, broken_down.first())?;
        return Ok(out.flush()?);
    }
    for one in &broken_down {
        report::messages::breakdown::write(&mut out, number, one, run, &style)?;
        writeln!(out)?;
    }
    report::explanation::write(&mut out, answer, run, &style)?;
    Ok(out.flush()?)
}

fn write_explanation(
    options: &Options,
    answer: &model::Explanation,
    run: &Run,
) -> Result<(), Failure> {
    let (mut out, style) = output::stdout();
    if options.json {
        report::json::write_explanation(&mut out, answer, run, None)?;
    } else {
        report::explanation::write(&mut out, answer, run, &style)?;
    }
    Ok(out.flush()?)
}

fn write_timers(options: &Options, judged: JudgedTimers, run: &Run) -> Result<(), Failure> {
    let (mut out, style) = output::stdout();
    if options.json {
        report::json::write_timers(&mut out, &judged.explanation, judged.jitter, run)?;
    } else {
        report::jitter::write_findings(&mut out, &judged.jitter, &style)?;
    }
    Ok(out.flush()?)
}

fn write_why_not(options: &Options, answer: &model::WhyNot) -> Result<(), Failure> {
    let (mut out, style) = output::stdout();
    if options.json {
        report::json::write_why_not(&mut out, answer)?;
    } else {
        report::why_not::write(&mut out, answer, &style)?;
    }
    Ok(out.flush()?)
}
