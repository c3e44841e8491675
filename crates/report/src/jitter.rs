//! What was seen of timers.

mod series;

use std::io::{self, Write};

use model::units::{counted, duration, signed_duration};
use model::{Conversion, Finding, Jitter, JitterLaw, JitterThread};

use self::series::{write_series, write_table};
use crate::{Style, explanation, text};

pub use self::series::{in_one_line, recent};

/// Threads that are listed.
const THREADS: usize = 5;
/// Single ticks that are printed as JSON, of all series together: the first of each.
const TICKS: usize = 20_000;
/// With more series than this, their distributions are not drawn.
const CHARTS: usize = 2;

/// Writes the distributions, the law of each source, beats, and the causes that have a name.
///
/// # Errors
/// Those of `out`.
pub fn write(out: &mut dyn Write, jitter: &Jitter, style: &Style) -> io::Result<()> {
    write_subject(out, jitter, style)?;
    writeln!(out)?;
    write_table(out, jitter, style)?;
    for series in &jitter.series {
        write_series(out, series, jitter.series.len() <= CHARTS, style)?;
    }
    for law in &jitter.laws {
        writeln!(out)?;
        write_law(out, law, style)?;
    }
    write_clock(out, jitter, style)?;
    if let Some(conversion) = &jitter.conversion {
        writeln!(out)?;
        write_conversion(out, conversion, style)?;
    }
    writeln!(out)?;
    write_findings(out, jitter, style)?;
    for note in &jitter.notes {
        write!(out, "{}", text::labelled("note:", 6, note, style.width))?;
    }
    Ok(())
}

/// Writes all of it as indented JSON with a newline at its end, but of the ticks only the first.
///
/// # Errors
/// Those of `out`.
pub fn write_json(out: &mut dyn Write, jitter: Jitter) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, &with_first_ticks(jitter))?;
    writeln!(out)
}

/// With as many of its ticks as are printed.
pub(crate) fn with_first_ticks(mut jitter: Jitter) -> Jitter {
    let share = TICKS / jitter.series.len().max(1);
    jitter.series.iter_mut().for_each(|series| series.ticks.truncate(share));
    jitter
}

fn write_subject(out: &mut dyn Write, jitter: &Jitter, style: &Style) -> io::Result<()> {
    let subject = match &jitter.program {
        Some(program) => format!(
            "Ticks that pid {} printed, against the time it meant them for{}.",
            program.pid,
            match program.other_lines {
                0 => String::new(),
                n => format!(" ({} were no ticks)", counted(n, "line")),
            }
        ),
        None => "Timers of whylag itself, against the intended time of every tick.".to_owned(),
    };
    let changed = match jitter.changed.as_slice() {
        [] => "Nothing was changed for it: no priority, CPU, memory lock or C-state.".to_owned(),
        changed => format!("Changed on request: {}; nothing else.", changed.join(", ")),
    };
    for line in text::wrap(&format!("{subject} {changed}"), style.width) {
        writeln!(out, "{line}")?;
    }
    let threads: Vec<&JitterThread> = match &jitter.program {
        Some(program) => program.threads.iter().collect(),
        None => jitter.series.iter().filter_map(|series| series.thread.as_ref()).take(1).collect(),
    };
    for thread in threads.iter().take(THREADS) {
        let priority =
            if thread.priority > 0 { format!(" {}", thread.priority) } else { String::new() };
        let slack = thread.slack_ns.map_or_else(|| "unknown".to_owned(), duration);
        let line = format!("{}: {}{priority}, timer slack {slack}", thread.comm, thread.policy);
        writeln!(out, "{}", style.dim(&text::clean(&line)))?;
    }
    Ok(())
}

fn write_law(out: &mut dyn Write, law: &JitterLaw, style: &Style) -> io::Result<()> {
    let n = match law.n {
        0 => String::new(),
        n => format!(" ({} at {})", counted(n, "tick"), counted(law.intervals, "different time")),
    };
    let text = format!("Law of {}{n}: {}", law.source, law.text);
    for line in text::wrap(&text, style.width) {
        writeln!(out, "{}", style.bold(&line))?;
    }
    for model in law.models.iter().filter(|model| !model.because.is_empty()) {
        let text = format!("not {}: it {}", model.name, model.because);
        write!(out, "{}", text::labelled("  -", 4, &text, style.width))?;
    }
    Ok(())
}

fn write_clock(out: &mut dyn Write, jitter: &Jitter, style: &Style) -> io::Result<()> {
    let Some(drift) = &jitter.drift_ppm else { return Ok(()) };
    let text = format!(
        "CLOCK_MONOTONIC against CLOCK_MONOTONIC_RAW: {:+.2} ppm ({:+.2} to {:+.2})",
        drift.value, drift.low, drift.high
    );
    writeln!(out)?;
    write!(out, "{}", text::labelled("drift", 7, &text, style.width))
}

