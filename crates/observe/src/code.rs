//! The files with code that stacks lead into: their functions, and what is called in front of
//! return addresses.
//!
//! They are read by copying what is needed of them, once, and at most so much: a file of a program
//! that is watched may say of itself what it likes, and change while it is read.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use inspect::debug_files::Stripped;
use inspect::elf::{Call, CallSites, Registers, Step, Unwinder, WaysOut};
use inspect::files::FileOfProcess;
use inspect::live::{Process, bindings_at};
use inspect::patience;
use inspect::{debug_files, files};
use model::{ImportedCall, SlotsLeft};

use crate::demangle::demangle;
use crate::mappings::Mapping;

/// Memory for the tables of files that belong to root, and how many of them are kept open; a large
/// program with symbols (a database, a Java virtual machine) takes some MiB.
const OF_ROOT: Room = Room { bytes: 256 << 20, files: 384 };
/// The same of all other files together, so that nobody can use up what is for the system's.
const OF_OTHERS: Room = Room { bytes: 128 << 20, files: 128 };

/// Files of processes that could not be opened: remembered, for stacks come back to them.
const UNOPENED_KEPT: usize = 65_536;

/// Places whose answers are kept, some 200 bytes each.
const ANSWERS_KEPT: usize = 32_768;

/// Why a file is not opened when there is no time left for that.
pub const LATE: &str = "not read: naming the stacks of its user's processes took too long";

/// Which file, wherever it is mounted.
type Identity = ((u32, u32), u64);

/// A place in a file.
type Place = (Identity, u64);

fn place(mapping: &Mapping, offset: u64) -> Place {
    ((mapping.device, mapping.inode), offset)
}

/// What is known of a place; `None` if nobody has asked yet.
#[derive(Default)]
struct Answers {
    function: Option<Result<(String, u64), String>>,
    before: Option<Option<ImportedCall>>,
    returns_from_signal: Option<bool>,
}

/// Files with code, by device and inode: the same path can be another file in a container.
pub struct Code {
    files: HashMap<Identity, Result<Opened, String>>,
    unopened: HashMap<(u32, Identity), String>,
    /// Stacks of many processes lead through the same places: each answer takes a read of the file.
    answers: HashMap<Place, Answers>,
    of_root: Room,
    of_others: Room,
    /// How long files may be opened for from now on, if that is limited.
    pub time_left: Option<Duration>,
}

/// A file that was read.
struct Opened {
    sites: CallSites,
    is_of_root: bool,
    /// Read when a stack is unwound that leads there; `None` within: it has none, or they found no
    /// room.
    unwinder: Option<Option<Unwinder>>,
    ways_out: WaysOut,
}

/// What is left for more files.
#[derive(Clone, Copy, Debug)]
struct Room {
    bytes: usize,
    files: usize,
}

impl Default for Code {
    fn default() -> Code {
        Code {
            files: HashMap::new(),
            unopened: HashMap::new(),
            answers: HashMap::new(),
            of_root: OF_ROOT,
            of_others: OF_OTHERS,
            time_left: None,
        }
    }
}

impl Code {
    /// Name of the function at an offset of a mapped file, demangled, and the distance
    /// from its start; or why there is none.
    pub fn function(
        &mut self,
        tgid: u32,
        mapping: &Mapping,
        offset: u64,
    ) -> Result<(String, u64), String> {
        let place = place(mapping, offset);
        if let Some(function) = self.answers.get(&place).and_then(|known| known.function.clone()) {
            return function;
        }
        let function = self.file(tgid, mapping)?.function_at_offset(offset);
        let function = function.map(|(symbol, distance)| (demangle(&symbol), distance));
        self.keep(place, |known| known.function = Some(function.clone()));
        function
    }

    /// What the call calls that returns to this offset of a mapped file; `None` if it is no call of
    /// another library.
    pub fn before(&mut self, tgid: u32, mapping: &Mapping, offset: u64) -> Option<ImportedCall> {
        let place = place(mapping, offset);
        if let Some(before) = self.answers.get(&place).and_then(|known| known.before.clone()) {
            return before;
        }
        let before = match self.file(tgid, mapping).ok()?.call_at_offset(offset) {
            Some(Call::Plt(symbol)) => Some(ImportedCall::Plt(symbol)),
            Some(Call::AtLoad(symbol)) => Some(ImportedCall::Got(symbol)),
            Some(Call::Own(_) | Call::Indirect) | None => None,
        };
        self.keep(place, |known| known.before = Some(before.clone()));
        before
    }

