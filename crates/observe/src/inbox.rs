//! What came out of the rings and waits to be stored: bounded in number or in memory, and what finds no
//! room is counted.

use std::mem;

use crate::bpf::{
    self, event_record, mapping_record, outlier_record, request_record, room_record, stack_record,
    thread_record, words_record,
};
use crate::mappings::{self, Seen};
use crate::python::{self, Calls, Function};
use crate::squeezed::Squeezed;
use crate::wire::{self, EventKind, RecordType};

/// Outliers waiting to be stored; beyond it they are dropped and counted. 65,536 of about 700 bytes: 45 MB
/// at most, for they wait without their zeros.
pub const OUTLIERS_WAITING: usize = 65_536;
/// Requests waiting: 8 MB. The kernel side sends a thousand slow ones a second of each port.
const REQUESTS_WAITING: usize = 65_536;
/// Memory for rare records that wait, bytes: a storm of forks and execs gives some MiB a second, and
/// 20,000 threads that end at once 6 MB. Without a storm there are few.
const RARE_WAITING: usize = 48 << 20;
/// Ends of threads that wait; read, each takes some 500 bytes more.
const DEAD_WAITING: usize = 131_072;
/// Tops of stacks waiting: 34 MB. A process that starts sends some ten of them, and the kernel side
/// copies 256 a second for unwinding.
const WORDS_WAITING: usize = 4_096;
/// Bytes that a vector within a record takes besides what is in it.
const KEPT_BESIDE: usize = 64;

/// Programs begun whose mappings are still to be read.
const LOOKS_WAITING: usize = 1_024;
/// Memory for what they saw, bytes; a thousand programs at once need some MiB.
const EARLY_WAITING: usize = 32 << 20;

/// What came out of the rings since the last time it was taken.
#[derive(Default)]
pub struct Inbox {
    pub outliers: Vec<Squeezed>,
    pub requests: Vec<request_record>,
    pub events: Vec<event_record>,
    pub mappings: Vec<mapping_record>,
    dead_threads: Vec<Squeezed>,
    /// (process or 0 for the kernel, identity, addresses)
    pub stacks: Vec<(u32, u64, Vec<u64>)>,
    pub words: Vec<Words>,
    /// Python's side of stacks, and the functions in them.
    pub pythons: Vec<(u64, Calls)>,
    pub functions: Vec<(u64, Function)>,
    /// The last slot for a thread that is in use, if so many are that there should be more.
    pub thread_slot: Option<u32>,
    /// Processes that began to run a program.
    pub begun: Vec<u32>,
    /// What was mapped in processes soon after they began to run a program.
    pub early_mappings: Vec<(u32, Seen)>,
    /// Bytes of memory that they take.
    early_memory: usize,
    /// Bytes of memory that events, mappings, dead threads, stacks and words take.
    rare_memory: usize,
    /// True if mappings are read soon after a process began to run a program.
    looks_early: bool,
    /// Processes that began to run a program and whose mappings are still to be read.
    executed: Vec<u32>,
    /// Those that found no room in it, and lists of mappings that found none.
    pub early_looks_dropped: u64,
    pub early_mappings_dropped: u64,
    /// Processes that found no room in `begun`.
    pub begun_dropped: u64,
    /// Outliers that found the inbox full.
    pub outliers_dropped: u64,
    /// Other records that found it full.
    pub rare_dropped: u64,
    /// Records that were not understood.
    pub malformed: u64,
    pub records: u64,
    pub bytes: u64,
}

/// The top of a user stack.
pub struct Words {
    pub tgid: u32,
    /// Identity of the stack that is made of it; 0 if no interval refers to it.
    pub id: u64,
    /// Identity of what frame pointers give of that stack; 0 when the dynamic linker faulted.
    pub walked: u64,
    /// The instruction that runs next, or faulted.
    pub ip: u64,
    /// The stack pointer, and what may be a frame pointer.
    pub stack: u64,
    pub frame: u64,
    /// The frames on it by which C calls Python, innermost first.
    pub entries: Vec<u64>,
    /// From the stack pointer on.
    pub words: Vec<u64>,
}

