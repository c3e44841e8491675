//! The buckets of a histogram as a blob: for each bucket the distance from the last index and the
//! count, both as varints (LEB128), the whole deflated. About one byte per bucket.

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use model::Histogram;

/// A blob that [`pack`] did not write.
#[derive(Debug, thiserror::Error)]
#[error("the buckets of a histogram are unreadable")]
pub(super) struct UnreadableBuckets;

/// Writes blobs. Its working memory (some 100 KiB) is kept from one to the next.
pub(super) struct Packer(Compress);

/// Reads blobs, likewise.
pub(super) struct Unpacker(Decompress);

impl Packer {
    pub fn new() -> Packer {
        Packer(Compress::new(Compression::fast(), false))
    }

    /// The blob of a histogram's buckets.
    pub fn pack(&mut self, histogram: &Histogram) -> rusqlite::Result<Vec<u8>> {
        let mut plain = Vec::new();
        let mut last = 0;
        for (index, count) in histogram.buckets() {
            push_varint(&mut plain, u64::from(index - last));
            push_varint(&mut plain, count);
            last = index;
        }
        self.0.reset();
        // Deflate adds 5 bytes at most to each 64 KiB that it cannot shrink.
        let mut blob = Vec::with_capacity(plain.len() + plain.len() / 1000 + 64);
        match self.0.compress_vec(&plain, &mut blob, FlushCompress::Finish) {
            Ok(Status::StreamEnd) => Ok(blob),
            _ => Err(rusqlite::Error::ToSqlConversionFailure("deflate failed".into())),
        }
    }
}

impl Unpacker {
    pub fn new() -> Unpacker {
        Unpacker(Decompress::new(false))
    }

    /// (index, count) of each bucket of a histogram of this precision.
    pub fn unpack(
        &mut self,
        blob: &[u8],
        precision: u8,
    ) -> Result<Vec<(u32, u64)>, UnreadableBuckets> {
        if precision > MAX_PRECISION {
            return Err(UnreadableBuckets);
        }
        let plain = self.inflate(blob)?;
        let highest = u64::from(Histogram::index_of(u64::MAX, precision));
        let mut rest = plain.as_slice();
        let mut index = 0u64;
        let mut buckets = Vec::new();
        while !rest.is_empty() {
            let (distance, count) = (take_varint(&mut rest)?, take_varint(&mut rest)?);
            index = index.saturating_add(distance);
            if index > highest {
                return Err(UnreadableBuckets);
            }
            buckets.push((index as u32, count));
        }
        Ok(buckets)
    }

    fn inflate(&mut self, blob: &[u8]) -> Result<Vec<u8>, UnreadableBuckets> {
        self.0.reset(false);
        let mut plain = Vec::with_capacity(4096);
        loop {
            let read = self.0.total_in() as usize;
            let status = self
                .0
                .decompress_vec(&blob[read..], &mut plain, FlushDecompress::None)
                .map_err(|_| UnreadableBuckets)?;
            match status {
                Status::StreamEnd => return Ok(plain),
                _ if plain.len() < plain.capacity() || plain.len() > MAX_PLAIN_BYTES => {
                    return Err(UnreadableBuckets);
                }
                _ => plain.reserve(plain.len()),
            }
        }
    }
}

/// As `Histogram::new` says.
const MAX_PRECISION: u8 = 14;

/// A histogram of the highest precision with every bucket at its longest would take this much.
const MAX_PLAIN_BYTES: usize = (65 << MAX_PRECISION) * 20;

fn push_varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

fn take_varint(bytes: &mut &[u8]) -> Result<u64, UnreadableBuckets> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first().ok_or(UnreadableBuckets)?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(UnreadableBuckets)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there_and_back(precision: u8, values: impl Iterator<Item = u64>) -> usize {
        let mut histogram = Histogram::new(precision);
        values.for_each(|value| histogram.record(value));
        let blob = Packer::new().pack(&histogram).unwrap();
        let buckets = Unpacker::new().unpack(&blob, precision).unwrap();
        assert_eq!(buckets, histogram.buckets().collect::<Vec<_>>());
        blob.len()
    }

    #[test]
    fn buckets_survive() {
        there_and_back(5, std::iter::empty());
        there_and_back(5, [0, 1, u64::MAX].into_iter());
        there_and_back(14, (0..2_000_000).map(|n: u64| n * n));
        let bytes = there_and_back(5, (1..5000).map(|n| 200 * n + n * n * n));
        assert!(bytes < 700, "{bytes} bytes");
    }

    #[test]
    fn huge_counts_survive() {
        let histogram = Histogram::from_parts(7, [(3, u64::MAX - 9), (900, 9)], 1, 1, 1);
        let blob = Packer::new().pack(&histogram).unwrap();
        let buckets = Unpacker::new().unpack(&blob, 7).unwrap();
        assert_eq!(buckets, [(3, u64::MAX - 9), (900, 9)]);
    }

    #[test]
    fn damage_is_refused_and_the_next_blob_read() {
        let mut histogram = Histogram::new(5);
        (0..1000).for_each(|n| histogram.record(n * 977));
        let mut packer = Packer::new();
        let blob = packer.pack(&histogram).unwrap();
        let mut unpacker = Unpacker::new();
        assert!(unpacker.unpack(&blob[..blob.len() / 2], 5).is_err(), "cut short");
        assert!(unpacker.unpack(&[0xff; 9], 5).is_err(), "not deflated");
        assert!(unpacker.unpack(&blob, 15).is_err(), "impossible precision");
        let beyond = Histogram::from_parts(14, [(1 << 19, 1)], 1, 1, 1);
        let blob_beyond = packer.pack(&beyond).unwrap();
        assert!(unpacker.unpack(&blob_beyond, 5).is_err(), "beyond the last bucket");
        assert!(unpacker.unpack(&blob, 5).is_ok());
    }
}
