//! What is known of a file as a whole.

use std::borrow::Cow;
use std::path::Path;

use object::elf::{PT_GNU_RELRO, PT_INTERP};

use super::bytes::{Bytes, piece};
use super::dynamic::Dynamic;
use super::error::ElfError;
use super::header::{Header, Machine, Segment};
use super::instructions::is_landing_pad;
use super::relocations::{Import, Imports};
use super::strings::Strings;
use crate::files;
use crate::words::words;

/// The longest path that the kernel takes, bytes.
const LONGEST_PATH: u64 = 4096;

/// What kind of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A program that is loaded where it was linked to be.
    Program,
    /// A program that can be loaded anywhere.
    Pie,
    /// A program that needs no dynamic linker.
    Static,
    /// The same, and can be loaded anywhere.
    StaticPie,
    /// A shared library.
    Library,
}

/// When its calls of other libraries are bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    /// Each at its first call, unless the environment has LD_BIND_NOW.
    Lazy,
    /// All at load time, by this entry of its dynamic segment.
    Now(&'static str),
    /// It has no slot that could be bound later.
    Nothing,
}

/// What of its relocated data is read-only once it is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relro {
    /// Nothing.
    None,
    /// All but the slots of the PLT, which are still to be written.
    Partial,
    /// All; needs binding at load time.
    Full,
}

/// What the entries of its PLT look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PltForm {
    /// There is none that goes through slots.
    None,
    /// Plain jumps.
    Plain,
    /// With landing pads for indirect branches: IBT (`.plt.sec`) on x86-64, BTI on aarch64.
    LandingPads,
}

/// A slot of the PLT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Where, relative to where the file is loaded.
    pub address: u64,
    /// What it holds in the file: where in its own PLT a first call goes on.
    pub initial: u64,
    name: u32,
}

/// Facts of an ELF file.
#[derive(Clone, Debug)]
pub struct Elf {
    /// Whose instructions.
    pub machine: Machine,
    /// What kind of file.
    pub kind: Kind,
    /// The dynamic linker that it asks for.
    pub interpreter: Option<String>,
    /// The name by which libraries ask for it.
    pub soname: Option<String>,
    /// The libraries that it asks for.
    pub needed: Vec<String>,
    /// When its calls are bound.
    pub binding: Binding,
    /// What becomes read-only.
    pub relro: Relro,
    /// True if prelink(8) has filled in its slots.
    pub is_prelinked: bool,
    /// Form of its PLT.
    pub plt: PltForm,
    /// Its slots, by address.
    pub slots: Vec<Slot>,
    pub(super) at_load: Vec<Import>,
    pub(super) header: Header,
    pub(super) dynamic: Dynamic,
}

impl Elf {
    /// Facts of the regular file at a path.
    ///
    /// # Errors
    /// See [`ElfError`].
    pub fn open(path: impl AsRef<Path>) -> Result<Elf, ElfError> {
        Elf::read(&files::regular(path)?)
    }

    /// Facts of these bytes.
    ///
    /// # Errors
    /// See [`ElfError`].
    pub fn read(source: &dyn Bytes) -> Result<Elf, ElfError> {
        let header = Header::read(source)?;
        let interpreter = interpreter(source, &header)?;
        let has_dynamic = Dynamic::read(source, &header)?;
        let is_static = has_dynamic.is_none();
        let dynamic = has_dynamic.unwrap_or_default();
        let imports = Imports::read(source, &header, &dynamic)?;
        let slots = slots(source, &header, &imports.slots)?;
        let relro = match (header.segment(PT_GNU_RELRO.0), dynamic.now) {
            (None, _) => Relro::None,
            (Some(_), None) => Relro::Partial,
            (Some(_), Some(_)) => Relro::Full,
        };
        let kind = match (header.is_position_independent, interpreter.is_some()) {
            (false, _) if is_static => Kind::Static,
            (false, _) => Kind::Program,
            (true, true) if dynamic.is_pie || dynamic.soname.is_none() => Kind::Pie,
            (true, false) if dynamic.is_pie => Kind::StaticPie,
            (true, _) => Kind::Library,
        };
        let binding = match dynamic.now {
            _ if slots.is_empty() => Binding::Nothing,
            Some(entry) => Binding::Now(entry),
            None => Binding::Lazy,
        };
        let text = |name: &u32| dynamic.strings.name(*name).into_owned();
        Ok(Elf {
            machine: header.machine,
            kind,
            interpreter,
            soname: dynamic.soname.as_ref().map(text),
            needed: dynamic.needed.iter().map(text).collect(),
            binding,
            relro,
            is_prelinked: dynamic.is_prelinked,
            plt: plt_form(source, &header, &slots),
            slots,
            at_load: imports.at_load,
            header,
            dynamic,
        })
    }

