//! From the measuring thread to the one that counts, without a lock: the former must not wait.

use std::sync::atomic::{AtomicU64, Ordering};

/// Slots at most: 8 MB.
const MOST: u64 = 1 << 18;

/// Ticks served at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Number of the first of them.
    pub number: u64,
    /// How many.
    pub ticks: u64,
    /// When, CLOCK_MONOTONIC.
    pub at_ns: u64,
    /// The same moment, CLOCK_MONOTONIC_RAW.
    pub raw_ns: u64,
}

/// One writer, one reader.
pub struct Ring {
    slots: Box<[[AtomicU64; 4]]>,
    written: AtomicU64,
    read: AtomicU64,
    lost: AtomicU64,
}

impl Ring {
    /// For so many ticks, if they are not too many; else it has to be read meanwhile.
    pub fn new(ticks: u64) -> Ring {
        // Not zero: so the memory is really written to, and there when it is needed.
        let touched = || std::array::from_fn(|_| AtomicU64::new(u64::MAX));
        Ring {
            slots: (0..ticks.clamp(1, MOST)).map(|_| touched()).collect(),
            written: AtomicU64::new(0),
            read: AtomicU64::new(0),
            lost: AtomicU64::new(0),
        }
    }

    /// Writes a record; if there is no room, its ticks are counted as lost.
    pub fn put(&self, record: Record) {
        let at = self.written.load(Ordering::Relaxed);
        let size = self.slots.len() as u64;
        if at - self.read.load(Ordering::Acquire) >= size {
            self.lost.fetch_add(record.ticks, Ordering::Relaxed);
            return;
        }
        let words = [record.number, record.ticks, record.at_ns, record.raw_ns];
        for (slot, word) in self.slots[(at % size) as usize].iter().zip(words) {
            slot.store(word, Ordering::Relaxed);
        }
        self.written.store(at + 1, Ordering::Release);
    }

    /// Takes the next record.
    pub fn take(&self) -> Option<Record> {
        let at = self.read.load(Ordering::Relaxed);
        if at == self.written.load(Ordering::Acquire) {
            return None;
        }
        let slot = &self.slots[(at % self.slots.len() as u64) as usize];
        let [number, ticks, at_ns, raw_ns] =
            std::array::from_fn(|word| slot[word].load(Ordering::Relaxed));
        self.read.store(at + 1, Ordering::Release);
        Some(Record { number, ticks, at_ns, raw_ns })
    }

    /// Ticks for which there was no room.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_written_is_read_in_order_or_counted_as_lost() {
        let ring = Ring::new(100);
        const ALL: u64 = 200_000;
        let read = std::thread::scope(|scope| {
            scope.spawn(|| {
                for number in 0..ALL {
                    ring.put(Record { number, ticks: 1, at_ns: number * 3, raw_ns: number * 5 });
                }
            });
            let mut read: Vec<Record> = Vec::new();
            while read.len() as u64 + ring.lost() < ALL {
                read.extend(ring.take());
            }
            read
        });
        assert!(read.windows(2).all(|two| two[0].number < two[1].number));
        assert!(read.iter().all(|r| r.at_ns == r.number * 3 && r.raw_ns == r.number * 5));
        assert!(!read.is_empty() && ring.take().is_none());
    }
}
