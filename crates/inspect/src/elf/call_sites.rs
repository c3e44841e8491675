//! A return address in a stack: in which function, and after the call of what.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;

use super::bytes::Bytes;
use super::debug_data::{DebugLink, debug_data, debug_link};
use super::error::ElfError;
use super::file::Elf;
use super::functions::Functions;
use super::go_functions::go_functions;
use super::instructions::{
    LONGEST_CALL, PLT_ENTRY, SIGNAL_RETURN, Target, calls_before, plt_goes_through,
    returns_from_signal,
};
use super::unwind::Unwinder;
use crate::files;

/// What was called before a return address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// A function of another library, through the PLT: bound at its first call if it is lazy.
    Plt(String),
    /// A function of another library whose address was filled in at load time (`-fno-plt`).
    AtLoad(String),
    /// A function of the same file, by name if that is known.
    Own(Option<String>),
    /// Whatever a register or a place in memory held.
    Indirect,
}

/// A place in the code of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Last component of the file's path.
    pub module: String,
    /// Address, relative to where the file is loaded.
    pub address: u64,
    /// Function around it, and the distance from its start.
    pub function: Option<(String, u64)>,
    /// The call that returns there; `None` if there is no call in front of it.
    pub after: Option<Call>,
}

/// `librate.so:rate_timer+0x9e3 (after call sched_yield@plt)`.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.function {
            Some((name, distance)) => write!(f, "{}:{name}+{distance:#x}", self.module)?,
            None => write!(f, "{}+{:#x}", self.module, self.address)?,
        }
        match &self.after {
            Some(Call::Plt(symbol)) => write!(f, " (after call {symbol}@plt)"),
            Some(Call::AtLoad(symbol)) => write!(f, " (after call *{symbol}@got)"),
            Some(Call::Own(Some(name))) => write!(f, " (after call {name})"),
            Some(Call::Own(None) | Call::Indirect) | None => Ok(()),
        }
    }
}

/// The calls in a file, looked up by where they return to.
pub struct CallSites {
    module: String,
    source: Box<dyn Bytes>,
    elf: Elf,
    /// Or why there are none.
    functions: Result<Functions, String>,
    /// Those that are not exported, and the file that has them, if it is another one.
    debug: Option<(Functions, Box<dyn Bytes>)>,
    /// Name of the symbol, and whether it is a slot of the PLT, by address of the place that holds
    /// its address.
    imports: HashMap<u64, (u32, bool)>,
}

impl CallSites {
    /// Those of a file.
    ///
    /// # Errors
    /// See [`ElfError`].
    pub fn open(path: impl AsRef<Path>) -> Result<CallSites, ElfError> {
        let path = path.as_ref();
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
        CallSites::new(&name, Box::new(files::regular(path)?))
    }

    /// Those of some bytes, which are called `module` in what is printed.
    ///
    /// # Errors
    /// See [`ElfError`].
    pub fn new(module: &str, source: Box<dyn Bytes>) -> Result<CallSites, ElfError> {
        let elf = Elf::read(&*source)?;
        let functions = Functions::read(&*source, &elf).map_err(|error| error.to_string());
        let imports = elf.imports().map(|(at, name, is_slot)| (at, (name, is_slot))).collect();
        Ok(CallSites { module: module.to_owned(), source, elf, functions, debug: None, imports })
    }

    /// True if it was stripped: of its functions only the names of those are known that are exported.
    pub fn is_stripped(&self) -> bool {
        !self.functions.as_ref().is_ok_and(Functions::is_complete)
    }

    /// Takes the functions of the file that has the symbols of this one, which was stripped. What is
    /// exported keeps its name: the others that it has within its library are known to nobody.
    ///
    /// # Errors
    /// See [`ElfError`].
    pub fn take_symbols(&mut self, debug: Box<dyn Bytes>) -> Result<(), ElfError> {
        let functions = Functions::of_debug_file(&*debug)?;
        if !functions.is_empty() {
            self.debug = Some((functions, debug));
        }
        Ok(())
    }

    /// The file that it says has its symbols.
    pub fn debug_link(&self) -> Option<DebugLink> {
        debug_link(&*self.source)
    }

    /// Takes the symbols that the file itself has compressed, if it has any.
    pub fn take_packed_symbols(&mut self) {
        if let Some(symbols) = debug_data(&*self.source) {
            // What its own tables have is enough if these are damaged.
            let _ = self.take_symbols(Box::new(symbols));
        }
    }

    /// Takes the functions that a Go program has for its own tracebacks, if it is one.
    pub fn take_go_functions(&mut self) {
        if let Some(functions) = go_functions(&*self.source, &self.elf.header) {
            self.functions = Ok(functions);
        }
    }

    /// True if its symbols are those of another file, which is open, too.
    pub fn has_debug_file(&self) -> bool {
        self.debug.is_some()
    }

    /// Facts of the file.
    pub fn elf(&self) -> &Elf {
        &self.elf
    }

