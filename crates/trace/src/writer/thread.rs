//! A thread that runs the logic of messages: the only writer of its rings, of its histograms and
//! of its current message.

use std::cell::Cell;
use std::marker::PhantomData;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use super::logic::Logic;
use super::record;
use super::trace::{State, Trace};
use super::tracer::Shared;
use crate::layout::{self, Block, IN_LOGIC, MOST_FLOWS, Record, UNKNOWN};
use crate::{Error, clock, process};

/// The calling thread, registered. Not to be moved to another thread.
pub struct Thread {
    lane: Option<Lane>,
    _stays: PhantomData<*const ()>,
}

/// What a registered thread writes to.
pub(crate) struct Lane {
    shared: Arc<Shared>,
    pub entry: &'static layout::Thread,
    pub index: u32,
    pub recent: Ring,
    pub slow: Ring,
    /// By flow: the block of this thread, once it has been looked for.
    blocks: [Option<Option<&'static Block>>; MOST_FLOWS],
}

pub(crate) struct Ring {
    records: &'static [Record],
    written: u64,
}

/// The thread as a mark names it: generation of the tracer (15 bits) and index in the table (16
/// bits), so that a mark need not ask which tracer that was.
#[derive(Clone, Copy)]
struct Known {
    lane: u32,
    has_handle: bool,
}

thread_local! {
    static KNOWN: Cell<Known> = const { Cell::new(Known { lane: UNKNOWN, has_handle: false }) };
}

/// What a mark notes of the calling thread.
#[inline(always)]
pub(crate) fn lane_here() -> u32 {
    KNOWN.with(|known| known.get().lane)
}

/// A number that no other living thread of the process has.
#[inline(always)]
pub(crate) fn token() -> usize {
    KNOWN.with(|known| ptr::from_ref(known).addr())
}

/// The index of the thread that made a mark, if it was registered with this tracer.
#[inline(always)]
pub(crate) fn index_of(lane: u32, generation: u32) -> u32 {
    if lane >> 16 == generation { lane & 0xffff } else { UNKNOWN }
}

/// Gives the calling thread an entry, or the one that it had.
pub(crate) fn register(shared: &Arc<Shared>) -> Result<Thread, Error> {
    let known = KNOWN.get();
    let again = known.lane >> 16 == shared.generation;
    if again && known.has_handle {
        return Err(Error::ThreadExists);
    }
    let threads = shared.area.threads();
    let index = if again { (known.lane & 0xffff) as usize } else { claim(shared)? };
    KNOWN.set(Known { lane: shared.generation << 16 | index as u32, has_handle: true });
    let entry = &threads[index];
    let ring = |records, written: u64| Ring { records, written };
    let lane = Lane {
        shared: Arc::clone(shared),
        entry,
        index: index as u32,
        recent: ring(shared.area.recent(index), entry.recent.load_relaxed()),
        slow: ring(shared.area.slow(index), entry.slow.load_relaxed()),
        blocks: [None; MOST_FLOWS],
    };
    Ok(Thread { lane: Some(lane), _stays: PhantomData })
}

fn claim(shared: &Shared) -> Result<usize, Error> {
    let path = "/proc/thread-self/stat";
    let start = process::start_of(path).map_err(|source| Error::System {
        path: path.into(),
        doing: "reading when this thread started",
        source,
    })?;
    // A thread without a name has none in the file.
    let comm = std::fs::read("/proc/thread-self/comm").unwrap_or_default();
    let mut name = [0; 16];
    for (to, from) in name.iter_mut().zip(comm.trim_ascii_end()) {
        *to = *from;
    }
    let threads = shared.area.threads();
    let free = threads
        .iter()
        .position(|entry| entry.state.exchange_acquire(layout::FREE, layout::BEING_CLAIMED));
    let Some(index) = free else {
        shared.area.header().dropped_threads.add_shared(1);
        return Err(Error::Full { what: "threads", most: threads.len() });
    };
    let entry = &threads[index];
    entry.tid.store_relaxed(rustix::thread::gettid().as_raw_pid() as u32);
    entry.start.store_relaxed(start);
    for (word, piece) in entry.comm.iter().zip(name.as_chunks::<8>().0) {
        word.store_relaxed(u64::from_le_bytes(*piece));
    }
    entry.state.store_release(layout::CLAIMED);
    Ok(index)
}

impl Drop for Thread {
    fn drop(&mut self) {
        if self.lane.is_some() {
            // Also when the thread itself ends, where its thread-locals may be gone.
            let _ = KNOWN.try_with(|known| known.set(Known { has_handle: false, ..known.get() }));
        }
    }
}

impl Thread {
    /// A thread of a tracer that is off, or that found no room: its messages are not traced.
    pub fn off() -> Thread {
        Thread { lane: None, _stays: PhantomData }
    }

