//! The run that a verb is asked about, and the beginning of one that is not recorded.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use clap::Args;
use model::{Labels, Run, RunFigures, RunHeader, RunId, RunSummary, Target};
use store::{Sqlite, Store, location};

use crate::failure::Failure;
use crate::selection::SET;

/// Which store a verb uses: options of every verb.
#[derive(Args)]
pub struct StoreOptions {
    /// The store to use instead of $XDG_DATA_HOME/whylag/whylag.db (else ~/.local/share/whylag)
    #[arg(long, global = true, value_name = "PATH", env = "WHYLAG_STORE")]
    store: Option<PathBuf>,
    /// As root, use a store that others could have made or exchanged, too
    #[arg(long, global = true)]
    trust_store: bool,
}

impl StoreOptions {
    /// Where the store is, or would be.
    pub fn path(&self) -> Result<PathBuf, Failure> {
        Ok(location::locate(self.store.as_deref())?)
    }

    /// True with --trust-store.
    pub fn is_trusted(&self) -> bool {
        self.trust_store
    }

    /// Opens it for recording; makes it if it is not there.
    pub fn open_to_write(&self) -> Result<Sqlite, Failure> {
        let path = self.trusted_path()?;
        location::create(&path)?;
        // Somebody else may have made its folder before it was.
        self.trusted_path()?;
        Ok(Sqlite::open(&path)?)
    }

    /// Opens it for reading.
    pub fn open_to_read(&self) -> Result<Sqlite, Failure> {
        Ok(Sqlite::open_read_only(&self.trusted_path()?)?)
    }

    fn trusted_path(&self) -> Result<PathBuf, Failure> {
        let path = self.path()?;
        if !self.trust_store {
            location::must_be_trusted(&path)?;
        }
        Ok(path)
    }
}

/// What a verb is given to name a run: its number in the store, or a file that has it.
#[derive(Clone, Debug)]
pub enum RunName {
    Number(i64),
    File(PathBuf),
}

impl From<OsString> for RunName {
    fn from(name: OsString) -> RunName {
        match name.to_str().and_then(|text| text.parse().ok()) {
            Some(number) => RunName::Number(number),
            None => RunName::File(name.into()),
        }
    }
}

impl fmt::Display for RunName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunName::Number(number) => number.fmt(f),
            RunName::File(path) => path.display().fmt(f),
        }
    }
}

/// `NAME=VALUE`.
pub fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("write a label as NAME=VALUE, such as build=42".to_owned()),
    }
}

/// The runs that these names mean: each one itself; a range of numbers, `3..7`; or a set, by the
/// name that `record --set` gave it or by labels, `build=42,host=a`. Never none.
pub fn named(store: &StoreOptions, names: &[RunName]) -> Result<Vec<RunName>, Failure> {
    let mut found = Vec::new();
    for name in names {
        match name {
            RunName::File(path) if matches!(path.try_exists(), Ok(false)) => {
                found.extend(of_set(store, &path.to_string_lossy())?);
            }
            name => found.push(name.clone()),
        }
    }
    Ok(found)
}

/// The runs of a set, or of a range, in the order in which they were recorded; those of a proof by
/// their pairs.
fn of_set(store: &StoreOptions, set: &str) -> Result<Vec<RunName>, Failure> {
    let mut runs = store.open_to_read()?.runs()?;
    let range = set.split_once("..").and_then(|(first, last)| {
        Some(first.trim().parse::<i64>().ok()?..=last.trim().parse::<i64>().ok()?)
    });
    let labels: Option<Vec<_>> = set.split(',').map(|one| label(one).ok()).collect();
    let labels = labels.unwrap_or_else(|| vec![(SET.to_owned(), set.to_owned())]);
    runs.retain(|run| match &range {
        Some(range) => range.contains(&run.id.0),
        None => labels.iter().all(|(name, value)| run.header.labels.get(name) == Some(value)),
    });
    if runs.is_empty() {
        return Err(Failure::Usage(format!(
            "{set}: neither a run, as 'whylag runs' lists it, nor a file, as \
             'whylag export --format run' writes it, nor a set, as 'whylag record --set' makes it, \
             nor labels, NAME=VALUE"
        )));
    }
    let pair = |run: &RunSummary| run.header.labels.get("pair").and_then(|pair| pair.parse().ok());
    runs.sort_by_key(|run| (pair(run).unwrap_or(0u64), run.id));
    Ok(runs.into_iter().map(|run| RunName::Number(run.id.0)).collect())
}

/// The run of this name, the newest if there is none, and the store that it is in. The run of a
/// file is in a store of its own.
pub fn choose(store: &StoreOptions, run: Option<&RunName>) -> Result<(Sqlite, RunId), Failure> {
    match run {
        Some(RunName::File(path)) if matches!(path.try_exists(), Ok(false)) => {
            Err(Failure::Usage(format!(
                "{}: neither the number of a run, as 'whylag runs' lists it, nor a file that \
                 'whylag export --format run' wrote",
                path.display()
            )))
        }
        Some(RunName::File(path)) => Ok(Sqlite::open_run_file(path)?),
        Some(RunName::Number(number)) => Ok((store.open_to_read()?, RunId(*number))),
        None => {
            let store = store.open_to_read()?;
            let newest = store.newest()?.ok_or_else(|| {
                let what = "the store has no run yet: record one with 'whylag record'";
                Failure::Usage(what.to_owned())
            })?;
            Ok((store, newest))
        }
    }
}

/// As [`choose`], and loads it.
pub fn load(store: &StoreOptions, run: Option<&RunName>) -> Result<(Sqlite, Run), Failure> {
    let (store, id) = choose(store, run)?;
    let run = store.load(id)?;
    Ok((store, run))
}

/// What a run says in figures: as they were stored, or as it is explained now.
pub fn figures(store: &Sqlite, run: RunId) -> Result<RunFigures, Failure> {
    if let Some(figures) = store.figures(run)? {
        return Ok(figures);
    }
    let run = store.load(run)?;
    must_be_recorded(&run, None)?;
    Ok(explain::figures(&run, &explain::explain(&run)))
}

/// The run with its timers judged, if any were measured: stored is what was measured.
pub fn judged(mut run: Run) -> Run {
    run.jitter = explain::timers(&run).map(|judged| judged.jitter);
    run
}

/// Refuses a run of benchmarks without the recorder, and what a crashed program left: there is
/// nothing to explain or to draw.
pub fn must_be_recorded(run: &Run, name: Option<&RunName>) -> Result<(), Failure> {
    let name = name.map_or_else(|| run.id.to_string(), RunName::to_string);
    match page::run::not_recorded(run, &name) {
        Some(why) => Err(Failure::Usage(why)),
        None => Ok(()),
    }
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
        labels: Labels::new(),
    }
}
