//! Where the store is, and how its file is made.

use std::env;
use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::StoreError;

/// The store's file: `explicit` if given (`--store`), else `WHYLAG_STORE`, else
/// `$XDG_DATA_HOME/whylag/whylag.db`, else `$HOME/.local/share/whylag/whylag.db`.
///
/// Fails only if none of these is set.
pub fn locate(explicit: Option<&Path>) -> Result<PathBuf, StoreError> {
    locate_in(explicit, |name| env::var_os(name))
}

fn locate_in(
    explicit: Option<&Path>,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<PathBuf, StoreError> {
    let set = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(file) = explicit.map(Path::to_owned).or_else(|| set("WHYLAG_STORE")) {
        return Ok(file);
    }
    // The XDG base directory specification: a relative path there is to be ignored.
    let data = set("XDG_DATA_HOME").filter(|folder| folder.is_absolute());
    let data = data.or_else(|| Some(set("HOME")?.join(".local/share")));
    Ok(data.ok_or(StoreError::NoHome)?.join("whylag/whylag.db"))
}

/// Makes the file, empty and for its owner only, and its folder likewise, unless they are there.
/// SQLite gives the files it puts next to it the same mode.
pub(crate) fn create(file: &Path) -> Result<(), StoreError> {
    if let Some(folder) = file.parent().filter(|folder| !folder.exists()) {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(|error| failed(folder, error))?;
    }
    if fs::symlink_metadata(file).is_ok() {
        return Ok(());
    }
    // Not open(): closing a descriptor of the file drops the locks that another connection of
    // this process may have taken on it meanwhile.
    match mknodat(CWD, file, FileType::RegularFile, Mode::RUSR | Mode::WUSR, 0) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => Ok(()),
        Err(error) => Err(failed(file, error.into())),
    }
}

fn failed(path: &Path, source: io::Error) -> StoreError {
    let path = path.to_owned();
    match source.kind() {
        io::ErrorKind::StorageFull => StoreError::DiskFull(path),
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
            StoreError::ReadOnly(path)
        }
        _ => StoreError::Unusable { path, source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn located(explicit: Option<&str>, variables: &[(&str, &str)]) -> Result<PathBuf, StoreError> {
        locate_in(explicit.map(Path::new), |name| {
            variables.iter().find(|(n, _)| *n == name).map(|(_, value)| value.into())
        })
    }

    #[test]
    fn the_most_explicit_place_wins() {
        let mut variables = vec![("HOME", "/h")];
        let at = |explicit, variables: &[_]| located(explicit, variables).unwrap();
        assert_eq!(at(None, &variables), Path::new("/h/.local/share/whylag/whylag.db"));
        variables.push(("XDG_DATA_HOME", "/x"));
        assert_eq!(at(None, &variables), Path::new("/x/whylag/whylag.db"));
        variables.push(("WHYLAG_STORE", "w.db"));
        assert_eq!(at(None, &variables), Path::new("w.db"));
        assert_eq!(at(Some("e.db"), &variables), Path::new("e.db"));
    }

    #[test]
    fn empty_and_relative_settings_are_ignored() {
        let variables = [("HOME", "/h"), ("XDG_DATA_HOME", "x"), ("WHYLAG_STORE", "")];
        assert_eq!(
            located(None, &variables).unwrap(),
            Path::new("/h/.local/share/whylag/whylag.db")
        );
        assert!(matches!(located(None, &[]), Err(StoreError::NoHome)));
    }
}
