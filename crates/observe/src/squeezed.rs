//! Records that wait with less room: the end of a thread is some 800 bytes, most of them accounts that
//! it never had.

const WORD: usize = 8;

/// The bytes of a record without those of its words that are zero.
pub struct Squeezed {
    /// A bit for each word that is there; then these words.
    bytes: Box<[u8]>,
    length: usize,
}

impl Squeezed {
    pub fn new(record: &[u8]) -> Squeezed {
        let words = record.len().div_ceil(WORD);
        let mut bytes = vec![0; words.div_ceil(WORD)];
        for (place, word) in record.chunks(WORD).enumerate() {
            if word.iter().any(|byte| *byte != 0) {
                bytes[place / 8] |= 1 << (place % 8);
                bytes.extend(word);
            }
        }
        Squeezed { bytes: bytes.into(), length: record.len() }
    }

    /// The record as it was.
    pub fn record(&self) -> Vec<u8> {
        let (there, words) = self.bytes.split_at(self.length.div_ceil(WORD).div_ceil(WORD));
        let mut words = words.chunks(WORD);
        let mut record = vec![0; self.length];
        for (place, word) in record.chunks_mut(WORD).enumerate() {
            if there[place / 8] >> (place % 8) & 1 == 1
                && let Some(kept) = words.next()
            {
                word.copy_from_slice(kept);
            }
        }
        record
    }

    /// Bytes of memory that it takes.
    pub fn memory(&self) -> usize {
        size_of::<Squeezed>() + self.bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_comes_back_as_it_was_whatever_it_is() {
        let some = |length: usize, every: usize| {
            (0..length).map(|at| if at % every == 0 { at as u8 } else { 0 }).collect::<Vec<u8>>()
        };
        for record in [vec![], vec![0; 800], vec![7; 803], some(800, 1), some(797, 9), some(64, 63)]
        {
            assert_eq!(Squeezed::new(&record).record(), record);
        }
    }

    #[test]
    fn zeros_take_an_eighth_of_a_byte_for_eight() {
        let mut record = vec![0; 800];
        record[400] = 1;
        assert_eq!(Squeezed::new(&record).bytes.len(), 13 + 8);
    }
}
