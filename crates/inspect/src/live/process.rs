//! A process that is looked at from outside.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

use procfs::FromRead;
use procfs::process::{MMapPath, MemoryMap, MemoryMaps};

use super::error::LiveError;

use crate::elf;
use crate::files::{self, FileError, Mapped};
use crate::read::text;

/// The longest list of mappings that is read, bytes: more than a process may have, with paths of
/// usual length.
const LONGEST_MAPS: u64 = 16 << 20;

/// A process, its memory and its mappings at one moment.
pub struct Process {
    pid: u32,
    /// Its memory, or why that cannot be read.
    memory: Result<File, String>,
    /// Empty if they may not be read.
    mappings: Vec<MemoryMap>,
    is_refused: bool,
}

impl Process {
    /// Opens a process. Reading its memory needs more privilege than its mappings, and these more
    /// than to know that it is there.
    ///
    /// # Errors
    /// See [`LiveError`].
    pub fn open(pid: u32) -> Result<Process, LiveError> {
        // The memory first: should the process execute another program before the mappings are
        // read, there is nothing left in the memory that was opened, and that is noticed.
        let memory = File::open(format!("/proc/{pid}/mem")).map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => {
                "no permission to read its memory: needs its own user, or CAP_SYS_PTRACE".to_owned()
            }
            _ => format!("its memory cannot be read: {error}"),
        });
        let (mappings, is_refused) = match mappings(pid) {
            Err(LiveError::NoPermission(_)) => (Vec::new(), true),
            mappings => (mappings?, false),
        };
        if mappings.is_empty() && !is_refused {
            return Err(without_memory(pid));
        }
        Ok(Process { pid, memory, mappings, is_refused })
    }

    /// Its pid, in the namespace of the caller.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Its mappings when it was opened, or last refreshed.
    ///
    /// # Errors
    /// [`LiveError::NoPermission`].
    pub fn mappings(&self) -> Result<&[MemoryMap], LiveError> {
        match self.is_refused {
            true => Err(LiveError::NoPermission(self.pid)),
            false => Ok(&self.mappings),
        }
    }

    /// Reads the mappings again.
    ///
    /// # Errors
    /// If it is gone.
    pub fn refresh(&mut self) -> Result<(), LiveError> {
        self.mappings = mappings(self.pid).map_err(|_| LiveError::Gone(self.pid))?;
        self.is_still_there()
    }

    /// Fails if the process exited or executed another program since it was opened.
    ///
    /// # Errors
    /// [`LiveError::Gone`].
    pub fn is_still_there(&self) -> Result<(), LiveError> {
        let is_there = match (&self.memory, self.mappings.first()) {
            // Nothing is read from memory that nobody uses any more; the first mapping itself may
            // be unmapped by now, which is an error of another kind.
            (Ok(memory), Some(first)) => {
                memory.read_at(&mut [0], first.address.0).map_or(true, |read| read > 0)
            }
            _ => Path::new(&format!("/proc/{}/stat", self.pid)).exists(),
        };
        if is_there { Ok(()) } else { Err(LiveError::Gone(self.pid)) }
    }

    /// Fills `into` from its memory; the inner error says why this piece cannot be read.
    pub(super) fn read(
        &self,
        address: u64,
        into: &mut [u8],
    ) -> Result<Result<(), String>, LiveError> {
        let memory = match &self.memory {
            Ok(memory) => memory,
            Err(why) => return Ok(Err(why.clone())),
        };
        let mut done = 0;
        while done < into.len() {
            let at = address.wrapping_add(done as u64);
            match memory.read_at(&mut into[done..], at) {
                Ok(0) => return Err(LiveError::Gone(self.pid)),
                Ok(read) => done += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Ok(Err(format!("unmapped meanwhile ({error})"))),
            }
        }
        Ok(Ok(()))
    }

    /// The bytes of the file behind a mapping.
    pub(super) fn file(&self, mapping: &MemoryMap) -> Result<Box<dyn elf::Bytes>, FileError> {
        let MMapPath::Path(path) = &mapping.pathname else { return Err(FileError::NotRegular) };
        let file = files::mapped(
            self.pid,
            &Mapped {
                start: mapping.address.0,
                end: mapping.address.1,
                path: &path.to_string_lossy(),
                device: (mapping.dev.0.unsigned_abs(), mapping.dev.1.unsigned_abs()),
                inode: mapping.inode,
            },
        )?;
        Ok(file.bytes()?)
    }

    /// Where an address of its memory is: the file's name there.
    pub(super) fn file_at(&self, address: u64) -> Option<String> {
        let is_around = |map: &&MemoryMap| map.address.0 <= address && address < map.address.1;
        Some(path(self.mappings.iter().find(is_around)?)?.0)
    }
}

