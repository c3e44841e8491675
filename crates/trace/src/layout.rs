//! Where everything lies in a trace file, and nothing else: version 1.0 of docs/trace-format.md.
//!
//! ```text
//!     0 +----------------------+
//!       | Header               |  4096 bytes; names the sections that follow
//!  4096 +----------------------+
//!       | names      Name[]    |  appended; everything else speaks of names by id
//!       | flows      Flow[]    |  id = index + 1
//!       | threads    Thread[]  |  index = the lane of a thread
//!       | recent     Record[]  |  threads x records per ring
//!       | slow       Record[]  |  the same, of slow messages only
//!       | histograms Block[]   |  one per thread and flow that meet
//!       +----------------------+
//! ```
//!
//! The writer lays these structures over shared memory; the reader takes their offsets and parses
//! copies. Little-endian only: on another machine the crate does not compile.

mod plan;

use std::mem::{offset_of, size_of};

pub use self::plan::{Place, Plan};
use crate::word::{U32, U64};

#[cfg(not(target_endian = "little"))]
compile_error!("the trace format is little-endian");

pub const MAGIC: u64 = u64::from_le_bytes(*b"WHYLAGT\n");
pub const MAJOR: u16 = 1;
pub const MINOR: u16 = 0;
pub const BYTE_ORDER: u32 = 0x0102_0304;

pub const LANGUAGE_RUST: u32 = 1;
pub const RUNNING: u32 = 1;
pub const CLOSED: u32 = 2;
pub const CLOCK_MONOTONIC: u32 = 1;

pub const NAMES: u32 = 1;
pub const FLOWS: u32 = 2;
pub const THREADS: u32 = 3;
pub const RECENT: u32 = 4;
pub const SLOW: u32 = 5;
pub const HISTOGRAMS: u32 = 6;

pub const MOST_SECTIONS: usize = 16;
pub const MOST_NAMES: usize = 4096;
pub const MOST_FLOWS: usize = 16;
pub const MOST_THREADS: usize = 256;
pub const MOST_BLOCKS: usize = 4096;
/// Entries of a later minor version may be longer, but not more than so many times.
pub const MOST_GROWTH: u64 = 4;
/// Bytes of a file.
pub const MOST_BYTES: u64 = 256 << 20;
/// Bytes of a name.
pub const NAME_BYTES: usize = 56;
/// Infrastructure points of a flow.
pub const POINTS: usize = 8;
/// Publishes of a flow that have a name, and publishes that a record keeps.
pub const PUBLISHES: usize = 16;

pub const FREE: u32 = 0;
pub const BEING_CLAIMED: u32 = 1;
pub const CLAIMED: u32 = 2;

/// No thread, no depth.
pub const UNKNOWN: u32 = u32::MAX;
/// A flag of a record.
pub const IS_SLOW: u32 = 1;
/// A state of the current message.
pub const IN_LOGIC: u32 = 1;

/// Least and most threshold, ns.
pub const THRESHOLD: std::ops::RangeInclusive<u64> = 1_000..=3_600_000_000_000;

/// ```text
///   0 magic            8 major 10 minor       12 byte order
///  16 length of file
///  24 pid             28 language
///  32 start of the process, ticks
///  40 pid namespace
///  48 boot id, 36 bytes               84 state
///  88 created, ns since 1970
///  96 created, CLOCK_MONOTONIC
/// 104 clock          108 number of sections
/// 112 table of sections, 16 x 32 bytes
/// 640 dropped threads
/// 648 dropped flows, points, names, blocks
/// 656 anchors, 1024 the last 64 of them: no use in version 1.0
/// ```
#[repr(C, align(64))]
pub struct Header {
    pub magic: U64,
    pub version: U32,
    pub byte_order: U32,
    pub length: U64,
    pub pid: U32,
    pub language: U32,
    pub start: U64,
    pub pid_namespace: U64,
    pub boot_id: [U32; 9],
    pub state: U32,
    pub created_unix: U64,
    pub created: U64,
    pub clock: U32,
    pub sections: U32,
    pub table: [Section; MOST_SECTIONS],
    reserved: [U64; 2],
    pub dropped_threads: U64,
    pub dropped_others: U64,
    pub anchors: U64,
    reserved_2: [U64; 45],
    anchor: [U64; 128],
    reserved_3: [U64; 256],
}