impl Words {
    /// The word at an address of the stack, if it was copied.
    pub fn at(&self, address: u64) -> Option<u64> {
        let beyond = address.checked_sub(self.stack & !7)?;
        let place = usize::try_from(beyond / 8).ok()?;
        self.words.get(place).filter(|_| beyond.is_multiple_of(8)).copied()
    }
}

impl Inbox {
    /// An empty one; `looks_early` if mappings are to be read soon after a process began to run a program.
    pub fn new(looks_early: bool) -> Inbox {
        Inbox { looks_early, ..Inbox::default() }
    }

    pub fn put(&mut self, bytes: &[u8]) {
        self.records += 1;
        self.bytes += bytes.len() as u64;
        let Some(kind) = bpf::read::<u32>(bytes).and_then(RecordType::of) else {
            self.malformed += 1;
            return;
        };
        let is_full = match kind {
            RecordType::Outlier => self.outliers.len() >= OUTLIERS_WAITING,
            RecordType::Request => self.requests.len() >= REQUESTS_WAITING,
            RecordType::Thread => {
                self.rare_memory >= RARE_WAITING || self.dead_threads.len() >= DEAD_WAITING
            }
            RecordType::Words => {
                self.rare_memory >= RARE_WAITING || self.words.len() >= WORDS_WAITING
            }
            _ => self.rare_memory >= RARE_WAITING,
        };
        match kind {
            RecordType::Outlier if is_full => self.outliers_dropped += 1,
            RecordType::Outlier => push(&mut self.outliers, Some(Squeezed::new(bytes))),
            RecordType::Request if !is_full => {
                push(&mut self.requests, bpf::read::<request_record>(bytes));
            }
            RecordType::Room => self.put_room(bytes),
            _ if is_full => self.rare_dropped += 1,
            _ => self.put_rare(kind, bytes),
        }
    }

    /// True when outliers come faster than they are taken once a second.
    pub fn is_pressed(&self) -> bool {
        self.outliers.len() > OUTLIERS_WAITING / 16
    }

    /// The same of rare records.
    pub fn is_crowded(&self) -> bool {
        self.rare_memory > RARE_WAITING / 4
    }

    /// True when something should be taken before the second is over.
    pub fn is_urgent(&self) -> bool {
        self.is_pressed() || self.is_crowded() || !self.begun.is_empty()
    }

    /// Takes so many of the processes whose mappings are to be read.
    pub fn some_executed(&mut self, most: usize) -> Vec<u32> {
        let some = self.executed.len().min(most);
        self.executed.drain(..some).collect()
    }

    /// The oldest, at most so many; what they leave has no more room than it needs.
    pub fn some_outliers(&mut self, most: usize) -> Vec<Squeezed> {
        if self.outliers.len() <= most {
            return mem::take(&mut self.outliers);
        }
        let some = self.outliers.drain(..most).collect();
        if self.outliers.len() < self.outliers.capacity() / 2 {
            self.outliers.shrink_to_fit();
        }
        some
    }

    fn put_rare(&mut self, kind: RecordType, bytes: &[u8]) {
        if kind == RecordType::Thread {
            let thread = Squeezed::new(bytes);
            self.rare_memory += thread.memory() + KEPT_BESIDE;
            return push(&mut self.dead_threads, Some(thread));
        }
        self.rare_memory += bytes.len() + KEPT_BESIDE;
        match kind {
            RecordType::Event => self.put_event(bytes),
            RecordType::Mapping => push(&mut self.mappings, bpf::read::<mapping_record>(bytes)),
            RecordType::Stack => push(&mut self.stacks, read_stack(bytes)),
            RecordType::Words => push(&mut self.words, read_words(bytes)),
            RecordType::Python => push(&mut self.pythons, python::read_calls(bytes)),
            RecordType::Code => push(&mut self.functions, python::read_function(bytes)),
            RecordType::Thread | RecordType::Outlier | RecordType::Request | RecordType::Room => {}
        }
    }

    fn put_room(&mut self, bytes: &[u8]) {
        self.thread_slot =
            self.thread_slot.max(bpf::read(bytes).map(|room: room_record| room.slot));
    }

