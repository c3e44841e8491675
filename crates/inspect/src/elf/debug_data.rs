//! What a stripped file says of its symbols: the name of the file that has them, or the symbols
//! themselves, compressed (MiniDebugInfo).

use std::io::Read;

use lzma_rust2::XzReader;

use super::bytes::Bytes;
use super::sections::named;

/// The longest name of a file, with its end and what pads it, and the checksum.
const LONGEST_LINK: u64 = 255 + 4 + 4;
/// Of compressed symbols: bytes that are read, and that come out of them. Those of the largest
/// libraries are some MiB.
const LONGEST_PACKED: u64 = 8 << 20;
const LONGEST_SYMBOLS: u64 = 32 << 20;
/// Memory that unpacking may ask for, KiB: the dictionary of `xz -9`.
const UNPACKING: u32 = 66 << 10;

/// What `.gnu_debuglink` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DebugLink {
    /// Name of a file, without any folder.
    pub name: String,
    /// CRC-32 of all its bytes.
    pub crc: u32,
}

/// The file with the symbols of this one; `None` if it names none.
pub fn debug_link(source: &dyn Bytes) -> Option<DebugLink> {
    let section = named(source, ".gnu_debuglink", LONGEST_LINK).ok()??;
    let end = section.iter().position(|byte| *byte == 0)?;
    let name = std::str::from_utf8(&section[..end]).ok()?;
    if ["", ".", ".."].contains(&name) || name.contains('/') {
        return None;
    }
    let crc = section.get((end + 1).next_multiple_of(4)..)?.first_chunk()?;
    Some(DebugLink { name: name.to_owned(), crc: u32::from_le_bytes(*crc) })
}

/// The file that `.gnu_debugdata` is, unpacked; `None` if there is none, it is damaged or too large.
pub fn debug_data(source: &dyn Bytes) -> Option<Vec<u8>> {
    let packed = named(source, ".gnu_debugdata", LONGEST_PACKED).ok()??;
    let mut symbols = Vec::new();
    let unpacking = XzReader::new_mem_limit(packed.as_slice(), false, UNPACKING);
    unpacking.take(LONGEST_SYMBOLS + 1).read_to_end(&mut symbols).ok()?;
    symbols.shrink_to_fit();
    (symbols.len() as u64 <= LONGEST_SYMBOLS).then_some(symbols)
}