    /// True if handlers of signals return to this offset of a mapped file.
    pub fn returns_from_signal(&mut self, tgid: u32, mapping: &Mapping, offset: u64) -> bool {
        let place = place(mapping, offset);
        if let Some(returns) = self.answers.get(&place).and_then(|known| known.returns_from_signal)
        {
            return returns;
        }
        let Ok(file) = self.file(tgid, mapping) else { return false };
        let returns = file.returns_from_signal(offset);
        self.keep(place, |known| known.returns_from_signal = Some(returns));
        returns
    }

    /// Keeps an answer, if there is room.
    fn keep(&mut self, place: Place, answer: impl FnOnce(&mut Answers)) {
        if self.answers.len() < ANSWERS_KEPT || self.answers.contains_key(&place) {
            answer(self.answers.entry(place).or_default());
        }
    }

    /// True if slot number `slot` of the file's PLT is what is called there: PLT entries push that
    /// number on the stack, right after the return address, for the dynamic linker alone.
    pub fn is_first_call(&mut self, tgid: u32, mapping: &Mapping, offset: u64, slot: u64) -> bool {
        let Ok(file) = self.file(tgid, mapping) else { return false };
        let slot = usize::try_from(slot).ok().and_then(|slot| file.elf().slots.get(slot));
        let Some(symbol) = slot.map(|slot| file.elf().symbol(slot)) else { return false };
        file.call_at_offset(offset) == Some(Call::Plt(symbol.into_owned()))
    }

    /// Goes from a place in a mapped file to who called it, by the file's tables or else by its code;
    /// `None` if it has no tables and the code does not say. `exact` if the instruction at the offset runs next; else it is
    /// behind the call that the thread is in.
    pub fn step(
        &mut self,
        tgid: u32,
        mapping: &Mapping,
        exact: bool,
        registers: Registers,
        memory: &dyn Fn(u64) -> Option<u64>,
    ) -> Result<Option<Step>, String> {
        self.file(tgid, mapping)?;
        let opened = self.files.get_mut(&(mapping.device, mapping.inode));
        let Some(Ok(opened)) = opened else { return Ok(None) };
        let Opened { sites, is_of_root, unwinder, ways_out } = opened;
        // A return address may be the first of the next function.
        let inside = registers.instruction.saturating_sub(u64::from(!exact)).max(mapping.start);
        let Some(address) = sites.elf().address_of(mapping.offset_of(inside)) else {
            return Ok(None);
        };
        let room = if *is_of_root { &mut self.of_root } else { &mut self.of_others };
        let read = || {
            let unwinder = sites.unwinder().ok()?;
            room.bytes = room.bytes.checked_sub(unwinder.memory())?;
            Some(unwinder)
        };
        let unwinder = unwinder.get_or_insert_with(read);
        let by_tables = unwinder.as_mut().map(|tables| tables.step(address, registers, memory));
        if by_tables.is_some_and(|step| step != Step::Unknown) {
            return Ok(by_tables);
        }
        let next = address.wrapping_add(registers.instruction - inside);
        let by_code = ways_out.step(sites, (next, exact), registers, memory);
        Ok(if by_code == Step::Unknown { by_tables } else { Some(by_code) })
    }

    fn file(&mut self, tgid: u32, mapping: &Mapping) -> Result<&CallSites, String> {
        let identity = (mapping.device, mapping.inode);
        if !self.files.contains_key(&identity) {
            if let Some(because) = self.unopened.get(&(tgid, identity)) {
                return Err(because.clone());
            }
            if self.time_left.is_some_and(|left| left.is_zero()) {
                return Err(LATE.to_owned());
            }
            let began = Instant::now();
            let read = self.open(tgid, mapping);
            self.time_left = self.time_left.map(|left| left.saturating_sub(began.elapsed()));
            let read = match read {
                Ok(read) => read,
                Err(because) => {
                    if self.unopened.len() < UNOPENED_KEPT {
                        self.unopened.insert((tgid, identity), because.clone());
                    }
                    return Err(because);
                }
            };
            self.files.insert(identity, read);
        }
        match self.files.get(&identity) {
            Some(read) => read.as_ref().map(|opened| &opened.sites).map_err(Clone::clone),
            None => Err("not read".to_owned()),
        }
    }

    /// Opens a file and reads it; or says why it cannot be opened.
    fn open(&mut self, tgid: u32, mapping: &Mapping) -> Result<Result<Opened, String>, String> {
        let what = mapping.clone();
        let opened = patience::ask(tgid, move || files::mapped(tgid, &what.file()));
        let file = opened.unwrap_or_else(|error| Err(error.into()));
        let file = file.map_err(|error| error.to_string())?;
        Ok(self.read(&mapping.path, file))
    }

