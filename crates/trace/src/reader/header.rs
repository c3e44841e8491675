//! The head of a file, checked: who wrote it, and where its sections lie.

use std::mem::{offset_of, size_of};

use super::error::{ReadError, refused};
use super::source::{Copied, Entry, Source};
use crate::layout::{self, Block, Flow, Header, Name, Record, Section, Thread};

/// Who wrote a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// As the writer's own pid namespace counts.
    pub pid: u32,
    /// When that process started, clock ticks since boot.
    pub start: u64,
    /// Inode of its pid namespace.
    pub pid_namespace: u64,
    /// The boot it ran in.
    pub boot_id: String,
    /// What the writer was written in.
    pub language: Language,
    /// Minor version of the format.
    pub minor: u16,
    /// When the file was made, ns since 1970.
    pub created_since_1970: u64,
    /// When the file was made, CLOCK_MONOTONIC.
    pub created: u64,
}

/// What a writer was written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// This crate.
    Rust,
    /// Its header for C and C++.
    C,
    /// The Java module.
    Java,
    /// One that is not known yet.
    Other(u32),
}

/// Where a kind of entries lies.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Table {
    pub offset: u64,
    /// Bytes of an entry as stored: at least those of this version.
    pub stride: u64,
    pub entries: usize,
}

impl Table {
    /// The offset of an entry; `index` is below `entries`, so that it lies inside the file.
    pub fn at(&self, index: usize) -> u64 {
        self.offset + self.stride * index as u64
    }

    pub fn copy(&self, source: &impl Source) -> Result<Copied, ReadError> {
        Copied::acquire(source, self.offset, self.stride as usize * self.entries)
    }
}

/// The tables of a file, all checked against its length.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tables {
    pub names: Table,
    pub flows: Table,
    pub threads: Table,
    pub recent: Table,
    pub slow: Table,
    pub blocks: Table,
}

impl Tables {
    /// Records in the ring of one thread.
    pub fn ring(&self, table: &Table) -> usize {
        table.entries.checked_div(self.threads.entries).unwrap_or(0)
    }
}

pub(crate) fn read(source: &impl Source) -> Result<(Identity, Tables), ReadError> {
    let length = source.length().map_err(|source| ReadError::Read { offset: 0, source })?;
    if length < size_of::<Header>() as u64 {
        return Err(refused(0, format!("{length} bytes are too few for a header")));
    }
    if length > layout::MOST_BYTES {
        return Err(refused(0, format!("{length} bytes are more than a trace may have")));
    }
    let copy = Copied::acquire(source, 0, size_of::<Header>())?;
    let header = copy.entry();
    let at = |offset: usize| offset as u64;
    if header.u64(offset_of!(Header, magic)) != layout::MAGIC {
        return Err(refused(0, "the magic of a trace is missing"));
    }
    let byte_order = offset_of!(Header, byte_order);
    if header.u32(byte_order) != layout::BYTE_ORDER {
        return Err(refused(at(byte_order), "the byte order is another"));
    }
    let version = offset_of!(Header, version);
    if header.u16(version) != layout::MAJOR {
        return Err(ReadError::Version(header.u16(version)));
    }
    let stated = offset_of!(Header, length);
    if header.u64(stated) != length {
        return Err(refused(at(stated), format!("the length is not the file's, {length}")));
    }
    let clock = offset_of!(Header, clock);
    if header.u32(clock) != layout::CLOCK_MONOTONIC {
        return Err(refused(at(clock), "the clock is not CLOCK_MONOTONIC"));
    }
    let boot_id = offset_of!(Header, boot_id);
    let text = header.array::<36>(boot_id);
    if !text.iter().all(|byte| byte.is_ascii_hexdigit() || *byte == b'-') {
        return Err(refused(at(boot_id), "the boot id is none"));
    }
    let identity = Identity {
        pid: header.u32(offset_of!(Header, pid)),
        start: header.u64(offset_of!(Header, start)),
        pid_namespace: header.u64(offset_of!(Header, pid_namespace)),
        boot_id: String::from_utf8_lossy(&text).into_owned(),
        language: match header.u32(offset_of!(Header, language)) {
            1 => Language::Rust,
            2 => Language::C,
            3 => Language::Java,
            other => Language::Other(other),
        },
        minor: header.u16(version + 2),
        created_since_1970: header.u64(offset_of!(Header, created_unix)),
        created: header.u64(offset_of!(Header, created)),
    };
    Ok((identity, tables(header, length)?))
}