/// ```text
///   0 kind   4 bytes per entry   8 entries   16 offset   24 length
/// ```
#[repr(C)]
pub struct Section {
    pub kind: U32,
    pub entry_bytes: U32,
    pub entries: U64,
    pub offset: U64,
    pub length: U64,
}

/// ```text
///   0 id, written last   4 bytes of text (16 bits)   8 text, 56 bytes
/// ```
#[repr(C, align(64))]
pub struct Name {
    pub id: U32,
    pub length: U32,
    pub text: [U64; NAME_BYTES / 8],
}

/// ```text
///   0 id, written last   4 name   8 points   12 room for publishes
///  16 names of the points, 8 x 4 bytes
///  48 names of the publishes, 16 x 4 bytes
/// 112 threshold, ns
/// 192 begun   200 abandoned   208 marks of undeclared points   216 begun by the first thread: a
///     line of their own
/// ```
#[repr(C, align(64))]
pub struct Flow {
    pub id: U32,
    pub name: U32,
    pub points: U32,
    pub publishes: U32,
    pub point: [U32; POINTS],
    pub publish: [U32; PUBLISHES],
    pub threshold: U64,
    reserved: [U64; 9],
    pub begun: U64,
    pub abandoned: U64,
    pub undeclared: U64,
    pub begun_by_first: U64,
    reserved_2: [U64; 4],
}

/// ```text
///   0 state   4 tid   8 start   16 comm, 16 bytes
///  32 records written to the recent ring   40 to the slow one
///  64 the current message
/// ```
#[repr(C, align(64))]
pub struct Thread {
    pub state: U32,
    pub tid: U32,
    pub start: U64,
    pub comm: [U64; 2],
    pub recent: U64,
    pub slow: U64,
    reserved: [U64; 2],
    pub current: Current,
    reserved_2: [U64; 16],
}

/// ```text
///   0 sequence, odd while the line changes   8 message id
///  16 flow   20 state   24 t0   32 logic start   40 last mark   48 its name
/// ```
#[repr(C)]
pub struct Current {
    pub sequence: U64,
    pub id: U64,
    pub flow: U32,
    pub state: U32,
    pub t0: U64,
    pub logic_start: U64,
    pub last: U64,
    pub last_name: U32,
    reserved: [U32; 3],
}

/// ```text
///   0 sequence at the head: 0 while being written, else k + 1
///   8 message id   16 flow   20 flags
///  24 t0   32 logic start   40 end
///  48 depth of the queue   52 logic thread   56 publishes
///  64 longest gap
///  72 points, 8 x 16 bytes
/// 200 publishes, 16 x 16 bytes
/// 504 sequence at the tail: k + 1
/// ```
#[repr(C, align(64))]
pub struct Record {
    pub head: U64,
    pub id: U64,
    pub flow: U32,
    pub flags: U32,
    pub t0: U64,
    pub logic_start: U64,
    pub end: U64,
    pub depth: U32,
    pub thread: U32,
    pub publishes: U32,
    reserved: U32,
    pub longest_gap: U64,
    pub point: [Mark; POINTS],
    pub publish: [Mark; PUBLISHES],
    reserved_2: [U64; 6],
    pub tail: U64,
}

/// ```text
///   0 time   8 thread of a point, name of a publish
/// ```
#[repr(C)]
#[derive(Debug, Default)]
pub struct Mark {
    pub time: U64,
    pub what: U32,
    reserved: U32,
}

/// Histograms of a block.
pub const METRICS: usize = 28;
pub const TOTAL: usize = 0;
pub const INFRASTRUCTURE: usize = 1;
pub const LOGIC: usize = 2;
pub const GAP: usize = 3;
/// The first of 8.
pub const TO_POINT: usize = 4;
/// The first of 16.
pub const TO_PUBLISH: usize = 12;

