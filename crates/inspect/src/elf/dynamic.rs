//! The dynamic segment: what a file asks of the dynamic linker.

use object::LittleEndian as Le;
use object::elf::{
    DF_1_NOW, DF_1_PIE, DF_BIND_NOW, DT_BIND_NOW, DT_FLAGS, DT_FLAGS_1, DT_GNU_HASH,
    DT_GNU_PRELINKED, DT_JMPREL, DT_NEEDED, DT_NULL, DT_PLTRELSZ, DT_RELA, DT_RELACOUNT, DT_RELASZ,
    DT_SONAME, DT_STRSZ, DT_STRTAB, DT_SYMTAB, Dyn64, PT_DYNAMIC,
};

use super::bytes::{Bytes, entries, piece};
use super::error::ElfError;
use super::header::Header;
use super::strings::Strings;

/// Real dynamic segments have up to some hundred entries of 16 bytes.
const LONGEST_SEGMENT: u64 = 1 << 20;
/// The largest libraries (compilers, browsers) have dynamic string tables of some MiB.
const LONGEST_STRINGS: u64 = 32 << 20;

/// Its entries that matter here; addresses and sizes are 0 where there is none.
#[derive(Clone, Debug, Default)]
pub(super) struct Dynamic {
    pub strings: Strings,
    /// Offset and length of the strings in the file.
    pub strings_at: (u64, u64),
    pub soname: Option<u32>,
    pub needed: Vec<u32>,
    /// Which entry says that everything is bound at load time.
    pub now: Option<&'static str>,
    pub is_pie: bool,
    pub is_prelinked: bool,
    pub symbols: u64,
    pub gnu_hash: u64,
    /// Address and bytes of the relocations of the PLT.
    pub plt_relocations: (u64, u64),
    /// Address and bytes of the others.
    pub relocations: (u64, u64),
    /// How many of the others, at their beginning, have no symbol.
    pub relative: u64,
}

impl Dynamic {
    /// `None` for a file without: a static program that is not position independent.
    pub fn read(source: &dyn Bytes, header: &Header) -> Result<Option<Dynamic>, ElfError> {
        const WHAT: &str = "the dynamic segment";
        let Some(segment) = header.segment(PT_DYNAMIC.0) else { return Ok(None) };
        let bytes = piece(source, WHAT, (segment.offset, segment.in_file), LONGEST_SEGMENT)?;
        let mut dynamic = Dynamic::default();
        let mut strings = (0, 0);
        for entry in entries::<Dyn64<Le>>(WHAT, &bytes)? {
            let value = entry.d_val.get(Le);
            let name = u32::try_from(value).unwrap_or(u32::MAX);
            match entry.d_tag.get(Le) {
                DT_NULL => break,
                DT_NEEDED => dynamic.needed.push(name),
                DT_SONAME => dynamic.soname = Some(name),
                DT_STRTAB => strings.0 = value,
                DT_STRSZ => strings.1 = value,
                DT_SYMTAB => dynamic.symbols = value,
                DT_GNU_HASH => dynamic.gnu_hash = value,
                DT_JMPREL => dynamic.plt_relocations.0 = value,
                DT_PLTRELSZ => dynamic.plt_relocations.1 = value,
                DT_RELA => dynamic.relocations.0 = value,
                DT_RELASZ => dynamic.relocations.1 = value,
                DT_RELACOUNT => dynamic.relative = value,
                DT_GNU_PRELINKED => dynamic.is_prelinked = true,
                DT_BIND_NOW => dynamic.now = Some("DT_BIND_NOW"),
                DT_FLAGS if value & DF_BIND_NOW.0 != 0 => {
                    dynamic.now = dynamic.now.or(Some("DF_BIND_NOW"));
                }
                DT_FLAGS_1 => {
                    dynamic.is_pie |= value & DF_1_PIE.0 != 0;
                    if value & DF_1_NOW.0 != 0 {
                        dynamic.now = dynamic.now.or(Some("DF_1_NOW"));
                    }
                }
                _ => {}
            }
        }
        if strings.1 > 0 {
            const WHAT: &str = "the string table";
            let offset = header.offset_of(WHAT, strings.0, strings.1)?;
            dynamic.strings_at = (offset, strings.1);
            dynamic.strings = Strings(piece(source, WHAT, dynamic.strings_at, LONGEST_STRINGS)?);
        }
        Ok(Some(dynamic))
    }
}
