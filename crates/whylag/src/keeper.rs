//! Keeps a run while it is measured: in the store, and what the store does not take in memory.
//!
//! A store can fail at any moment: its disk is full, another process keeps it locked, somebody
//! removes it. None of this ends a measurement. What waits is stored as soon as the store takes it
//! again; if it does not until the end, the whole run goes to a store of its own, which is reported
//! from, and to a run file.

mod light;

use std::collections::VecDeque;
use std::fmt::Display;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use model::{Batch, Finding, RunEnd, RunFigures, RunHeader, RunId};
use rustix::fs::{MemfdFlags, memfd_create};
use store::{Rows, RunFileError, Sqlite, Store, StoreError, Temporary};

use self::light::Light;
use crate::output::tell;

/// So much may wait, by [`weight`]; of what comes beyond, only accounts and sums wait.
const MOST_WAITING: usize = 64 << 20;

/// A run that is being measured.
pub struct Keeper {
    store: Sqlite,
    header: RunHeader,
    /// `None` until the store has taken the header.
    id: Option<RunId>,
    waiting: VecDeque<Batch>,
    waiting_bytes: usize,
    /// What came when so much waited, and is to be stored after it.
    light: Option<Light>,
    stored: Rows,
    in_trouble: bool,
    is_ending: bool,
}

impl Keeper {
    /// Begins a run.
    pub fn begin(mut store: Sqlite, header: &RunHeader) -> Keeper {
        // A recorder has other things to do than to wait.
        let hurried = store.wait_only_a_moment(true);
        let mut keeper = Keeper {
            store,
            header: header.clone(),
            id: None,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            light: None,
            stored: Rows::default(),
            in_trouble: false,
            is_ending: false,
        };
        let begun = hurried.and_then(|()| keeper.store_waiting());
        keeper.note(begun);
        keeper
    }

    /// The number of the run, or that it has none yet.
    pub fn number(&self) -> String {
        self.id.map_or_else(|| "without a number yet".to_owned(), |id| id.to_string())
    }

    /// Bytes that the run takes in the store so far, approximately.
    pub fn stored_bytes(&self) -> u64 {
        self.id.and_then(|id| self.store.size_of(id).ok()).unwrap_or(0)
    }

    /// Keeps what was measured since the last time.
    pub fn append(&mut self, batch: Batch) {
        let is_full = self.waiting_bytes > MOST_WAITING && !self.is_ending;
        if is_full {
            self.light.get_or_insert_default().add(batch);
        } else {
            self.line_up_light();
            self.line_up(batch);
        }
        let stored = self.store_waiting();
        self.note(stored);
    }

    fn line_up(&mut self, batch: Batch) {
        self.waiting_bytes += weight(&batch);
        self.waiting.push_back(batch);
    }

    fn line_up_light(&mut self) {
        if let Some(light) = self.light.take() {
            self.line_up(light.into_batch());
        }
    }

    /// From now on nothing more is measured: what is left may wait, however much it is.
    pub fn ends(&mut self) {
        self.is_ending = true;
    }

    /// Ends the run. It is in the store, or else in one of its own; an error means that there is no
    /// memory for that either.
    pub fn finish(mut self, end: &RunEnd) -> Result<Kept, StoreError> {
        // There is time now. Waiting for a moment does, too.
        let _ = self.store.wait_only_a_moment(false);
        match self.finish_in_store(end) {
            Ok(id) => Ok(Kept { store: self.store, id, aside: None }),
            Err(because) => self.take_aside(end, because),
        }
    }

    fn note(&mut self, result: Result<(), StoreError>) {
        match result {
            Ok(()) if self.in_trouble => tell("the store takes data again"),
            Err(error) if !self.in_trouble => {
                tell(format_args!(
                    "{error}; measuring goes on, what the store does not take waits"
                ));
                self.in_trouble = true;
                return;
            }
            Ok(()) => {}
            Err(_) => return,
        }
        self.in_trouble = false;
    }

    fn store_waiting(&mut self) -> Result<(), StoreError> {
        let id = match self.id {
            Some(id) => id,
            None => *self.id.insert(self.store.begin(&self.header)?),
        };
        loop {
            while let Some(batch) = self.waiting.front() {
                self.store.append(id, batch)?;
                self.stored.add(batch);
                self.waiting_bytes -= weight(batch);
                self.waiting.pop_front();
            }
            if self.light.is_none() {
                return Ok(());
            }
            self.line_up_light();
        }
    }

    fn finish_in_store(&mut self, end: &RunEnd) -> Result<RunId, StoreError> {
        self.store_waiting()?;
        let id = self.id.unwrap_or_default();
        self.store.finish(id, end)?;
        self.store.verify(id, &self.stored)?;
        Ok(id)
    }

    fn take_aside(mut self, end: &RunEnd, because: StoreError) -> Result<Kept, StoreError> {
        self.line_up_light();
        // The disk that is full may be the one for temporary files.
        let (store, id, lost) = match self.copy(end, Temporary::InFile) {
            Ok(copy) => copy,
            Err(_) => self.copy(end, Temporary::InMemory)?,
        };
        // Before anything else is done with it, which may take long.
        let beside = self.store.path().parent().map(Path::to_owned);
        let folders = beside.into_iter().chain([std::env::temp_dir()]);
        let file = folders.filter_map(|folder| write_file(&store, id, &folder).ok()).next();
        Ok(Kept { store, id, aside: Some(Aside { because, lost, file }) })
    }

