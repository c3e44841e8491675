//! Facts of an ELF file.

use std::fmt::Write;
use std::fs::File;
use std::ops::Range;
use std::path::Path;

use object::elf::{ELF_NOTE_GNU, FileHeader32, FileHeader64, NT_GNU_BUILD_ID};
use object::read::elf::{FileHeader, ProgramHeader};
use object::read::{ReadCache, ReadRef};
use object::{Endianness, FileKind};

use crate::files;

/// The longest piece of a file that is read at once: more than any real note segment or program
/// header table, bytes. All pieces are kept until the id is found.
const LONGEST_PIECE: u64 = 64 << 10;

/// Program headers that are looked at; real files have about a dozen.
const MOST_SEGMENTS: usize = 256;

/// The GNU build id of an executable or shared library, in hex, as `readelf -n` prints it.
///
/// It is looked for in the note segments, so relocatable objects (`.o`, `.ko`) give `None`, as do
/// files that have none, are not ELF, are damaged or cannot be read. Only regular files are opened,
/// and reading is bounded, whatever the file claims about itself.
pub fn build_id(path: impl AsRef<Path>) -> Option<String> {
    build_id_of(files::regular(path).ok()?)
}

/// The same of an open file, of which the position is moved.
pub fn build_id_of(file: File) -> Option<String> {
    let cache = ReadCache::new(file);
    let data = Pieces(&cache);
    let id = match FileKind::parse(data).ok()? {
        FileKind::Elf32 => gnu_build_id::<FileHeader32<Endianness>, _>(data),
        FileKind::Elf64 => gnu_build_id::<FileHeader64<Endianness>, _>(data),
        _ => None,
    }?;
    let mut hex = String::with_capacity(2 * id.len());
    for byte in id {
        write!(hex, "{byte:02x}").ok()?;
    }
    Some(hex)
}

fn gnu_build_id<'data, Elf, R>(data: R) -> Option<&'data [u8]>
where
    Elf: FileHeader<Endian = Endianness>,
    R: ReadRef<'data>,
{
    let header = Elf::parse(data).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, data).ok()?;
    for segment in segments.iter().take(MOST_SEGMENTS) {
        // A damaged segment must not hide a good one after it.
        let Ok(Some(mut notes)) = segment.notes(endian, data) else { continue };
        while let Ok(Some(note)) = notes.next() {
            let is_id = note.name() == ELF_NOTE_GNU && note.n_type(endian) == NT_GNU_BUILD_ID;
            if is_id && !note.desc().is_empty() {
                return Some(note.desc());
            }
        }
    }
    None
}

/// A file of which no single piece longer than [`LONGEST_PIECE`] is read: [`ReadCache`] alone would
/// allocate whatever size a header claims, as long as the (sparse) file is that long.
#[derive(Clone, Copy)]
struct Pieces<'a>(&'a ReadCache<std::fs::File>);

impl<'a> ReadRef<'a> for Pieces<'a> {
    fn len(self) -> Result<u64, ()> {
        self.0.len()
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'a [u8], ()> {
        if size > LONGEST_PIECE {
            return Err(());
        }
        self.0.read_bytes_at(offset, size)
    }

    fn read_bytes_at_until(self, range: Range<u64>, delimiter: u8) -> Result<&'a [u8], ()> {
        let end = range.end.min(range.start.saturating_add(LONGEST_PIECE));
        self.0.read_bytes_at_until(range.start..end, delimiter)
    }
}
