//! Where an export or a report goes.
//!
//! A file is written beside its place and takes it at the end: one that was there already stays as
//! it is if anything fails. What is no regular file (a device, a pipe) is written to as it is. The
//! store is never written over. A link that somebody else put into a folder like /tmp is not followed.

use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io::{self, IsTerminal, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use anyhow::Context;
use tempfile::NamedTempFile;

use crate::failure::Failure;

/// An output that was found to be usable.
pub enum Place {
    Stdout,
    /// A device or a pipe.
    Special(File),
    /// A file, for its owner only, and the name that it will have.
    Beside(NamedTempFile, PathBuf),
}

impl Place {
    /// The place of this name, or standard output; `store` is that of the other options.
    pub fn of(path: Option<&Path>, store: Option<&Path>) -> Result<Place, Failure> {
        let Some(path) = path else { return Ok(Place::Stdout) };
        if let Some(store) = store {
            must_not_be_store(path, store)?;
        }
        if let Some(link) = link_of_somebody(path) {
            let what = "is a link that another user put into a folder for everybody";
            return Err(Failure::Usage(format!("{} {what}: it is not followed", link.display())));
        }
        match fs::metadata(path) {
            // As /dev/stdout: what was written to it before stays.
            Ok(metadata) if is_stdout(&metadata) => return Ok(Place::Stdout),
            Ok(metadata) if !metadata.is_file() => {
                let file = File::options().write(true).open(path);
                return Ok(Place::Special(created(path, file)?));
            }
            Ok(_) if is_database(path) => {
                let what = "is an SQLite file, perhaps a store: give another file with -o";
                return Err(Failure::Usage(format!("{} {what}", path.display())));
            }
            _ => {}
        }
        // A link stays one.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let folder = folder_of(&path);
        if !folder.is_dir() {
            let what = format!("there is no folder {}: make it first", folder.display());
            return Err(Failure::Usage(format!("cannot write {}: {what}", path.display())));
        }
        let temporary = tempfile::Builder::new().prefix(".whylag-").tempfile_in(folder);
        // Its own name says nothing to anybody.
        let temporary = temporary.map_err(|error| io::Error::from(error.kind()));
        Ok(Place::Beside(created(&path, temporary)?, path))
    }

    /// True if somebody looks at it as it is written.
    pub fn is_terminal(&self) -> bool {
        match self {
            Place::Stdout => io::stdout().is_terminal(),
            Place::Special(file) => file.is_terminal(),
            Place::Beside(..) => false,
        }
    }

    /// Has it written.
    pub fn fill(
        self,
        write: impl FnOnce(&mut dyn Write) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        match self {
            Place::Stdout => write(&mut io::stdout().lock()),
            Place::Special(mut file) => write(&mut file),
            Place::Beside(mut file, path) => {
                write(file.as_file_mut())?;
                // A full disk may be noticed only here.
                created(&path, file.as_file().sync_all())?;
                created(&path, file.persist(&path).map_err(|error| error.error))?;
                Ok(())
            }
        }
    }
}

fn created<T>(path: &Path, result: io::Result<T>) -> Result<T, Failure> {
    result
        .with_context(|| format!("cannot write {}", path.display()))
        .map_err(|error| Failure::Usage(format!("{error:#}")))
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

/// Links on the way to a file: the kernel follows as many.
const MOST_LINKS: u32 = 40;

/// The first link on the way to a file that is in a folder in which everybody may make one, and
/// belongs neither to this user nor to the folder's. Where `fs.protected_symlinks` is set the kernel
/// follows no such link; but it may not be set, and who asks where a path leads is always told.
fn link_of_somebody(path: &Path) -> Option<PathBuf> {
    let own = rustix::process::geteuid().as_raw();
    let mut at = PathBuf::from("/");
    let mut rest = names(&std::path::absolute(path).ok()?);
    let mut links = 0;
    while let Some(name) = rest.pop() {
        if name == ".." {
            at.pop();
            continue;
        }
        let next = at.join(&name);
        let found = fs::symlink_metadata(&next).ok()?;
        if !found.is_symlink() {
            at = next;
            continue;
        }
        let folder = fs::symlink_metadata(&at).ok()?;
        if folder.mode() & 0o002 != 0 && ![own, folder.uid()].contains(&found.uid()) {
            return Some(next);
        }
        links += 1;
        let to = fs::read_link(&next).ok().filter(|_| links <= MOST_LINKS)?;
        if to.is_absolute() {
            at = PathBuf::from("/");
        }
        rest.extend(names(&to));
    }
    None
}

/// The names of a path, the last one first.
fn names(path: &Path) -> Vec<OsString> {
    let names = path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    });
    names.rev().collect()
}

fn is_stdout(metadata: &Metadata) -> bool {
    let stdout = rustix::fs::fstat(io::stdout());
    stdout.is_ok_and(|stdout| (stdout.st_dev, stdout.st_ino) == (metadata.dev(), metadata.ino()))
}

fn is_database(path: &Path) -> bool {
    let mut first = [0; 16];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut first));
    read.is_ok() && &first == b"SQLite format 3\0"
}

/// Refuses to write over the store, or the files that SQLite keeps with it: by whichever name, and
/// also where they are not there at the moment.
fn must_not_be_store(path: &Path, store: &Path) -> Result<(), Failure> {
    let is_it = ["", "-wal", "-shm", "-journal"].iter().any(|suffix| {
        let mut file = store.as_os_str().to_owned();
        file.push(suffix);
        is_same(path, Path::new(&file))
    });
    if is_it {
        let what = "is the store itself: give another file with -o";
        return Err(Failure::Usage(format!("{} {what}", path.display())));
    }
    Ok(())
}

fn is_same(one: &Path, other: &Path) -> bool {
    let key = |path: &Path| fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
    match (key(one), key(other)) {
        (Some(one), Some(other)) => one == other,
        (None, None) => {
            one.file_name() == other.file_name() && key(folder_of(one)) == key(folder_of(other))
        }
        _ => false,
    }
}
