//! Where the store is, how its file is made, and whether root may use what is there.

use std::env;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Component, Path, PathBuf};

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
pub fn create(file: &Path) -> Result<(), StoreError> {
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

/// Links on the way to a file: the kernel follows as many.
const MOST_LINKS: u32 = 40;

/// For root: refuses a path on which somebody else could have put the store, or could exchange it, or
/// put something beside it: a file, link or folder of another user on the way, and a folder in which
/// others may make files. In one like /tmp (sticky) they cannot rename what is root's, so a folder of
/// root's within it is fine; the store itself is not, for SQLite takes a `-journal` that lies next to
/// it for what it has to undo, whoever made it, and asking whose it is before does not help: it may
/// be made a moment later. What is not there yet is not refused; other users may use what they like.
pub fn must_be_trusted(file: &Path) -> Result<(), StoreError> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let file = std::path::absolute(file).map_err(|error| failed(file, error))?;
    let Some(place) = trusted_place(&file)? else { return Ok(()) };
    for suffix in ["", "-wal", "-shm", "-journal"] {
        let mut path = place.clone().into_os_string();
        path.push(suffix);
        let path = PathBuf::from(path);
        if let Ok(metadata) = fs::symlink_metadata(&path) {
            must_be_roots(&path, &metadata)?;
        }
    }
    Ok(())
}

/// The file with all links on the way to it followed; `None` where the way ends before.
fn trusted_place(file: &Path) -> Result<Option<PathBuf>, StoreError> {
    let mut at = PathBuf::from("/");
    let mut rest: Vec<OsString> = components(file);
    let mut links = 0;
    while let Some(name) = rest.pop() {
        if name == ".." {
            at.pop();
            continue;
        }
        let next = at.join(&name);
        let metadata = match fs::symlink_metadata(&next) {
            Ok(metadata) => metadata,
            Err(_) if rest.is_empty() => return Ok(Some(next)),
            Err(_) => return Ok(None),
        };
        if metadata.is_symlink() {
            must_be_roots(&next, &metadata)?;
            links += 1;
            if links > MOST_LINKS {
                return Ok(None);
            }
            let to = fs::read_link(&next).map_err(|error| failed(&next, error))?;
            if to.is_absolute() {
                at = PathBuf::from("/");
            }
            rest.extend(components(&to));
            continue;
        }
        must_be_roots(&next, &metadata)?;
        if metadata.is_dir() {
            let keeps_names = metadata.mode() & 0o1000 != 0 && rest.len() > 1;
            if is_for_others(&metadata) && !keeps_names {
                let what = "others may make files in this folder";
                return Err(untrusted(&next, what.to_owned()));
            }
        }
        at = next;
    }
    Ok(Some(at))
}

/// True of a folder in which others than root may make and rename files.
fn is_for_others(folder: &Metadata) -> bool {
    let is_for_group = folder.mode() & 0o020 != 0 && folder.gid() != 0;
    folder.mode() & 0o002 != 0 || is_for_group
}

/// The names of a path, the last one first.
fn components(path: &Path) -> Vec<OsString> {
    let names = path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    });
    let mut names: Vec<OsString> = names.collect();
    names.reverse();
    names
}

fn must_be_roots(path: &Path, metadata: &Metadata) -> Result<(), StoreError> {
    match metadata.uid() {
        0 => Ok(()),
        user => Err(untrusted(path, format!("made by user {user}"))),
    }
}

fn untrusted(path: &Path, what: String) -> StoreError {
    StoreError::Untrusted { path: path.to_owned(), what }
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
