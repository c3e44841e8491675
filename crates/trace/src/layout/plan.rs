//! How long a file becomes, and where its sections lie.

use std::mem::size_of;

use super::{
    Block, FLOWS, Flow, HISTOGRAMS, Header, NAMES, Name, RECENT, Record, SLOW, THREADS, Thread,
};

/// How many entries a file has of each kind, and so where its sections lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    pub names: usize,
    pub flows: usize,
    pub threads: usize,
    /// Records of one ring, a power of two.
    pub recent: usize,
    /// Records of one ring, a power of two.
    pub slow: usize,
    pub blocks: usize,
}

/// A section of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub kind: u32,
    pub entry_bytes: usize,
    pub entries: usize,
    pub offset: usize,
}

impl Plan {
    /// The sections, in the order in which they lie in the file, without room between them: every
    /// entry is a multiple of 64 bytes.
    pub fn places(&self) -> [Place; 6] {
        let mut offset = size_of::<Header>();
        [
            (NAMES, size_of::<Name>(), self.names),
            (FLOWS, size_of::<Flow>(), self.flows),
            (THREADS, size_of::<Thread>(), self.threads),
            (RECENT, size_of::<Record>(), self.threads * self.recent),
            (SLOW, size_of::<Record>(), self.threads * self.slow),
            (HISTOGRAMS, size_of::<Block>(), self.blocks),
        ]
        .map(|(kind, entry_bytes, entries)| {
            let place = Place { kind, entry_bytes, entries, offset };
            offset += entry_bytes * entries;
            place
        })
    }

    /// Length of the file in bytes.
    pub fn length(&self) -> usize {
        let [.., last] = self.places();
        last.offset + last.entries * last.entry_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_lie_apart_at_multiples_of_64() {
        let plan = Plan { names: 3, flows: 1, threads: 5, recent: 2, slow: 4, blocks: 7 };
        let mut free = 4096;
        for place in plan.places() {
            assert_eq!(place.offset % 64, 0);
            assert_eq!(place.offset, free);
            free += place.entries * place.entry_bytes;
        }
        assert_eq!(plan.length(), free);
    }
}
