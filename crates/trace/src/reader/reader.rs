//! Follows one trace: each look gives what is new since the one before.

use std::mem::offset_of;

use super::error::{ReadError, refused};
use super::header::{self, Identity, Tables};
use super::histograms::{Counted, Seen};
use super::records::{Losses, Record, Ring};
use super::source::{Copied, Source};
use super::tables::{self, Flow, Thread, name_of};
use crate::layout::{self, CLOSED, Header};

/// A trace, from a file or from bytes.
pub struct Reader<S> {
    source: S,
    identity: Identity,
    tables: Tables,
    names: Vec<String>,
    /// By thread: records seen of the recent and of the slow ring.
    seen: Vec<Option<[u64; 2]>>,
    histograms: Seen,
    losses: Losses,
}

/// Messages that one look gives at most, some 500 bytes each.
pub const MOST_AT_ONCE: usize = 65_536;

/// Memory for what histograms have counted so far, bytes, if nothing else is said.
const MEMORY: usize = 64 << 20;

/// What a writer had no room for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Threads.
    pub threads: u64,
    /// Flows, points, names, blocks of histograms.
    pub others: u64,
}

/// Messages that ended since the last look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Messages {
    /// All that are still there, thread by thread.
    pub recent: Vec<Record>,
    /// The slow ones.
    pub slow: Vec<Record>,
}

impl<S: Source> Reader<S> {
    /// Checks the head of a trace.
    pub fn new(source: S) -> Result<Self, ReadError> {
        let (identity, tables) = header::read(&source)?;
        let seen = vec![None; tables.threads.entries];
        Ok(Reader {
            source,
            identity,
            tables,
            names: Vec::new(),
            seen,
            histograms: Seen::within(MEMORY),
            losses: Losses::default(),
        })
    }

    /// Who wrote it.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    pub(super) fn source(&self) -> &S {
        &self.source
    }

    pub(crate) fn tables(&self) -> &Tables {
        &self.tables
    }

    /// What could not be shown so far.
    pub fn losses(&self) -> Losses {
        self.losses
    }

    /// Whether its writer has ended well.
    pub fn is_closed(&self) -> Result<bool, ReadError> {
        let at = offset_of!(Header, state) as u64;
        Ok(Copied::acquire(&self.source, at, 4)?.entry().u32(0) == CLOSED)
    }

    /// What its writer had no room for.
    pub fn dropped(&self) -> Result<Dropped, ReadError> {
        let at = offset_of!(Header, dropped_threads);
        let copy = Copied::acquire(&self.source, at as u64, 16)?;
        let others = offset_of!(Header, dropped_others) - at;
        Ok(Dropped { threads: copy.entry().u64(0), others: copy.entry().u64(others) })
    }

    /// The flows so far.
    pub fn flows(&mut self) -> Result<Vec<Flow>, ReadError> {
        tables::read_flows(&self.source, &self.tables, &mut self.names)
    }

    /// The threads so far, each with the message that it works on.
    pub fn threads(&mut self) -> Result<Vec<Thread>, ReadError> {
        let raw = tables::read_threads(&self.source, &self.tables.threads)?;
        // After the messages, so that what they name is there.
        let flows = self.flows()?;
        raw.into_iter()
            .map(|raw| {
                let mut thread = raw.thread;
                if let Some(current) = raw.current {
                    let mut message = current.message;
                    if message.flow == 0 || message.flow as usize > flows.len() {
                        return Err(refused(raw.offset, "a message of a flow that does not exist"));
                    }
                    if current.last_name != 0 {
                        let name = name_of(&self.names, current.last_name, raw.offset)?;
                        message.last_name = Some(name.clone());
                    }
                    thread.current = Some(message);
                }
                Ok(thread)
            })
            .collect()
    }

    /// The messages that ended since the last look, of more than [`MOST_AT_ONCE`] some: the next look
    /// gives more. The first look gives what the rings hold. Costs one read if there is nothing new.
    pub fn messages(&mut self) -> Result<Messages, ReadError> {
        let Tables { threads, recent, slow, .. } = self.tables;
        let written = threads.copy(&self.source)?;
        let moved: Vec<(usize, [u64; 2], u64)> = written
            .entries(threads.stride as usize)
            .map(|entry| {
                let recent = entry.u64(offset_of!(layout::Thread, recent));
                let slow = entry.u64(offset_of!(layout::Thread, slow));
                ([recent, slow], entry.offset)
            })
            .enumerate()
            .filter(|(index, (written, _))| self.seen[*index].unwrap_or_default() != *written)
            .map(|(index, (written, offset))| (index, written, offset))
            .collect();
        let mut messages = Messages::default();
        if moved.is_empty() {
            return Ok(messages);
        }
        let flows = self.flows()?;
        for (index, written, offset) in moved {
            let rings = [recent, slow].map(|table| {
                Ring::of(&table, self.tables.ring(&table), index as u32, threads.entries)
            });
            let first =
                std::array::from_fn(|ring| written[ring].saturating_sub(rings[ring].records));
            let seen = self.seen[index].unwrap_or(first);
            if written[0] < seen[0] || written[1] < seen[1] {
                return Err(refused(offset, "a thread has fewer records than before"));
            }
            let mut read_to = seen;
            for ring in 0..2 {
                let room = MOST_AT_ONCE - messages.recent.len() - messages.slow.len();
                let new = (seen[ring], written[ring]);
                let (records, end) =
                    rings[ring].look(&self.source, new, room, &flows, &mut self.losses)?;
                read_to[ring] = end;
                [&mut messages.recent, &mut messages.slow][ring].extend(records);
            }
            self.seen[index] = Some(read_to);
        }
        Ok(messages)
    }

    /// Bytes of memory that are taken by what the histograms have counted so far.
    pub fn memory(&self) -> usize {
        self.histograms.memory()
    }

    /// Lets that be no more than so many bytes: a trace that needs more is refused.
    pub fn keep_within(&mut self, bytes: usize) {
        self.histograms.keep_within(bytes);
    }

    /// What the histograms counted since the last look; the first look gives all.
    pub fn histograms(&mut self) -> Result<Vec<Counted>, ReadError> {
        let flows = self.flows()?;
        self.histograms.look(&self.source, &self.tables, &flows)
    }
}