/// ```text
///   0 state   4 thread   8 flow   64 histograms, 28 x 8512 bytes
/// ```
#[repr(C, align(64))]
pub struct Block {
    pub state: U32,
    pub thread: U32,
    pub flow: U32,
    reserved: [U32; 13],
    pub metrics: [Histogram; METRICS],
}

/// Buckets of a histogram: of all values below 2^37 ns (137 s); what is longer is in the last.
pub const BUCKETS: usize = 1056;

/// ```text
///   0 count   8 sum
///  16 second   24 maximum within it   32 an earlier second   40 its maximum
///  64 buckets, 1056 x 8 bytes
/// ```
#[repr(C, align(64))]
pub struct Histogram {
    pub count: U64,
    pub sum: U64,
    pub second: U64,
    pub maximum: U64,
    pub earlier_second: U64,
    pub earlier_maximum: U64,
    reserved: [U64; 2],
    pub buckets: [U64; BUCKETS],
}

/// The bucket that counts a value: 32 per power of two.
#[inline(always)]
pub fn bucket_of(value: u64) -> usize {
    let value = value.min((1 << 37) - 1);
    // `| 32` changes no value above it, and spares the look whether the shift is negative.
    let shift = (value | 32).ilog2() - 5;
    ((shift << 5) as usize) + (value >> shift) as usize
}

/// The lowest and the highest value that a bucket counts; of the last, the highest has no bound.
pub fn bounds_of(bucket: usize) -> (u64, u64) {
    let shift = (bucket >> 5).saturating_sub(1);
    let low = ((bucket - (shift << 5)) as u64) << shift;
    let high = if bucket + 1 >= BUCKETS { u64::MAX } else { low + ((1 << shift) - 1) };
    (low, high)
}

// What the page promises, checked when this is compiled.
const _: () = {
    assert!(size_of::<Header>() == 4096);
    assert!(offset_of!(Header, pid) == 24);
    assert!(offset_of!(Header, boot_id) == 48);
    assert!(offset_of!(Header, state) == 84);
    assert!(offset_of!(Header, clock) == 104);
    assert!(offset_of!(Header, table) == 112);
    assert!(offset_of!(Header, dropped_threads) == 640);
    assert!(offset_of!(Header, anchors) == 656);
    assert!(offset_of!(Header, anchor) == 1024);
    assert!(size_of::<Section>() == 32);
    assert!(size_of::<Name>() == 64);
    assert!(size_of::<Flow>() == 256);
    assert!(offset_of!(Flow, publish) == 48);
    assert!(offset_of!(Flow, threshold) == 112);
    assert!(offset_of!(Flow, begun) == 192);
    assert!(size_of::<Thread>() == 256);
    assert!(offset_of!(Thread, recent) == 32);
    assert!(offset_of!(Thread, current) == 64);
    assert!(size_of::<Current>() == 64);
    assert!(offset_of!(Current, last_name) == 48);
    assert!(size_of::<Record>() == 512);
    assert!(offset_of!(Record, depth) == 48);
    assert!(offset_of!(Record, longest_gap) == 64);
    assert!(offset_of!(Record, point) == 72);
    assert!(offset_of!(Record, publish) == 200);
    assert!(offset_of!(Record, tail) == 504);
    assert!(size_of::<Mark>() == 16);
    assert!(size_of::<Histogram>() == 8512);
    assert!(offset_of!(Histogram, buckets) == 64);
    assert!(offset_of!(Block, metrics) == 64);
    assert!(size_of::<Block>() == 64 + METRICS * 8512);
};

#[cfg(test)]
mod tests {
    use super::*;
    use model::Histogram as Model;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_value_is_in_the_bucket_of_the_model(value in 0u64..1 << 37) {
            prop_assert_eq!(bucket_of(value), Model::index_of(value, 5) as usize);
        }
    }

    #[test]
    fn buckets_are_those_of_the_model() {
        for bucket in 0..BUCKETS - 1 {
            assert_eq!(bounds_of(bucket), Model::bounds_of(bucket as u32, 5));
            assert_eq!(bucket_of(bounds_of(bucket).0), bucket);
            assert_eq!(bucket_of(bounds_of(bucket).1), bucket);
        }
        assert_eq!(bucket_of((1 << 37) - 1), BUCKETS - 1);
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }
}
