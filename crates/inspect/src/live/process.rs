//! A process that is looked at from outside.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use super::error::LiveError;

use crate::elf;
use crate::files::{self, FileError};
use crate::mappings::{self, Mapping, Mappings};
use crate::patience;
use crate::read::text;
use crate::words::words;

/// A process, its memory and its mappings at one moment. Each question about these is asked with
/// [`patience`].
pub struct Process {
    pid: u32,
    /// Its memory, or why that cannot be read.
    memory: Result<Arc<File>, String>,
    mappings: Result<Mappings, Withheld>,
}

/// Why the mappings of a process are not known.
enum Withheld {
    NoPermission,
    NoAnswer(String),
}

/// Nothing is mapped there in any process: no address of user space has both bits, also where tags in
/// the top byte are taken off.
const NOWHERE: u64 = 3 << 55;

/// Bytes.
const WORD: u64 = 8;

/// Numbers at some addresses, or why they cannot be read.
type Words = Result<Vec<u64>, String>;

impl Process {
    /// Opens a process. Reading its memory needs more privilege than its mappings, and these more
    /// than to know that it is there.
    ///
    /// # Errors
    /// See [`LiveError`].
    pub fn open(pid: u32) -> Result<Process, LiveError> {
        // The memory first: should the process execute another program before the mappings are
        // read, there is nothing left in the memory that was opened, and that is noticed.
        let question = move || (File::open(format!("/proc/{pid}/mem")), mappings(pid));
        let (memory, mappings) = match patience::ask(pid, question) {
            Ok((memory, mappings)) => (memory, mappings),
            Err(error) => {
                let why = error.to_string();
                let mappings = Err(Withheld::NoAnswer(why.clone()));
                return Ok(Process { pid, memory: Err(why), mappings });
            }
        };
        let memory = memory.map(Arc::new).map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => {
                "no permission to read its memory: needs its own user, or CAP_SYS_PTRACE".to_owned()
            }
            _ => format!("its memory cannot be read: {error}"),
        });
        let mappings = match mappings {
            Err(LiveError::NoPermission(_)) => Err(Withheld::NoPermission),
            mappings => Ok(mappings?),
        };
        if mappings.as_ref().is_ok_and(|list| list.all.is_empty()) {
            return Err(without_memory(pid));
        }
        Ok(Process { pid, memory, mappings })
    }

    /// Its pid, in the namespace of the caller.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Its mappings when it was opened, or last refreshed.
    ///
    /// # Errors
    /// [`LiveError::NoPermission`], [`LiveError::NoAnswer`].
    pub fn mappings(&self) -> Result<&Mappings, LiveError> {
        self.mappings.as_ref().map_err(|why| match why {
            Withheld::NoPermission => LiveError::NoPermission(self.pid),
            Withheld::NoAnswer(why) => LiveError::NoAnswer(why.clone()),
        })
    }

    /// Reads the mappings again.
    ///
    /// # Errors
    /// If it is gone, or does not answer.
    pub fn refresh(&mut self) -> Result<(), LiveError> {
        let pid = self.pid;
        let list = patience::ask(pid, move || mappings(pid)).map_err(no_answer)?;
        self.mappings = Ok(list.map_err(|_| LiveError::Gone(pid))?);
        self.is_still_there()
    }

    /// Fails if the process exited or executed another program since it was opened.
    ///
    /// # Errors
    /// [`LiveError::Gone`].
    pub fn is_still_there(&self) -> Result<(), LiveError> {
        let is_there = match &self.memory {
            // Nothing is read from memory that nobody uses any more; else there is an error.
            Ok(memory) => {
                let memory = Arc::clone(memory);
                let read = move || memory.read_at(&mut [0], NOWHERE).map_or(true, |read| read > 0);
                // Who does not answer is there.
                patience::ask(self.pid, read).unwrap_or(true)
            }
            Err(_) => Path::new(&format!("/proc/{}/stat", self.pid)).exists(),
        };
        if is_there { Ok(()) } else { Err(LiveError::Gone(self.pid)) }
    }

    /// The words at these addresses of its memory, list by list: one question for all. Each list is of
    /// the file with code at the address in front of it. Nothing else is touched: a page of another file
    /// comes when that file's server likes, and who waits for it cannot even be killed.
    ///
    /// # Errors
    /// If it is gone, or does not answer.
    pub(super) fn words(&self, lists: Vec<(u64, Vec<u64>)>) -> Result<Vec<Words>, LiveError> {
        let memory = match &self.memory {
            Ok(memory) => Arc::clone(memory),
            Err(why) => return Ok(lists.iter().map(|_| Err(why.clone())).collect()),
        };
        let own = |(code, addresses): (u64, Vec<u64>)| match self.has_of_file(code, &addresses) {
            true => Ok(addresses),
            false => Err("they lie outside of what is mapped of it".to_owned()),
        };
        let lists: Vec<Words> = lists.into_iter().map(own).collect();
        let pid = self.pid;
        let read = move || {
            let lists = lists.into_iter();
            lists
                .map(|list| {
                    list.map_or_else(|why| Ok(Err(why)), |list| words_at(pid, &memory, &list))
                })
                .collect()
        };
        patience::ask(pid, read).map_err(no_answer)?
    }

    /// The word at each of these addresses, if it is in memory of its own or in that of a file with code;
    /// one question for all.
    ///
    /// # Errors
    /// If it is gone, or does not answer.
    pub fn own_words(&self, addresses: &[u64]) -> Result<Vec<Option<u64>>, LiveError> {
        let all = self.mappings.as_ref().map_or(&[][..], |list| &list.all);
        let identity = |mapping: &Mapping| (mapping.device, mapping.inode);
        let code_of = |address: u64| {
            let of_it = all.iter().find(|mapping| mapping.is_around(address)).map(identity);
            all.iter().find(|m| m.executable && Some(identity(m)) == of_it).map_or(0, |m| m.start)
        };
        let lists = addresses.iter().map(|address| (code_of(*address), vec![*address]));
        let words = self.words(lists.collect())?;
        Ok(words.into_iter().map(|words| words.ok()?.first().copied()).collect())
    }

    /// So many words from an address on, as far as they are in the same memory of its own: a stack.
    ///
    /// # Errors
    /// If it is gone, or does not answer; if the memory cannot be read.
    pub fn own_words_from(&self, address: u64, count: usize) -> Result<Vec<u64>, LiveError> {
        let all = self.mappings.as_ref().map_or(&[][..], |list| &list.all);
        let around = all.iter().find(|mapping| mapping.is_around(address));
        let left = around.map_or(0, |mapping| (mapping.end - address) / WORD);
        let addresses = (0..left.min(count as u64)).map(|n| address + n * WORD).collect();
        let words = self.words(vec![(0, addresses)])?;
        words.into_iter().next().unwrap_or(Ok(Vec::new())).map_err(LiveError::NoAnswer)
    }

    /// Whether the words at addresses lie in mappings of the file with code at `code`, or of none.
    fn has_of_file(&self, code: u64, addresses: &[u64]) -> bool {
        let all = self.mappings.as_ref().map_or(&[][..], |list| &list.all);
        let at = |address: u64| {
            let next = all.partition_point(|mapping| mapping.end <= address);
            all.get(next).filter(|mapping| mapping.start <= address)
        };
        let identity = |mapping: &Mapping| (mapping.device, mapping.inode);
        let file = at(code).map(identity);
        let is_own =
            |address: u64| at(address).is_some_and(|m| m.inode == 0 || Some(identity(m)) == file);
        addresses.iter().all(|first| is_own(*first) && is_own(first.saturating_add(7)))
    }

    /// The bytes of the file behind a mapping.
    pub(super) fn file(&self, mapping: &Mapping) -> Result<Box<dyn elf::Bytes>, FileError> {
        let (pid, mapping) = (self.pid, mapping.clone());
        let file = patience::ask(pid, move || files::mapped(pid, &mapping.file()))??;
        Ok(file.bytes()?)
    }

    /// Where an address of its memory is: the file's name there.
    pub(super) fn file_at(&self, address: u64) -> Option<String> {
        let mut all = self.mappings.iter().flat_map(|list| &list.all);
        Some(all.find(|mapping| mapping.is_around(address))?.path_of_file()?.0.to_owned())
    }
}

