//! Opens traces that others wrote. What a process has at a path, and its list of mappings, can keep
//! the reader waiting; so can any process that a trace says it is of. All of it is asked with
//! [`patience`], and no path is walked on mounts of a user namespace of the process's own.

use std::io;
use std::path::{Path, PathBuf};

use inspect::files::{self, FileError};
use inspect::patience;
use trace::reader::{Listed, ReadError, Standing, TraceFile, paths};

/// The trace of a process, as [`TraceFile::of_process`] finds it.
///
/// # Errors
/// The outer one if the process cannot be asked, or does not answer.
pub fn of_process(pid: u32, thorough: bool) -> io::Result<Result<Option<TraceFile>, ReadError>> {
    patience::ask(pid, move || {
        let root = files::root(pid).map_err(|error| match error {
            FileError::System(error) => error,
            other => io::Error::other(other),
        })?;
        Ok(TraceFile::of_process(pid, root, thorough))
    })?
}

/// A trace in a file, and whether somebody writes it.
///
/// # Errors
/// See [`ReadError`].
pub fn open(path: &Path) -> Result<(TraceFile, Standing), ReadError> {
    let asked = path.to_owned();
    ask(path, move || {
        let file = TraceFile::open(asked)?;
        let standing = file.standing()?;
        Ok((file, standing))
    })?
}

/// Removes what a program left: see [`TraceFile::remove`].
///
/// # Errors
/// See [`ReadError`].
pub fn remove(file: TraceFile) -> Result<(), ReadError> {
    let path = file.path().to_owned();
    ask(&path, move || file.remove())?
}

/// The traces of this host that the caller may see.
///
/// # Errors
/// If their folder cannot be read.
pub fn list() -> Result<Vec<Listed>, ReadError> {
    let listed = |path: PathBuf| {
        let what = open(&path);
        let what = what.map(|(file, standing)| (file.reader.identity().clone(), standing));
        Listed { path, what }
    };
    Ok(paths()?.into_iter().map(listed).collect())
}

fn ask<T: Send + 'static>(
    path: &Path,
    question: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ReadError> {
    let answer = patience::ask(process_of(path), question);
    answer.map_err(|source| ReadError::System {
        path: path.to_owned(),
        doing: "asking its program",
        source,
    })
}

/// Who may keep the reader waiting, by the name PID-START.trace.
fn process_of(path: &Path) -> u32 {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let pid = name.split_once('-').and_then(|(pid, _)| pid.parse().ok());
    pid.unwrap_or(patience::OF_FOLDERS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_asked_is_in_the_name() {
        assert_eq!(process_of(Path::new("/dev/shm/whylag-0/12-345.trace")), 12);
        assert_eq!(process_of(Path::new("/tmp/renamed.trace")), patience::OF_FOLDERS);
    }
}
