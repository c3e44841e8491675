//! The answer of `whylag explain` for machines.

use std::io::{self, Write};

use model::{Explanation, Jitter, MessageBreakdown, Run, WhyNot};
use serde_json::{Value, json};

use crate::jitter::with_first_ticks;
use crate::messages::json::requests;

/// The `schema` of [`explanation`]. Within a schema keys are added, never renamed or removed, and
/// none changes its meaning; who reads it ignores keys that it does not know. Outputs without this
/// key have the same keys otherwise.
const SCHEMA: u32 = 2;

/// The object that `whylag explain --json` prints: `schema`, `run`, `wall_ns`, `unaccounted_ns`,
/// `accounts`, `findings` (the first is the answer, if `leading_account` is null), `losses`, `cost`,
/// `requests` (what sockets showed of them, by port and peer), and others; for one message alone also
/// `message`, part by part. Shares and confidences are 0 to 1, times are nanoseconds.
pub fn explanation(
    explanation: &Explanation,
    run: &Run,
    message: Option<&MessageBreakdown>,
) -> Value {
    let accounts: Vec<Value> = explanation
        .accounts
        .iter()
        .map(|(account, ns, share)| json!({"account": account, "ns": ns, "share": share}))
        .collect();
    let unexplained: Vec<Value> = explanation
        .unexplained
        .iter()
        .map(|(account, ns)| json!({"account": account, "ns": ns}))
        .collect();
    let mut value = json!({
        "schema": SCHEMA,
        "run": explanation.run,
        "scope": explanation.scope,
        "wall_ns": explanation.wall_ns,
        "unaccounted_ns": explanation.unaccounted_ns,
        "lost_ns": explanation.lost_ns,
        "idle_ns": explanation.idle_ns,
        "accounts": accounts,
        "findings": explanation.findings,
        "leading_account": explanation.leading_account,
        "below_bar": explanation.below_bar,
        "own_delay": explanation.own_delay,
        "many_calls": explanation.many_calls,
        "slow_requests": explanation.slow_requests,
        "never_rests": explanation.never_rests,
        "working_children": explanation.working_children,
        "frequent_call": explanation.frequent_call,
        "unrecorded_children_ns": explanation.unrecorded_children_ns,
        "held_open": explanation.held_open,
        "unanswered": explanation.unanswered,
        "not_looked_at": explanation.not_looked_at,
        "unexplained": unexplained,
        "unexplained_stacks": explanation.unexplained_stacks,
        "idle_stacks": explanation.idle_stacks,
        "unseen_tasks": explanation.unseen_tasks,
        "on_cpu": explanation.on_cpu,
        "rhythms": explanation.rhythms,
        "coincidences": explanation.coincidences,
        "losses": explanation.losses,
        "cost": run.cost,
        "cpus": run.sums.cpus,
        "capabilities": run.capabilities,
        "requests": requests(run),
        "threads": run.thread_count(),
        "summed_threads": run.thread_count() - run.threads.len() as u64,
        "outlier_count": run.outlier_count,
        "length_ns": run.length_ns(),
        "sampled": run.header.sampled,
        "version": run.header.version,
    });
    if let Some(message) = message {
        value["message"] = json!(message);
    }
    value
}

/// Writes [`explanation`] as indented JSON with a newline at its end.
///
/// # Errors
/// Those of `out`.
pub fn write_explanation(
    out: &mut dyn Write,
    answer: &Explanation,
    run: &Run,
    message: Option<&MessageBreakdown>,
) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, &explanation(answer, run, message))?;
    writeln!(out)
}

/// Writes [`explanation`] of a run of timers, and with it all that `whylag jitter --json` prints.
///
/// # Errors
/// Those of `out`.
pub fn write_timers(
    out: &mut dyn Write,
    answer: &Explanation,
    jitter: Jitter,
    run: &Run,
) -> io::Result<()> {
    let mut value = explanation(answer, run, None);
    let of_jitter = serde_json::to_value(with_first_ticks(jitter))?;
    if let (Value::Object(all), Value::Object(of_jitter)) = (&mut value, of_jitter) {
        // The findings are the same.
        all.extend(of_jitter);
    }
    serde_json::to_writer_pretty(&mut *out, &value)?;
    writeln!(out)
}

/// Writes how one cause stands, as indented JSON with a newline at its end: `run`, `scope` (null: all
/// of the run), `cause`, `title`, `standing` (`verdict`: `finding`, `below_floor`, `absent` or
/// `not_looked_for`, with its figures) and `off`.
///
/// # Errors
/// Those of `out`.
pub fn write_why_not(out: &mut dyn Write, answer: &WhyNot) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, answer)?;
    writeln!(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn the_fixed_keys_are_there_with_their_types() {
        let (answer, run) = (sample::explanation(), sample::run());
        let mut out = Vec::new();
        write_explanation(&mut out, &answer, &run, None).unwrap();
        let value: Value = serde_json::from_slice(&out).unwrap();

        assert_eq!((value["schema"].as_u64(), value["run"].as_u64()), (Some(2), Some(12)));
        assert!(value.get("message").is_none());
        assert_eq!(value["wall_ns"].as_u64(), Some(answer.wall_ns));
        assert!(value["unaccounted_ns"].is_u64());
        let accounts = value["accounts"].as_array().unwrap();
        assert_eq!(accounts[0]["account"], "blocked:lock:mmap_lock:write");
        let ns: u64 = accounts.iter().map(|account| account["ns"].as_u64().unwrap()).sum();
        assert_eq!(ns, answer.wall_ns);
        let share: f64 = accounts.iter().map(|account| account["share"].as_f64().unwrap()).sum();
        assert!((share - 1.0).abs() < 1e-9);

        let findings = value["findings"].as_array().unwrap();
        assert!(findings[0]["share"].as_f64() >= findings[1]["share"].as_f64());
        assert!(findings.iter().all(|f| (0.0..=1.0).contains(&f["share"].as_f64().unwrap())));
        let first = &findings[0];
        for key in ["cause", "fix", "reproduce", "verify", "title"] {
            assert!(first[key].is_string(), "{key}");
        }
        for key in ["chain", "evidence", "ruled_out", "excluded"] {
            assert!(first[key].is_array(), "{key}");
        }
        assert_eq!(first["chain"][0]["role"], "symptom");
        assert!(first["confidence"].is_f64());
        for key in ["wall_share", "hurts", "requests", "when", "minor"] {
            assert!(first.get(key).is_some(), "{key}");
        }
        for key in [
            "leading_account",
            "below_bar",
            "own_delay",
            "many_calls",
            "slow_requests",
            "never_rests",
            "working_children",
            "frequent_call",
            "unrecorded_children_ns",
            "held_open",
            "unanswered",
            "on_cpu",
        ] {
            assert!(value.get(key).is_some(), "{key}");
        }
        assert_eq!(value["losses"]["ring buffer full"], 7);
        for key in ["cpu_ns", "bpf_ns", "bpf_runs", "events"] {
            assert!(value["cost"][key].is_u64(), "{key}");
        }
    }
}
