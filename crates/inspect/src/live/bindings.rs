//! Which calls of a process are not bound yet.

use std::collections::HashMap;
use std::sync::Arc;

use super::error::LiveError;
use super::process::Process;
use crate::elf::{Elf, ElfError, Slot};
use crate::mappings::Mapping;

/// Pages are at least so large wherever files are mapped, bytes.
const PAGE: u64 = 4096;

/// Memory for the tables of all files of a process, bytes; a large program takes some MiB.
const MOST_MEMORY: usize = 256 << 20;

/// A file with code, where a process has loaded it.
pub struct Library {
    /// Its path, as the process sees it.
    pub path: String,
    /// True if the file was deleted since.
    pub is_deleted: bool,
    /// What is added to the addresses in the file.
    pub base: u64,
    /// Its slots, or why nothing is known of them.
    pub slots: Result<Slots, String>,
}

/// The slots of a library's PLT.
pub struct Slots {
    /// Facts of the file.
    pub elf: Arc<Elf>,
    /// Numbers in `elf.slots` of those that are not bound yet; or why that cannot be seen.
    pub unbound: Result<Vec<usize>, String>,
}

impl Library {
    /// Last component of its path.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// How many slots it has, and how many of them are not bound yet; `None` if that is not known.
    pub fn counts(&self) -> Option<(usize, usize)> {
        let slots = self.slots.as_ref().ok()?;
        Some((slots.elf.slots.len(), slots.unbound.as_ref().ok()?.len()))
    }

    /// The symbols of the slots that are not bound yet, in the order of the slots.
    pub fn unbound(&self) -> impl Iterator<Item = String> {
        let slots = self.slots.as_ref().ok();
        let known = slots.and_then(|slots| Some((&slots.elf, slots.unbound.as_ref().ok()?)));
        known.into_iter().flat_map(|(elf, unbound)| {
            unbound.iter().map(|at| elf.symbol(&elf.slots[*at]).into_owned())
        })
    }
}

/// Every file with code that the process has loaded, in the order of addresses, with the state of
/// its slots. The program itself is one of them.
///
/// # Errors
/// If the process is gone meanwhile, or may not be looked into.
pub fn bindings(process: &Process) -> Result<Vec<Library>, LiveError> {
    bindings_in(process, &process.mappings()?.all)
}

/// The same of the library at an address; the others are not read.
///
/// # Errors
/// As those of [`bindings`].
pub fn bindings_at(process: &Process, address: u64) -> Result<Option<Library>, LiveError> {
    let all = &process.mappings()?.all;
    let around = all.iter().find(|mapping| mapping.is_around(address));
    let Some(around) = around else { return Ok(None) };
    let is_of_it =
        |mapping: &&Mapping| mapping.device == around.device && mapping.inode == around.inode;
    let of_it: Vec<Mapping> = all.iter().filter(is_of_it).cloned().collect();
    let libraries = bindings_in(process, &of_it)?;
    // One file can be loaded twice.
    Ok(libraries.into_iter().rfind(|library| library.base <= address))
}

fn bindings_in(process: &Process, mappings: &[Mapping]) -> Result<Vec<Library>, LiveError> {
    let mut libraries = Vec::new();
    for file in files(mappings, process) {
        let (path, is_deleted) = (file.path, file.is_deleted);
        let elf = match file.elf {
            // Archives, caches and the like are mapped as well.
            Err(ElfError::Unknown(why)) if why.starts_with("no ELF file") => continue,
            Err(error) => {
                let slots = Err(error.to_string());
                libraries.push(Library { path, is_deleted, base: 0, slots });
                continue;
            }
            Ok(elf) => Arc::new(elf),
        };
        for base in file.bases {
            let unbound = unbound(process, &elf, base)?;
            let slots = Ok(Slots { elf: Arc::clone(&elf), unbound });
            libraries.push(Library { path: path.clone(), is_deleted, base, slots });
        }
    }
    process.is_still_there()?;
    libraries.sort_by_key(|library| library.base);
    Ok(libraries)
}

