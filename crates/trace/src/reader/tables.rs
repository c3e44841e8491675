//! Names, flows and threads: what a writer registers. Each entry's id or state is written last, so
//! it is copied first, and then the whole.

use std::mem::offset_of;

use super::error::{ReadError, refused};
use super::header::{Table, Tables};
use super::source::{Entry, Source};
use crate::layout::{self, CLAIMED, Current, IN_LOGIC};

/// A kind of message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Index + 1.
    pub id: u32,
    /// As declared.
    pub name: String,
    /// Names of the infrastructure points.
    pub points: Vec<String>,
    /// Names of the publishes, in the order of their histograms.
    pub publishes: Vec<String>,
    /// Ids of these names.
    pub(crate) publish_ids: Vec<u32>,
    /// From how many nanoseconds on a message is slow.
    pub threshold: u64,
    /// Messages begun.
    pub begun: u64,
    /// Messages begun and never ended.
    pub abandoned: u64,
    /// Marks of points that the flow has not.
    pub undeclared: u64,
}

/// A registered thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Which entry it has.
    pub index: u32,
    /// As the writer's pid namespace counts.
    pub tid: u32,
    /// When it started, clock ticks since boot.
    pub start: u64,
    /// Its name when it registered.
    pub comm: String,
    /// Messages ended.
    pub messages: u64,
    /// Those of them that were slow.
    pub slow_messages: u64,
    /// The message whose logic it runs.
    pub current: Option<MessageInLogic>,
}

/// A message whose logic runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageInLogic {
    /// The program's own id.
    pub id: u64,
    /// Id of its flow.
    pub flow: u32,
    /// When it was received.
    pub t0: u64,
    /// When its logic began.
    pub logic_start: u64,
    /// When it published last, or else logic start.
    pub last: u64,
    /// What it published last.
    pub last_name: Option<String>,
}

/// The names that a file has so far. Names never change, so each is read once.
pub(crate) fn read_names(
    source: &impl Source,
    table: &Table,
    names: &mut Vec<String>,
) -> Result<(), ReadError> {
    let ids = table.copy(source)?;
    let whole = table.copy(source)?;
    let size = table.stride as usize;
    for (index, (first, entry)) in
        ids.entries(size).zip(whole.entries(size)).enumerate().skip(names.len())
    {
        match first.u32(offset_of!(layout::Name, id)) {
            0 => break,
            id if id as usize == index + 1 => names.push(text_of(entry)?),
            id => return Err(refused(entry.offset, format!("the name has the id {id}"))),
        }
    }
    Ok(())
}

fn text_of(entry: Entry) -> Result<String, ReadError> {
    let length = usize::from(entry.u16(offset_of!(layout::Name, length)));
    if length == 0 || length > layout::NAME_BYTES {
        return Err(refused(entry.offset, format!("a name of {length} bytes")));
    }
    let text = entry.part(offset_of!(layout::Name, text), length);
    match std::str::from_utf8(text.bytes) {
        Ok(text) if !text.chars().any(char::is_control) => Ok(text.to_owned()),
        _ => Err(refused(text.offset, "the name is not plain text")),
    }
}

/// A name by its id.
pub(crate) fn name_of(names: &[String], id: u32, offset: u64) -> Result<&String, ReadError> {
    (id as usize)
        .checked_sub(1)
        .and_then(|index| names.get(index))
        .ok_or_else(|| refused(offset, format!("there is no name {id}")))
}

/// The flows so far, and all names that they use.
pub(crate) fn read_flows(
    source: &impl Source,
    tables: &Tables,
    names: &mut Vec<String>,
) -> Result<Vec<Flow>, ReadError> {
    let table = &tables.flows;
    let size = table.stride as usize;
    let ids = table.copy(source)?;
    let whole = table.copy(source)?;
    // After the flows, so that each name that they use is there.
    read_names(source, &tables.names, names)?;
    let mut flows = Vec::new();
    for (index, (first, entry)) in ids.entries(size).zip(whole.entries(size)).enumerate() {
        match first.u32(offset_of!(layout::Flow, id)) {
            0 => break,
            id if id as usize == index + 1 => flows.push(flow(id, entry, names)?),
            id => return Err(refused(entry.offset, format!("the flow has the id {id}"))),
        }
    }
    Ok(flows)
}

