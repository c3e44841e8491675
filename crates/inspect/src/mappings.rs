//! What a process has mapped: /proc/PID/maps.
//!
//! A process chooses the paths in that list: any bytes, of any length. So each line stands for
//! itself, and one that is not understood takes no other with it.

use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;

use crate::files::Mapped;

/// What is read of a list, bytes: more than a process may have, with paths of usual length.
const LONGEST: u64 = 16 << 20;

/// One mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// First address beyond.
    pub end: u64,
    /// Offset in the file at `start`.
    pub offset: u64,
    /// The file, ` (deleted)` at its end if it has no path any more; `[vdso]` and the like; or empty
    /// for anonymous memory. Bytes that are not UTF-8 are replaced.
    pub path: Arc<str>,
    /// True if code may run from it.
    pub executable: bool,
    /// Major and minor number of the file system that the file is on.
    pub device: (u32, u32),
    /// Number of the file; 0 for what is none.
    pub inode: u64,
}

impl Mapping {
    /// Where an address within it is in the file.
    pub fn offset_of(&self, address: u64) -> u64 {
        (address - self.start).wrapping_add(self.offset)
    }

    /// True if an address lies within.
    pub fn is_around(&self, address: u64) -> bool {
        self.start <= address && address < self.end
    }

    /// What to open.
    pub fn file(&self) -> Mapped<'_> {
        Mapped {
            start: self.start,
            end: self.end,
            path: &self.path,
            device: self.device,
            inode: self.inode,
        }
    }

    /// Path of its file, as the process sees it, and whether it was deleted.
    pub fn path_of_file(&self) -> Option<(&str, bool)> {
        if self.inode == 0 || !self.path.starts_with('/') {
            return None;
        }
        Some(match self.path.strip_suffix(" (deleted)") {
            Some(path) => (path, true),
            None => (&self.path, false),
        })
    }
}

/// A list of mappings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mappings {
    /// In the order of addresses.
    pub all: Vec<Mapping>,
    /// False if it was too long to be read to its end.
    pub is_whole: bool,
}

/// Reads the list of a process, which can keep its reader waiting: see [`patience`](crate::patience).
///
/// # Errors
/// What the kernel says.
pub fn read(pid: u32) -> io::Result<Mappings> {
    let mut text = Vec::new();
    File::open(format!("/proc/{pid}/maps"))?.take(LONGEST).read_to_end(&mut text)?;
    let is_whole = (text.len() as u64) < LONGEST;
    Ok(Mappings { all: parse(&text), is_whole })
}

/// What follows the last newline was cut off.
fn parse(text: &[u8]) -> Vec<Mapping> {
    let end = text.iter().rposition(|byte| *byte == b'\n').unwrap_or(0);
    let mut last: Arc<str> = "".into();
    text[..end].split(|byte| *byte == b'\n').filter_map(|line| mapping(line, &mut last)).collect()
}

/// A line `start-end permissions offset major:minor inode      path`, all but the inode in hex. The
/// mappings of one file follow each other: they share `last`.
fn mapping(line: &[u8], last: &mut Arc<str>) -> Option<Mapping> {
    let mut words = line.splitn(6, |byte| *byte == b' ');
    let mut word = || str::from_utf8(words.next()?).ok();
    let (start, end) = pair(word()?, '-')?;
    let permissions = word()?;
    let offset = u64::from_str_radix(word()?, 16).ok()?;
    let (major, minor) = pair(word()?, ':')?;
    let inode = word()?.parse().ok()?;
    let path = words.next().unwrap_or_default().trim_ascii_start();
    let path = match path.first() {
        // The kernel and the process name anonymous memory in many ways; these are of use.
        Some(b'[') if ![&b"[vdso]"[..], b"[heap]", b"[stack]"].contains(&path) => &b""[..],
        _ => path,
    };
    if last.as_bytes() != path {
        *last = String::from_utf8_lossy(path).into();
    }
    Some(Mapping {
        start,
        end,
        offset,
        path: Arc::clone(last),
        executable: permissions.as_bytes().get(2) == Some(&b'x'),
        device: (u32::try_from(major).ok()?, u32::try_from(minor).ok()?),
        inode,
    })
}