/// What an integer conversion factor costs.
///
/// # Errors
/// Those of `out`.
pub fn write_conversion(
    out: &mut dyn Write,
    conversion: &Conversion,
    style: &Style,
) -> io::Result<()> {
    let factor = conversion.factor_ns;
    let text = match (conversion.true_ns, conversion.error_ppm) {
        (Some(truth), Some(error)) => format!(
            "{factor} ns per tick, where {truth:.6} ns {}: every time is {error:+.1} ppm of what \
             is asked for ({} of 20 ms, {} of 1 s).",
            if conversion.inferred { "follow from the measured law" } else { "are true" },
            signed_duration(error * 20.0),
            signed_duration(error * 1_000.0)
        ),
        _ => format!(
            "{factor} ns per tick in whole nanoseconds may be {:.0} ppm off either way ({} of 20 \
             ms); --true or --clock-hz says how much it is.",
            conversion.largest_error_ppm,
            signed_duration(conversion.largest_error_ppm * 20.0)
        ),
    };
    let needed = format!(
        " For an error of at most {} ppm the factor needs a resolution of {:.2e} ns: {} bits \
         after the binary point.",
        conversion.bound_ppm, conversion.needed_ns, conversion.needed_bits
    );
    for line in text::wrap(&(text + &needed), style.width) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

/// The causes that have a name, or what is ruled out.
///
/// # Errors
/// Those of `out`.
pub fn write_findings(out: &mut dyn Write, jitter: &Jitter, style: &Style) -> io::Result<()> {
    let verdict = match jitter.findings.first() {
        Some(Finding { cause, title, .. }) => format!("{cause}: {title}."),
        None => "No known cause explains the lateness.".to_owned(),
    };
    for line in text::wrap(&verdict, style.width) {
        writeln!(out, "{}", style.bold(&line))?;
    }
    for (n, finding) in jitter.findings.iter().enumerate() {
        writeln!(out)?;
        explanation::write_finding(out, n + 1, finding, style)?;
    }
    for other in &jitter.ruled_out {
        let text = format!("not {}: {}", other.cause, other.because);
        write!(out, "{}", text::labelled("  -", 4, &text, style.width))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use model::{Histogram, JitterSeries};

    use super::*;
    use crate::sample;

    fn series(late: &[u64], early: &[u64]) -> JitterSeries {
        let mut series = JitterSeries {
            source: "timerfd".to_owned(),
            interval_ns: 20_000_000,
            thread: None,
            started_ns: 0,
            to_wall_ns: 0,
            intended: (late.len() + early.len()) as u64,
            missed: 0,
            over: 0,
            late: Histogram::new(7),
            early: Histogram::new(7),
            ticks: Vec::new(),
            worst: Vec::new(),
            periods: Vec::new(),
            pairs: None,
        };
        late.iter().for_each(|ns| series.late.record(*ns));
        early.iter().for_each(|ns| series.early.record(*ns));
        series
    }

    fn written(jitter: &Jitter, width: usize) -> String {
        sample::written(|out| write(out, jitter, &Style { color: false, width }))
    }

    #[test]
    fn what_was_not_measured_is_not_made_up() {
        let jitter = Jitter { series: vec![series(&[57_000; 3], &[])], ..Jitter::default() };
        let text = written(&jitter, 80);
        assert!(text.contains("n small") && !text.contains("of them early"), "{text}");
        assert!(text.contains("No known cause explains the lateness."), "{text}");
        assert!(!text.contains("drift"), "{text}");
    }

    #[test]
    fn early_ticks_are_told_and_lower_the_mean() {
        let series = series(&[30_000], &[90_000]);
        assert!(in_one_line(&series).contains("mean -30.0 us late"), "{}", in_one_line(&series));
        let text = written(&Jitter { series: vec![series], ..Jitter::default() }, 80);
        assert!(text.contains("1 of them early, by up to 90.0 us"), "{text}");
    }

    #[test]
    fn a_law_comes_with_those_that_lost() {
        let model = |name: &str, because: &str| model::LawModel {
            name: name.to_owned(),
            formula: String::new(),
            figures: Vec::new(),
            left_ns: 0.0,
            because: because.to_owned(),
        };
        let law = JitterLaw {
            source: "timerfd".to_owned(),
            best: Some("proportional".to_owned()),
            text: "proportional: 0.400 % of the time asked for".to_owned(),
            n: 120,
            intervals: 3,
            spread: 4.0,
            models: vec![model("proportional", ""), model("constant", "leaves 85.4 us")],
        };
        let text = written(&Jitter { laws: vec![law], ..Jitter::default() }, 60);
        assert!(text.contains("Law of timerfd (120 ticks at 3 different times)"), "{text}");
        assert!(text.contains("not constant: it leaves 85.4 us"), "{text}");
        assert!(!text.contains("not proportional"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
    }

    #[test]
    fn a_conversion_says_what_it_costs_and_what_it_needs() {
        let conversion = Conversion {
            factor_ns: 10.0,
            true_ns: Some(10.04),
            error_ppm: Some(4_000.0),
            largest_error_ppm: 50_000.0,
            bound_ppm: 1.0,
            needed_ns: 1e-5,
            needed_bits: 16,
            inferred: false,
        };
        let text = sample::written(|out| write_conversion(out, &conversion, &Style::default()));
        assert!(text.contains("+4000.0 ppm") && text.contains("80.0 us of 20 ms"), "{text}");
        assert!(text.contains("16 bits"), "{text}");
    }
}
