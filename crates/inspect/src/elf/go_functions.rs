//! The functions of a Go program, which it has for its own tracebacks: they stay when it is stripped.
//!
//! The table (`.gopclntab`) begins with a header; behind it are, by address, pairs of where a function
//! begins and where more of it is, which begins with those 32 bits again and then has the place of its
//! name. So it is since Go 1.18; older tables are not read. Source: src/internal/abi/symtab.go and
//! src/debug/gosym/pclntab.go of Go.

use object::LittleEndian as Le;
use object::elf::SectionHeader64;

use super::bytes::{Bytes, piece};
use super::functions::{Function, Functions, MOST_FUNCTIONS};
use super::header::Header;
use super::sections;

/// Of Go 1.18, and from 1.20 on.
const MAGIC: [u32; 2] = [0xffff_fff0, 0xffff_fff1];
/// The section's name, in programs that can be loaded anywhere the second.
const SECTIONS: [&str; 2] = [".gopclntab", ".data.rel.ro.gopclntab"];
/// The tables of the largest programs have 50 MiB.
const LONGEST_TABLE: u64 = 96 << 20;
/// The function at which a Go program without C begins has a name that begins so.
const ENTRY: &[u8] = b"_rt0_";

/// The functions of a table, with places of their names within the section.
struct Table<'a> {
    bytes: &'a [u8],
    count: usize,
    text: u64,
    names: usize,
    functions: usize,
}

/// Those of a file; `None` if it is no Go program, or its table is damaged or of an unknown kind.
pub(super) fn go_functions(source: &dyn Bytes, header: &Header) -> Option<Functions> {
    let (section, bytes) = SECTIONS.iter().find_map(|name| read(source, name))?;
    let table = Table::new(&bytes)?;
    let start = table.start(source, header)?;
    let sorted = table.functions(start)?;
    let names = table.names as u64;
    let place = (section.0.checked_add(names)?, section.1.checked_sub(names)?);
    Some(Functions::complete(sorted, place))
}

/// Where the section of this name is in the file, and what it has.
fn read(source: &dyn Bytes, name: &str) -> Option<((u64, u64), Vec<u8>)> {
    let section: SectionHeader64<Le> = sections::find(source, name).ok()??;
    let place = sections::place(&section);
    Some((place, piece(source, name, place, LONGEST_TABLE).ok()?))
}

impl<'a> Table<'a> {
    fn new(bytes: &'a [u8]) -> Option<Table<'a>> {
        let magic = word(bytes, 0)?;
        // Two bytes of padding, the length of an instruction, and that of a pointer.
        let is_known = MAGIC.contains(&magic) && bytes.get(4..6)? == [0, 0] && bytes.get(7)? == &8;
        let field = |n: usize| long(bytes, 8 + 8 * n);
        let place = |n: usize| field(n).and_then(|at| usize::try_from(at).ok());
        let table = Table {
            bytes,
            count: place(0)?,
            text: field(2)?,
            names: place(3)?,
            functions: place(7)?,
        };
        let end = table.functions.checked_add(table.count.checked_add(1)?.checked_mul(8)?)?;
        let is_within = table.names.max(end) <= bytes.len() && table.count <= MOST_FUNCTIONS;
        (is_known && is_within).then_some(table)
    }

    /// The address that all others are relative to. Programs that can be loaded anywhere leave it open; then
    /// it is that of the code, if the program begins with a function of Go there.
    fn start(&self, source: &dyn Bytes, header: &Header) -> Option<u64> {
        if self.text != 0 {
            return Some(self.text);
        }
        let text: SectionHeader64<Le> = sections::find(source, ".text").ok()??;
        let start = text.sh_addr.get(Le);
        let entry = u32::try_from(header.entry.checked_sub(start)?).ok()?;
        let is_entry = |n: &usize| self.function(*n).is_some_and(|(at, _)| at == entry);
        let (_, name) = (0..self.count).find(is_entry).and_then(|n| self.function(n))?;
        let name = self.bytes.get(self.names.checked_add(name as usize)?..)?;
        name.starts_with(ENTRY).then_some(start)
    }

    /// Where function `n` begins, relative to the first, and the place of its name.
    fn function(&self, n: usize) -> Option<(u32, u32)> {
        let at = self.functions.checked_add(8 * n)?;
        let more = self.functions.checked_add(word(self.bytes, at + 4)? as usize)?;
        Some((word(self.bytes, at)?, word(self.bytes, more.checked_add(4)?)?))
    }

    /// All of them: each reaches to the next, and the last to the end that is behind it.
    fn functions(&self, start: u64) -> Option<Vec<Function>> {
        let mut functions = Vec::with_capacity(self.count);
        for n in 0..self.count {
            let (from, name) = self.function(n)?;
            let to = word(self.bytes, self.functions.checked_add(8 * (n + 1))?)?;
            let length = to.checked_sub(from)?;
            functions.push(Function { start: start.checked_add(from.into())?, length, name });
        }
        Some(functions)
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|word| u32::from_le_bytes(*word))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|long| u64::from_le_bytes(*long))
}
