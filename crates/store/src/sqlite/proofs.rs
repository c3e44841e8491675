//! What `prove` said, with the runs that it was said of.

use model::{Proof, RunId, Trial};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use super::Sqlite;
use super::columns::Json;
use crate::StoreError;

impl Sqlite {
    /// Keeps a proof, found later by any of its runs. The figures of each run are in the store already,
    /// and are not kept twice.
    pub fn put_proof(&mut self, proof: &Proof) -> Result<(), StoreError> {
        let without = |trial: &Trial| Trial { figures: None, ..trial.clone() };
        let kept = Proof { trials: proof.trials.iter().map(without).collect(), ..proof.clone() };
        put(&mut self.conn, &kept).map_err(|error| self.failed(error))
    }

    /// The newest proof that all of these runs are part of.
    pub fn proof_of(&self, runs: &[RunId]) -> Result<Option<Proof>, StoreError> {
        self.shown(of(&self.conn, runs).map_err(|error| self.failed(error))?)
    }
}

fn put(conn: &mut Connection, proof: &Proof) -> rusqlite::Result<()> {
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    tx.execute("INSERT INTO proofs (proof) VALUES (?1)", [Json(proof)])?;
    let id = tx.last_insert_rowid();
    let sql = "INSERT OR IGNORE INTO proof_runs (run, proof) VALUES (?1, ?2)";
    for run in proof.trials.iter().filter_map(|trial| trial.run) {
        tx.execute(sql, params![run.0, id])?;
    }
    tx.commit()
}

fn of(conn: &Connection, runs: &[RunId]) -> rusqlite::Result<Option<Proof>> {
    let Some(first) = runs.first() else { return Ok(None) };
    let mut with_first =
        conn.prepare("SELECT proof FROM proof_runs WHERE run = ?1 ORDER BY proof DESC")?;
    let mut has = conn.prepare("SELECT 1 FROM proof_runs WHERE run = ?1 AND proof = ?2")?;
    let candidates: Vec<i64> =
        with_first.query_map([first.0], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    for id in candidates {
        let mut has_all = true;
        for run in runs {
            has_all = has_all && has.exists(params![run.0, id])?;
        }
        if has_all {
            let sql = "SELECT proof FROM proofs WHERE id = ?1";
            let row = conn.query_row(sql, [id], |row| row.get::<_, Json<Proof>>(0)).optional()?;
            return Ok(row.map(|proof| proof.0));
        }
    }
    Ok(None)
}

/// Removes a run from its proofs, and the proofs that have no run any more.
pub(super) fn forget(tx: &Transaction<'_>, run: RunId) -> rusqlite::Result<()> {
    if tx.execute("DELETE FROM proof_runs WHERE run = ?1", [run.0])? > 0 {
        tx.execute("DELETE FROM proofs WHERE id NOT IN (SELECT proof FROM proof_runs)", [])?;
    }
    Ok(())
}
