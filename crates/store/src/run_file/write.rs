//! Writes a run file, line by line.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use model::{Batch, Finding, RunEnd, RunHeader, RunId};
use serde::Serialize;

use super::{Counts, Ending, Line, MAX_DENSE_LINE, MAX_LINE, MAX_TEXT, Opening, is_dense};

/// Writes one run.
pub(crate) struct Writer<W: Write> {
    out: GzEncoder<W>,
    /// The line written last.
    line: Vec<u8>,
    /// Text written so far, in bytes.
    length: u64,
    counts: Counts,
}

impl<W: Write> Writer<W> {
    /// Begins a file of this version of the format.
    pub fn new(out: W, version: u32, run: RunId, header: &RunHeader) -> io::Result<Writer<W>> {
        let out = GzEncoder::new(out, Compression::default());
        let mut writer = Writer { out, line: Vec::new(), length: 0, counts: Counts::default() };
        writer.put(&Opening {
            whylag_run: version,
            by: env!("CARGO_PKG_VERSION").to_owned(),
            number: run.0,
            header: header.clone(),
        })?;
        Ok(writer)
    }

    /// Adds a line.
    pub fn batch(&mut self, batch: &Batch) -> io::Result<()> {
        self.prepare(batch)?;
        self.add_prepared(batch)
    }

    /// Adds a line, unless it would be a long one: then nothing is written, and this is false.
    pub fn short_batch(&mut self, batch: &Batch) -> io::Result<bool> {
        self.prepare(batch)?;
        let is_short = self.line.len() <= MAX_DENSE_LINE;
        if is_short {
            self.add_prepared(batch)?;
        }
        Ok(is_short)
    }

    /// Ends the file.
    pub fn finish(mut self, end: Option<RunEnd>, findings: Vec<Finding>) -> io::Result<()> {
        let ending = Ending::new(end, findings, self.counts);
        self.put(&Line::<(), _>::Complete(ending))?;
        self.out.finish()?.flush()
    }

    fn prepare(&mut self, batch: &Batch) -> io::Result<()> {
        self.lay_down(&Line::<_, ()>::Batch(batch))
    }

    fn add_prepared(&mut self, batch: &Batch) -> io::Result<()> {
        self.counts.add(batch);
        self.write()
    }

    fn put(&mut self, line: &impl Serialize) -> io::Result<()> {
        self.lay_down(line)?;
        self.write()
    }

    fn lay_down(&mut self, line: &impl Serialize) -> io::Result<()> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, line)?;
        self.line.push(b'\n');
        Ok(())
    }

    /// Writes the line, if it is one that can be read.
    fn write(&mut self) -> io::Result<()> {
        let refused = |what| Err(io::Error::new(io::ErrorKind::FileTooLarge, what));
        if self.line.len() as u64 > MAX_LINE {
            return refused(format!("a part of it has more than {} MiB of text", MAX_LINE >> 20));
        }
        if is_dense(&self.line) {
            return refused("a part of it has more values than can be read again".to_owned());
        }
        self.length += self.line.len() as u64;
        if self.length > MAX_TEXT {
            return refused(format!("it has more than {} GiB of text", MAX_TEXT >> 30));
        }
        self.out.write_all(&self.line)
    }
}
