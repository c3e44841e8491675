//! Which file is mapped where in a process, also after it has exited.

use std::collections::HashMap;
use std::fs;
use std::os::linux::fs::MetadataExt;
use std::path::{Path, PathBuf};

use procfs::process::{MMPermissions, MMapPath, MemoryMap, Process};

use crate::bpf::{self, event_record, mapping_record};
use crate::wire::{EventKind, PATH_PART};

/// Mappings of the past that are kept of a process.
const GONE_KEPT: usize = 1_024;

/// Births that are remembered, 8 bytes each.
const PARENTS_KEPT: usize = 65_536;
/// Births without exec in a row, at most.
const GENERATIONS: usize = 8;

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
    pub path: String,
    /// True if code may run from it.
    pub executable: bool,
}

/// Mappings by process.
#[derive(Default)]
pub struct Mappings {
    processes: HashMap<u32, Vec<Mapping>>,
    /// Of those that did not exec since they were born.
    parents: HashMap<u32, u32>,
}

impl Mappings {
    /// Reads them from /proc while the process lives; what was known of it stays if it is gone.
    /// Code that an exec or an unmapping took away stays known, where nothing else is now: stacks
    /// of before are still to be named.
    pub fn refresh(&mut self, tgid: u32) {
        self.replace(tgid, of_process(tgid));
    }

    /// Takes what was read of a process some time ago; nothing if it was gone by then.
    pub fn replace(&mut self, tgid: u32, mappings: Vec<Mapping>) {
        if mappings.is_empty() {
            return;
        }
        let known = self.processes.entry(tgid).or_default();
        let before = std::mem::replace(known, mappings);
        let is_free =
            |old: &Mapping| known.iter().all(|m| m.end <= old.start || m.start >= old.end);
        let is_file = |old: &Mapping| old.executable && !old.path.is_empty();
        let gone = before.into_iter().filter(|old| is_file(old) && is_free(old));
        let gone: Vec<Mapping> = gone.take(GONE_KEPT).collect();
        known.extend(gone);
    }

    /// Births and programs begun, as the kernel side sent them.
    pub fn follow(&mut self, events: &[event_record]) {
        for event in events {
            match EventKind::of(event.kind) {
                Some(EventKind::Fork) => self.forked(event.tgid, event.value as u32),
                Some(EventKind::Exec) => self.executed(event.tgid),
                _ => {}
            }
        }
    }

    /// A process was born with the memory of another.
    fn forked(&mut self, parent: u32, child: u32) {
        if self.parents.len() < PARENTS_KEPT {
            self.parents.insert(child, parent);
        }
    }

    /// A process runs another program from now on.
    fn executed(&mut self, tgid: u32) {
        self.parents.remove(&tgid);
    }

    /// True if nothing is known of this process yet.
    pub fn lacks(&self, tgid: u32) -> bool {
        !self.processes.contains_key(&tgid)
    }

    /// Takes a mapping that the kernel side sent when the process exited.
    pub fn add(&mut self, record: &mapping_record) {
        let parts = record.parts.chunks_exact(PATH_PART).take(record.part_count as usize);
        let names: Vec<String> = parts.map(bpf::text).collect();
        let path = if names.is_empty() { PathBuf::new() } else { locate(&names, record.inode) };
        let mapping = Mapping {
            start: record.start,
            end: record.end,
            offset: record.offset,
            path: path.to_string_lossy().into_owned(),
            executable: true, // the kernel side sends no others
        };
        let known = self.processes.entry(record.tgid).or_default();
        if !known.iter().any(|m| m.start == mapping.start && m.end == mapping.end) {
            // An exec replaced what was mapped there before.
            known.retain(|m| m.end <= mapping.start || m.start >= mapping.end);
            known.push(mapping);
        }
    }

    /// The mapping that an address lies in. Of a process that ended before its own could be read,
    /// those that it was born with.
    pub fn find(&self, tgid: u32, address: u64) -> Option<&Mapping> {
        let mut process = tgid;
        for _ in 0..GENERATIONS {
            if let Some(mappings) = self.processes.get(&process) {
                return mappings.iter().find(|m| m.start <= address && address < m.end);
            }
            process = *self.parents.get(&process)?;
        }
        None
    }
}

/// What is mapped in a process now; nothing if it is gone.
pub fn of_process(tgid: u32) -> Vec<Mapping> {
    let maps = i32::try_from(tgid).ok().and_then(|pid| Process::new(pid).ok()?.maps().ok());
    let mapping = |map: MemoryMap| Mapping {
        start: map.address.0,
        end: map.address.1,
        offset: map.offset,
        path: match map.pathname {
            MMapPath::Path(path) => path.to_string_lossy().into_owned(),
            MMapPath::Vdso => "[vdso]".into(),
            MMapPath::Heap => "[heap]".into(),
            MMapPath::Stack => "[stack]".into(),
            _ => String::new(),
        },
        executable: map.perms.contains(MMPermissions::EXECUTE),
    };
    maps.into_iter().flatten().map(mapping).collect()
}

/// The path of a file whose names are given innermost first, up to the root of its mount: the
/// mount point in front is the one that makes the inode number right.
fn locate(names: &[String], inode: u64) -> PathBuf {
    let relative: PathBuf = names.iter().rev().collect();
    let is_it = |path: &Path| fs::metadata(path).is_ok_and(|data| data.st_ino() == inode);
    let in_root = Path::new("/").join(&relative);
    if is_it(&in_root) {
        return in_root;
    }
    let mounts = Process::myself().and_then(|me| me.mountinfo());
    let candidates = mounts.into_iter().flatten().map(|mount| mount.mount_point.join(&relative));
    candidates.into_iter().find(|path| is_it(path)).unwrap_or(relative)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_of_this_test_is_found_in_its_own_mappings() {
        let mut mappings = Mappings::default();
        let me = std::process::id();
        assert!(mappings.lacks(me));
        mappings.refresh(me);
        let here = the_code_of_this_test_is_found_in_its_own_mappings as *const () as u64;
        let mapping = mappings.find(me, here).unwrap();
        assert_eq!(Path::new(&mapping.path), std::env::current_exe().unwrap());
        assert!(mappings.find(me, 8).is_none());
    }

    #[test]
    fn a_process_that_is_gone_had_the_mappings_it_was_born_with_until_it_executed() {
        let mut mappings = Mappings::default();
        let me = std::process::id();
        mappings.refresh(me);
        let here = of_process as *const () as u64;
        let (child, grandchild) = (u32::MAX - 1, u32::MAX);
        mappings.forked(me, child);
        mappings.forked(child, grandchild);
        assert_eq!(mappings.find(grandchild, here), mappings.find(me, here));
        assert!(mappings.find(grandchild, here).is_some());
        mappings.executed(grandchild);
        assert_eq!(mappings.find(grandchild, here), None);
    }

    #[test]
    fn a_file_is_located_by_its_names_and_inode() {
        let exe = std::env::current_exe().unwrap();
        let inode = fs::metadata(&exe).unwrap().st_ino();
        let names: Vec<String> = exe
            .components()
            .rev()
            .filter_map(|part| match part {
                std::path::Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
                _ => None,
            })
            .collect();
        assert_eq!(locate(&names, inode), exe);
        let other = locate(&names, inode + 1);
        assert!(other.is_relative(), "{other:?} has another inode");
    }
}
