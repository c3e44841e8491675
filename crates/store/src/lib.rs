//! The store: keeps runs while they are recorded and gives them back afterwards.
//!
//! The one important type is the trait [`Store`]. [`Sqlite`] is its embedded implementation, one
//! file at the place that [`location::locate`] names. A recorder calls [`Store::begin`], then
//! [`Store::append`] about once a second, then [`Store::finish`]; everybody else reads with
//! [`Store::runs`] and [`Store::load`]. A run can leave as one file ([`Sqlite::export`]), which
//! another store takes in ([`Sqlite::import`]), or which is read by itself
//! ([`Sqlite::open_run_file`]).
//!
//! Caveats. A batch is stored as a whole or not at all, so a recorder that is killed loses at most
//! its last batch; a power cut may lose a few more, but never damages the file. Whether a run
//! without an end is still being recorded is judged by the recorder's process: reading from
//! another host, or another pid namespace, shows such a run as interrupted. Nothing here removes
//! secrets from what it is given.

mod error;
pub mod location;
mod recorder;
mod run_file;
mod sqlite;

use model::{
    Batch, Finding, OtherThreads, Run, RunEnd, RunFigures, RunHeader, RunId, RunSummary, Window,
};

pub use error::StoreError;
pub use run_file::{FORMAT_VERSION, RunFileError, is_run_file};
pub use sqlite::{Rows, Sqlite, Temporary};

/// [`Store::load`] fetches this many outliers: the longest, and the longest of each kind of wait of
/// each thread, so that long waits for work do not push out shorter ones that hurt. That is enough for every table and picture,
/// and little enough to be read at once however many were stored. As many of the slow messages.
pub const LOADED_OUTLIERS: usize = 2000;

/// [`Store::load`] fetches this many intervals of messages: those of some hundred.
pub const LOADED_IN_PARTS: usize = 50_000;

/// [`Store::load`] fetches this many events of each kind, the first: a busy disk should not crowd
/// out the rest.
pub const LOADED_EVENTS: usize = 5000;

/// [`Store::load`] fetches this many threads one by one: those with the longest lives; besides them
/// those that outliers and messages tell of. The others are summed, by their process or by the name
/// of their programs, so that no nanosecond is missing.
pub const LOADED_THREADS: usize = OtherThreads::ONE_BY_ONE;

/// Keeps runs.
pub trait Store {
    /// Begins a run. The process `header.recorder_pid` has to be alive: the run counts as being
    /// recorded for as long as it is.
    fn begin(&mut self, header: &RunHeader) -> Result<RunId, StoreError>;

    /// Stores one step of a recording, all of it or nothing; [`Batch`] says what is added and what
    /// replaces earlier values. After [`StoreError::DiskFull`] everything stored before is intact.
    fn append(&mut self, run: RunId, batch: &Batch) -> Result<(), StoreError>;

    /// Ends a run properly. A run that never gets here is interrupted once its recorder is gone.
    fn finish(&mut self, run: RunId, end: &RunEnd) -> Result<(), StoreError>;

    /// Replaces the findings of a run. They are kept in the order given, the leading one first.
    fn put_findings(&mut self, run: RunId, findings: &[Finding]) -> Result<(), StoreError>;

    /// Replaces what a run says in figures, for those who compare many runs.
    fn put_figures(&mut self, run: RunId, figures: &RunFigures) -> Result<(), StoreError>;

    /// What a run says in figures; `None` if they were not put, by an earlier version or because
    /// nothing was explained.
    fn figures(&self, run: RunId) -> Result<Option<RunFigures>, StoreError>;

    /// All runs, oldest first.
    fn runs(&self) -> Result<Vec<RunSummary>, StoreError>;

    /// The run begun last, `None` if there is none.
    fn newest(&self) -> Result<Option<RunId>, StoreError>;

    /// One run: [`LOADED_OUTLIERS`] outliers, longest first (those below the threshold of the run were
    /// kept for the sake of a message, and are no outliers here) and slowest messages, the
    /// [`LOADED_EVENTS`] first events of each kind, the stacks that these outliers or `stack_sums`
    /// refer to, [`LOADED_THREADS`] threads and the sums of the others, and all of the rest. Sums come largest first, what has a time in time order.
    ///
    /// A recorder rewrites a thread only when its state changes. So while a run has no end, the
    /// open account of each living thread is extended here up to the run's heartbeat.
    fn load(&self, run: RunId) -> Result<Run, StoreError>;

    /// The same run as [`Store::load`] gives, with up to [`LOADED_OUTLIERS`] more outliers behind
    /// those: the longest that overlap `part`; and with the [`LOADED_EVENTS`] first events of each kind of the part
    /// instead of the run. Also says how many outliers overlap the part, loaded or not.
    fn load_part(&self, run: RunId, part: &Window) -> Result<(Run, u64), StoreError>;

    /// The findings of a run, the leading one first; empty if none were put.
    fn findings(&self, run: RunId) -> Result<Vec<Finding>, StoreError>;
}
