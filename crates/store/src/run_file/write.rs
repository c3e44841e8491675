//! Writes a run file, line by line.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use model::{Batch, Finding, RunEnd, RunHeader, RunId};
use serde::Serialize;

use super::{Counts, Ending, FORMAT_VERSION, Line, MAX_LINE, Opening};

/// Writes one run.
pub(crate) struct Writer<W: Write> {
    out: GzEncoder<W>,
    /// The line written last.
    line: Vec<u8>,
    counts: Counts,
}

impl<W: Write> Writer<W> {
    /// Begins the file.
    pub fn new(out: W, run: RunId, header: &RunHeader) -> io::Result<Writer<W>> {
        let out = GzEncoder::new(out, Compression::default());
        let mut writer = Writer { out, line: Vec::new(), counts: Counts::default() };
        writer.put(&Opening {
            whylag_run: FORMAT_VERSION,
            by: env!("CARGO_PKG_VERSION").to_owned(),
            number: run.0,
            header: header.clone(),
        })?;
        Ok(writer)
    }

    /// Adds a line.
    pub fn batch(&mut self, batch: &Batch) -> io::Result<()> {
        self.counts.add(batch);
        self.put(&Line::<_, ()>::Batch(batch))
    }

    /// Ends the file.
    pub fn finish(mut self, end: Option<RunEnd>, findings: Vec<Finding>) -> io::Result<()> {
        let ending = Ending::new(end, findings, self.counts);
        self.put(&Line::<(), _>::Complete(ending))?;
        self.out.finish()?.flush()
    }

    fn put(&mut self, line: &impl Serialize) -> io::Result<()> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, line)?;
        self.line.push(b'\n');
        if self.line.len() as u64 > MAX_LINE {
            let what = format!("a part of it has more than {} MiB of text", MAX_LINE >> 20);
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, what));
        }
        self.out.write_all(&self.line)
    }
}