/// Path of the file behind a mapping, as the process sees it, and whether it was deleted.
pub(crate) fn path(mapping: &MemoryMap) -> Option<(String, bool)> {
    let MMapPath::Path(path) = &mapping.pathname else { return None };
    let path = path.to_string_lossy();
    if mapping.inode == 0 || !path.starts_with('/') {
        return None;
    }
    Some(match path.strip_suffix(" (deleted)") {
        Some(path) => (path.to_owned(), true),
        None => (path.into_owned(), false),
    })
}

fn mappings(pid: u32) -> Result<Vec<MemoryMap>, LiveError> {
    let failed = |source: io::Error| match source.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => LiveError::NoPermission(pid),
        Some(libc::ENOENT | libc::ESRCH) => LiveError::NoProcess(pid),
        _ => LiveError::Read { pid, source },
    };
    let mut list = Vec::new();
    let file = File::open(format!("/proc/{pid}/maps")).map_err(failed)?;
    io::Read::take(file, LONGEST_MAPS).read_to_end(&mut list).map_err(failed)?;
    // A path may be any bytes.
    let maps =
        MemoryMaps::from_read(String::from_utf8_lossy(&list).as_bytes()).map_err(|error| {
            let source = match error {
                procfs::ProcError::Io(error, _) => error,
                procfs::ProcError::PermissionDenied(_) => io::ErrorKind::PermissionDenied.into(),
                procfs::ProcError::NotFound(_) => return LiveError::NoProcess(pid),
                other => io::Error::other(other.to_string()),
            };
            failed(source)
        })?;
    Ok(maps.0)
}

/// What it is that has no mappings.
fn without_memory(pid: u32) -> LiveError {
    let Ok(status) = text(format!("/proc/{pid}/status")) else { return LiveError::Gone(pid) };
    let is_kernel = status.lines().any(|line| line == "Kthread:\t1");
    let state = status.lines().find_map(|line| line.strip_prefix("State:\t"));
    match state.and_then(|state| state.chars().next()) {
        Some('Z' | 'X') => LiveError::Zombie(pid),
        // Kernels before 6.8 do not say which are theirs; those have no program file.
        _ if is_kernel || fs::read_link(format!("/proc/{pid}/exe")).is_err() => {
            LiveError::KernelThread(pid)
        }
        _ => LiveError::Gone(pid),
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn a_mapped_file_whose_name_is_not_utf8_hides_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(std::ffi::OsStr::from_bytes(b"\xff"));
        fs::write(&file, "x").unwrap();
        let file = File::open(file).unwrap();
        // SAFETY: a new mapping, which nobody uses.
        let place = unsafe {
            let (read, private) = (libc::PROT_READ, libc::MAP_PRIVATE);
            libc::mmap(std::ptr::null_mut(), 1, read, private, file.as_raw_fd(), 0)
        };
        assert_ne!(place, libc::MAP_FAILED);
        let process = Process::open(std::process::id()).unwrap();
        assert_eq!(process.file_at(place as u64).unwrap().rsplit('/').next(), Some("\u{fffd}"));
        let code = a_mapped_file_whose_name_is_not_utf8_hides_no_other as fn() as usize as u64;
        assert!(process.file_at(code).is_some());
    }
}
