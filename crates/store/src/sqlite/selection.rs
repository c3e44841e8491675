//! Which outliers of a run are loaded where there are more than fit.
//!
//! Half of them are the longest. The longest alone would be those of threads that wait for work: 200
//! of them that sleep for a second each leave no place for a wait of 40 ms that somebody waited
//! for. So the other half are the longest of each kind of wait of each thread.

use std::collections::{HashMap, HashSet};

use model::RunId;
use rusqlite::{Connection, Result, params};

use crate::LOADED_OUTLIERS;

/// Beyond the longest half: so many of what one thread did or waited for, ...
const OF_A_THREAD: usize = 25;
/// ... and so many of what all threads did or waited for.
const OF_A_KIND: usize = 250;
/// So many rows are looked at, the longest: a run may have millions.
const LOOKED_AT: usize = 20_000;

/// Those of the run ?1 that are not only there for the sake of a message, the longest first. The
/// order is that of the index outliers_by_length, whose entries end with the rowid.
const LONGEST: &str = "SELECT rowid, tid, kind, blocked FROM outliers
    WHERE run = ?1 AND duration_ns >= (SELECT threshold_ns FROM runs WHERE id = ?1)
    ORDER BY duration_ns DESC, rowid LIMIT ?2";

/// The places left of each thread and kind of wait, and of each kind.
#[derive(Default)]
struct Places {
    of_a_thread: HashMap<(u32, String), usize>,
    of_a_kind: HashMap<String, usize>,
}

impl Places {
    /// Takes one, if there is one.
    fn take(&mut self, tid: u32, kind: String) -> bool {
        let of_kind = self.of_a_kind.entry(kind.clone()).or_default();
        let of_thread = self.of_a_thread.entry((tid, kind)).or_default();
        let is_free = *of_kind < OF_A_KIND && *of_thread < OF_A_THREAD;
        if is_free {
            *of_kind += 1;
            *of_thread += 1;
        }
        is_free
    }
}

/// The rowids of the outliers that are loaded of the whole run, the longest first.
pub(super) fn of_run(conn: &Connection, run: RunId) -> Result<Vec<i64>> {
    let mut select = conn.prepare_cached(LONGEST)?;
    let mut rows = select.query(params![run.0, LOOKED_AT as i64])?;
    let mut places = Places::default();
    let mut looked_at: Vec<i64> = Vec::new();
    let (mut chosen, mut left) = (Vec::<i64>::new(), Vec::<i64>::new());
    while chosen.len() < LOADED_OUTLIERS
        && let Some(row) = rows.next()?
    {
        let rowid = row.get(0)?;
        looked_at.push(rowid);
        let (kind, blocked): (String, Option<String>) = (row.get(2)?, row.get(3)?);
        let is_among_longest = chosen.len() < LOADED_OUTLIERS / 2;
        if is_among_longest || places.take(row.get(1)?, kind + " " + &blocked.unwrap_or_default()) {
            chosen.push(rowid);
        } else {
            left.push(rowid);
        }
    }
    let missing = LOADED_OUTLIERS - chosen.len();
    let chosen: HashSet<i64> = chosen.into_iter().chain(left.into_iter().take(missing)).collect();
    looked_at.retain(|rowid| chosen.contains(rowid));
    Ok(looked_at)
}
