//! Messages of traced programs: how long they took, the slow ones, the one that is stuck.

pub mod breakdown;
pub mod json;
mod live;
mod requests;
mod run;
mod slow;

use std::io::{self, Write};

use model::units::{count, counted, duration};
use model::{Histogram, MessageFlow, MessageMetric, TracedProgram};

use crate::style::Paint;
use crate::table::{Align, Cell, Table};
use crate::{Style, chart};

pub use live::{write_end, write_interval, write_slow, write_stuck};
pub(crate) use requests::are_all as are_requests;
pub use run::write;

/// A table of the metrics of a flow; those without values are left out. `length_ns` is the time
/// that they were counted in, if it is known.
fn write_metrics(
    out: &mut dyn Write,
    flow: &MessageFlow,
    histogram: impl Fn(MessageMetric) -> Histogram,
    length_ns: Option<u64>,
    style: &Style,
) -> io::Result<()> {
    let mut table = Table::new(
        2,
        &[
            ("", Align::Left),
            ("n", Align::Right),
            ("per s", Align::Right),
            ("mean", Align::Right),
            ("p50", Align::Right),
            ("p99", Align::Right),
            ("max", Align::Right),
        ],
    );
    for metric in flow.metrics() {
        let values = histogram(metric);
        let Some(mean) = values.mean() else { continue };
        let quantile = |q| match chart::quantile(&values, q) {
            Some(value) => Cell::from(duration(value)),
            None => Cell::painted("n too small", Paint::Dim),
        };
        let rate = length_ns.filter(|length| *length > 0).map_or_else(
            || Cell::painted("-", Paint::Dim),
            |length| count((values.count() as f64 * 1e9 / length as f64).round() as u64).into(),
        );
        table.row([
            flow.metric_name(metric).into(),
            count(values.count()).into(),
            rate,
            duration(mean.round() as u64).into(),
            quantile(0.5),
            quantile(0.99),
            duration(values.max().unwrap_or(0)).into(),
        ]);
    }
    table.write(out, style)
}

/// What of a trace was lost, and why.
fn write_losses(out: &mut dyn Write, program: &TracedProgram, style: &Style) -> io::Result<()> {
    for (n, one, what) in [
        (program.missed, "slow message", "could not be read in time"),
        (program.dropped, "registration", "that found no room in the trace"),
        (program.misplaced, "mark", "outside of its message"),
    ] {
        if n > 0 {
            writeln!(out, "{}", style.dim(&format!("  {} {what}", counted(n, one))))?;
        }
    }
    Ok(())
}