fn flow(id: u32, entry: Entry, names: &[String]) -> Result<Flow, ReadError> {
    let name = |at: usize| name_of(names, entry.u32(at), entry.offset + at as u64).cloned();
    let number = entry.u32(offset_of!(layout::Flow, points)) as usize;
    if number > layout::POINTS {
        return Err(refused(entry.offset, format!("the flow has {number} points")));
    }
    let cells = |from: usize, count: usize| (0..count).map(move |index| from + index * 4);
    let publishes = || {
        cells(offset_of!(layout::Flow, publish), layout::PUBLISHES)
            .take_while(|at| entry.u32(*at) != 0)
    };
    Ok(Flow {
        id,
        name: name(offset_of!(layout::Flow, name))?,
        points: cells(offset_of!(layout::Flow, point), number)
            .map(name)
            .collect::<Result<_, _>>()?,
        publishes: publishes().map(name).collect::<Result<_, _>>()?,
        publish_ids: publishes().map(|at| entry.u32(at)).collect(),
        threshold: entry.u64(offset_of!(layout::Flow, threshold)),
        begun: entry
            .u64(offset_of!(layout::Flow, begun))
            .wrapping_add(entry.u64(offset_of!(layout::Flow, begun_by_first))),
        abandoned: entry.u64(offset_of!(layout::Flow, abandoned)),
        undeclared: entry.u64(offset_of!(layout::Flow, undeclared)),
    })
}

/// The threads so far, each with its current message.
pub(crate) fn read_threads(source: &impl Source, table: &Table) -> Result<Vec<Raw>, ReadError> {
    let size = table.stride as usize;
    let states = table.copy(source)?;
    let whole = table.copy(source)?;
    let after = table.copy(source)?;
    let mut threads = Vec::new();
    let entries = states.entries(size).zip(whole.entries(size)).zip(after.entries(size));
    for (index, ((first, entry), after)) in entries.enumerate() {
        if first.u32(offset_of!(layout::Thread, state)) == CLAIMED {
            threads.push(Raw {
                thread: thread(index as u32, entry),
                current: current(&entry, &first, &after),
                offset: entry.offset,
            });
        }
    }
    Ok(threads)
}

/// A thread whose current message is not checked yet.
pub(crate) struct Raw {
    pub thread: Thread,
    pub current: Option<RawMessage>,
    pub offset: u64,
}

/// A message whose ids are not checked yet.
pub(crate) struct RawMessage {
    pub message: MessageInLogic,
    pub last_name: u32,
}

fn thread(index: u32, entry: Entry) -> Thread {
    let comm = entry.array::<16>(offset_of!(layout::Thread, comm));
    let end = comm.iter().position(|byte| *byte == 0).unwrap_or(comm.len());
    // Programs choose the names of their threads: any bytes may be there.
    let comm = String::from_utf8_lossy(&comm[..end]);
    Thread {
        index,
        tid: entry.u32(offset_of!(layout::Thread, tid)),
        start: entry.u64(offset_of!(layout::Thread, start)),
        comm: comm.chars().map(|c| if c.is_control() { '?' } else { c }).collect(),
        messages: entry.u64(offset_of!(layout::Thread, recent)),
        slow_messages: entry.u64(offset_of!(layout::Thread, slow)),
        current: None,
    }
}

/// The current message, if there is one and nobody changed it between the first copy and the last.
fn current(entry: &Entry, first: &Entry, after: &Entry) -> Option<RawMessage> {
    let place = offset_of!(layout::Thread, current);
    let sequence = |entry: &Entry| entry.u64(place + offset_of!(Current, sequence));
    let line = entry.part(place, size_of::<Current>());
    let is_whole = sequence(first) == sequence(after) && sequence(first) % 2 == 0;
    if !is_whole || line.u32(offset_of!(Current, state)) != IN_LOGIC {
        return None;
    }
    Some(RawMessage {
        message: MessageInLogic {
            id: line.u64(offset_of!(Current, id)),
            flow: line.u32(offset_of!(Current, flow)),
            t0: line.u64(offset_of!(Current, t0)),
            logic_start: line.u64(offset_of!(Current, logic_start)),
            last: line.u64(offset_of!(Current, last)),
            last_name: None,
        },
        last_name: line.u32(offset_of!(Current, last_name)),
    })
}
