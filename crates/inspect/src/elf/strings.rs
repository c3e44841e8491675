//! Names in a string table.

use std::borrow::Cow;

/// A string table; names are its offsets, so that however many symbols share one name, it is kept
/// once.
#[derive(Clone, Debug, Default)]
pub(super) struct Strings(pub Vec<u8>);

impl Strings {
    /// Longer names are cut, bytes: the longest of C++ are a few thousand.
    pub const LONGEST_NAME: usize = 4096;

    /// The name at an offset; empty if there is none. Bytes that are not UTF-8 are replaced.
    pub fn name(&self, offset: u32) -> Cow<'_, str> {
        let rest = self.0.get(offset as usize..).unwrap_or_default();
        let rest = &rest[..rest.len().min(Self::LONGEST_NAME)];
        let end = rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len());
        String::from_utf8_lossy(&rest[..end])
    }
}
