//! What a tracer that keeps each message's times cannot do without: the clock reads, the stores of
//! the times beside the message, and the record that another process reads while it is written.
//! With histograms, also one increment for each time: 28 histograms of whylag's size, from which
//! nothing but buckets is kept.

use std::cell::RefCell;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use trace::now;

use crate::{BATCH, MARKS, Tracer};

/// As many records, and as large ones, as a thread of whylag has.
const RECORDS: usize = 64;
const WORDS: usize = 64;
const HISTOGRAMS: usize = 28;
const BUCKETS: usize = 1056;

/// The times of a message, in two cache lines of which each thread writes one.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
pub struct Times {
    id: u64,
    received: [u64; 3],
    logic: Line,
}

#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct Line([u64; 5]);

struct Lane {
    records: Vec<[AtomicU64; WORDS]>,
    written: u64,
    buckets: Vec<[AtomicU64; BUCKETS]>,
}

thread_local! {
    static LANE: RefCell<Lane> = RefCell::new(Lane {
        records: (0..RECORDS).map(|_| [const { AtomicU64::new(0) }; WORDS]).collect(),
        written: 0,
        buckets: (0..HISTOGRAMS).map(|_| [const { AtomicU64::new(0) }; BUCKETS]).collect(),
    });
}

fn receive(batch: &mut [Times]) {
    for (id, times) in batch.iter_mut().enumerate() {
        times.id = id as u64;
        for time in &mut times.received {
            *time = now();
        }
        black_box(times);
    }
}

/// `ended` is called with each message once its times are there.
fn logic(batch: &mut [Times], ended: impl Fn(&mut Lane, &Times)) {
    LANE.with_borrow_mut(|lane| {
        for times in batch {
            for time in &mut times.logic.0 {
                *time = now();
            }
            ended(lane, times);
            write(lane, times);
        }
    });
}

fn write(lane: &mut Lane, times: &Times) {
    let slot = &lane.records[lane.written as usize % RECORDS];
    slot[0].store(0, Ordering::Relaxed);
    fence(Ordering::Release);
    slot[1].store(times.id, Ordering::Relaxed);
    for (word, time) in slot[2..].iter().zip(times.received.iter().chain(&times.logic.0)) {
        word.store(*time, Ordering::Relaxed);
    }
    fence(Ordering::Release);
    lane.written += 1;
    slot[WORDS - 1].store(lane.written, Ordering::Relaxed);
    slot[0].store(lane.written, Ordering::Relaxed);
}

/// One bucket of a histogram of its own for the time since each mark but the last, and one for the
/// whole.
fn count(lane: &mut Lane, times: &Times) {
    let all: [u64; MARKS as usize] =
        std::array::from_fn(|n| if n < 3 { times.received[n] } else { times.logic.0[n - 3] });
    let gaps = all.windows(2).map(|pair| pair[1].saturating_sub(pair[0]));
    let whole = all[MARKS as usize - 1].saturating_sub(all[0]);
    for (histogram, gap) in lane.buckets.iter().zip(gaps.chain([whole])) {
        let shift = (64 - (gap | 1).leading_zeros()).saturating_sub(6);
        let bucket = ((shift << 5) as usize + (gap >> shift) as usize).min(BUCKETS - 1);
        let bucket = &histogram[bucket];
        bucket.store(bucket.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}

/// The clock reads and the stores; with `COUNTS` also a bucket for each duration.
pub struct Floor<const COUNTS: bool>;

impl<const COUNTS: bool> Tracer for Floor<COUNTS> {
    type Batch = Vec<Times>;

    fn batch() -> Vec<Times> {
        vec![Times::default(); BATCH]
    }

    fn receive(batch: &mut Vec<Times>) {
        receive(batch);
    }

    fn logic(batch: &mut Vec<Times>) {
        match COUNTS {
            true => logic(batch, count),
            false => logic(batch, |_, _| ()),
        }
    }
}
