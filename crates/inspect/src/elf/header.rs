//! The file header, the segments, and addresses in them.

use std::fmt;

use object::LittleEndian as Le;
use object::elf::{
    EM_AARCH64, EM_X86_64, ET_DYN, ET_EXEC, FileHeader64, PF_X, PT_LOAD, ProgramHeader64,
};

use super::bytes::{Bytes, entries, piece};
use super::error::ElfError;

/// Real files have about a dozen segments.
const MOST_SEGMENTS: u16 = 256;

/// Whose instructions it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    /// x86-64.
    X86_64,
    /// 64-bit Arm.
    Aarch64,
}

/// `x86-64`, `aarch64`.
impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Machine::X86_64 => "x86-64",
            Machine::Aarch64 => "aarch64",
        })
    }
}

/// A part of the file, and where it is mapped, relative to where the file is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// What for: PT_LOAD and others, as in elf.h.
    pub kind: u32,
    /// True if code may run from it.
    pub is_code: bool,
    /// Offset in the file.
    pub offset: u64,
    /// Address in memory.
    pub address: u64,
    /// Bytes in the file.
    pub in_file: u64,
    /// Bytes in memory.
    pub in_memory: u64,
}

impl Segment {
    /// True if `length` bytes from `address` on come from the file.
    fn has(&self, address: u64, length: u64) -> bool {
        let from = address.checked_sub(self.address);
        let to = from.and_then(|from| from.checked_add(length));
        to.is_some_and(|to| to <= self.in_file)
    }
}

/// What the beginning of a file says.
#[derive(Clone, Debug)]
pub(super) struct Header {
    pub machine: Machine,
    pub is_position_independent: bool,
    pub segments: Vec<Segment>,
    /// The address at which the program begins.
    pub entry: u64,
    /// Offset and number of the section headers; 0 of them if there are none of the usual size.
    pub sections: (u64, u16),
}

impl Header {
    pub fn read(source: &dyn Bytes) -> Result<Header, ElfError> {
        let unknown = |text: String| ElfError::Unknown(text);
        let mut ident = [0; 20];
        if source.length()? < 20 {
            return Err(unknown("no ELF file: it is too short".to_owned()));
        }
        source.read_at(0, &mut ident)?;
        if ident[..4] != *b"\x7fELF" {
            return Err(unknown("no ELF file".to_owned()));
        }
        match (ident[4], ident[5]) {
            (2, 1) => {}
            (1, _) => return Err(unknown("a 32-bit ELF file; only 64-bit ones are read".into())),
            (2, 2) => return Err(unknown("a big-endian ELF file".to_owned())),
            (class, order) => {
                let text = format!("neither 32- nor 64-bit (class {class}, byte order {order})");
                return Err(ElfError::damaged(text));
            }
        }
        let bytes =
            piece(source, "the file header", (0, size_of::<FileHeader64<Le>>() as u64), 64)?;
        let [file] = entries::<FileHeader64<Le>>("the file header", &bytes)? else {
            return Err(ElfError::damaged("the file header"));
        };
        let machine = match file.e_machine.get(Le) {
            EM_X86_64 => Machine::X86_64,
            EM_AARCH64 => Machine::Aarch64,
            other => return Err(unknown(format!("an ELF file for machine {}", other.0))),
        };
        let is_position_independent = match file.e_type.get(Le) {
            ET_DYN => true,
            ET_EXEC => false,
            other => {
                let text = format!("neither program nor shared library (ELF type {})", other.0);
                return Err(unknown(text));
            }
        };
        let size_of_section = size_of::<object::elf::SectionHeader64<Le>>();
        let sections = match usize::from(file.e_shentsize.get(Le)) {
            size if size == size_of_section => (file.e_shoff.get(Le), file.e_shnum.get(Le)),
            _ => (0, 0),
        };
        let (segments, entry) = (segments(source, file)?, file.e_entry.get(Le));
        Ok(Header { machine, is_position_independent, segments, entry, sections })
    }

    pub fn segment(&self, kind: u32) -> Option<&Segment> {
        self.segments.iter().find(|segment| segment.kind == kind)
    }

    fn loaded(&self) -> impl Iterator<Item = &Segment> {
        self.segments.iter().filter(|segment| segment.kind == PT_LOAD.0)
    }

    /// Where in the file the `length` bytes at an address are.
    pub fn offset_of(&self, what: &str, address: u64, length: u64) -> Result<u64, ElfError> {
        let segment = self.loaded().find(|segment| segment.has(address, length));
        let offset = segment.and_then(|s| s.offset.checked_add(address - s.address));
        offset.ok_or_else(|| {
            let text = format!("{what} at address {address:#x}, {length} bytes, in no segment");
            ElfError::damaged(text)
        })
    }

    /// The address at which an offset of the file is mapped.
    pub fn address_of(&self, offset: u64) -> Option<u64> {
        let has = |s: &&Segment| offset.checked_sub(s.offset).is_some_and(|at| at < s.in_file);
        // The pages of two segments can overlap in the file; code is what is asked for.
        let segment = self.loaded().filter(|s| s.is_code).find(has);
        let segment = segment.or_else(|| self.loaded().find(has))?;
        segment.address.checked_add(offset - segment.offset)
    }

    /// True if code may run from there.
    pub fn is_code(&self, address: u64) -> bool {
        self.loaded().any(|segment| segment.is_code && segment.has(address, 1))
    }
}

fn segments(source: &dyn Bytes, file: &FileHeader64<Le>) -> Result<Vec<Segment>, ElfError> {
    const WHAT: &str = "the program headers";
    let (size, count) = (file.e_phentsize.get(Le), file.e_phnum.get(Le));
    if usize::from(size) != size_of::<ProgramHeader64<Le>>() {
        return Err(ElfError::damaged(format!("{WHAT} with entries of {size} bytes")));
    }
    if count > MOST_SEGMENTS {
        let text = format!("{count} program headers; at most {MOST_SEGMENTS} are read");
        return Err(ElfError::damaged(text));
    }
    let place = (file.e_phoff.get(Le), u64::from(size) * u64::from(count));
    let bytes = piece(source, WHAT, place, u64::from(u16::MAX))?;
    let segment = |header: &ProgramHeader64<Le>| Segment {
        kind: header.p_type.get(Le).0,
        is_code: header.p_flags.get(Le).0 & PF_X.0 != 0,
        offset: header.p_offset.get(Le),
        address: header.p_vaddr.get(Le),
        in_file: header.p_filesz.get(Le),
        in_memory: header.p_memsz.get(Le),
    };
    Ok(entries(WHAT, &bytes)?.iter().map(segment).collect())
}
