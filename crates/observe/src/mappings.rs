//! Which file is mapped where in a process, also after it has exited.

mod seen;

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use self::seen::user_of;
pub use self::seen::{Mapping, Seen, of_process};
use crate::bpf::{self, event_record, mapping_record};
use crate::location::locate;
use crate::wire::{EventKind, PATH_PART};

/// Memory for the mappings of all processes, bytes: some thousand large ones. A process can have
/// 65,530, and paths of 4 kB.
const MOST_MEMORY: usize = 96 << 20;

/// What the reading of lists may take while one batch is made.
const FOR_A_BATCH: Duration = Duration::from_millis(500);

/// Mappings of the past that are kept of a process.
const GONE_KEPT: usize = 1_024;

/// Births that are remembered, the latest, some 40 bytes each.
const PARENTS_KEPT: usize = 65_536;
/// Births without exec in a row, at most.
const GENERATIONS: usize = 8;

/// Mappings by process.
#[derive(Default)]
pub struct Mappings {
    /// By address; none overlaps another.
    processes: HashMap<u32, Vec<Mapping>>,
    /// Those that were read for this batch, and what that took.
    read: HashSet<u32>,
    spent: Duration,
    /// Bytes of memory that they take.
    memory: usize,
    /// Who those processes run as, as far as that was seen.
    users: HashMap<u32, u32>,
    /// Lists that found no room.
    left_out: u64,
    /// Lists whose process keeps its reader waiting.
    unanswered: u64,
    /// Of those that did not exec since they were born, with the number of the birth.
    parents: HashMap<u32, (u32, u64)>,
    /// The children of these births, and of some that did exec, the oldest first.
    births: VecDeque<(u32, u64)>,
    born: u64,
}

impl Mappings {
    /// Reads them from /proc while the process lives; what was known of it stays if it is gone.
    /// Code that an exec or an unmapping took away stays known, where nothing else is now: stacks
    /// of before are still to be named.
    ///
    /// Once in a batch: all of its stacks are older than that. A process can have 65,530 mappings and
    /// any number of stacks with addresses that lie in none.
    pub fn refresh(&mut self, tgid: u32) {
        if self.read.contains(&tgid) {
            return;
        }
        if self.spent >= FOR_A_BATCH {
            self.left_out += 1;
            return;
        }
        let began = Instant::now();
        self.replace(tgid, of_process(tgid));
        self.spent += began.elapsed();
        self.read.insert(tgid);
    }

    /// Lets the lists be read again, for another batch.
    pub fn begin_batch(&mut self) {
        self.read.clear();
        self.spent = Duration::ZERO;
    }

    /// Takes what was read of a process some time ago; nothing if it was gone by then.
    pub fn replace(&mut self, tgid: u32, seen: Seen) {
        self.unanswered += u64::from(seen.gave_no_answer);
        if seen.mappings.is_empty() {
            return;
        }
        if let Some(user) = seen.user {
            self.users.insert(tgid, user);
        }
        let before = self.processes.remove(&tgid).unwrap_or_default();
        self.memory = self.memory.saturating_sub(memory(&before));
        let mut known = seen.mappings;
        if self.memory + memory(&known) > MOST_MEMORY {
            self.left_out += 1;
            known.clear();
        }
        known.sort_unstable_by_key(|mapping| mapping.start);
        let is_free = |old: &Mapping| at(&known, old.start, old.end).is_none();
        let is_file = |old: &Mapping| old.executable && !old.path.is_empty();
        let gone = before.into_iter().filter(|old| is_file(old)).take(GONE_KEPT);
        let gone: Vec<Mapping> = gone.filter(is_free).collect();
        known.extend(gone);
        known.sort_unstable_by_key(|mapping| mapping.start);
        self.memory += memory(&known);
        self.processes.insert(tgid, known);
    }

    /// Lists of mappings that were left out because there were too many, since the last call.
    pub fn left_out(&mut self) -> u64 {
        std::mem::take(&mut self.left_out)
    }

    /// Lists that could not be read because their process keeps its reader waiting, since the last
    /// call.
    pub fn unanswered(&mut self) -> u64 {
        std::mem::take(&mut self.unanswered)
    }

