//! A run as one portable file: to send it to somebody, and to keep it with tests.
//!
//! The format is lines of JSON, compressed with gzip. The first line is an [`Opening`], the last
//! one an [`Ending`]; all between are batches, as [`Store::append`](crate::Store::append) takes
//! them. What a later whylag adds to a batch gets a default when an older file is read, and is
//! ignored by an older whylag; a change that either would misread needs another
//! [`FORMAT_VERSION`]. A file says the first version that has all that is in it.
//!
//! Caveat: a file may come from anybody. [`Reader`] takes only what [`Writer`] could have written,
//! within the limits below.

mod error;
mod plausible;
mod read;
mod write;

use model::{Batch, Finding, RunEnd, RunHeader};
use serde::{Deserialize, Serialize};

pub use error::RunFileError;
pub use read::is_run_file;
pub(crate) use read::{Next, Reader};
pub(crate) use write::Writer;

/// Version of the format.
pub const FORMAT_VERSION: u32 = 2;

/// In the first version the ticks of timer tests are in the line of their series, all of them.
pub(crate) const WITHOUT_TICKS: u32 = 1;

/// No line is longer, in bytes. Those with all ticks of a timer test are the longest.
const MAX_LINE: u64 = 64 << 20;

/// A line that is longer than this has ticks (`[300000000000,1234,100000],`), so at least so many bytes
/// of text for each mark of JSON. With more marks (`"a",`) it would take a gigabyte in memory.
/// Rows that would make a longer line are written in several.
const MAX_DENSE_LINE: usize = 16 << 20;
const LEAST_TEXT: usize = 5;

/// No file has more text than this, in bytes: some 20 million outliers.
const MAX_TEXT: u64 = 16 << 30;

/// True of a long line with more values than its length has room for.
fn is_dense(line: &[u8]) -> bool {
    let is_mark = |byte: &&u8| matches!(byte, b',' | b'[' | b'{' | b'"');
    line.len() > MAX_DENSE_LINE && line.iter().filter(is_mark).count() > line.len() / LEAST_TEXT
}

/// The first line.
#[derive(Serialize, Deserialize)]
struct Opening {
    /// Version of the format.
    whylag_run: u32,
    /// Version of the whylag that wrote the file.
    by: String,
    /// Number of the run in the store that it comes from.
    number: i64,
    header: RunHeader,
}

/// Every other line: `B` is a batch, `E` an [`Ending`], written from a reference and read as owned.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line<B, E> {
    Batch(B),
    Complete(E),
}

/// The last line: without it the file was cut short.
#[derive(Serialize, Deserialize)]
pub(crate) struct Ending {
    /// `None` if the run was interrupted.
    pub end: Option<RunEnd>,
    pub findings: Vec<Finding>,
    batches: u64,
    outliers: u64,
    events: u64,
}

impl Ending {
    fn new(end: Option<RunEnd>, findings: Vec<Finding>, counts: Counts) -> Ending {
        let Counts { batches, outliers, events } = counts;
        Ending { end, findings, batches, outliers, events }
    }

    fn counts(&self) -> Counts {
        Counts { batches: self.batches, outliers: self.outliers, events: self.events }
    }
}

/// What the file has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    batches: u64,
    outliers: u64,
    events: u64,
}

impl Counts {
    fn add(&mut self, batch: &Batch) {
        self.batches += 1;
        self.outliers += batch.outliers.len() as u64;
        self.events += batch.events.len() as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::is_dense;

    #[test]
    fn a_million_ticks_are_no_more_than_a_line_has_room_for() {
        let series = |tick: &str| format!("{{\"batch\":{{\"ticks\":[{}]", tick.repeat(1_000_000));
        // At 100 us soon after the host was started, and at 10 us on one that is a day old.
        for tick in ["[300000000000,1234,100000],", "[86400000000000,57,10000],"] {
            assert!(!is_dense(series(tick).as_bytes()), "{tick}");
        }
        assert!(is_dense(&b"\"a\",".repeat(5_000_000)) && !is_dense(b"[[[[["));
    }
}
