//! The run that a verb is asked about, and the beginning of one that is not recorded.

use std::path::Path;

use model::{Run, RunHeader, RunId, Target};
use store::{Sqlite, Store, location};

use crate::failure::Failure;

/// Opens the store for reading.
pub fn open(store: Option<&Path>) -> Result<Sqlite, Failure> {
    let path = location::locate(store)?;
    Ok(Sqlite::open_read_only(&path)?)
}

/// Loads a run: the newest if none is named.
pub fn load(store: Option<&Path>, run: Option<i64>) -> Result<Run, Failure> {
    let store = open(store)?;
    let id = match run {
        Some(number) => RunId(number),
        None => store.newest()?.ok_or_else(|| {
            Failure::Usage("the store has no run yet: record one with 'whylag record'".to_owned())
        })?,
    };
    Ok(store.load(id)?)
}

/// Refuses a run of benchmarks without the recorder, and what a crashed program left: there is
/// nothing to explain or to draw.
pub fn must_be_recorded(run: &Run) -> Result<(), Failure> {
    if matches!(run.header.target, Target::Trace(_)) {
        return Err(Failure::Usage(format!(
            "run {0} is what a program traced before it died, nothing was recorded beside it: \
             'whylag show {0}' has its messages",
            run.id
        )));
    }
    if run.bench.is_some() && run.threads.is_empty() {
        return Err(Failure::Usage(format!(
            "run {0} is a benchmark that was not recorded: 'whylag show {0}' has its figures, and \
             'whylag bench --with-kernel' records the workers",
            run.id
        )));
    }
    Ok(())
}

/// Header of a run that begins now and is measured by something else than the recorder.
pub fn header(target: Target) -> RunHeader {
    RunHeader {
        started_unix_ns: clock::unix_ns(),
        started_ns: clock::monotonic_ns(),
        target,
        follow: false,
        threshold_ns: 0,
        sampled: false,
        recorder_pid: std::process::id(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}