    fn put_event(&mut self, bytes: &[u8]) {
        let Some(event) = bpf::read::<event_record>(bytes) else { return };
        if EventKind::of(event.kind) == Some(EventKind::Exec) {
            wait_for_look(&mut self.begun, event.tgid, &mut self.begun_dropped);
            if self.looks_early {
                wait_for_look(&mut self.executed, event.tgid, &mut self.early_looks_dropped);
            }
        }
        push(&mut self.events, Some(event));
    }

    pub fn put_early(&mut self, tgid: u32, seen: Seen) {
        if seen.mappings.is_empty() {
            return;
        }
        let memory = self.early_memory + mappings::memory(&seen.mappings);
        if memory < EARLY_WAITING {
            self.early_memory = memory;
            self.early_mappings.push((tgid, seen));
        } else {
            self.early_mappings_dropped += 1;
        }
    }

    /// Threads that have ended.
    pub fn dead_threads(&mut self) -> impl Iterator<Item = thread_record> + use<> {
        let dead = mem::take(&mut self.dead_threads).into_iter();
        dead.filter_map(|thread| bpf::read::<thread_record>(&thread.record()))
    }

    /// Everything but outliers that have been left, and processes that are still to be looked at.
    pub fn take(&mut self, outliers: usize) -> Inbox {
        let outliers = self.some_outliers(outliers);
        let kept = Inbox {
            outliers: mem::take(&mut self.outliers),
            begun: mem::take(&mut self.begun),
            thread_slot: self.thread_slot,
            executed: mem::take(&mut self.executed),
            looks_early: self.looks_early,
            ..Inbox::default()
        };
        Inbox { outliers, ..mem::replace(self, kept) }
    }
}

fn wait_for_look(waiting: &mut Vec<u32>, tgid: u32, dropped: &mut u64) {
    match waiting.len() < LOOKS_WAITING {
        true => waiting.push(tgid),
        false => *dropped += 1,
    }
}

/// Grows by a quarter, where a vector by itself would by as much as it has: these are large.
fn push<T>(all: &mut Vec<T>, one: Option<T>) {
    let Some(one) = one else { return };
    if all.len() == all.capacity() {
        all.reserve_exact(all.len() / 4 + 64);
    }
    all.push(one);
}

/// A stack record is as long as its frames.
fn read_stack(bytes: &[u8]) -> Option<(u32, u64, Vec<u64>)> {
    let header = std::mem::offset_of!(stack_record, frames);
    let tgid = bpf::read::<u32>(bytes.get(4..)?)?;
    let id = bpf::read::<u64>(bytes.get(8..)?)?;
    let count = bpf::read::<u32>(bytes.get(16..)?)? as usize;
    let frames = bytes.get(header..)?.chunks_exact(8).take(count);
    Some((tgid, id, frames.filter_map(bpf::read::<u64>).collect()))
}

/// Sleeps and holds come without their breakdown.
pub fn outlier(squeezed: &Squeezed) -> Option<outlier_record> {
    let bytes = squeezed.record();
    let mut whole = [0; size_of::<outlier_record>()];
    let length = bytes.len().min(whole.len());
    whole[..length].copy_from_slice(&bytes[..length]);
    (length >= std::mem::offset_of!(outlier_record, breakdown)).then(|| bpf::read(&whole))?
}