    /// Reads a file's tables, if they find room.
    fn read(&mut self, path: &str, file: FileOfProcess) -> Result<Opened, String> {
        let owner = file.owner;
        let room = if owner == 0 { &mut self.of_root } else { &mut self.of_others };
        // The file itself, and the one that has its symbols.
        if room.files < 2 {
            return Err("not read: too many files with code".to_owned());
        }
        let name = path.rsplit('/').next().unwrap_or(path);
        let bytes = file.bytes().map_err(|error| error.to_string())?;
        let mut sites = CallSites::new(name, bytes).map_err(|error| error.to_string())?;
        if sites.is_stripped() {
            sites.take_go_functions();
        }
        if sites.is_stripped() {
            find_symbols(path, &file, &mut sites);
        }
        let bytes = sites.memory() + WaysOut::memory();
        let Some(left) = room.bytes.checked_sub(bytes) else {
            let (needed, left) = (bytes >> 20, room.bytes >> 20);
            return Err(format!("not read: needs {needed} MiB, {left} MiB are left for symbols"));
        };
        let files = 1 + usize::from(sites.has_debug_file());
        *room = Room { bytes: left, files: room.files - files };
        Ok(Opened { sites, is_of_root: owner == 0, unwinder: None, ways_out: WaysOut::default() })
    }
}

/// Looks for the symbols of a stripped file. What a file itself says of them is only followed if it
/// belongs to root or to the user that records: it costs up to a second.
fn find_symbols(path: &str, file: &FileOfProcess, sites: &mut CallSites) {
    let is_trusted = debug_files::is_trusted(file.owner);
    let link = if is_trusted { sites.debug_link() } else { None };
    let (process, build_id) = (file.pid, file.build_id());
    let stripped = Stripped { path: path.into(), process, build_id, link };
    if let Some(debug) = debug_files::find(&stripped) {
        // What its own tables have is enough if that file is damaged.
        let _ = sites.take_symbols(Box::new(debug));
    }
    if is_trusted && !sites.has_debug_file() {
        sites.take_packed_symbols();
    }
}

/// How many calls of the library at this address are not bound yet, read from the memory of the
/// running process. Costs some 100 us and the pages of the file's tables.
pub fn slots_left(tgid: u32, address: u64) -> Option<SlotsLeft> {
    let counts = move || bindings_at(&Process::open(tgid).ok()?, address).ok()??.counts();
    let (slots, unbound) = patience::ask(tgid, counts).ok()??;
    Some(SlotsLeft { unbound: unbound as u64, slots: slots as u64 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mappings;

    /// The mapping of this test's code, as another process would see it.
    fn own() -> (Mapping, u64) {
        let here = own as *const () as u64;
        let mappings = mappings::of_process(std::process::id()).mappings;
        let mapping = mappings.into_iter().find(|m| m.start <= here && here < m.end).unwrap();
        let offset = here - mapping.start + mapping.offset;
        (mapping, offset)
    }

    #[test]
    fn a_function_is_found_and_its_file_is_read_once() {
        let (mapping, offset) = own();
        let mut code = Code::default();
        let (name, distance) = code.function(std::process::id(), &mapping, offset).unwrap();
        assert!(name.contains("own") && distance == 0, "{name}+{distance}");
        // Of a process that is gone the file here does, if it is that one.
        let gone = i32::MAX as u32;
        let mut later = Code::default();
        assert_eq!(later.function(gone, &mapping, offset).unwrap().0, name);
        let other = Mapping { inode: mapping.inode + 1, ..mapping };
        let because = later.function(gone, &other, offset).unwrap_err();
        assert!(because.contains("replaced"), "{because}");
        assert_eq!((later.files.len(), later.unopened.len()), (1, 1));
    }

    #[test]
    fn without_time_only_files_that_were_read_have_names() {
        let (mapping, offset) = own();
        let me = std::process::id();
        let mut code = Code { time_left: Some(Duration::ZERO), ..Code::default() };
        assert_eq!(code.function(me, &mapping, offset).unwrap_err(), LATE);
        code.time_left = Some(Duration::from_secs(60));
        let name = code.function(me, &mapping, offset).unwrap();
        assert!(code.time_left.unwrap() < Duration::from_secs(60), "reading took some");
        code.time_left = Some(Duration::ZERO);
        assert_eq!(code.function(me, &mapping, offset).unwrap(), name);
    }

    #[test]
    fn what_finds_no_room_says_so() {
        let (mapping, offset) = own();
        let none = Room { bytes: 10, files: 10 };
        let mut code = Code { of_root: none, of_others: none, ..Code::default() };
        let because = code.function(std::process::id(), &mapping, offset).unwrap_err();
        assert!(because.contains("0 MiB are left for symbols"), "{because}");
        let none = Room { bytes: 1 << 30, files: 0 };
        let mut code = Code { of_root: none, of_others: none, ..Code::default() };
        let because = code.function(std::process::id(), &mapping, offset).unwrap_err();
        assert!(because.contains("too many files"), "{because}");
    }
}