fn no_answer(error: io::Error) -> LiveError {
    LiveError::NoAnswer(error.to_string())
}

fn words_at(pid: u32, memory: &File, addresses: &[u64]) -> Result<Words, LiveError> {
    let mut because = None;
    let values = words(addresses, |address, bytes| {
        if because.is_none() {
            because = read(pid, memory, address, bytes)?.err();
        }
        Ok::<_, LiveError>(())
    })?;
    Ok(because.map_or(Ok(values), Err))
}

/// Fills `into` from memory; the inner error says why this piece cannot be read.
fn read(
    pid: u32,
    memory: &File,
    address: u64,
    into: &mut [u8],
) -> Result<Result<(), String>, LiveError> {
    let mut done = 0;
    while done < into.len() {
        let at = address.wrapping_add(done as u64);
        match memory.read_at(&mut into[done..], at) {
            Ok(0) => return Err(LiveError::Gone(pid)),
            Ok(read) => done += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Ok(Err(format!("unmapped meanwhile ({error})"))),
        }
    }
    Ok(Ok(()))
}

fn mappings(pid: u32) -> Result<Mappings, LiveError> {
    mappings::read(pid).map_err(|source| match source.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => LiveError::NoPermission(pid),
        Some(libc::ENOENT | libc::ESRCH) => LiveError::NoProcess(pid),
        _ => LiveError::Read { pid, source },
    })
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