    /// The run in a store of its own, and what could not be read back of it.
    fn copy(
        &self,
        end: &RunEnd,
        place: Temporary,
    ) -> Result<(Sqlite, RunId, Option<String>), StoreError> {
        let mut store = Sqlite::temporary(self.store.path(), place)?;
        let (id, unread) = match self.put_stored(&mut store, place) {
            Ok(Some(id)) => (id, None),
            Ok(None) => (store.begin(&self.header)?, None),
            Err(Unread::Here(error)) => return Err(error),
            Err(Unread::There(why)) => {
                store = Sqlite::temporary(self.store.path(), place)?;
                (store.begin(&self.header)?, Some(why))
            }
        };
        let mut expected = self.stored;
        for batch in &self.waiting {
            store.append(id, batch)?;
            expected.add(batch);
        }
        store.finish(id, end)?;
        let lost = unread.or_else(|| {
            let found = store.rows(id).ok()?;
            (found != expected).then(|| format!("{found:?} of {expected:?}"))
        });
        Ok((store, id, lost))
    }

    /// Puts what was stored so far into another store, by a file without a name: the descriptors of a
    /// store that was removed, or whose disk is full, can be read all the same.
    fn put_stored(&self, to: &mut Sqlite, place: Temporary) -> Result<Option<RunId>, Unread> {
        let Some(id) = self.id else { return Ok(None) };
        let here =
            |source| Unread::Here(StoreError::Unusable { path: std::env::temp_dir(), source });
        let mut file = match place {
            Temporary::InFile => tempfile::tempfile().map_err(here)?,
            Temporary::InMemory => {
                let file = memfd_create("run", MemfdFlags::CLOEXEC);
                File::from(file.map_err(|error| here(error.into()))?)
            }
        };
        self.store.export(id, &mut file).map_err(|error| match error {
            RunFileError::Unwritable(source) => here(source),
            error => Unread::There(error.to_string()),
        })?;
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        to.put_run_file(Path::new(&path)).map(Some).map_err(|error| match error {
            RunFileError::Store(error) => Unread::Here(error),
            error => Unread::There(error.to_string()),
        })
    }
}

/// Why what was stored could not be put elsewhere.
enum Unread {
    /// No room, or the like, where it was to go.
    Here(StoreError),
    /// It cannot be read any more.
    There(String),
}

/// A run that has ended.
pub struct Kept {
    /// The store that it is in: the one that was asked for, or one of its own.
    pub store: Sqlite,
    /// Its number there.
    pub id: RunId,
    aside: Option<Aside>,
}

/// The store does not have the run.
struct Aside {
    because: StoreError,
    /// What of it could not be read back.
    lost: Option<String>,
    /// The run file that has it.
    file: Option<PathBuf>,
}

impl Kept {
    /// True if the run is in the store or in a file.
    pub fn is_kept(&self) -> bool {
        self.aside.as_ref().is_none_or(|aside| aside.file.is_some())
    }

    /// Keeps what was found in the run. It is there without that, too: whoever asks has it found
    /// again.
    pub fn put_findings(&mut self, findings: &[Finding]) {
        if let Err(error) = self.store.put_findings(self.id, findings) {
            tell(format_args!("the findings are not stored: {error}"));
        }
    }

    /// Keeps what the run says in figures, likewise.
    pub fn put_figures(&mut self, figures: &RunFigures) {
        if let Err(error) = self.store.put_figures(self.id, figures) {
            tell(format_args!("the figures of the run are not stored: {error}"));
        }
    }

    /// That of the command, if there was one; but what the store does not have was no success.
    pub fn exit_code(&self, of_command: Option<i32>) -> ExitCode {
        match of_command.map_or(0, |status| status as u8) {
            0 if self.aside.is_some() => ExitCode::FAILURE,
            status => ExitCode::from(status),
        }
    }

    /// Says whether the run is in the store, or in which file.
    pub fn tell_where(&self, hint: impl Display) {
        let id = self.id;
        let Some(aside) = &self.aside else {
            return tell(format_args!("run {id} is stored: 'whylag show {id}' {hint}"));
        };
        tell(format_args!("the store does not have this run: {}", aside.because));
        if let Some(lost) = &aside.lost {
            tell(format_args!("a part of it is lost, which the store had: {lost}"));
        }
        match &aside.file {
            Some(path) => {
                let path = path.display();
                tell(format_args!("it is in {path}: 'whylag import {path}' stores it"));
            }
            None => {
                tell("it could not be written to a file either: what is printed is all there is");
            }
        }
    }
}

/// Writes a run file, for its owner only, like the store.
fn write_file(store: &Sqlite, id: RunId, folder: &Path) -> Result<PathBuf, RunFileError> {
    let mut file =
        tempfile::Builder::new().prefix("whylag-run-").suffix(".whylag").tempfile_in(folder)?;
    store.export(id, file.as_file_mut())?;
    let (_, path) = file.keep().map_err(|error| error.error)?;
    Ok(path)
}

/// About how much memory a batch takes, bytes.
fn weight(batch: &Batch) -> usize {
    const SUMS_AND_REST: usize = 32 << 10;
    let messages = batch.messages.slow.len() + batch.messages.fast.len();
    let frames: usize = batch.stacks.iter().map(|stack| stack.frames.len()).sum();
    SUMS_AND_REST
        + batch.outliers.len() * 1_000
        + batch.events.len() * 300
        + batch.threads.len() * 1_000
        + batch.seconds.len() * 1_500
        + frames * 150
        + messages * 2_000
}
