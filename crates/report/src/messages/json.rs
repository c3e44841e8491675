//! What `whylag trace -p --json` prints: one object per line, distinguished by `kind`.

use std::io::{self, Write};

use model::{Histogram, Message, MessageSecond, TracedProgram, UnfinishedMessage};
use serde::Serialize;
use serde_json::{Value, json};

/// `kind: interval`: counts so far, and the metrics of this interval.
///
/// # Errors
/// Those of `out`.
pub fn write_interval(
    out: &mut dyn Write,
    program: &TracedProgram,
    seconds: &[MessageSecond],
    length_ns: u64,
) -> io::Result<()> {
    let flows: Vec<Value> = program
        .flows
        .iter()
        .map(|flow| {
            let of_flow = seconds.iter().filter(|second| second.flow == flow.flow);
            let metrics: serde_json::Map<String, Value> = of_flow
                .map(|second| (second.metric.to_string(), metric(&second.histogram, length_ns)))
                .collect();
            json!({ "flow": flow, "metrics": metrics })
        })
        .collect();
    line(out, &json!({ "kind": "interval", "length_ns": length_ns, "flows": flows }))
}

fn metric(values: &Histogram, length_ns: u64) -> Value {
    json!({
        "n": values.count(),
        "per_s": values.count() as f64 * 1e9 / length_ns.max(1) as f64,
        "mean_ns": values.mean(),
        "p50_ns": values.quantile(0.5),
        "p99_ns": values.quantile(0.99),
        "max_ns": values.max(),
    })
}

/// `kind: slow`.
///
/// # Errors
/// Those of `out`.
pub fn write_slow(out: &mut dyn Write, message: &Message) -> io::Result<()> {
    line(out, &json!({ "kind": "slow", "message": message }))
}

/// `kind: stuck`.
///
/// # Errors
/// Those of `out`.
pub fn write_stuck(out: &mut dyn Write, message: &UnfinishedMessage) -> io::Result<()> {
    line(out, &json!({ "kind": "stuck", "message": message }))
}

/// `kind: end`.
///
/// # Errors
/// Those of `out`.
pub fn write_end(out: &mut dyn Write, program: &TracedProgram) -> io::Result<()> {
    line(out, &json!({ "kind": "end", "program": program }))
}

fn line(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value).map_err(io::Error::from)?;
    writeln!(out)
}
