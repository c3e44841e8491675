//! Rows for the table that `make test-mysteries` prints and keeps in docs/mysteries.md.

use std::fs::OpenOptions;
use std::io::Write;
use std::time::Instant;

use model::Account;

use crate::Case;

/// Names the file to add to; without it there is no table.
const FILE: &str = "WHYLAG_MYSTERIES_TABLE";

/// Adds what was said of a faulty program beside what it says itself, as parts of its threads'
/// wall time: mystery, first cause, said, true, unaccounted, seconds.
pub fn add(mystery: &str, case: &Case, began: Instant) {
    let Some(path) = std::env::var_os(FILE) else { return };
    let first = case.findings.first();
    let wall = case.run.wall_ns().max(1) as f64;
    let row = format!(
        "{mystery}\t{}\t{:.4}\t{:.4}\t{:.6}\t{:.1}\n",
        first.map_or("no known cause", |finding| &finding.cause),
        case.share_of_wall(first.map_or(0, |finding| finding.lost_ns)),
        case.share_of_wall(case.truth.get("lost_ns")),
        case.run.accounts().get(Account::Unaccounted) as f64 / wall,
        began.elapsed().as_secs_f64(),
    );
    let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
    // One write, so that tests that run at the same time do not mix their rows.
    file.write_all(row.as_bytes()).unwrap();
}
