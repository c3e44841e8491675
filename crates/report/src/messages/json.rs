//! What `whylag trace -p --json` prints: one object per line, distinguished by `kind`.

use std::io::{self, Write};

use model::{
    FlowKind, Histogram, Message, MessageMetric, MessageSecond, Run, TracedProgram,
    UnfinishedMessage,
};
use serde::Serialize;
use serde_json::{Value, json};

use super::requests::utilisation;

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

/// What was seen of requests at sockets: for each port that was answered at, and each peer that was
/// called, its counts, and its metrics by the name that reports give them.
pub(crate) fn requests(run: &Run) -> Vec<Value> {
    let length_ns = run.length_ns();
    let of_program = |program: &TracedProgram| {
        let number = program.program;
        let service = run.sums.services.iter().find(|service| service.program == number).cloned();
        let (comm, tgid) = (run.comm(program.tgid).to_owned(), program.tgid);
        let seen = program.flows.iter().filter(|flow| flow.kind != FlowKind::Traced);
        let one = |flow: &model::MessageFlow| {
            let metrics: serde_json::Map<String, Value> = flow
                .metrics()
                .map(|of| (flow.metric_name(of), run.messages.histogram(number, flow.flow, of)))
                .filter(|(_, values)| values.count() > 0)
                .map(|(name, values)| (name, metric(&values, length_ns)))
                .collect();
            let readers = run.messages.readers(number, flow.flow).len() as u64;
            let worked = run.messages.histogram(number, flow.flow, MessageMetric::Logic);
            let used = utilisation(readers, &worked, length_ns);
            json!({
                "flow": flow, "tgid": tgid, "comm": comm, "service": service, "metrics": metrics,
                "workers": { "threads": readers, "utilisation": used },
            })
        };
        seen.map(one).collect::<Vec<_>>()
    };
    run.messages.programs.iter().flat_map(of_program).collect()
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
