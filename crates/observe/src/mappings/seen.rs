//! What /proc shows of a living process: its mappings, and who it runs as.

use std::fs::File;
use std::io::Read;
use std::sync::Arc;

use inspect::files::Mapped;
use inspect::patience;
use inspect::read::text;
use procfs::FromRead;
use procfs::process::{MMPermissions, MMapPath, MemoryMap, MemoryMaps};

/// What is read of a list of mappings, bytes: more than a process may have, with paths of usual
/// length.
const LONGEST_LIST: u64 = 8 << 20;

/// One mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// First address beyond.
    pub end: u64,
    /// Offset in the file at `start`.
    pub offset: u64,
    /// The file, `[vdso]` and the like, or empty for anonymous memory.
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
}

/// What was seen of a living process.
#[derive(Debug, Default)]
pub struct Seen {
    /// Who it runs as.
    pub user: Option<u32>,
    /// What it has mapped; nothing if it is gone.
    pub mappings: Vec<Mapping>,
    /// True if it keeps those waiting who read them.
    pub gave_no_answer: bool,
}

/// What is to be seen of a process now. Of a list that is too long the beginning.
pub fn of_process(tgid: u32) -> Seen {
    let answer = patience::ask(tgid, move || list(tgid));
    Seen {
        user: user_of(tgid),
        gave_no_answer: answer.is_err(),
        mappings: answer.ok().flatten().unwrap_or_default(),
    }
}

fn list(tgid: u32) -> Option<Vec<Mapping>> {
    let mut text = Vec::new();
    let file = File::open(format!("/proc/{tgid}/maps")).ok()?;
    file.take(LONGEST_LIST).read_to_end(&mut text).ok()?;
    text.truncate(text.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1));
    // A path may be any bytes.
    let text = String::from_utf8_lossy(&text);
    let maps = MemoryMaps::from_read(text.as_bytes()).ok()?;
    let mut last: Arc<str> = "".into();
    let mapping = |map: MemoryMap| {
        let path = match map.pathname {
            MMapPath::Path(path) => path.to_string_lossy().into_owned(),
            MMapPath::Vdso => "[vdso]".to_owned(),
            MMapPath::Heap => "[heap]".to_owned(),
            MMapPath::Stack => "[stack]".to_owned(),
            _ => String::new(),
        };
        // The mappings of one file follow each other.
        if *last != *path {
            last = path.into();
        }
        Mapping {
            start: map.address.0,
            end: map.address.1,
            offset: map.offset,
            path: Arc::clone(&last),
            executable: map.perms.contains(MMPermissions::EXECUTE),
            device: (map.dev.0.unsigned_abs(), map.dev.1.unsigned_abs()),
            inode: map.inode,
        }
    };
    Some(maps.0.into_iter().map(mapping).collect())
}

/// Effective user of a process, as it is known here.
pub fn user_of(tgid: u32) -> Option<u32> {
    let status = text(format!("/proc/{tgid}/status")).ok()?;
    let users = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    users.split_ascii_whitespace().nth(1)?.parse().ok()
}
