//! What was seen of timers.

use std::io::{self, Write};

use model::{Jitter, JitterLaw, JitterSeries};

use crate::style::Paint;
use crate::table::{Align, Cell, Table};
use crate::units::{count, duration, plural};
use crate::{Style, chart, explanation, text};

/// Ticks that are listed.
const WORST: usize = 5;

/// Writes everything about a run of `whylag jitter`.
///
/// # Errors
/// Those of `out`.
pub fn write(out: &mut dyn Write, jitter: &Jitter, style: &Style) -> io::Result<()> {
    write_table(out, &jitter.series, jitter.over_ns, style)?;
    for law in &jitter.laws {
        write_law(out, law, style)?;
    }
    writeln!(out)?;
    for (n, finding) in jitter.findings.iter().enumerate() {
        explanation::write_finding(out, n + 1, finding, style)?;
    }
    for note in &jitter.notes {
        write!(out, "{}", text::labelled("note", 6, note, style.width))?;
    }
    let _ = WORST;
    let _ = chart::quantile;
    let _ = plural;
    Ok(())
}

/// The distributions, a line each.
pub fn write_table(
    out: &mut dyn Write,
    series: &[JitterSeries],
    over_ns: Option<u64>,
    style: &Style,
) -> io::Result<()> {
    let _ = over_ns;
    let mut table = Table::new(
        0,
        &[
            ("source", Align::Left),
            ("interval", Align::Right),
            ("ticks", Align::Right),
            ("p50", Align::Right),
            ("max", Align::Right),
        ],
    );
    for series in series {
        let at = |q| {
            series
                .late
                .quantile(q)
                .map_or_else(|| Cell::painted("-", Paint::Dim), |ns| duration(ns).into())
        };
        table.row([
            series.source.as_str().into(),
            duration(series.interval_ns).into(),
            count(series.intended).into(),
            at(0.5),
            at(1.0),
        ]);
    }
    table.write(out, style)
}

fn write_law(out: &mut dyn Write, law: &JitterLaw, style: &Style) -> io::Result<()> {
    write!(out, "{}", text::labelled("law", 6, &law.text, style.width))?;
    for model in &law.models {
        write!(
            out,
            "{}",
            text::labelled(
                &format!("  {}", model.name),
                18,
                &format!("{} {}", model.formula, model.because),
                style.width
            )
        )?;
    }
    Ok(())
}
