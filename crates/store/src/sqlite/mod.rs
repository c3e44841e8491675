//! The embedded store: one SQLite file.
//!
//! `open` opens it, `guard` refuses files that must not be touched, `schema` makes the tables, `write`
//! fills them, `read` and `threads` read them back, `messages`, `presences`, `proofs`, `sockets`,
//! `sums` and `timers` do both for theirs; `columns`, `buckets` and `outlier` say how values are laid down. `shown`
//! makes what was read fit to be shown. `export` and `import` take a whole run to a file and from one.

mod buckets;
mod columns;
mod export;
mod guard;
mod import;
mod messages;
mod open;
mod outlier;
mod presences;
mod proofs;
mod read;
mod read_parts;
mod schema;
mod selection;
mod shown;
mod sockets;
mod space;
mod stacks;
mod sums;
mod threads;
mod timers;
mod verify;
mod write;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use model::{
    Batch, Finding, Outlier, Run, RunEnd, RunFigures, RunHeader, RunId, RunSummary, Window,
};
use rusqlite::Connection;

pub use self::open::Temporary;
pub use self::verify::Rows;
use crate::run_file::RunFileError;
use crate::{Store, StoreError};

/// A store in one SQLite file, which several processes may use at once.
///
/// Next to the file, SQLite keeps `-wal` (batches not yet moved into the file) and `-shm` while the
/// store is open, or after its last user was killed; they belong to it. All three are for their
/// owner only.
#[derive(Debug)]
pub struct Sqlite {
    path: PathBuf,
    conn: Connection,
    /// Device and inode of the file when it was opened for writing.
    identity: Option<(u64, u64)>,
}

impl Sqlite {
    /// Puts the run of a file into a store that has none, under the number that it had.
    pub fn put_run_file(&mut self, path: &Path) -> Result<RunId, RunFileError> {
        import::import_alone(&mut self.conn, path).map_err(|error| error.of_store(&self.path))
    }

    /// The file that the store was opened with.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Sets how long a call waits for another process that writes: 200 ms, then it is
    /// [`StoreError::Busy`] and can be made again; or the 10 s that are usual.
    pub fn wait_only_a_moment(&mut self, yes: bool) -> Result<(), StoreError> {
        let handler = if yes { schema::wait_a_moment } else { schema::wait_while_busy };
        let set = self.conn.busy_handler(Some(handler));
        set.map_err(|error| self.failed(error))
    }

    /// Makes sure that what was stored of a run is there: that the file still has its name, and that
    /// whoever opens it can read so many rows (a microsecond each); of a store up to 32 MiB, that all
    /// its pages are sound. What the rows say is not compared.
    pub fn verify(&self, run: RunId, expected: &Rows) -> Result<(), StoreError> {
        if guard::identity_of(&self.path) != self.identity {
            return Err(StoreError::Replaced(self.path.clone()));
        }
        let found = guard::open_shared(&self.path).and_then(|conn| {
            if guard::is_small(&self.path) {
                guard::quick_check(&conn)?;
            }
            verify::rows(&conn, run)
        });
        verify::compare(&self.path, expected, &found.map_err(|error| self.failed_for(run, error))?)
    }

    /// How much there is of a run.
    pub fn rows(&self, run: RunId) -> Result<Rows, StoreError> {
        verify::rows(&self.conn, run).map_err(|error| self.failed_for(run, error))
    }

    /// Writes all that is stored of a run, as one portable file.
    pub fn export(&self, run: RunId, out: impl Write) -> Result<(), RunFileError> {
        export::export(&self.conn, run, out).map_err(|error| match error {
            Failed::Sqlite(error) => self.failed_for(run, error).into(),
            Failed::File(error) => error,
        })
    }

    /// Stores the run of such a file as a new one: all of it, or nothing if that fails. It is never
    /// taken for one that is being recorded, and is seen by nobody before it is whole. Other writers
    /// go on meanwhile: each wait for the store is some 30 ms.
    pub fn import(&mut self, path: &Path) -> Result<RunId, RunFileError> {
        import::import(&mut self.conn, path).map_err(|error| error.of_store(&self.path))
    }

    /// Removes a run, unless it is being recorded: from here on nobody sees it. Other writers go on
    /// meanwhile. Its space is free for other runs; [`Sqlite::shrink`] gives it back.
    pub fn forget(&mut self, run: RunId) -> Result<(), StoreError> {
        match import::forget(&mut self.conn, run) {
            Ok(true) => Ok(()),
            Ok(false) => Err(StoreError::BeingRecorded { path: self.path.clone(), run }),
            Err(error) => Err(self.failed_for(run, error)),
        }
    }

    /// Gives free space back to the file system. A store that an earlier whylag made is written
    /// anew for that, once: it must not be recorded to meanwhile, and takes its own size on the disk.
    pub fn shrink(&mut self) -> Result<(), StoreError> {
        space::give_back(&self.conn).map_err(|error| self.failed(error))
    }

    /// Gives a run one more label, or that one another value.
    pub fn set_label(&mut self, run: RunId, name: &str, value: &str) -> Result<(), StoreError> {
        write::set_label(&self.conn, run, name, value).map_err(|error| self.failed_for(run, error))
    }

    /// Bytes that a run takes in the store, so far and approximately.
    pub fn size_of(&self, run: RunId) -> Result<u64, StoreError> {
        read::size_of(&self.conn, run).map_err(|error| self.failed_for(run, error))
    }

    /// The longest intervals of a run that were kept whole, at most so many, longest first: what is
    /// drawn, where tables need few ([`LOADED_OUTLIERS`](crate::LOADED_OUTLIERS)).
    pub fn longest(&self, run: RunId, most: usize) -> Result<Vec<Outlier>, StoreError> {
        let longest = read_parts::longest(&self.conn, run, most);
        self.each_shown(&mut longest.map_err(|error| self.failed_for(run, error))?)
    }

