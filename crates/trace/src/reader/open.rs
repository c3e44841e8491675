//! A trace file, opened with nothing taken on trust.

use std::fs::File;
use std::io;
use std::mem::offset_of;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use super::error::{ReadError, refused};
use super::header::Identity;
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
    /// Of another boot or pid namespace: nobody here can tell.
    Foreign,
}

/// A trace in a file.
pub struct TraceFile {
    path: PathBuf,
    inode: u64,
    /// What it holds.
    pub reader: Reader<File>,
}

impl TraceFile {
    /// Opens and checks a trace.
    pub fn open(path: impl Into<PathBuf>) -> Result<TraceFile, ReadError> {
        let path = path.into();
        let system =
            |doing, source: io::Error| ReadError::System { path: path.clone(), doing, source };
        // NONBLOCK: to open a FIFO would wait for a writer.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = rustix::fs::open(&path, flags, Mode::empty())
            .map_err(|error| system("opening the trace (no link is followed)", error.into()))?;
        let file = File::from(file);
        let status = file.metadata().map_err(|error| system("looking at the trace", error))?;
        if !status.is_file() {
            return Err(refused(0, "it is no regular file"));
        }
        let reader = Reader::new(file)?;
        let inode = status.ino();
        let writer = match standing(reader.identity(), inode) {
            Standing::Live => process::user_of(reader.identity().pid)
                .map_err(|error| system("looking whose process that is", error))?,
            _ => {
                let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
                let folder = folder.unwrap_or(Path::new("."));
                std::fs::metadata(folder)
                    .map_err(|error| system("looking at its folder", error))?
                    .uid()
            }
        };
        if status.uid() != writer {
            let why = format!("the file belongs to user {}, its writer is {writer}", status.uid());
            return Err(refused(0, why));
        }
        Ok(TraceFile { path, inode, reader })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether somebody writes it, at this moment.
    pub fn standing(&self) -> Result<Standing, ReadError> {
        if self.reader.is_closed()? {
            return Ok(Standing::Closed);
        }
        Ok(standing(self.reader.identity(), self.inode))
    }

    /// Removes the file of a program that has crashed, or has ended and left it.
    pub fn remove(self) -> Result<(), ReadError> {
        let system = |doing, source| ReadError::System { path: self.path.clone(), doing, source };
        if matches!(self.standing()?, Standing::Live | Standing::Foreign) {
            return Err(ReadError::InUse(self.path));
        }
        // The name may be another file's by now: that of a program after an exec.
        let there = std::fs::symlink_metadata(&self.path)
            .map_err(|error| system("looking at the trace again", error))?;
        if there.ino() != self.inode {
            return Err(ReadError::InUse(self.path));
        }
        std::fs::remove_file(&self.path).map_err(|error| system("removing the trace", error))
    }

    /// Changes from how long on messages of a flow are slow. That number is the only thing in a
    /// trace that is not its writer's own.
    pub fn set_threshold(&self, flow: u32, nanoseconds: u64) -> Result<(), ReadError> {
        let system = |doing, source| ReadError::System { path: self.path.clone(), doing, source };
        let flows = self.reader.tables().flows;
        let index = (flow as usize).checked_sub(1).filter(|index| *index < flows.entries);
        let index = index.ok_or_else(|| refused(flows.offset, format!("no flow {flow}")))?;
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::open(&self.path, flags, Mode::empty())
            .map_err(|error| system("opening the trace to write the threshold", error.into()))?;
        let file = File::from(file);
        let status = file.metadata().map_err(|error| system("looking at the trace", error))?;
        if status.ino() != self.inode {
            return Err(ReadError::InUse(self.path.clone()));
        }
        let value = nanoseconds.clamp(*layout::THRESHOLD.start(), *layout::THRESHOLD.end());
        let offset = flows.at(index) + offset_of!(layout::Flow, threshold) as u64;
        std::os::unix::fs::FileExt::write_all_at(&file, &value.to_le_bytes(), offset)
            .map_err(|error| system("writing the threshold", error))
    }
}

fn standing(identity: &Identity, inode: u64) -> Standing {
    let same_boot = process::boot_id().is_ok_and(|id| id == identity.boot_id.as_bytes());
    let same_namespace = process::pid_namespace().is_ok_and(|ns| ns == identity.pid_namespace);
    if !same_boot || !same_namespace {
        return Standing::Foreign;
    }
    let pid = identity.pid;
    if process::start_of(&format!("/proc/{pid}/stat")).ok() != Some(identity.start) {
        return Standing::Crashed;
    }
    match process::maps(&pid.to_string(), inode) {
        Ok(false) => Standing::Crashed,
        // Where the mappings may not be read the start has to do.
        Ok(true) | Err(_) => Standing::Live,
    }
}
