//! Which file is mapped where in a process, also after it has exited.

mod seen;

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub use inspect::mappings::Mapping;

use self::seen::user_of;
pub use self::seen::{Seen, of_process};
use crate::bpf::{self, event_record, mapping_record};
use crate::location::locate;
use crate::wire::{EventKind, PATH_PART};

/// Memory for the mappings of all processes, bytes: some thousand large ones. A process can have
/// 65,530, and paths of 4 kB.
const MOST_MEMORY: usize = 96 << 20;

/// Where there is less room than this for more, lists that nothing is named by are forgotten: those
/// of the processes of a storm, thousands in a minute.
const ROOM_KEPT: usize = MOST_MEMORY / 2;
/// Not looked for again before so much more is taken.
const ROOM_STEP: usize = MOST_MEMORY / 8;

/// Births whose parents' lists are kept: who ends in its first moments has no other.
const YOUNG: usize = 1_024;

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
    /// What was left when lists were forgotten the last time.
    left: usize,
    /// Who those processes run as, as far as that was seen.
    users: HashMap<u32, u32>,
    /// Lists that found no room, or not all of it.
    left_out: u64,
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
        if seen.mappings.is_empty() {
            return;
        }
        if let Some(user) = seen.user {
            self.users.insert(tgid, user);
        }
        self.left_out += u64::from(seen.is_cut);
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

    /// Where there is not much room left, forgets the lists of processes that have ended, but not of
    /// those whose stacks are to be named at the end, nor of those that these were born with.
    pub fn make_room(&mut self, named_at_end: impl FnOnce() -> HashSet<u32>) {
        if self.memory < (self.left + ROOM_STEP).max(MOST_MEMORY - ROOM_KEPT) {
            return;
        }
        let mut needed = named_at_end();
        let of_young = self.births.iter().rev().take(YOUNG);
        let mut children: Vec<u32> = of_young.map(|(child, _)| *child).collect();
        children.extend(&needed);
        for child in children {
            needed.extend(self.origin_of(child));
        }
        let is_there = |tgid: &u32| Path::new("/proc").join(tgid.to_string()).exists();
        self.processes.retain(|tgid, _| needed.contains(tgid) || is_there(tgid));
        self.processes.shrink_to_fit();
        self.users.retain(|tgid, _| self.processes.contains_key(tgid));
        self.memory = self.processes.values().map(|list| memory(list)).sum();
        self.left = self.memory;
    }

    /// Lists of mappings that were left out because there were too many, since the last call.
    pub fn left_out(&mut self) -> u64 {
        std::mem::take(&mut self.left_out)
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
        let mappings = self.processes.get(&self.origin_of(tgid)?)?;
        at(mappings, address, address.saturating_add(1))
    }

    /// The process whose list is that of a process: itself, or one that it was born from.
    fn origin_of(&self, tgid: u32) -> Option<u32> {
        let mut process = tgid;
        for _ in 0..GENERATIONS {
            if self.processes.contains_key(&process) {
                return Some(process);
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

    /// As in a storm of processes.
    #[test]
    fn lists_of_processes_that_have_ended_make_room_for_those_of_others() {
        let mut mappings = Mappings::default();
        let me = std::process::id();
        mappings.refresh(me);
        let here = of_process as *const () as u64;
        let of_me = mappings.find(me, here).unwrap().clone();
        let (first, born) = (u32::MAX, u32::MAX - 100_000);
        mappings.forked(first, born);
        for number in 0..3_000 {
            let one = Mapping { path: format!("/usr/bin/{number}").into(), ..of_me.clone() };
            let seen = Seen { user: Some(7), mappings: vec![one; 1_000], is_cut: false };
            mappings.replace(first - number, seen);
            mappings.make_room(|| HashSet::from([born]));
        }
        assert_eq!(mappings.left_out(), 0);
        let users = [0, 1, 2_999].map(|number| mappings.users.get(&(first - number)).copied());
        assert_eq!(users, [Some(7), None, Some(7)]);
        assert_eq!(
            &*mappings.find(born, here).unwrap().path,
            "/usr/bin/0",
            "stacks of it are named"
        );
        assert!(mappings.find(me, here).is_some(), "it lives");
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
