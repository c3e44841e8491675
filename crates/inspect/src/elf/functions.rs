//! Names of functions in a file.

use object::LittleEndian as Le;
use object::elf::{
    SHN_UNDEF, SHT_DYNSYM, SHT_SYMTAB, STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE, SectionType, Sym64,
};

use super::bytes::{Bytes, entries, piece};
use super::error::ElfError;
use super::file::Elf;
use super::header::{Header, Machine};
use super::sections;
use super::strings::Strings;

/// The largest symbol tables (browsers with debug information) have two million symbols, of 24
/// bytes; a file may say what it likes.
const LONGEST_TABLE: u64 = 96 << 20;
/// Functions of a file that are kept, 16 bytes each.
pub(super) const MOST_FUNCTIONS: usize = 2 << 20;
/// Symbols that are read at once.
const SYMBOLS_AT_ONCE: u64 = 32_768;
/// Symbols in one bucket of a hash table; real ones have a few.
pub(super) const LONGEST_CHAIN: u32 = 4096;
/// Functions can lie within others (parts in assembler): so many are looked at.
const MOST_AROUND: usize = 16;

/// A function: where it begins, its length (0: not known), and its name in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Function {
    pub start: u64,
    pub length: u32,
    pub name: u32,
}

impl Function {
    fn holds(&self, address: u64) -> bool {
        address - self.start < u64::from(self.length)
    }
}

/// The functions of a file, by address. Their names stay in the file, and are read when asked for.
#[derive(Debug, Default)]
pub(super) struct Functions {
    /// By address; of those that begin at one address the longest first.
    sorted: Vec<Function>,
    /// Offset and length of the table with their names.
    names: (u64, u64),
    /// True if those without a length reach to the next; a dynamic symbol table has gaps.
    is_complete: bool,
}

impl Functions {
    /// From its symbol table; of a stripped file from the dynamic one, which has only what is
    /// exported. Costs 16 bytes of memory for each.
    pub fn read(source: &dyn Bytes, elf: &Elf) -> Result<Functions, ElfError> {
        for kind in [SHT_SYMTAB, SHT_DYNSYM] {
            match from_section(source, &elf.header, kind) {
                Ok(Some(functions)) if !functions.is_empty() => return Ok(functions),
                // What is damaged may still be found in another way.
                Ok(_) | Err(ElfError::Damaged(_)) => {}
                Err(error) => return Err(error),
            }
        }
        match from_hash(source, elf) {
            Err(ElfError::Damaged(_)) => Ok(Functions::default()),
            functions => functions,
        }
    }

    /// From the file that has the symbols of a stripped one: nothing else in it can be used.
    pub fn of_debug_file(source: &dyn Bytes) -> Result<Functions, ElfError> {
        let header = Header::read(source)?;
        let functions = from_section(source, &header, SHT_SYMTAB)?.unwrap_or_default();
        Ok(functions)
    }

    /// All of a file, by address, each with its length; `names` is the offset and length of the table with
    /// their names.
    pub fn complete(sorted: Vec<Function>, names: (u64, u64)) -> Functions {
        Functions { sorted, names, is_complete: true }
    }

    /// False if there are only those that are exported.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// Bytes of memory that it takes.
    pub fn memory(&self) -> usize {
        self.sorted.capacity() * size_of::<Function>()
    }

    /// Name of the function around an address, and where it begins.
    pub fn around(&self, source: &dyn Bytes, address: u64) -> Option<(String, u64)> {
        let next = self.sorted.partition_point(|function| function.start <= address);
        let before = &self.sorted[next.saturating_sub(MOST_AROUND)..next];
        let last = before.last()?;
        let holds = |function: &&Function| function.holds(address);
        let found = match before.iter().rev().find(holds) {
            Some(one) => before.iter().find(|f| f.start == one.start && f.holds(address))?,
            None if last.length == 0 && (self.is_complete || last.start == address) => last,
            None => return None,
        };
        Some((self.name(source, found.name)?, found.start))
    }

    fn name(&self, source: &dyn Bytes, offset: u32) -> Option<String> {
        let (start, length) = self.names;
        let length = length.checked_sub(u64::from(offset))?.min(Strings::LONGEST_NAME as u64);
        let mut bytes = vec![0; length as usize];
        source.read_at(start.checked_add(u64::from(offset))?, &mut bytes).ok()?;
        let name = Strings(bytes).name(0).into_owned();
        (!name.is_empty()).then_some(name)
    }

    /// Those among the symbols of a table.
    fn new(
        source: &dyn Bytes,
        machine: Machine,
        (offset, length): (u64, u64),
        names: (u64, u64),
    ) -> Result<Functions, ElfError> {
        const WHAT: &str = "the symbol table";
        if length > LONGEST_TABLE {
            let text = format!("{WHAT} of {length} bytes; at most {LONGEST_TABLE} are read");
            return Err(ElfError::TooLarge(text));
        }
        let mut functions = Functions { names, ..Functions::default() };
        let at_once = SYMBOLS_AT_ONCE * size_of::<Sym64<Le>>() as u64;
        for begin in (0..length).step_by(at_once as usize) {
            let place = (offset.saturating_add(begin), at_once.min(length - begin));
            let bytes = piece(source, WHAT, place, at_once)?;
            let symbols = entries::<Sym64<Le>>(WHAT, &bytes)?;
            let found = symbols.iter().filter(|symbol| is_function(machine, symbol));
            functions.sorted.extend(found.map(function));
            if functions.sorted.len() > MOST_FUNCTIONS {
                let text = format!("more than {MOST_FUNCTIONS} functions in {WHAT}");
                return Err(ElfError::TooLarge(text));
            }
        }
        let order = |function: &Function| (function.start, u32::MAX - function.length);
        functions.sorted.sort_unstable_by_key(|function| (order(function), function.name));
        functions.sorted.shrink_to_fit();
        Ok(functions)
    }
}

/// Code in assembler is often said to be nothing; on aarch64 that also marks where code begins.
fn is_function(machine: Machine, symbol: &Sym64<Le>) -> bool {
    let kind = symbol.st_type();
    let is_code = kind == STT_FUNC || kind == STT_GNU_IFUNC;
    let may_be = kind == STT_NOTYPE && machine == Machine::X86_64;
    (is_code || may_be) && symbol.st_shndx.get(Le) != SHN_UNDEF && symbol.st_name.get(Le) != 0
}

fn function(symbol: &Sym64<Le>) -> Function {
    let length = u32::try_from(symbol.st_size.get(Le)).unwrap_or(u32::MAX);
    Function { start: symbol.st_value.get(Le), length, name: symbol.st_name.get(Le) }
}

fn from_section(
    source: &dyn Bytes,
    header: &Header,
    kind: SectionType,
) -> Result<Option<Functions>, ElfError> {
    let sections = sections::headers(source, header)?;
    let Some(table) = sections.iter().find(|section| section.sh_type.get(Le) == kind) else {
        return Ok(None);
    };
    let names = sections.get(table.sh_link.get(Le) as usize).map(sections::place);
    let names = names.ok_or_else(|| ElfError::damaged("a symbol table without names"))?;
    let functions = Functions::new(source, header.machine, sections::place(table), names)?;
    Ok(Some(Functions { is_complete: kind == SHT_SYMTAB, ..functions }))
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
    let length = (u64::from(last) + 1) * size_of::<Sym64<Le>>() as u64;
    let offset = elf.header.offset_of("the dynamic symbols", elf.dynamic.symbols, length)?;
    Functions::new(source, elf.machine, (offset, length), elf.dynamic.strings_at)
}