    /// Bytes of the store's file and its log.
    pub fn file_size(&self) -> u64 {
        let log = guard::log_files(&self.path);
        let files = std::iter::once(&self.path).chain(&log);
        files.filter_map(|file| std::fs::metadata(file).ok()).map(|file| file.len()).sum()
    }

    fn failed(&self, error: rusqlite::Error) -> StoreError {
        StoreError::of_sqlite(&self.path, error)
    }

    /// As `failed`, of a query that gives no row when there is no such run.
    fn failed_for(&self, run: RunId, error: rusqlite::Error) -> StoreError {
        match error {
            rusqlite::Error::QueryReturnedNoRows => {
                StoreError::NoSuchRun { path: self.path.clone(), run }
            }
            error => self.failed(error),
        }
    }
}

impl Store for Sqlite {
    fn begin(&mut self, header: &RunHeader) -> Result<RunId, StoreError> {
        write::begin(&self.conn, header).map_err(|error| self.failed(error))
    }

    fn append(&mut self, run: RunId, batch: &Batch) -> Result<(), StoreError> {
        write::append(&mut self.conn, run, batch).map_err(|error| self.failed_for(run, error))
    }

    fn finish(&mut self, run: RunId, end: &RunEnd) -> Result<(), StoreError> {
        write::finish(&self.conn, run, end).map_err(|error| self.failed_for(run, error))
    }

    fn put_findings(&mut self, run: RunId, findings: &[Finding]) -> Result<(), StoreError> {
        write::put_findings(&mut self.conn, run, findings)
            .map_err(|error| self.failed_for(run, error))
    }

    fn put_figures(&mut self, run: RunId, figures: &RunFigures) -> Result<(), StoreError> {
        write::put_figures(&self.conn, run, figures).map_err(|error| self.failed_for(run, error))
    }

    fn figures(&self, run: RunId) -> Result<Option<RunFigures>, StoreError> {
        let figures = read::figures(&self.conn, run);
        self.shown(figures.map_err(|error| self.failed_for(run, error))?)
    }

    fn runs(&self) -> Result<Vec<RunSummary>, StoreError> {
        self.shown(read::runs(&self.conn).map_err(|error| self.failed(error))?)
    }

    fn newest(&self) -> Result<Option<RunId>, StoreError> {
        read::newest(&self.conn).map_err(|error| self.failed(error))
    }

    fn load(&self, run: RunId) -> Result<Run, StoreError> {
        let loaded = read::load(&self.conn, run, None);
        self.shown_run(loaded.map_err(|error| self.failed_for(run, error))?.0)
    }

    fn load_part(&self, run: RunId, part: &Window) -> Result<(Run, u64), StoreError> {
        let loaded = read::load(&self.conn, run, Some(part));
        let (run, in_part) = loaded.map_err(|error| self.failed_for(run, error))?;
        Ok((self.shown_run(run)?, in_part))
    }

    fn findings(&self, run: RunId) -> Result<Vec<Finding>, StoreError> {
        let read = read::findings(&self.conn, run);
        self.shown(read.map_err(|error| self.failed_for(run, error))?)
    }
}

/// Why a run could not be taken to a file or from one.
enum Failed {
    Sqlite(rusqlite::Error),
    File(RunFileError),
}

impl Failed {
    fn of_store(self, path: &Path) -> RunFileError {
        match self {
            Failed::Sqlite(error) => StoreError::of_sqlite(path, error).into(),
            Failed::File(error) => error,
        }
    }
}

impl From<rusqlite::Error> for Failed {
    fn from(error: rusqlite::Error) -> Failed {
        Failed::Sqlite(error)
    }
}

impl From<RunFileError> for Failed {
    fn from(error: RunFileError) -> Failed {
        Failed::File(error)
    }
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Failed {
        Failed::File(error.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As an earlier whylag made stores: without a size of runs, and without a map of free pages.
    #[test]
    fn an_older_store_becomes_smaller_when_its_runs_are_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("whylag.db");
        let mut conn = Connection::open(&path).unwrap();
        schema::migrate(&mut conn, &schema::MIGRATIONS[..6]).unwrap();
        drop(conn);
        let mut store = Sqlite::open(&path).unwrap();
        let header = RunHeader { recorder_pid: u32::MAX, ..RunHeader::default() };
        let text = "x".repeat(10_000);
        let fact = || model::Fact { name: text.clone(), value: text.clone(), source: text.clone() };
        let batch = Batch { facts: (0..100).map(|_| fact()).collect(), ..Batch::default() };
        let runs = [(); 2].map(|()| store.begin(&header).unwrap());
        runs.iter().for_each(|run| store.append(*run, &batch).unwrap());
        let size = store.size_of(runs[0]).unwrap();
        assert!((3_000_000..5_000_000).contains(&size), "{size}");
        store.conn.execute("UPDATE runs SET bytes = NULL WHERE id = 1", []).unwrap();
        assert!(store.runs().unwrap()[0].bytes > 0);

        let before = store.file_size();
        store.forget(runs[0]).unwrap();
        assert!(matches!(store.load(runs[0]), Err(StoreError::NoSuchRun { .. })));
        store.shrink().unwrap();
        let after = store.file_size();
        assert!(after < before - size / 2, "{before} to {after}");
        assert_eq!(store.load(runs[1]).unwrap().facts.len(), 100);
        // Rewritten once: the next time pages are cut off.
        store.forget(runs[1]).unwrap();
        store.shrink().unwrap();
        assert!(store.file_size() < after - size / 2);
    }
}