    /// The logic of a message begins here: its infrastructure is behind it. `depth` is the number
    /// of messages that wait behind this one, if that is known.
    ///
    /// A trace that was not begun, or is in logic already, gives a logic that does nothing.
    #[inline]
    pub fn logic_start<'a>(&'a mut self, trace: &'a mut Trace, depth: Option<u32>) -> Logic<'a> {
        let lane = match &mut self.lane {
            Some(lane)
                if trace.state == State::Begun && trace.generation == lane.shared.generation =>
            {
                lane
            }
            _ => return Logic { lane: None, trace, block: None },
        };
        let block = lane.block(trace.flow);
        let now = clock::now().max(trace.t0);
        trace.state = State::InLogic;
        trace.depth = depth.unwrap_or(UNKNOWN);
        trace.logic_start = now;
        trace.last = now;
        trace.publishes = 0;
        trace.longest_gap = 0;
        lane.change_current(|current| {
            current.id.store_relaxed(trace.id);
            current.flow.store_relaxed(trace.flow);
            current.state.store_relaxed(IN_LOGIC);
            current.t0.store_relaxed(trace.t0);
            current.logic_start.store_relaxed(now);
            current.last.store_relaxed(now);
            current.last_name.store_relaxed(0);
        });
        Logic { lane: Some(lane), trace, block }
    }
}

impl Lane {
    #[inline(always)]
    pub fn change_current(&self, change: impl FnOnce(&layout::Current)) {
        let current = &self.entry.current;
        let sequence = current.sequence.load_relaxed();
        current.sequence.store_relaxed(sequence | 1);
        fence(Ordering::Release);
        change(current);
        current.sequence.store_release((sequence | 1).wrapping_add(1));
    }

    /// The histograms of this thread and a flow.
    #[inline(always)]
    fn block(&mut self, flow: u32) -> Option<&'static Block> {
        let slot = flow as usize - 1;
        match self.blocks[slot] {
            Some(block) => block,
            None => {
                let block = self.find_block(flow);
                self.blocks[slot] = Some(block);
                block
            }
        }
    }

    #[cold]
    fn find_block(&self, flow: u32) -> Option<&'static Block> {
        let blocks = self.shared.area.blocks();
        let is_ours = |block: &&Block| {
            block.state.load_relaxed() == layout::CLAIMED
                && block.thread.load_relaxed() == self.index
                && block.flow.load_relaxed() == flow
        };
        // A handle that this thread had before left a block.
        if let Some(block) = blocks.iter().find(is_ours) {
            return Some(block);
        }
        let free =
            blocks.iter().find(|b| b.state.exchange_acquire(layout::FREE, layout::BEING_CLAIMED));
        let Some(block) = free else {
            self.shared.area.header().dropped_others.add_shared(1);
            return None;
        };
        block.thread.store_relaxed(self.index);
        block.flow.store_relaxed(flow);
        block.state.store_release(layout::CLAIMED);
        Some(block)
    }
}

impl Ring {
    /// Writes the next record, and gives the number of them all.
    #[inline(always)]
    pub fn push(&mut self, done: &record::Done<impl Fn(u32) -> u32>) -> u64 {
        let slot = self.written as usize & (self.records.len() - 1);
        record::write(&self.records[slot], self.written, done);
        self.written += 1;
        self.written
    }
}
