//! Symbols of just-in-time compiled code, as runtimes write them to /tmp/perf-PID.map.
//!
//! Anybody can make a file of that name in /tmp. So it has to belong to the user of the process, or
//! to root, and to have no other name; links are not followed.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::linux::fs::MetadataExt;
use std::path::Path;

use crate::files::{self, FileError};
use crate::patience;
use crate::patient_file::PatientFile;

/// For all files of a recording, bytes: what is read of them, or kept if that is more. Those of a
/// large Java program have some 20 MiB.
const FOR_ALL: usize = 96 << 20;
/// For one.
const FOR_ONE: usize = 48 << 20;

/// Is asked for at once, bytes.
const AT_ONCE: usize = 1 << 20;

/// A longer name is cut, bytes.
const LONGEST_NAME: usize = 512;

/// The files of all processes.
pub struct PerfMaps {
    read: HashMap<u32, PerfMap>,
    /// What is left of [`FOR_ALL`].
    room: usize,
}

impl Default for PerfMaps {
    fn default() -> PerfMaps {
        PerfMaps { read: HashMap::new(), room: FOR_ALL }
    }
}

impl PerfMaps {
    /// Name of the function at an address of a process, and the offset in it. Whose file it is, is
    /// asked when it is read: once.
    ///
    /// # Errors
    /// Why there is none, in words.
    pub fn find(
        &mut self,
        pid: u32,
        address: u64,
        whose: impl FnOnce() -> Whose,
    ) -> Result<(String, u64), String> {
        let room = &mut self.room;
        let read = || PerfMap::of_process(pid, whose(), room);
        let map = self.read.entry(pid).or_insert_with(read);
        match map.find(address) {
            Some((name, offset)) => Ok((String::from_utf8_lossy(name).into_owned(), offset)),
            None => Err(map.because(pid)),
        }
    }
}

/// Whose file is looked for.
#[derive(Clone, Copy, Debug)]
pub struct Whose {
    /// Number of the process in the innermost namespace that it is in, such as a container's.
    pub own_pid: u32,
    /// Who it runs as, if that is known.
    pub user: Option<u32>,
}

/// Functions of one process, by address.
#[derive(Debug, Default)]
pub struct PerfMap {
    functions: Vec<Function>,
    /// Their names, one after the other.
    names: Vec<u8>,
    /// Why not all is known.
    because: Option<String>,
}

#[derive(Clone, Copy, Debug)]
struct Function {
    start: u64,
    length: u32,
    name: u32,
    name_length: u16,
}

impl PerfMap {
    /// Reads the file of a process; empty if there is none. A container's own /tmp is seen
    /// through /proc/PID/root while the process lives, and the file has the number that the process
    /// has in there.
    fn of_process(pid: u32, of: Whose, room: &mut usize) -> PerfMap {
        let here = std::process::id();
        let mut because = None;
        for (process, number) in [(pid, of.own_pid), (here, pid)] {
            let path = format!("/tmp/perf-{number}.map");
            let (asked, user) = (path.clone(), of.user);
            let opened = patience::ask(process, move || open(process, &asked, user));
            match opened.unwrap_or_else(|error| Err(Refusal::Because(error.to_string()))) {
                Ok(file) => {
                    let file = PatientFile::new(process, file);
                    return PerfMap::read(Lines { file, at: 0 }, room);
                }
                Err(Refusal::Absent) => {}
                Err(Refusal::Because(why)) => because = Some(format!("{path} is not read: {why}")),
            }
        }
        PerfMap { because, ..PerfMap::default() }
    }

    /// Reads as much as there is room for (bytes), and takes that room.
    pub fn read(file: impl Read, room: &mut usize) -> PerfMap {
        let limit = (*room).min(FOR_ONE);
        let mut map = PerfMap::default();
        let mut lines = BufReader::with_capacity(AT_ONCE, file).take(limit as u64);
        let mut line = Vec::new();
        let mut read = 0;
        let cut = loop {
            line.clear();
            match lines.read_until(b'\n', &mut line) {
                Err(error) => break Some(error.to_string()),
                Ok(0) => break None,
                Ok(length) => read += length,
            }
            if map.memory() + size_of::<Function>() + LONGEST_NAME > limit {
                break Some("it names too many functions".to_owned());
            }
            map.take(&line);
        };
        let cut = cut.or_else(|| {
            (read >= limit).then(|| format!("no more than {} MiB were read of it", read >> 20))
        });
        *room -= limit.min(read.max(map.memory()));
        map.because = cut;
        // What a compiler wrote last of an address is what is there now.
        map.functions.sort_by_key(|function| function.start);
        map
    }

    /// A line of `start size name`, both numbers in hex; others are skipped.
    fn take(&mut self, line: &[u8]) -> Option<()> {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let mut words = line.splitn(3, |byte| *byte == b' ');
        let mut number = || {
            let word = str::from_utf8(words.next()?).ok()?;
            u64::from_str_radix(word.trim_start_matches("0x"), 16).ok()
        };
        let (start, length) = (number()?, number()?);
        start.checked_add(length)?;
        let name = words.next()?;
        let name = &name[..name.len().min(LONGEST_NAME)];
        self.functions.push(Function {
            start,
            length: u32::try_from(length).unwrap_or(u32::MAX),
            name: u32::try_from(self.names.len()).ok()?,
            name_length: name.len() as u16,
        });
        self.names.extend_from_slice(name);
        Some(())
    }