    /// Who a process runs as, or ran as when it was last seen.
    pub fn user(&self, tgid: u32) -> Option<u32> {
        user_of(tgid).or_else(|| self.users.get(&tgid).copied())
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
        self.born += 1;
        self.parents.insert(child, (parent, self.born));
        self.births.push_back((child, self.born));
        while self.births.len() > PARENTS_KEPT
            && let Some((child, birth)) = self.births.pop_front()
        {
            // Process ids are reused.
            if self.parents.get(&child).is_some_and(|(_, latest)| *latest == birth) {
                self.parents.remove(&child);
            }
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
            path: path.to_string_lossy().into(),
            executable: true, // the kernel side sends no others
            // As the kernel numbers devices within.
            device: (record.device >> 20, record.device & 0xf_ffff),
            inode: record.inode,
        };
        if self.memory > MOST_MEMORY {
            self.left_out += 1;
            return;
        }
        self.users.insert(record.tgid, record.user);
        self.memory += memory(std::slice::from_ref(&mapping));
        let known = self.processes.entry(record.tgid).or_default();
        let (start, end) = (mapping.start, mapping.end);
        if at(known, start, end).is_some_and(|m| (m.start, m.end) == (start, end)) {
            return;
        }
        // An exec replaced what was mapped there before.
        let first = known.partition_point(|m| m.end <= start);
        let beyond = known.partition_point(|m| m.start < end).max(first);
        known.splice(first..beyond, [mapping]);
    }

    /// The mapping that an address lies in. Of a process that ended before its own could be read,
    /// those that it was born with.
    pub fn find(&self, tgid: u32, address: u64) -> Option<&Mapping> {
        let mut process = tgid;
        for _ in 0..GENERATIONS {
            if let Some(mappings) = self.processes.get(&process) {
                return at(mappings, address, address.saturating_add(1));
            }
            process = self.parents.get(&process)?.0;
        }
        None
    }
}

/// The first mapping that lies in a range, of those that are sorted.
fn at(sorted: &[Mapping], start: u64, end: u64) -> Option<&Mapping> {
    let next = sorted.partition_point(|mapping| mapping.end <= start);
    sorted.get(next).filter(|mapping| mapping.start < end)
}

/// Bytes that mappings take; a path is shared by those that follow each other.
pub fn memory(mappings: &[Mapping]) -> usize {
    let mut last = "";
    let paths = mappings.iter().map(|mapping| {
        let is_new = *mapping.path != *last;
        last = &mapping.path;
        if is_new { mapping.path.len() + 16 } else { 0 }
    });
    size_of_val(mappings) + paths.sum::<usize>()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_code_of_this_test_is_found_in_its_own_mappings() {
        let mut mappings = Mappings::default();
        let me = std::process::id();
        assert!(mappings.lacks(me));
        mappings.refresh(me);
        let here = the_code_of_this_test_is_found_in_its_own_mappings as *const () as u64;
        let mapping = mappings.find(me, here).unwrap();
        assert_eq!(Path::new(&*mapping.path), std::env::current_exe().unwrap());
        assert!(mappings.find(me, 8).is_none());
    }

    #[test]
    fn a_list_is_read_once_in_a_batch() {
        let mut mappings = Mappings::default();
        let me = std::process::id();
        mappings.refresh(me);
        mappings.processes.clear();
        mappings.refresh(me);
        assert!(mappings.lacks(me) && mappings.left_out() == 0);
        mappings.begin_batch();
        mappings.spent = FOR_A_BATCH;
        mappings.refresh(me);
        assert!(mappings.lacks(me) && mappings.left_out() == 1, "there was no time left");
        mappings.begin_batch();
        mappings.refresh(me);
        assert!(!mappings.lacks(me));
    }

    #[test]
    fn mappings_of_now_and_before_are_found_by_address() {
        let of = |start, end, path: &str| Mapping {
            start,
            end,
            offset: 0,
            path: path.into(),
            executable: true,
            device: (8, 1),
            inode: 7,
        };
        let mut mappings = Mappings::default();
        let seen = |mappings| Seen { mappings, ..Seen::default() };
        mappings.replace(5, seen(vec![of(10, 20, "/a"), of(20, 30, "/b"), of(50, 60, "/c")]));
        mappings.replace(5, seen(vec![of(40, 55, "/d"), of(15, 18, "/e")]));
        let path = |address| mappings.find(5, address).map(|mapping| &*mapping.path);
        let found = [9, 15, 17, 18, 20, 29, 30, 40, 54, 55, 60].map(path);
        let (b, d, e) = (Some("/b"), Some("/d"), Some("/e"));
        assert_eq!(found, [None, e, e, None, b, b, None, d, d, None, None]);
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
    fn of_births_beyond_number_the_latest_are_remembered() {
        let mut mappings = Mappings::default();
        let me = std::process::id();
        mappings.refresh(me);
        let here = of_process as *const () as u64;
        let first = 10_000_000;
        mappings.forked(me, first);
        // Born once more, it is one of the latest.
        mappings.forked(me, first + 1);
        for number in 0..PARENTS_KEPT as u32 - 1 {
            mappings.forked(me, first + 2 + number);
        }
        mappings.forked(me, first + 1);
        let last = first + PARENTS_KEPT as u32;
        assert!(mappings.find(last, here).is_some());
        assert!(mappings.find(first + 1, here).is_some());
        assert_eq!(mappings.find(first, here), None);
        assert_eq!(mappings.births.len(), PARENTS_KEPT);
    }
}