/// A file that is mapped, and where.
pub(super) struct MappedFile {
    pub path: String,
    pub is_deleted: bool,
    pub elf: Result<Elf, ElfError>,
    /// One for each time that it is loaded (a plugin can be, in several namespaces of the linker).
    pub bases: Vec<u64>,
}

/// The files of which code is mapped by a process, in the order of addresses.
pub(super) fn files(mappings: &[Mapping], process: &Process) -> Vec<MappedFile> {
    let mut order = Vec::new();
    let mut groups: HashMap<_, Vec<&Mapping>> = HashMap::new();
    for mapping in mappings.iter().filter(|mapping| mapping.path_of_file().is_some()) {
        let identity = (mapping.device, mapping.inode);
        let group = groups.entry(identity).or_insert_with(|| {
            order.push(identity);
            Vec::new()
        });
        group.push(mapping);
    }
    let groups = order.iter().filter_map(|identity| groups.remove(identity));
    let mut room = MOST_MEMORY;
    let of_group = |group: Vec<&Mapping>| {
        let code = group.iter().find(|mapping| mapping.executable)?;
        let (path, is_deleted) = code.path_of_file()?;
        let elf = match process.file(group[0]) {
            Ok(file) => Elf::read(&*file).and_then(|elf| within(&mut room, elf)),
            Err(why) => Err(ElfError::Unknown(why.to_string())),
        };
        let bases = elf.as_ref().map_or_else(|_| Vec::new(), |elf| bases(elf, &group));
        Some(MappedFile { path: path.to_owned(), is_deleted, elf, bases })
    };
    groups.filter_map(of_group).collect()
}

/// An ELF file whose tables find room.
fn within(room: &mut usize, elf: Elf) -> Result<Elf, ElfError> {
    let text = || format!("no room is left for its tables: {MOST_MEMORY} bytes are for all files");
    *room = room.checked_sub(elf.memory()).ok_or_else(|| ElfError::TooLarge(text()))?;
    Ok(elf)
}

/// What is added to the addresses in the file: code has to be mapped where it then should be.
fn bases(elf: &Elf, group: &[&Mapping]) -> Vec<u64> {
    let code = elf.segments().iter().find(|segment| segment.is_code && segment.in_file > 0);
    let Some(code) = code else { return Vec::new() };
    let offset = code.offset - code.offset % PAGE;
    let address = code.address - code.address % PAGE;
    let is_code = |map: &&&Mapping| {
        map.executable && map.offset <= offset && offset - map.offset < map.end - map.start
    };
    let base = |map: &&Mapping| (map.start + (offset - map.offset)).checked_sub(address);
    let mut bases: Vec<u64> = group.iter().filter(is_code).filter_map(base).collect();
    bases.dedup();
    bases
}

/// A slot is not bound as long as it holds what the file says: the way back into its own PLT.
fn unbound(
    process: &Process,
    elf: &Elf,
    base: u64,
) -> Result<Result<Vec<usize>, String>, LiveError> {
    let addresses = elf.slots.iter().map(|slot| base.wrapping_add(slot.address)).collect();
    let values = match process.words(vec![(code(elf, base), addresses)]) {
        Err(LiveError::NoAnswer(because)) => return Ok(Err(because)),
        values => match values?.pop() {
            Some(Ok(values)) => values,
            because => return Ok(Err(because.and_then(Result::err).unwrap_or_default())),
        },
    };
    let slots = elf.slots.iter().zip(values).enumerate();
    let unbound = slots.filter(|(_, (slot, value))| is_unbound(elf, base, slot, *value));
    Ok(Ok(unbound.map(|(at, _)| at).collect()))
}

/// An address of its code; that of no mapping if it has none.
pub(super) fn code(elf: &Elf, base: u64) -> u64 {
    let code = elf.segments().iter().find(|segment| segment.is_code && segment.in_file > 0);
    code.map_or(u64::MAX, |code| base.wrapping_add(code.address))
}

/// True if this value of a slot leads back into its own PLT.
pub(super) fn is_unbound(elf: &Elf, base: u64, slot: &Slot, value: u64) -> bool {
    // The slots of a prelinked file hold what it found then.
    value == base.wrapping_add(slot.initial) && elf.is_code(slot.initial) && !elf.is_prelinked
}