/// Two numbers in hex.
fn pair(text: &str, between: char) -> Option<(u64, u64)> {
    let (first, second) = text.split_once(between)?;
    Some((u64::from_str_radix(first, 16).ok()?, u64::from_str_radix(second, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_field_is_where_the_kernel_puts_it() {
        let text = b"55e0-55f0 r-xp 00002000 fd:10 1835 \t                  /usr/bin/a b\n\
                     7f00-7f10 rw-p 00000000 00:00 0 \n\
                     7f10-7f20 r--p 00001000 08:01 7        /x (deleted)\n\
                     7f20-7f30 r-xp 00000000 00:00 0        [vdso]\n\
                     7f30-7f40 rw-p 00000000 00:00 0        [anon:a heap]\n";
        let all = parse(text);
        let [program, anonymous, deleted, vdso, named] = &all[..] else { panic!("{all:?}") };
        assert_eq!((program.start, program.end, program.offset), (0x55e0, 0x55f0, 0x2000));
        assert_eq!((program.device, program.inode), ((0xfd, 0x10), 1835));
        assert_eq!(program.path_of_file(), Some(("/usr/bin/a b", false)));
        assert_eq!(program.offset_of(0x55e4), 0x2004);
        assert_eq!([program, deleted, vdso].map(|m| m.executable), [true, false, true]);
        assert_eq!(deleted.path_of_file(), Some(("/x", true)));
        assert_eq!([anonymous, vdso, named].map(|m| &*m.path), ["", "[vdso]", ""]);
        assert_eq!(vdso.path_of_file(), None);
    }

    #[test]
    fn a_path_of_any_bytes_spoils_no_other_line() {
        let paths: [&[u8]; 7] = [
            b"/SYSV",
            b"/SYSVx",
            "/SYSV1234\u{202e}67".as_bytes(),
            b"/tmp/\xff\xfe",
            b"[stack:",
            b"(unreachable)/x",
            b"/ends with a blank ",
        ];
        for path in paths {
            let mut text = b"1000-2000 r-xp 00000000 08:01 7    ".to_vec();
            text.extend_from_slice(path);
            text.extend_from_slice(b"\n2000-3000 r--p 00000000 08:01 8    /after\n");
            let all = parse(&text);
            assert_eq!((all.len(), &*all[1].path), (2, "/after"), "{all:?}");
            let expected = if path[0] == b'[' { "".into() } else { String::from_utf8_lossy(path) };
            assert_eq!(&*all[0].path, expected);
        }
    }

    #[test]
    fn a_line_that_is_cut_or_not_understood_is_left_out() {
        let line = b"1000-2000 r-xp 00000000 08:01 7    /some/path\n";
        for end in 0..line.len() {
            assert_eq!(parse(&line[..end]), [], "{end}");
        }
        let mut text = b"nonsense\n1000 r-xp 0 08:01 7 /x\n\n\xff-\xff r\n".to_vec();
        text.extend_from_slice(line);
        assert_eq!(parse(&text).len(), 1);
        assert_eq!(parse(b"\n"), []);
    }

    #[test]
    fn this_test_finds_itself() {
        let here = this_test_finds_itself as *const () as u64;
        let list = read(std::process::id()).unwrap();
        let own = list.all.iter().find(|mapping| mapping.is_around(here)).unwrap();
        let exe = std::env::current_exe().unwrap();
        assert!(list.is_whole && own.executable);
        assert_eq!(own.path_of_file(), Some((exe.to_str().unwrap(), false)));
        assert!(read(u32::MAX).is_err());
    }
}
