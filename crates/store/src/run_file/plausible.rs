//! Refuses what no recorder gives, where the readers of runs rely on it: they add up times, and
//! subtract the start of the run from them.

use model::{Batch, RunHeader};

use super::Ending;

/// The longest time, and the latest since the host's start: 18 years. 32 of them can be added up.
const MAX_NS: u64 = 1 << 59;

type Checked = Result<(), String>;

pub(super) fn header(header: &RunHeader) -> Checked {
    time("the start of the run", header.started_ns)
}

pub(super) fn ending(ending: &Ending, header: &RunHeader) -> Checked {
    match &ending.end {
        Some(end) if end.ended_ns < header.started_ns => {
            Err("the run ends before its start".to_owned())
        }
        Some(end) => time("the end of the run", end.ended_ns),
        None => Ok(()),
    }
}

pub(super) fn batch(batch: &Batch, _header: &RunHeader) -> Checked {
    time("the last moment", batch.heartbeat_ns)?;
    for thread in &batch.threads {
        time("a thread's end", thread.last_ns)?;
        if thread.first_ns > thread.last_ns {
            return Err(format!("thread {} ends before it begins", thread.tid));
        }
        thread.accounts.iter().try_for_each(|(_, ns)| time("a thread's account", ns))?;
    }
    for outlier in &batch.outliers {
        time("an outlier's start", outlier.start_ns)?;
        time("an outlier's length", outlier.duration_ns)?;
    }
    Ok(())
}

fn time(what: &str, ns: u64) -> Checked {
    if ns <= MAX_NS { Ok(()) } else { Err(format!("{what} is {ns} ns: no host runs for so long")) }
}
