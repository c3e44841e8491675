//! Sections of a file by their names.

use object::LittleEndian as Le;
use object::elf::{SHT_NOBITS, SectionHeader64};

use super::bytes::{Bytes, entries, piece};
use super::error::ElfError;
use super::header::Header;
use super::strings::Strings;

/// Where the file header has the number of the section with the names.
const NAMES_AT: u64 = 0x3e;
/// Bytes of section headers, and of their names, that are read.
const LONGEST_HEADERS: u64 = 8 << 20;
const LONGEST_NAMES: u64 = 1 << 20;

/// The headers of all sections.
pub(super) fn headers(
    source: &dyn Bytes,
    header: &Header,
) -> Result<Vec<SectionHeader64<Le>>, ElfError> {
    const WHAT: &str = "the section headers";
    let (offset, count) = header.sections;
    let length = u64::from(count) * size_of::<SectionHeader64<Le>>() as u64;
    let bytes = piece(source, WHAT, (offset, length), LONGEST_HEADERS)?;
    Ok(entries::<SectionHeader64<Le>>(WHAT, &bytes)?.to_vec())
}

/// Offset and length of a section in the file.
pub(super) fn place(section: &SectionHeader64<Le>) -> (u64, u64) {
    (section.sh_offset.get(Le), section.sh_size.get(Le))
}

/// What the section of this name has, if it is no longer than `most`; `None` if there is none.
pub(super) fn named(
    source: &dyn Bytes,
    name: &str,
    most: u64,
) -> Result<Option<Vec<u8>>, ElfError> {
    let Some(found) = find(source, name)? else { return Ok(None) };
    piece(source, name, place(&found), most).map(Some)
}

/// The section of this name that has something in the file; `None` if there is none.
pub(super) fn find(
    source: &dyn Bytes,
    name: &str,
) -> Result<Option<SectionHeader64<Le>>, ElfError> {
    let sections = headers(source, &Header::read(source)?)?;
    let mut number = [0; 2];
    source.read_at(NAMES_AT, &mut number)?;
    let names = sections.get(usize::from(u16::from_le_bytes(number))).map(place);
    let Some(names) = names else { return Ok(None) };
    let names = Strings(piece(source, "the names of sections", names, LONGEST_NAMES)?);
    let is_it = |section: &&SectionHeader64<Le>| {
        section.sh_type.get(Le) != SHT_NOBITS && names.name(section.sh_name.get(Le)) == name
    };
    Ok(sections.iter().find(is_it).copied())
}
