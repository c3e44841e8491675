//! Takes a run from a file.

use std::path::Path;

use model::RunId;
use rusqlite::{Connection, TransactionBehavior};

use super::{Failed, write};
use crate::recorder::Recorder;
use crate::run_file::{Next, Reader};

/// Which number the run gets.
pub(super) enum Number {
    /// The next that is free.
    Next,
    /// The one that it had in its store.
    AsThere,
}

/// All in one transaction: a file that turns out to be damaged leaves nothing behind.
pub(super) fn import(conn: &mut Connection, path: &Path, number: Number) -> Result<RunId, Failed> {
    let mut file = Reader::open(path)?;
    let number = match number {
        Number::Next => None,
        Number::AsThere => Some(file.run),
    };
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let recorder = Recorder::elsewhere(file.header.recorder_pid);
    let run = write::put_run(&tx, number, &file.header, &recorder)?;
    loop {
        match file.next()? {
            Next::Batch(batch) => write::put_batch(&tx, run, &batch)?,
            Next::Ending(ending) => {
                if let Some(end) = &ending.end {
                    write::finish(&tx, run, end)?;
                }
                write::replace_findings(&tx, run, &ending.findings)?;
                break;
            }
        }
    }
    tx.commit()?;
    Ok(run)
}