fn tables(header: Entry, length: u64) -> Result<Tables, ReadError> {
    let number = offset_of!(Header, sections);
    let sections = header.u32(number) as usize;
    if sections > layout::MOST_SECTIONS {
        return Err(refused(number as u64, format!("{sections} sections are too many")));
    }
    let mut tables = Tables::default();
    let mut taken = vec![(0, size_of::<Header>() as u64)];
    for index in 0..sections {
        let size = size_of::<Section>();
        let entry = header.part(offset_of!(Header, table) + index * size, size);
        let (kind, range) = section(entry, length, &mut tables)?;
        if taken.iter().any(|(from, to)| range.0 < *to && *from < range.1) {
            return Err(refused(entry.offset, format!("section {kind} lies in another")));
        }
        taken.push(range);
    }
    let Tables { names, flows, threads, recent, slow, blocks } = &tables;
    for (index, table) in [names, flows, threads, recent, slow, blocks].into_iter().enumerate() {
        if table.stride == 0 {
            return Err(refused(number as u64, format!("section {} is missing", index + 1)));
        }
    }
    check_rings(number as u64, &tables)?;
    Ok(tables)
}

/// Takes in one section, and gives its kind and the range of bytes that it covers.
fn section(entry: Entry, length: u64, tables: &mut Tables) -> Result<(u32, (u64, u64)), ReadError> {
    let kind = entry.u32(offset_of!(Section, kind));
    let stride = u64::from(entry.u32(offset_of!(Section, entry_bytes)));
    let entries = entry.u64(offset_of!(Section, entries));
    let offset = entry.u64(offset_of!(Section, offset));
    let bytes = entry.u64(offset_of!(Section, length));
    let wrong = |what: &str| Err(refused(entry.offset, format!("section {kind} {what}")));
    let end = match offset.checked_add(bytes) {
        Some(end) if end <= length => end,
        _ => return wrong("reaches beyond the file"),
    };
    if !offset.is_multiple_of(64) {
        return wrong("does not begin at a multiple of 64");
    }
    if entries.checked_mul(stride).is_none_or(|needed| needed > bytes) {
        return wrong("is shorter than its entries");
    }
    let (table, least, most) = match kind {
        layout::NAMES => (&mut tables.names, size_of::<Name>(), layout::MOST_NAMES),
        layout::FLOWS => (&mut tables.flows, size_of::<Flow>(), layout::MOST_FLOWS),
        layout::THREADS => (&mut tables.threads, size_of::<Thread>(), layout::MOST_THREADS),
        layout::RECENT => (&mut tables.recent, size_of::<Record>(), usize::MAX),
        layout::SLOW => (&mut tables.slow, size_of::<Record>(), usize::MAX),
        layout::HISTOGRAMS => (&mut tables.blocks, size_of::<Block>(), layout::MOST_BLOCKS),
        // Of a later minor version.
        _ => return Ok((kind, (offset, end))),
    };
    if table.stride != 0 {
        return wrong("is there twice");
    }
    if stride < least as u64 || stride % 8 != 0 {
        return wrong("has entries of another size");
    }
    if stride > least as u64 * layout::MOST_GROWTH {
        return wrong("has entries of implausible size");
    }
    let entries = usize::try_from(entries).unwrap_or(usize::MAX);
    if entries > most {
        return wrong("has too many entries");
    }
    *table = Table { offset, stride, entries };
    Ok((kind, (offset, end)))
}

fn check_rings(offset: u64, tables: &Tables) -> Result<(), ReadError> {
    for (kind, table) in [("recent", tables.recent), ("slow", tables.slow)] {
        let ring = tables.ring(&table);
        let fits = ring.is_power_of_two() && ring * tables.threads.entries == table.entries;
        if table.entries > 0 && !fits {
            return Err(refused(offset, format!("the {kind} rings are no powers of two")));
        }
    }
    Ok(())
}
