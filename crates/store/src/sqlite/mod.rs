//! The embedded store: one SQLite file.
//!
//! `guard` refuses files that must not be touched, `schema` makes the tables, `write` fills them,
//! `read` and `threads` read them back, `messages`, `presences`, `sockets` and `sums` do both for
//! theirs; `columns`, `buckets` and `outlier` say how values are laid down. `export` and `import`
//! take a whole run to a file and from one.

mod buckets;
mod columns;
mod export;
mod guard;
mod import;
mod messages;
mod outlier;
mod presences;
mod read;
mod read_parts;
mod schema;
mod selection;
mod sockets;
mod space;
mod sums;
mod threads;
mod verify;
mod write;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use model::outside::{self, visible};
use model::{
    Batch, Finding, Outlier, Run, RunEnd, RunFigures, RunHeader, RunId, RunSummary, Window,
};
use rusqlite::{Connection, ErrorCode, OpenFlags};
use serde::Serialize;
use serde::de::DeserializeOwned;

use self::guard::Found;
pub use self::verify::Rows;
use crate::run_file::RunFileError;
use crate::{Store, StoreError, location};

/// Pages in memory. Outliers come in no order of their length: their index has to stay there.
const CACHE_KIB: i64 = 16 * 1024;

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
    /// Opens a store for recording and for all else. Makes the file and its folder if they are not
    /// there, and brings the schema up to date.
    pub fn open(path: &Path) -> Result<Sqlite, StoreError> {
        let path = absolute(path)?;
        location::create(&path)?;
        if guard::check(&path)? == Found::Store {
            guard::check_pages(&path)?;
        }
        match open_for_writing(&path) {
            Ok((conn, version)) => {
                guard::refuse_newer(&path, version)?;
                let identity = guard::identity_of(&path);
                Ok(Sqlite { path, conn, identity })
            }
            // The file can be opened, as the guard has seen: it is its folder that is read-only.
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::CannotOpen) => {
                Err(StoreError::ReadOnly(path))
            }
            Err(error) => Err(StoreError::of_sqlite(&path, error)),
        }
    }

    /// Opens a store that is there for reading; it may be read-only and in a read-only folder.
    pub fn open_read_only(path: &Path) -> Result<Sqlite, StoreError> {
        match Sqlite::only_read(path) {
            // A writer that was killed while it made the store has left what only a writer can put
            // in order.
            Err(StoreError::LogInReadOnlyFolder(path)) if guard::may_write_beside(&path) => {
                drop(Sqlite::open(&path)?);
                Sqlite::only_read(&path)
            }
            opened => opened,
        }
    }

    fn only_read(path: &Path) -> Result<Sqlite, StoreError> {
        let path = absolute(path)?;
        if guard::check(&path)? == Found::Nothing {
            return Err(StoreError::Missing(path));
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let opened = open_for_reading(Connection::open_with_flags(&path, flags));
        let (conn, version) = match opened {
            // Where SQLite can make no -shm file, nobody can be writing either.
            Err(error) if needs_folder(&error) && guard::has_log(&path) => {
                return Err(StoreError::LogInReadOnlyFolder(path));
            }
            Err(error) if needs_folder(&error) => open_for_reading(guard::open_immutable(&path)),
            opened => opened,
        }
        .map_err(|error| StoreError::of_sqlite(&path, error))?;
        guard::refuse_newer(&path, version)?;
        if version < schema::MIGRATIONS.len() {
            // An older whylag wrote it: what is read below has to be there first.
            drop(conn);
            drop(Sqlite::open(&path)?);
            return Sqlite::only_read(&path);
        }
        Ok(Sqlite { path, conn, identity: None })
    }

    /// Opens a store that has only the run of this file, and is gone when it is dropped: large ones
    /// lie in a file without a name, where SQLite keeps its temporary data (`SQLITE_TMPDIR`,
    /// /var/tmp). The number of the run is that which it had where it comes from.
    pub fn open_run_file(path: &Path) -> Result<(Sqlite, RunId), RunFileError> {
        let failed = |error| StoreError::of_sqlite(path, error);
        let conn = open_temporary(Temporary::InFile).map_err(failed)?;
        let mut store = Sqlite { path: path.to_owned(), conn, identity: None };
        let run =
            import::import_alone(&mut store.conn, path).map_err(|error| error.of_store(path))?;
        Ok((store, run))
    }

    /// An empty store that is gone when it is dropped, named `path` in errors; in memory only, or
    /// as [`Sqlite::open_run_file`] does it.
    pub fn temporary(path: &Path, place: Temporary) -> Result<Sqlite, StoreError> {
        let path = path.to_owned();
        let conn = open_temporary(place).map_err(|error| StoreError::of_sqlite(&path, error))?;
        Ok(Sqlite { path, conn, identity: None })
    }

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

    /// What was read, with every text of it fit to be shown: whoever was recorded, or wrote the
    /// store or the run file, had these texts in hand.
    fn shown<T: Serialize + DeserializeOwned>(&self, read: T) -> Result<T, StoreError> {
        outside::shown(read).map_err(|error| self.damaged(&error))
    }

    fn damaged(&self, error: &serde_json::Error) -> StoreError {
        let what = visible(&error.to_string()).into_owned();
        StoreError::Damaged { path: self.path.clone(), what }
    }

    /// The same of a run, whose large parts are taken one by one: what has an unsafe text takes many
    /// times its memory on the way.
    fn shown_run(&self, mut run: Run) -> Result<Run, StoreError> {
        let large = Run {
            processes: self.each_shown(&mut run.processes)?,
            threads: self.each_shown(&mut run.threads)?,
            seconds: self.each_shown(&mut run.seconds)?,
            events: self.each_shown(&mut run.events)?,
            presences: self.each_shown(&mut run.presences)?,
            outliers: self.each_shown(&mut run.outliers)?,
            in_messages: self.each_shown(&mut run.in_messages)?,
            stacks: std::mem::take(&mut *run.stacks)
                .into_iter()
                .map(|(id, stack)| Ok((id, self.shown(stack)?)))
                .collect::<Result<_, StoreError>>()?,
            sums: std::mem::take(&mut run.sums).shown().map_err(|error| self.damaged(&error))?,
            ..Run::default()
        };
        let small = self.shown(run)?;
        Ok(Run {
            processes: large.processes,
            threads: large.threads,
            seconds: large.seconds,
            events: large.events,
            presences: large.presences,
            outliers: large.outliers,
            in_messages: large.in_messages,
            stacks: large.stacks,
            sums: large.sums,
            ..small
        })
    }

    fn each_shown<T, C>(&self, all: &mut Vec<T>) -> Result<C, StoreError>
    where
        T: Serialize + DeserializeOwned,
        C: FromIterator<T>,
    {
        std::mem::take(all).into_iter().map(|one| self.shown(one)).collect()
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

/// SQLite takes some relative names (`:memory:`, `file:...`) for more than a name.
fn absolute(path: &Path) -> Result<PathBuf, StoreError> {
    std::path::absolute(path)
        .map_err(|source| StoreError::Unusable { path: path.to_owned(), source })
}

fn open_for_writing(path: &Path) -> rusqlite::Result<(Connection, usize)> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut conn = Connection::open_with_flags(path, flags)?;
    if conn.is_readonly("main")? {
        let error = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_READONLY);
        return Err(rusqlite::Error::SqliteFailure(error, None));
    }
    set_up(&mut conn)?;
    if schema::version(&conn)? == 0 {
        space::prepare(&conn)?;
    }
    let version = schema::migrate(&mut conn, schema::MIGRATIONS)?;
    schema::use_write_ahead_log(&conn)?;
    // With a log this risks the last batches in a power cut, never the file.
    conn.pragma_update(None, "synchronous", "NORMAL")?;
    conn.pragma_update(None, "cache_size", -CACHE_KIB)?;
    Ok((conn, version))
}