fn read_words(bytes: &[u8]) -> Option<Words> {
    let number = |at| bpf::read::<u32>(bytes.get(at..)?);
    let first = number(std::mem::offset_of!(words_record, first))? as usize;
    let count = number(std::mem::offset_of!(words_record, count))? as usize;
    let long = |at| bpf::read::<u64>(bytes.get(at..)?);
    let all = bytes.get(std::mem::offset_of!(words_record, words)..)?.chunks_exact(8);
    let entries = bytes.get(std::mem::offset_of!(words_record, entries)..)?.chunks_exact(8);
    let entries = entries.take(wire::WORDS_ENTRIES as usize).filter_map(bpf::read::<u64>);
    Some(Words {
        tgid: number(4)?,
        id: long(std::mem::offset_of!(words_record, id))?,
        walked: long(std::mem::offset_of!(words_record, walked))?,
        ip: long(std::mem::offset_of!(words_record, ip))?,
        stack: long(std::mem::offset_of!(words_record, sp))?,
        frame: long(std::mem::offset_of!(words_record, fp))?,
        entries: entries.take_while(|entry| *entry != 0).collect(),
        words: all.take(count).skip(first).filter_map(bpf::read::<u64>).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bpf::{code_record, python_record};

    #[test]
    fn a_stack_is_read_by_its_own_length_and_hostile_lengths_are_harmless() {
        let mut bytes = Vec::new();
        bytes.extend((RecordType::Stack as u32).to_ne_bytes());
        bytes.extend(77u32.to_ne_bytes());
        bytes.extend(5u64.to_ne_bytes());
        bytes.extend(2u32.to_ne_bytes());
        bytes.extend(0u32.to_ne_bytes());
        bytes.extend(0xaau64.to_ne_bytes());
        bytes.extend(0xbbu64.to_ne_bytes());
        assert_eq!(read_stack(&bytes), Some((77, 5, vec![0xaa, 0xbb])));
        bytes[16] = 200;
        assert_eq!(read_stack(&bytes), Some((77, 5, vec![0xaa, 0xbb])));
        assert_eq!(read_stack(&bytes[..10]), None);
    }

    #[test]
    fn a_full_inbox_counts_what_it_drops() {
        let mut inbox = Inbox::default();
        let mut bytes = vec![0; size_of::<outlier_record>()];
        bytes[..4].copy_from_slice(&(RecordType::Outlier as u32).to_ne_bytes());
        for _ in 0..OUTLIERS_WAITING + 7 {
            inbox.put(&bytes);
        }
        assert_eq!(inbox.outliers.len(), OUTLIERS_WAITING);
        assert_eq!(inbox.outliers_dropped, 7);
    }

    #[test]
    fn programs_that_are_not_looked_at_are_counted() {
        let exec = |tgid| event_record {
            r#type: RecordType::Event as u32,
            tgid,
            kind: EventKind::Exec as u32,
            ..Default::default()
        };
        for looks_early in [true, false] {
            let mut inbox = Inbox { looks_early, ..Inbox::default() };
            for tgid in 0..LOOKS_WAITING as u32 + 7 {
                inbox.put(bpf::bytes(&exec(tgid)));
            }
            let early = if looks_early { (LOOKS_WAITING, 7) } else { (0, 0) };
            assert_eq!((inbox.executed.len(), inbox.early_looks_dropped), early);
            assert_eq!((inbox.begun.len(), inbox.begun_dropped), (LOOKS_WAITING, 7));
            let taken = inbox.take(1);
            assert_eq!((taken.early_looks_dropped, taken.begun_dropped), (early.1, 7));
            assert_eq!(taken.events.len(), LOOKS_WAITING + 7);
            // They are still to be looked at, and no longer lost.
            assert_eq!((inbox.executed.len(), inbox.begun.len()), (early.0, LOOKS_WAITING));
            assert_eq!((inbox.early_looks_dropped, inbox.begun_dropped), (0, 0));
            inbox.executed.clear();
            inbox.put(bpf::bytes(&exec(1)));
            assert_eq!(inbox.executed.len(), usize::from(looks_early));
        }
    }

    #[test]
    fn early_mappings_that_find_no_room_are_counted() {
        let mut inbox = Inbox::default();
        let own = mappings::of_process(std::process::id()).mappings;
        let one = mappings::memory(&own);
        let all = EARLY_WAITING / one + 9;
        for _ in 0..all {
            inbox.put_early(1, Seen { mappings: own.clone(), ..Seen::default() });
        }
        inbox.put_early(2, Seen::default());
        let dropped = usize::try_from(inbox.early_mappings_dropped).unwrap();
        assert_eq!(inbox.early_mappings.len() + dropped, all, "what is gone is not lost");
        assert!(dropped >= 9 && inbox.early_mappings.len() * one < EARLY_WAITING);
    }

    #[test]
    fn outliers_are_taken_in_parts_and_are_in_memory_once() {
        let mut inbox = Inbox::default();
        let mut bytes = vec![0; size_of::<outlier_record>()];
        bytes[..4].copy_from_slice(&(RecordType::Outlier as u32).to_ne_bytes());
        for number in 0..OUTLIERS_WAITING as u32 {
            bytes[8..12].copy_from_slice(&number.to_ne_bytes());
            inbox.put(&bytes);
        }
        let mut next = 0;
        while !inbox.outliers.is_empty() {
            let some = inbox.some_outliers(OUTLIERS_WAITING / 4);
            let room = some.capacity() + inbox.outliers.capacity();
            assert!(room <= OUTLIERS_WAITING / 2 * 3, "room for {room}");
            assert!(some.iter().filter_map(outlier).all(|outlier| {
                next += 1;
                outlier.tid == next - 1
            }));
        }
        assert_eq!(next as usize, OUTLIERS_WAITING);
    }

    /// As of a storm: whichever records it sends, and whatever they are long.
    #[test]
    fn what_waits_of_a_storm_has_its_bound_in_bytes() {
        let record = |kind: RecordType, size: usize| {
            let mut bytes = vec![0; size];
            bytes[..4].copy_from_slice(&(kind as u32).to_ne_bytes());
            bytes
        };
        let stack = |frames: u32| {
            let mut bytes = record(RecordType::Stack, 24 + 8 * frames as usize);
            bytes[16..20].copy_from_slice(&frames.to_ne_bytes());
            bytes
        };
        let calls = |frames: u32| {
            let header = std::mem::offset_of!(python_record, frames);
            let mut bytes = record(RecordType::Python, header + 16 * frames as usize);
            bytes[16..20].copy_from_slice(&frames.to_ne_bytes());
            bytes
        };
        let mut code = record(RecordType::Code, size_of::<code_record>());
        let count = std::mem::offset_of!(code_record, count);
        code[count..count + 4].copy_from_slice(&2_048_u32.to_ne_bytes());
        let mut thread = record(RecordType::Thread, size_of::<thread_record>());
        thread[4..].fill(1);
        for bytes in [
            calls(1),
            calls(128),
            code,
            thread,
            record(RecordType::Event, size_of::<event_record>()),
            record(RecordType::Mapping, size_of::<mapping_record>()),
            stack(1),
            stack(127),
        ] {
            let mut inbox = Inbox::default();
            for _ in 0..2 * RARE_WAITING / bytes.len() {
                inbox.put(&bytes);
            }
            let stacks = inbox.stacks.iter().map(|(.., frames)| frames.capacity() * 8 + 16);
            let taken = inbox.events.capacity() * size_of::<event_record>()
                + inbox.mappings.capacity() * size_of::<mapping_record>()
                + inbox.dead_threads.capacity() * size_of::<Squeezed>()
                + inbox
                    .dead_threads
                    .iter()
                    .map(|t| t.memory() - size_of::<Squeezed>() + 16)
                    .sum::<usize>()
                + inbox.stacks.capacity() * size_of::<(u32, u64, Vec<u64>)>()
                + stacks.sum::<usize>()
                + inbox.pythons.capacity() * size_of::<(u64, Calls)>()
                + inbox.pythons.iter().map(|(_, all)| size_of_val(&*all.calls) + 16).sum::<usize>()
                + inbox.functions.capacity() * size_of::<(u64, Function)>()
                + inbox.functions.iter().map(|(_, one)| one.memory()).sum::<usize>();
            assert!(taken <= RARE_WAITING / 4 * 5, "{taken} bytes of {} each", bytes.len());
            assert!(taken >= RARE_WAITING / 4, "{taken} bytes of {} each", bytes.len());
            assert!(inbox.rare_dropped > 0, "{} bytes each", bytes.len());
        }
    }

    #[test]
    fn of_threads_that_had_little_so_many_wait() {
        let mut inbox = Inbox::default();
        let mut bytes = vec![0; size_of::<thread_record>()];
        bytes[..4].copy_from_slice(&(RecordType::Thread as u32).to_ne_bytes());
        for _ in 0..DEAD_WAITING + 7 {
            inbox.put(&bytes);
        }
        assert_eq!(inbox.rare_dropped, 7);
        assert!(inbox.rare_memory < RARE_WAITING);
        assert_eq!(inbox.dead_threads().count(), DEAD_WAITING);
    }
}
