//! The trace of one process, wherever that process sees its files: in a container the folder is
//! another, and pids and users have other numbers.

use std::io::{self, Read};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, ResolveFlags};

use super::error::ReadError;
use super::open::{folder_of, in_folder};
use crate::process;

/// What is read of the environment of a process, bytes.
const LONGEST_ENVIRONMENT: u64 = 1 << 20;

/// The file of a process, opened and not yet looked at, and where it is.
pub(crate) struct Found {
    pub folder: OwnedFd,
    pub file: OwnedFd,
    pub path: PathBuf,
}

/// Looks in the /dev/shm of that process, and in the folder that WHYLAG_TRACE_DIR names here; if
/// `thorough`, also in the one that it names there, and among what the process has mapped: that
/// takes a lock of the process for a moment. There may be several.
pub(crate) fn find(
    pid: u32,
    inside: BorrowedFd<'_>,
    thorough: bool,
) -> Result<Vec<Found>, ReadError> {
    let root = PathBuf::from(format!("/proc/{pid}/root"));
    let system = |doing, source: io::Error| ReadError::System { path: root.clone(), doing, source };
    let own = process::pid_in_its_namespace(pid);
    let own = own.map_err(|error| system("looking for its pid", error))?;
    let start = process::start_of(&process::main_stat(pid))
        .map_err(|error| system("looking for its start", error))?;
    let name = format!("{own}-{start}.trace");
    let mut places: Vec<PathBuf> = Vec::new();
    places
        .extend(std::env::var_os("WHYLAG_TRACE_DIR").map(|folder| Path::new(&folder).join(&name)));
    places.extend(usual_folder(pid).map(|folder| folder.join(&name)));
    if thorough {
        places.extend(named_folder(pid).map(|folder| folder.join(&name)));
        places.extend(mapped(pid, &name));
    }
    let mut found = Vec::new();
    places.dedup();
    for place in places {
        // Else it is not there, or a link, or in another user's folder.
        if let Ok((folder, file)) = open_in(inside, &place) {
            found.push(Found { folder, file, path: shown(pid, &root, &place) });
        }
    }
    Ok(found)
}

/// Opens the folder of a path as the process sees it, and the file in it: links lead nowhere outside
/// of its own root.
fn open_in(root: BorrowedFd<'_>, path: &Path) -> rustix::io::Result<(OwnedFd, OwnedFd)> {
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = rustix::fs::openat2(root, folder_of(path), flags, Mode::empty(), resolve)?;
    let file = in_folder(&folder, path)?;
    Ok((folder, file))
}

/// What WHYLAG_TRACE_DIR was when the process began its program.
fn named_folder(pid: u32) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStringExt;
    let mut variables = Vec::new();
    let file = std::fs::File::open(format!("/proc/{pid}/environ")).ok()?;
    file.take(LONGEST_ENVIRONMENT).read_to_end(&mut variables).ok()?;
    let value = variables
        .split(|byte| *byte == 0)
        .find_map(|variable| variable.strip_prefix(b"WHYLAG_TRACE_DIR="))?;
    let path = PathBuf::from(std::ffi::OsString::from_vec(value.to_vec()));
    path.is_absolute().then_some(path)
}

/// `/dev/shm/whylag-UID`, by the number that the process knows itself by.
fn usual_folder(pid: u32) -> Option<PathBuf> {
    let user = process::user_in_its_namespace(pid).ok()?;
    Some(format!("/dev/shm/whylag-{user}").into())
}

/// A mapped file of this name.
fn mapped(pid: u32, name: &str) -> Option<PathBuf> {
    let mut path = None;
    process::each_mapping(&pid.to_string(), |line| {
        let text = String::from_utf8_lossy(line);
        let mapped = text.find('/').map(|at| Path::new(&text[at..]));
        let is_it = |mapped: &&Path| mapped.file_name().is_some_and(|last| last == name);
        path = mapped.filter(is_it).map(Path::to_owned);
        path.is_some()
    })
    .ok()?;
    path
}

/// The path from here: through /proc only where the process has another file system.
fn shown(pid: u32, root: &Path, place: &Path) -> PathBuf {
    let namespace = |pid: &str| std::fs::read_link(format!("/proc/{pid}/ns/mnt")).ok();
    let is_ours = namespace(&pid.to_string()) == namespace("self")
        && std::fs::read_link(root).is_ok_and(|target| target == Path::new("/"));
    if is_ours { place.to_owned() } else { root.join(place.strip_prefix("/").unwrap_or(place)) }
}