    /// Its tables to unwind by.
    ///
    /// # Errors
    /// Those of [`Unwinder::read`].
    pub fn unwinder(&self) -> Result<Unwinder, ElfError> {
        Unwinder::read(&*self.source, &self.elf)
    }

    /// Bytes of memory that it takes.
    pub fn memory(&self) -> usize {
        // A slot of a table that is three quarters full, with the number of the import.
        const IMPORT: usize = 32;
        let held = |(functions, source): &(Functions, Box<dyn Bytes>)| {
            functions.memory() + source.memory()
        };
        let debug = self.debug.as_ref().map_or(0, held);
        let functions = self.functions.as_ref().map_or(0, Functions::memory) + debug;
        size_of::<CallSites>() + functions + self.imports.len() * IMPORT + self.elf.memory()
    }

    /// The function around an offset of the file, and the distance from its start; or why that is
    /// not known. `offset` is of an instruction, not the return address behind it.
    ///
    /// # Errors
    /// In words.
    pub fn function_at_offset(&self, offset: u64) -> Result<(String, u64), String> {
        let address = self.elf.address_of(offset).ok_or("nothing is loaded from there")?;
        if let Some((name, start)) = self.function(address) {
            return Ok((name, address - start));
        }
        let functions = self.functions.as_ref().map_err(Clone::clone)?;
        let why = if functions.is_empty() && self.debug.is_none() {
            "its file has no symbols"
        } else {
            "no symbol of its file is there"
        };
        Err(why.to_owned())
    }

    /// What is called in front of the return address at an offset of the file.
    pub fn call_at_offset(&self, offset: u64) -> Option<Call> {
        self.call_before(self.elf.address_of(offset)?)
    }

    /// True if handlers of signals return to this offset of the file. No call is in front of it, and
    /// what its caller goes on with is the interrupted instruction itself.
    pub fn returns_from_signal(&self, offset: u64) -> bool {
        let address = self.elf.address_of(offset);
        let code = address.and_then(|address| self.code(address, SIGNAL_RETURN));
        code.is_some_and(|code| returns_from_signal(self.elf.machine, &code))
    }

    /// The place at an offset of the file, which is what a recorded frame has; `None` if nothing
    /// is loaded from there.
    pub fn at_offset(&self, offset: u64) -> Option<Place> {
        Some(self.at(self.elf.address_of(offset)?))
    }

    /// The place at an address, relative to where the file is loaded.
    pub fn at(&self, address: u64) -> Place {
        // A call can be the last instruction of a function that never gets control back: then the
        // return address is in the next one.
        let inside = address.saturating_sub(1);
        Place {
            module: self.module.clone(),
            address,
            function: self.function(inside).map(|(name, start)| (name, address - start)),
            after: self.call_before(address),
        }
    }

    /// Of several readings of the code the one that leads to an import is right: that is no
    /// coincidence.
    fn call_before(&self, address: u64) -> Option<Call> {
        let before = self.code(address.checked_sub(LONGEST_CALL as u64)?, LONGEST_CALL)?;
        let calls = calls_before(self.elf.machine, &before, address);
        if let Some(call) = calls.iter().find_map(|target| self.imported(*target)) {
            return Some(call);
        }
        calls.into_iter().find_map(|target| match target {
            Target::Address(to) if self.elf.is_code(to) => {
                let function = self.function(to).filter(|(_, start)| *start == to);
                Some(Call::Own(function.map(|(name, _)| name)))
            }
            Target::Address(_) => None,
            Target::Through(_) | Target::Unknown => Some(Call::Indirect),
        })
    }

    fn function(&self, address: u64) -> Option<(String, u64)> {
        let own = self.functions.as_ref().ok();
        own.and_then(|functions| functions.around(&*self.source, address)).or_else(|| {
            let (functions, source) = self.debug.as_ref()?;
            functions.around(&**source, address)
        })
    }

    fn imported(&self, target: Target) -> Option<Call> {
        let (through, is_plt) = match target {
            Target::Through(place) => (place, false),
            Target::Address(entry) => {
                let code = self.code(entry, PLT_ENTRY).or_else(|| self.code(entry, 10))?;
                (plt_goes_through(self.elf.machine, &code, entry)?, true)
            }
            Target::Unknown => return None,
        };
        let (name, is_slot) = self.imports.get(&through)?;
        let name = self.elf.strings().name(*name).into_owned();
        Some(if is_plt && *is_slot { Call::Plt(name) } else { Call::AtLoad(name) })
    }

    /// The code there, if there is as much.
    pub(super) fn code(&self, address: u64, length: usize) -> Option<Vec<u8>> {
        if !self.elf.is_code(address) {
            return None;
        }
        let offset = self.elf.header.offset_of("code", address, length as u64).ok()?;
        let mut code = vec![0; length];
        self.source.read_at(offset, &mut code).ok()?;
        Some(code)
    }
}
