//! The relocations that concern calls of other libraries.

use object::LittleEndian as Le;
use object::elf::{
    R_AARCH64_GLOB_DAT, R_AARCH64_JUMP_SLOT, R_X86_64_GLOB_DAT, R_X86_64_JUMP_SLOT, Rela64,
    RelocationType, SHN_UNDEF, STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE, Sym64,
};

use super::bytes::{Bytes, entries, piece};
use super::dynamic::Dynamic;
use super::error::ElfError;
use super::header::{Header, Machine};

/// A million relocations; the largest programs have some hundred thousand with a symbol.
const LONGEST_TABLE: u64 = 24 << 20;
/// Symbols that are read, bytes: two million, up to the last one that a relocation names.
const LONGEST_SYMBOLS: u64 = 48 << 20;

/// A place in memory that the dynamic linker fills with the address of a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Import {
    /// Where, relative to where the file is loaded.
    pub address: u64,
    /// Name of the symbol, as an offset in the string table.
    pub name: u32,
    /// True if it is said to be a function of another library.
    pub is_foreign: bool,
}

/// What the dynamic linker fills in.
#[derive(Debug, Default)]
pub(super) struct Imports {
    /// Slots of the PLT, in the order of their relocations.
    pub slots: Vec<Import>,
    /// What is filled in at load time and may be a function: `-fno-plt`, functions whose address
    /// is taken, and the library's own that another could replace. (In a library that was linked
    /// without the ones it needs, functions and data look the same.)
    pub at_load: Vec<Import>,
}

impl Imports {
    pub fn read(source: &dyn Bytes, header: &Header, of: &Dynamic) -> Result<Imports, ElfError> {
        let (jump_slot, glob_dat) = match header.machine {
            Machine::X86_64 => (R_X86_64_JUMP_SLOT, R_X86_64_GLOB_DAT),
            Machine::Aarch64 => (R_AARCH64_JUMP_SLOT, R_AARCH64_GLOB_DAT),
        };
        let plt = table(source, header, "the relocations of the PLT", of.plt_relocations)?;
        let slots = wanted("the relocations of the PLT", &plt, jump_slot)?;
        // Most relocations of a library have no symbol and come first; they are not read.
        let (address, bytes) = of.relocations;
        let relative = of.relative.saturating_mul(size_of::<Rela64<Le>>() as u64).min(bytes);
        let others = (address.saturating_add(relative), bytes - relative);
        let others = table(source, header, "the relocations", others)?;
        let at_load = wanted("the relocations", &others, glob_dat)?;

        let symbols = slots.iter().chain(&at_load).map(|(_, symbol)| *symbol).max();
        let symbols = symbols.map_or(0, |last| u64::from(last) + 1);
        let symbols = symbols_up_to(source, header, of, symbols)?;
        let symbols = entries::<Sym64<Le>>("the dynamic symbols", &symbols)?;
        let import = |(address, symbol): (u64, u32)| {
            let symbol = symbols.get(symbol as usize)?;
            let (name, kind) = (symbol.st_name.get(Le), symbol.st_type());
            let may_be = matches!(kind, STT_FUNC | STT_NOTYPE | STT_GNU_IFUNC);
            let is_foreign = kind == STT_FUNC && symbol.st_shndx.get(Le) == SHN_UNDEF;
            Some((Import { address, name, is_foreign }, may_be))
        };
        let at_load = at_load.into_iter().filter_map(import).filter(|(_, may_be)| *may_be);
        Ok(Imports {
            slots: slots.into_iter().filter_map(import).map(|(import, _)| import).collect(),
            at_load: at_load.map(|(import, _)| import).collect(),
        })
    }
}

/// The first dynamic symbols.
fn symbols_up_to(
    source: &dyn Bytes,
    header: &Header,
    of: &Dynamic,
    count: u64,
) -> Result<Vec<u8>, ElfError> {
    const WHAT: &str = "the dynamic symbols";
    if count == 0 {
        return Ok(Vec::new());
    }
    let bytes = count.saturating_mul(size_of::<Sym64<Le>>() as u64);
    let offset = header.offset_of(WHAT, of.symbols, bytes)?;
    piece(source, WHAT, (offset, bytes), LONGEST_SYMBOLS)
}

fn table(
    source: &dyn Bytes,
    header: &Header,
    what: &str,
    (address, bytes): (u64, u64),
) -> Result<Vec<u8>, ElfError> {
    if bytes == 0 {
        return Ok(Vec::new());
    }
    piece(source, what, (header.offset_of(what, address, bytes)?, bytes), LONGEST_TABLE)
}

/// (address, symbol) of the relocations of a type.
fn wanted(what: &str, table: &[u8], kind: RelocationType) -> Result<Vec<(u64, u32)>, ElfError> {
    let table = entries::<Rela64<Le>>(what, table)?;
    let wanted = table.iter().filter(|one| one.r_type(Le, false) == kind);
    Ok(wanted.map(|one| (one.r_offset.get(Le), one.r_sym(Le, false))).collect())
}