    /// The symbol of a slot.
    pub fn symbol(&self, slot: &Slot) -> Cow<'_, str> {
        self.strings().name(slot.name)
    }

    /// Functions of other libraries whose address is filled in at load time without a slot of the
    /// PLT: code built with `-fno-plt`, and functions whose address is taken.
    pub fn bound_at_load(&self) -> usize {
        self.at_load.iter().filter(|import| import.is_foreign).count()
    }

    /// Its segments.
    pub fn segments(&self) -> &[Segment] {
        &self.header.segments
    }

    /// True if this address holds code of the file.
    pub fn is_code(&self, address: u64) -> bool {
        self.header.is_code(address)
    }

    /// The address at which an offset of the file is mapped, relative to where it is loaded.
    pub fn address_of(&self, offset: u64) -> Option<u64> {
        self.header.address_of(offset)
    }

    /// Bytes of memory that its tables take.
    pub fn memory(&self) -> usize {
        let slots = self.slots.capacity() * size_of::<Slot>();
        slots + self.at_load.capacity() * size_of::<Import>() + self.dynamic.strings.0.capacity()
    }

    pub(super) fn strings(&self) -> &Strings {
        &self.dynamic.strings
    }

    /// (address, symbol, true for a slot of the PLT) of each place that holds an imported function.
    pub(super) fn imports(&self) -> impl Iterator<Item = (u64, u32, bool)> {
        let slots = self.slots.iter().map(|slot| (slot.address, slot.name, true));
        self.at_load.iter().map(|import| (import.address, import.name, false)).chain(slots)
    }
}

fn interpreter(source: &dyn Bytes, header: &Header) -> Result<Option<String>, ElfError> {
    let Some(segment) = header.segment(PT_INTERP.0) else { return Ok(None) };
    let place = (segment.offset, segment.in_file);
    let path = piece(source, "the dynamic linker's path", place, LONGEST_PATH)?;
    let path = path.strip_suffix(b"\0").unwrap_or(&path);
    Ok(Some(String::from_utf8_lossy(path).into_owned()))
}

fn slots(source: &dyn Bytes, header: &Header, imports: &[Import]) -> Result<Vec<Slot>, ElfError> {
    let mut imports = imports.to_vec();
    imports.sort_by_key(|import| import.address);
    let addresses: Vec<u64> = imports.iter().map(|import| import.address).collect();
    let values = words(&addresses, |address, bytes| {
        let offset = header.offset_of("a slot of the PLT", address, bytes.len() as u64)?;
        Ok::<_, ElfError>(source.read_at(offset, bytes)?)
    })?;
    let slot = |(import, initial): (Import, u64)| Slot {
        address: import.address,
        initial,
        name: import.name,
    };
    Ok(imports.into_iter().zip(values).map(slot).collect())
}

/// Judged by the code that the first slot points to.
fn plt_form(source: &dyn Bytes, header: &Header, slots: &[Slot]) -> PltForm {
    let Some(slot) = slots.first() else { return PltForm::None };
    let mut code = [0; 4];
    let offset = header.offset_of("the PLT", slot.initial, 4);
    match offset.is_ok_and(|offset| source.read_at(offset, &mut code).is_ok()) {
        true if is_landing_pad(header.machine, code) => PltForm::LandingPads,
        _ => PltForm::Plain,
    }
}
