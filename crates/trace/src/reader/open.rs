//! A trace file, opened with nothing taken on trust.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::mem::offset_of;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags, Stat};

use super::error::{ReadError, refused};
use super::header::Identity;
use super::of_process::{self, Found};
use super::reader::Reader;
use crate::{layout, process};

/// Whether somebody still writes a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Its program runs and has it mapped.
    Live,
    /// Its program ended well, and left it.
    Closed,
    /// Its program is gone, or made an exec.
    Crashed,
    /// Of another boot or pid namespace: nothing can be known of it here.
    Foreign,
}

/// A trace in a file.
pub struct TraceFile {
    path: PathBuf,
    /// Held, because its owner could put another in its place.
    folder: OwnedFd,
    inode: u64,
    /// The process that it was found through, as this /proc counts: its own pid namespace may be
    /// another.
    process: Option<u32>,
    /// What it holds.
    pub reader: Reader<File>,
}

impl TraceFile {
    /// Opens and checks a trace.
    pub fn open(path: impl Into<PathBuf>) -> Result<TraceFile, ReadError> {
        let path = path.into();
        let system =
            |doing, source: io::Error| ReadError::System { path: path.clone(), doing, source };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::open(folder_of(&path), flags, Mode::empty())
            .map_err(|error| system("opening its folder", error.into()))?;
        let file = in_folder(&folder, &path)
            .map_err(|error| system("opening the trace (no link is followed)", error.into()))?;
        let (reader, inode, owner) = checked(file.into(), &path)?;
        let writer = match standing(reader.identity(), inode) {
            Standing::Live => process::user_of(reader.identity().pid)
                .map_err(|error| system("looking whose process that is", error))?,
            _ => {
                let folder = rustix::fs::fstat(&folder);
                folder.map_err(|error| system("looking at its folder", error.into()))?.st_uid
            }
        };
        belongs(owner, writer)?;
        Ok(TraceFile { path, folder, inode, process: None, reader })
    }

    /// Opens and checks the trace of a process of this /proc, which may be in another pid namespace
    /// and see other files. `thorough`: also looks at its environment and among what it has mapped,
    /// which finds a folder that only the program knows, and takes a lock of the process for a
    /// moment. `None` if it has no trace.
    ///
    /// `root` is its root, /proc/PID/root, as the caller has opened it. The process decides what lies
    /// there, and its mounts how long a look at it takes: that is for the caller to judge.
    pub fn of_process(
        pid: u32,
        root: impl AsFd,
        thorough: bool,
    ) -> Result<Option<TraceFile>, ReadError> {
        let mut refusal = None;
        for found in of_process::find(pid, root.as_fd(), thorough)? {
            match TraceFile::found(found, pid) {
                // What an earlier program of this process left is not its trace.
                Ok(file) if file.standing()? == Standing::Crashed => {}
                Ok(file) => return Ok(Some(file)),
                Err(error) => refusal = Some(error),
            }
        }
        refusal.map_or(Ok(None), Err)
    }

    fn found(Found { folder, file, path }: Found, pid: u32) -> Result<TraceFile, ReadError> {
        let (reader, inode, owner) = checked(file.into(), &path)?;
        let system =
            |doing, source: io::Error| ReadError::System { path: path.clone(), doing, source };
        let writer = process::user_of(pid)
            .map_err(|error| system("looking whose process that is", error))?;
        belongs(owner, writer)?;
        let own = process::pid_in_its_namespace(pid)
            .map_err(|error| system("looking for its pid", error))?;
        if reader.identity().pid != own {
            let why = format!("it is of pid {}, not of {own}", reader.identity().pid);
            return Err(refused(offset_of!(layout::Header, pid) as u64, why));
        }
        Ok(TraceFile { path, folder, inode, process: Some(pid), reader })
    }

    /// Numbers of its program's threads, as its tracer counts and as this /proc does; `None` where
    /// these are the same.
    pub fn threads_here(&self) -> Option<Vec<(u32, u32)>> {
        let pid = self.process?;
        let same = process::pid_namespace().ok()? == self.reader.identity().pid_namespace;
        if same { None } else { process::threads_of(pid).ok() }
    }

    /// Whether its name is still this file's: a program that ends removes it, and after an exec it
    /// may be another's.
    pub fn is_in_place(&self) -> bool {
        self.there().is_ok_and(|there| there.st_ino == self.inode)
    }

