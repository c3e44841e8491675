//! Reads a run file, line by line.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use flate2::bufread::GzDecoder;
use model::{Batch, RunHeader, RunId};
use rustix::fs::OFlags;
use serde::Deserialize;

use super::error::clean;
use super::{
    Counts, Ending, FORMAT_VERSION, Line, MAX_LINE, MAX_TEXT, Opening, RunFileError, is_dense,
    plausible,
};

/// Reads one run: the first line when it is opened, then [`Reader::next`] until the ending.
pub(crate) struct Reader {
    lines: Lines,
    counts: Counts,
    totals: plausible::Totals,
    /// Number of the run in the store that it comes from.
    pub run: RunId,
    pub header: RunHeader,
}

/// What follows the first line.
pub(crate) enum Next {
    Batch(Box<Batch>),
    Ending(Ending),
}

impl Reader {
    /// Opens a file.
    pub fn open(path: &Path) -> Result<Reader, RunFileError> {
        let mut lines = Lines::open(path)?;
        lines.read()?;
        let Opening { number, header, .. } = opening(&lines)?;
        plausible::header(&header).map_err(|what| lines.damaged(&what))?;
        Ok(Reader {
            lines,
            counts: Counts::default(),
            totals: plausible::Totals::default(),
            run: RunId(number.max(1)),
            header,
        })
    }

    /// Length of the line that was read last, bytes.
    pub fn text_of_last(&self) -> usize {
        self.lines.line.len()
    }

    /// The next line. The ending comes only if all is there, and nothing behind it.
    pub fn next(&mut self) -> Result<Next, RunFileError> {
        self.lines.read()?;
        let line: Line<Box<Batch>, Ending> = serde_json::from_slice(&self.lines.line)
            .map_err(|error| self.lines.unreadable(&error))?;
        match line {
            Line::Batch(batch) => {
                self.totals.add(&batch).map_err(|what| self.lines.damaged(&what))?;
                self.counts.add(&batch);
                Ok(Next::Batch(batch))
            }
            Line::Complete(ending) => {
                plausible::ending(&ending, &self.header)
                    .map_err(|what| self.lines.damaged(&what))?;
                if ending.counts() != self.counts {
                    return Err(self.lines.damaged("its counts are not those of the file"));
                }
                self.lines.end()?;
                Ok(Next::Ending(ending))
            }
        }
    }
}

/// The first line, as far as every version of the format has it.
#[derive(Deserialize)]
struct Version {
    whylag_run: u32,
    #[serde(default)]
    by: String,
}

fn opening(lines: &Lines) -> Result<Opening, RunFileError> {
    let path = lines.path.clone();
    let Ok(version) = serde_json::from_slice::<Version>(&lines.line) else {
        return Err(RunFileError::Foreign { path, what: "compressed, but something else" });
    };
    if version.whylag_run > FORMAT_VERSION {
        let (by, found) = (clean(&version.by), version.whylag_run);
        return Err(RunFileError::Newer { path, by, found, known: FORMAT_VERSION });
    }
    serde_json::from_slice(&lines.line).map_err(|error| lines.unreadable(&error))
}

/// The text of a file.
struct Lines {
    path: PathBuf,
    text: BufReader<GzDecoder<BufReader<File>>>,
    /// The line read last.
    line: Vec<u8>,
    /// Its number, from 1.
    number: u64,
    /// Text read so far, in bytes.
    length: u64,
}

impl Lines {
    fn open(path: &Path) -> Result<Lines, RunFileError> {
        let unreadable = |source| RunFileError::Unreadable { path: path.to_owned(), source };
        let Some(file) = regular(path).map_err(unreadable)? else {
            return Err(RunFileError::Foreign { path: path.to_owned(), what: "no regular file" });
        };
        let mut file = BufReader::new(file);
        let first = file.fill_buf().map_err(unreadable)?;
        if let Some(what) = foreign(first) {
            return Err(RunFileError::Foreign { path: path.to_owned(), what });
        }
        let text = BufReader::with_capacity(64 << 10, GzDecoder::new(file));
        Ok(Lines { path: path.to_owned(), text, line: Vec::new(), number: 0, length: 0 })
    }

    /// Reads a line, which has to be there.
    fn read(&mut self) -> Result<(), RunFileError> {
        self.line.clear();
        self.number += 1;
        let mut line = (&mut self.text).take(MAX_LINE);
        line.read_until(b'\n', &mut self.line)
            .map_err(|error| RunFileError::of_reading(&self.path, error))?;
        self.length += self.line.len() as u64;
        match self.line.last() {
            _ if self.length > MAX_TEXT => Err(self.too_large("it has more text", MAX_TEXT)),
            Some(b'\n') if is_dense(&self.line) => {
                Err(self.damaged("it has more values than any part of a run"))
            }
            Some(b'\n') => Ok(()),
            _ if self.line.len() as u64 >= MAX_LINE => {
                Err(self.too_large("it has a longer line", MAX_LINE))
            }
            _ => Err(self.damaged("the file ends here")),
        }
    }

    /// Reads the end: with it comes the checksum.
    fn end(&mut self) -> Result<(), RunFileError> {
        let of_reading = |error| RunFileError::of_reading(&self.path, error);
        let is_end = self.text.fill_buf().map_err(of_reading)?.is_empty()
            && self.text.get_mut().get_mut().fill_buf().map_err(of_reading)?.is_empty();
        if is_end { Ok(()) } else { Err(self.damaged("something follows the end of the run")) }
    }

    fn damaged(&self, what: &str) -> RunFileError {
        let what = format!("line {}: {}", self.number, clean(what));
        RunFileError::Damaged { path: self.path.clone(), what }
    }

    fn unreadable(&self, error: &serde_json::Error) -> RunFileError {
        // To serde_json each line is the first.
        self.damaged(&error.to_string().replace(" at line 1 column ", ", column "))
    }

    fn too_large(&self, what: &'static str, limit: u64) -> RunFileError {
        RunFileError::TooLarge { path: self.path.clone(), what, mib: limit >> 20 }
    }
}

/// True if a file begins as run files do; whether it can be read is seen when it is.
pub fn is_run_file(path: &Path) -> bool {
    let mut first = [0; 2];
    let Ok(Some(mut file)) = regular(path) else { return false };
    file.read_exact(&mut first).is_ok() && foreign(&first).is_none()
}

/// Opens a file; `None` if it is no regular one. What is none is not opened, and what somebody puts
/// there meanwhile does no harm: a FIFO does not wait for one who writes, a terminal does not become
/// that of whylag.
fn regular(path: &Path) -> io::Result<Option<File>> {
    if !fs::metadata(path)?.is_file() {
        return Ok(None);
    }
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let mut options = File::options();
    let file = options.read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    Ok(file.metadata()?.is_file().then_some(file))
}

/// What a file is, by its first bytes, if it is not compressed with gzip.
fn foreign(first: &[u8]) -> Option<&'static str> {
    match first {
        [] => Some("empty"),
        [0x1f, 0x8b, ..] => None,
        _ if first.starts_with(b"SQLite format 3\0") => {
            Some("an SQLite file; a store is given with --store")
        }
        _ => Some("not compressed as one is"),
    }
}