/// Where a temporary store is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Temporary {
    /// In a file of its own, without a name, and in memory as long as it is small.
    InFile,
    /// In memory only.
    InMemory,
}

fn open_temporary(place: Temporary) -> rusqlite::Result<Connection> {
    let name = match place {
        Temporary::InFile => "",
        Temporary::InMemory => ":memory:",
    };
    let mut conn = Connection::open(name)?;
    set_up(&mut conn)?;
    schema::migrate(&mut conn, schema::MIGRATIONS)?;
    // Nobody needs what is left of it when something fails.
    conn.pragma_update(None, "journal_mode", "off")?;
    conn.pragma_update(None, "cache_size", -CACHE_KIB)?;
    Ok(conn)
}

fn open_for_reading(opened: rusqlite::Result<Connection>) -> rusqlite::Result<(Connection, usize)> {
    let mut conn = opened?;
    set_up(&mut conn)?;
    let version = schema::version(&conn)?;
    Ok((conn, version))
}

fn set_up(conn: &mut Connection) -> rusqlite::Result<()> {
    conn.busy_handler(Some(schema::wait_while_busy))?;
    // As many statements as `write` and `read` have.
    conn.set_prepared_statement_cache_capacity(64);
    Ok(())
}

/// SQLite wanted to make a -wal or -shm file and could not.
fn needs_folder(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::SystemIoFailure)
    )
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

    /// As a writer leaves it that is killed before its log is the one that goes on: pages were
    /// changed, and what they were is in a -journal.
    #[test]
    fn a_store_whose_writer_was_killed_in_a_transaction_is_put_in_order_by_a_reader() {
        let folder = tempfile::tempdir().unwrap();
        let (path, copy) = (folder.path().join("whylag.db"), folder.path().join("copy.db"));
        drop(Sqlite::open(&path).unwrap());
        let conn = Connection::open(&path).unwrap();
        conn.execute_batch(
            "PRAGMA journal_mode = DELETE; PRAGMA cache_size = 1; BEGIN IMMEDIATE;
             CREATE TABLE large AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n
             WHERE i < 1000) SELECT i, zeroblob(1000) FROM n;",
        )
        .unwrap();
        std::fs::copy(&path, &copy).unwrap();
        let journal = |path: &Path| path.with_extension("db-journal");
        std::fs::copy(journal(&path), journal(&copy)).unwrap();
        assert!(guard::has_log(&copy));
        assert_eq!(Sqlite::open_read_only(&copy).unwrap().runs().unwrap(), []);
        assert!(!guard::has_log(&copy));
    }

    #[test]
    fn an_older_store_can_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("whylag.db");
        let mut conn = Connection::open(&path).unwrap();
        schema::migrate(&mut conn, &schema::MIGRATIONS[..1]).unwrap();
        drop(conn);
        let store = Sqlite::open_read_only(&path).unwrap();
        assert!(store.runs().unwrap().is_empty());
        assert_eq!(schema::version(&store.conn).unwrap(), schema::MIGRATIONS.len());
    }
}