    /// Bytes of memory that it takes.
    pub fn memory(&self) -> usize {
        self.functions.len() * size_of::<Function>() + self.names.len()
    }

    /// Name of the function at an address, and the offset in it.
    pub fn find(&self, address: u64) -> Option<(&[u8], u64)> {
        let after = self.functions.partition_point(|function| function.start <= address);
        let function = self.functions.get(after.checked_sub(1)?)?;
        let offset = address - function.start;
        let name = function.name as usize;
        let name = self.names.get(name..name + usize::from(function.name_length))?;
        (offset < u64::from(function.length)).then_some((name, offset))
    }

    /// Why an address has no name.
    fn because(&self, pid: u32) -> String {
        match &self.because {
            Some(because) if self.functions.is_empty() => because.clone(),
            Some(because) => format!("not in /tmp/perf-{pid}.map: {because}"),
            None => format!("not in /tmp/perf-{pid}.map, or there is none"),
        }
    }
}

/// Such a file, from its beginning on.
struct Lines {
    file: PatientFile,
    at: u64,
}

impl Read for Lines {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let bytes = self.file.bytes(self.at, into.len())?;
        into[..bytes.len()].copy_from_slice(&bytes);
        self.at += bytes.len() as u64;
        Ok(bytes.len())
    }
}

enum Refusal {
    Absent,
    Because(String),
}

fn open(process: u32, path: &str, user: Option<u32>) -> Result<File, Refusal> {
    let because = |why: &str| Err(Refusal::Because(why.to_owned()));
    let file = match files::of_process(process, Path::new(path)) {
        Err(FileError::System(_)) => return Err(Refusal::Absent),
        Err(error) => return because(&error.to_string()),
        Ok(file) => file,
    };
    let Ok(data) = file.metadata() else { return Err(Refusal::Absent) };
    let owner = data.st_uid();
    if owner != 0 && user != Some(owner) {
        return because(&format!("it belongs to user {owner}, who is not that of the process"));
    }
    match data.st_nlink() {
        1 => Ok(file),
        _ => because("it has another name as well"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8]) -> PerfMap {
        PerfMap::read(text, &mut FOR_ALL.clone())
    }

    #[test]
    fn functions_are_found_by_address_and_bad_lines_skipped() {
        let map = read(b"3000 10 LSpin;run(int)\nnonsense\n1000 20 first\nzz 1 bad\n\xff 1 x\n");
        assert_eq!(map.find(0x3004), Some((&b"LSpin;run(int)"[..], 4)));
        assert_eq!(map.find(0x101f), Some((&b"first"[..], 0x1f)));
        assert_eq!(map.find(0x1020), None);
        assert_eq!(map.find(0), None);
        assert!(map.because.is_none());
        let moved = read(b"1000 20 before\n1000 20 now\n");
        assert_eq!(moved.find(0x1000), Some((&b"now"[..], 0)));
    }

    #[test]
    fn all_files_share_one_room() {
        let mut room = 10_000;
        let text = "1000 20 function\n".repeat(200);
        let first = PerfMap::read(text.as_bytes(), &mut room);
        assert!(first.because.is_none() && first.functions.len() == 200);
        assert_eq!(room, 10_000 - 200 * (size_of::<Function>() + 8));
        let second = PerfMap::read(text.as_bytes(), &mut room);
        assert!((50..150).contains(&second.functions.len()), "{}", second.functions.len());
        assert!(second.because(7).starts_with("not in /tmp/perf-7.map: it names too many"));
        let mut room = 600;
        // Nothing to keep, but read all the same.
        let third = PerfMap::read("x".repeat(1000).as_bytes(), &mut room);
        assert_eq!(room, 0);
        assert!(third.because(7).contains("no more than 0 MiB"), "{}", third.because(7));
        let long = format!("1000 20 {}\n", "n".repeat(5000));
        assert_eq!(read(long.as_bytes()).find(0x1000).unwrap().0.len(), LONGEST_NAME);
    }

    #[test]
    fn a_file_of_somebody_else_or_with_two_names_is_not_read() {
        let folder = tempfile::tempdir_in("/tmp").unwrap();
        let path = folder.path().join("map");
        std::fs::write(&path, "1000 20 x\n").unwrap();
        let path = path.to_str().unwrap();
        let me = std::process::id();
        let user = rustix::process::geteuid().as_raw();
        let why = |user| match open(me, path, user) {
            Ok(_) => String::new(),
            Err(Refusal::Absent) => "absent".to_owned(),
            Err(Refusal::Because(why)) => why,
        };
        assert_eq!(why(Some(user)), "");
        std::fs::hard_link(path, folder.path().join("second")).unwrap();
        assert!(why(Some(user)).contains("another name"));
        std::fs::remove_file(folder.path().join("second")).unwrap();
        // Only root can give a file away.
        if user == 0 {
            assert_eq!(why(Some(1)), "", "root may write it for others");
            std::os::unix::fs::chown(path, Some(65_534), None).unwrap();
            assert_eq!(why(Some(65_534)), "");
            assert!(why(Some(0)).contains("belongs to user 65534"));
        }
    }
}
