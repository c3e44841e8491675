//! Names of functions in a file.

use std::borrow::Cow;

use object::LittleEndian as Le;
use object::elf::{
    SHN_UNDEF, SHT_DYNSYM, SHT_SYMTAB, STT_FUNC, STT_GNU_IFUNC, SectionHeader64, SectionType, Sym64,
};

use super::bytes::{Bytes, entries, piece};
use super::error::ElfError;
use super::file::Elf;
use super::relocations::symbols_up_to;
use super::strings::Strings;

/// The largest symbol tables (browsers with debug information) are some 100 MiB.
const LONGEST_TABLE: u64 = 256 << 20;
/// Symbols in one bucket of a hash table; real ones have a few.
const LONGEST_CHAIN: u32 = 4096;

/// A function: where it begins and ends, and its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Function {
    start: u64,
    end: u64,
    name: u32,
}

/// The functions of a file, by address.
#[derive(Debug, Default)]
pub(super) struct Functions {
    sorted: Vec<Function>,
    names: Strings,
}

impl Functions {
    /// From its symbol table; of a stripped file from the dynamic one, which has only what is
    /// exported. Damage here costs names, nothing else.
    pub fn read(source: &dyn Bytes, elf: &Elf) -> Functions {
        let of_sections = |kind| from_section(source, elf, kind).ok().flatten();
        of_sections(SHT_SYMTAB)
            .or_else(|| of_sections(SHT_DYNSYM))
            .or_else(|| from_hash(source, elf).ok())
            .unwrap_or_default()
    }

    /// Name of the function around an address, and where it begins.
    pub fn around(&self, address: u64) -> Option<(Cow<'_, str>, u64)> {
        let next = self.sorted.partition_point(|function| function.start <= address);
        // Functions can lie within others (parts in assembler); the last to begin is the closest.
        let found = self.sorted[..next].iter().rev().take(8).find(|f| address < f.end)?;
        Some((self.names.name(found.name), found.start))
    }

    fn new(symbols: &[Sym64<Le>], names: Strings) -> Functions {
        let is_function = |symbol: &&Sym64<Le>| {
            let kind = symbol.st_type();
            (kind == STT_FUNC || kind == STT_GNU_IFUNC) && symbol.st_shndx.get(Le) != SHN_UNDEF
        };
        let function = |symbol: &Sym64<Le>| {
            let start = symbol.st_value.get(Le);
            let end = start.saturating_add(symbol.st_size.get(Le));
            Function { start, end, name: symbol.st_name.get(Le) }
        };
        let mut sorted: Vec<_> = symbols.iter().filter(is_function).map(function).collect();
        sorted.sort_by_key(|function| function.start);
        Functions { sorted, names }
    }
}

fn from_section(
    source: &dyn Bytes,
    elf: &Elf,
    kind: SectionType,
) -> Result<Option<Functions>, ElfError> {
    let (offset, count) = elf.header.sections;
    let length = u64::from(count) * size_of::<SectionHeader64<Le>>() as u64;
    let bytes = piece(source, "the section headers", (offset, length), 8 << 20)?;
    let sections = entries::<SectionHeader64<Le>>("the section headers", &bytes)?;
    let Some(table) = sections.iter().find(|section| section.sh_type.get(Le) == kind) else {
        return Ok(None);
    };
    let place =
        |section: &SectionHeader64<Le>| (section.sh_offset.get(Le), section.sh_size.get(Le));
    let names = sections.get(table.sh_link.get(Le) as usize).map(place);
    let names = names.ok_or_else(|| ElfError::damaged("a symbol table without names"))?;
    let names = piece(source, "names of symbols", names, LONGEST_TABLE)?;
    let symbols = piece(source, "the symbol table", place(table), LONGEST_TABLE)?;
    Ok(Some(Functions::new(entries("the symbol table", &symbols)?, Strings(names))))
}

/// Without section headers only the hash table shows how many dynamic symbols there are: the last
/// symbol is the end of the chain that begins last.
fn from_hash(source: &dyn Bytes, elf: &Elf) -> Result<Functions, ElfError> {
    const WHAT: &str = "the hash table";
    let word = |address: u64| {
        let mut word = [0; 4];
        source.read_at(elf.header.offset_of(WHAT, address, 4)?, &mut word)?;
        Ok::<_, ElfError>(u32::from_le_bytes(word))
    };
    let at = elf.dynamic.gnu_hash;
    if at == 0 {
        return Err(ElfError::damaged("no hash table"));
    }
    let field = |n: u64| word(at.saturating_add(4 * n));
    let (buckets, first, bloom) = (field(0)?, field(1)?, field(2)?);
    let start = at.saturating_add(16).saturating_add(8 * u64::from(bloom));
    let length = 4 * u64::from(buckets);
    let offset = elf.header.offset_of(WHAT, start, length)?;
    let bytes = piece(source, WHAT, (offset, length), LONGEST_TABLE)?;
    let last = bytes.as_chunks().0.iter().map(|chunk| u32::from_le_bytes(*chunk)).max();
    let mut last = last.filter(|last| *last >= first).unwrap_or(0);
    let chains = start.saturating_add(length);
    let has_end = (0..LONGEST_CHAIN).any(|_| {
        let end = word(chains.saturating_add(4 * u64::from(last.saturating_sub(first))));
        let is_end = last < first || end.is_ok_and(|word| word & 1 == 1);
        last = last.saturating_add(u32::from(!is_end));
        is_end
    });
    if !has_end {
        return Err(ElfError::damaged("a chain without end in the hash table"));
    }
    let symbols = symbols_up_to(source, &elf.header, &elf.dynamic, u64::from(last) + 1)?;
    Ok(Functions::new(entries("the dynamic symbols", &symbols)?, elf.strings().clone()))
}