    /// What has its name now.
    fn there(&self) -> rustix::io::Result<Stat> {
        rustix::fs::statat(&self.folder, name_of(&self.path), AtFlags::SYMLINK_NOFOLLOW)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether somebody writes it, at this moment.
    pub fn standing(&self) -> Result<Standing, ReadError> {
        Ok(self.ask_standing()?())
    }

    /// The same as a question: its answer needs a lock of the process, which may keep it.
    pub fn ask_standing(&self) -> Result<impl FnOnce() -> Standing + Send + use<>, ReadError> {
        let is_closed = self.reader.is_closed()?;
        let (identity, process, inode) = (self.reader.identity().clone(), self.process, self.inode);
        Ok(move || match process {
            _ if is_closed => Standing::Closed,
            Some(pid) => alive(pid, identity.start, inode),
            None => standing(&identity, inode),
        })
    }

    /// Removes the file of a program that has crashed, or has ended and left it.
    pub fn remove(self) -> Result<(), ReadError> {
        let system = |doing, source| ReadError::System { path: self.path.clone(), doing, source };
        if matches!(self.standing()?, Standing::Live | Standing::Foreign) {
            return Err(ReadError::InUse(self.path));
        }
        // The name may be another file's by now: that of a program after an exec.
        let there = self.there();
        let there = there.map_err(|error| system("looking at the trace again", error.into()))?;
        let own = rustix::fs::fstat(self.reader.source())
            .map_err(|error| system("looking at the trace", error.into()))?;
        if (there.st_dev, there.st_ino) != (own.st_dev, own.st_ino) {
            return Err(ReadError::InUse(self.path));
        }
        rustix::fs::unlinkat(&self.folder, name_of(&self.path), AtFlags::empty())
            .map_err(|error| system("removing the trace", error.into()))
    }

    /// Changes from how long on messages of a flow are slow. That number is the only thing in a
    /// trace that is not its writer's own.
    pub fn set_threshold(&self, flow: u32, nanoseconds: u64) -> Result<(), ReadError> {
        let system = |doing, source| ReadError::System { path: self.path.clone(), doing, source };
        let flows = self.reader.tables().flows;
        let index = (flow as usize).checked_sub(1).filter(|index| *index < flows.entries);
        let index = index.ok_or_else(|| refused(flows.offset, format!("no flow {flow}")))?;
        // The file that is read, whatever has its name by now. NONBLOCK: its owner may hold a lease.
        let itself = format!("/proc/self/fd/{}", self.reader.source().as_raw_fd());
        let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::open(itself, flags, Mode::empty())
            .map_err(|error| system("opening the trace to write the threshold", error.into()))?;
        let file = File::from(file);
        let value = nanoseconds.clamp(*layout::THRESHOLD.start(), *layout::THRESHOLD.end());
        let offset = flows.at(index) + offset_of!(layout::Flow, threshold) as u64;
        std::os::unix::fs::FileExt::write_all_at(&file, &value.to_le_bytes(), offset)
            .map_err(|error| system("writing the threshold", error))
    }
}

pub(super) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn name_of(path: &Path) -> &OsStr {
    path.file_name().unwrap_or_default()
}

/// Opens the file of this name in a folder, and none that is mounted there.
pub(super) fn in_folder(folder: &OwnedFd, path: &Path) -> rustix::io::Result<OwnedFd> {
    // NONBLOCK: to open a FIFO would wait for a writer.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    rustix::fs::openat2(folder, name_of(path), flags, Mode::empty(), resolve)
}

/// From linux/magic.h.
const FUSE_MAGIC: u64 = 0x6573_5546;

/// A reader, the inode, and the owner.
fn checked(file: File, path: &Path) -> Result<(Reader<File>, u64, u32), ReadError> {
    let status = file.metadata().map_err(|source| ReadError::System {
        path: path.to_owned(),
        doing: "looking at the trace",
        source,
    })?;
    if !status.is_file() {
        return Err(refused(0, "it is no regular file"));
    }
    let system = rustix::fs::fstatfs(&file).map_err(|error| ReadError::System {
        path: path.to_owned(),
        doing: "looking at its file system",
        source: error.into(),
    })?;
    if system.f_type as u64 == FUSE_MAGIC {
        return Err(refused(0, "it is on FUSE, whose server could make the reader wait"));
    }
    Ok((Reader::new(file)?, status.ino(), status.uid()))
}

fn belongs(owner: u32, writer: u32) -> Result<(), ReadError> {
    if owner == writer {
        return Ok(());
    }
    Err(refused(0, format!("the file belongs to user {owner}, its writer is {writer}")))
}

fn standing(identity: &Identity, inode: u64) -> Standing {
    let same_boot = process::boot_id().is_ok_and(|id| id == identity.boot_id.as_bytes());
    let same_namespace = process::pid_namespace().is_ok_and(|ns| ns == identity.pid_namespace);
    if !same_boot || !same_namespace {
        return Standing::Foreign;
    }
    alive(identity.pid, identity.start, inode)
}

/// Whether the process of this start has the file mapped.
fn alive(pid: u32, start: u64, inode: u64) -> Standing {
    if process::start_of(&process::main_stat(pid)).ok() != Some(start) {
        return Standing::Crashed;
    }
    match process::maps(&pid.to_string(), inode) {
        Ok(false) => Standing::Crashed,
        // Where the mappings may not be read the start has to do.
        Ok(true) | Err(_) => Standing::Live,
    }
}
