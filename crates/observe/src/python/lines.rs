//! The line of an instruction, by the table that a code object has from 3.11 on
//! (Objects/locations.md of CPython).
//!
//! Each entry begins with a byte whose highest bit is set: four bits say its form, three for how
//! many instructions it is, less one. An instruction has two bytes. What follows depends on the form;
//! only forms 10 to 14 can change the line, by a difference to the entry before.

/// Bytes of an instruction.
const INSTRUCTION: u64 = 2;

/// The line of the instruction at an offset, bytes; `None` where it has none, or the table ends
/// before, as one does that was too long to be copied.
pub fn line(table: &[u8], first: u32, offset: u64) -> Option<u32> {
    let mut table = Table(table);
    let mut line = i64::from(first);
    let mut end = 0;
    loop {
        let head = table.next()?;
        if head & 0x80 == 0 {
            return None;
        }
        let form = head >> 3 & 15;
        let change = match form {
            0..=9 => table.skip(1).map(|()| 0)?,
            10..=12 => table.skip(2).map(|()| i64::from(form - 10))?,
            13 => table.signed()?,
            14 => {
                let change = table.signed()?;
                for _ in 0..3 {
                    table.number()?;
                }
                change
            }
            _ => 0,
        };
        line = line.checked_add(change)?;
        end += INSTRUCTION * u64::from((head & 7) + 1);
        if offset < end {
            let has_line = form != 15;
            return u32::try_from(line).ok().filter(|_| has_line);
        }
    }
}

struct Table<'t>(&'t [u8]);

impl Table<'_> {
    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn skip(&mut self, bytes: usize) -> Option<()> {
        self.0 = self.0.get(bytes..)?;
        Some(())
    }

    /// Six bits a byte, the lowest first; the seventh bit says that there are more.
    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..60).step_by(6) {
            let byte = self.next()?;
            number |= u64::from(byte & 63) << shift;
            if byte & 64 == 0 {
                return Some(number);
            }
        }
        None
    }

    /// The lowest bit is the sign.
    fn signed(&mut self) -> Option<i64> {
        let number = self.number()?;
        let size = (number >> 1) as i64;
        Some(if number & 1 == 1 { -size } else { size })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `co_linetable` of Python 3.11 for this function at line 10, as `co_lines()` reads it:
    ///
    /// ```python
    /// def f(x):
    ///     if x:
    ///
    ///
    ///         return g(
    ///             x)
    ///     return 0
    /// ```
    const TABLE: &[u8] = &[
        0x80, 0x00, 0xd8, 0x07, 0x08, 0xf0, 0x00, 0x04, 0x05, 0x0f, 0xf5, 0x06, 0x00, 0x10, 0x11,
        0xd8, 0x0c, 0x0d, 0xf1, 0x03, 0x01, 0x10, 0x0f, 0xf4, 0x00, 0x01, 0x10, 0x0f, 0xf0, 0x00,
        0x01, 0x09, 0x0f, 0xe0, 0x0b, 0x0c, 0x88, 0x31,
    ];

    #[test]
    fn lines_are_those_of_python() {
        let of_python =
            [(0..2, 10), (2..6, 11), (6..18, 14), (18..20, 15), (20..36, 14), (36..40, 16)];
        for (offsets, expected) in of_python {
            for offset in offsets {
                assert_eq!(line(TABLE, 10, offset), Some(expected), "at {offset}");
            }
        }
        assert_eq!(line(TABLE, 10, 40), None);
    }

    #[test]
    fn forms_that_change_the_line_do_and_others_do_not() {
        // Two instructions without a column, one line on; three of a long entry, two lines back.
        let table = [0xe9, 0x02, 0xf2, 0x05, 0x00, 0x01, 0x01, 0xf8, 0x80, 0x00];
        let line = |offset| line(&table, 100, offset);
        assert_eq!([0, 2, 3].map(line), [Some(101); 3]);
        assert_eq!([4, 9].map(line), [Some(99); 2]);
        assert_eq!(line(10), None, "it has no line");
        assert_eq!(line(12), Some(99));
        assert_eq!(line(14), None, "beyond the end");
    }

    #[test]
    fn numbers_of_several_bytes() {
        // 64 + 3 * 64 = 0b11_000000, negative: (96 << 1 | 1) = 193 = 0b11_000001.
        let table = [0xe8, 0x40 | 1, 3];
        assert_eq!(line(&table, 200, 0), Some(200 - 96));
        assert_eq!(line(&table, 90, 0), None, "no line is below 0");
    }

    #[test]
    fn no_table_is_a_panic() {
        for length in 0..TABLE.len() {
            for offset in [0, 7, 1 << 40, u64::MAX] {
                line(&TABLE[..length], 10, offset);
            }
        }
        for byte in 0..=255 {
            assert_eq!(line(&[byte; 64], u32::MAX, u64::MAX), None);
        }
    }
}
