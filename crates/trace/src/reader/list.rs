//! The traces of this host.

use std::path::{Path, PathBuf};

use super::error::ReadError;
use super::header::Identity;
use super::open::{Standing, TraceFile};

/// A file that is called like a trace.
#[derive(Debug)]
pub struct Listed {
    /// Where it is.
    pub path: PathBuf,
    /// Who wrote it and whether it still does, or why it is not read.
    pub what: Result<(Identity, Standing), ReadError>,
}

/// The paths of all traces of this host that the caller may see: those in the folder that
/// WHYLAG_TRACE_DIR names, and those of all users in /dev/shm; ordered by path in each folder.
pub fn paths() -> Result<Vec<PathBuf>, ReadError> {
    let mut all = Vec::new();
    if let Some(named) = std::env::var_os("WHYLAG_TRACE_DIR").filter(|path| !path.is_empty()) {
        all.extend(paths_in(named.as_ref())?);
    }
    for name in names_in(Path::new("/dev/shm"))? {
        let user = name.strip_prefix("whylag-");
        if user.is_some_and(|user| user.parse::<u32>().is_ok()) {
            // Another user's folder is not ours to see; one that has just gone has no traces.
            all.extend(paths_in(&Path::new("/dev/shm").join(name)).unwrap_or_default());
        }
    }
    Ok(all)
}

/// The traces of one folder, ordered by path. A process that one of them names can keep this waiting.
pub fn list_in(folder: &Path) -> Result<Vec<Listed>, ReadError> {
    let paths = paths_in(folder)?.into_iter();
    Ok(paths
        .map(|path| {
            let what = TraceFile::open(&path)
                .and_then(|file| Ok((file.reader.identity().clone(), file.standing()?)));
            Listed { path, what }
        })
        .collect())
}

fn paths_in(folder: &Path) -> Result<Vec<PathBuf>, ReadError> {
    let traces = names_in(folder)?.into_iter().filter(|name| is_trace(name));
    Ok(traces.map(|name| folder.join(name)).collect())
}

fn names_in(folder: &Path) -> Result<Vec<String>, ReadError> {
    let refused =
        |source| ReadError::System { path: folder.to_owned(), doing: "looking for traces", source };
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(refused)? {
        names.extend(entry.map_err(refused)?.file_name().into_string().ok());
    }
    names.sort();
    Ok(names)
}

/// PID-START.trace
fn is_trace(name: &str) -> bool {
    let numbers = name.strip_suffix(".trace").and_then(|numbers| numbers.split_once('-'));
    numbers.is_some_and(|(pid, start)| pid.parse::<u32>().is_ok() && start.parse::<u64>().is_ok())
}
