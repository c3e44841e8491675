//! What is called in front of return addresses, and first calls among the words of a stack.

use std::collections::HashMap;
use std::fs;
use std::os::linux::fs::MetadataExt;
use std::path::Path;

use inspect::elf::{Call, CallSites};
use inspect::live::{Process, bindings_at};
use model::{ImportedCall, SlotsLeft};

/// Calls in files, by device and inode: the same path can be another file in a container.
#[derive(Default)]
pub struct Calls {
    files: HashMap<(u64, u64), Option<CallSites>>,
}

impl Calls {
    /// What the call calls that returns to this offset of a file; `None` if it is no call of another
    /// library.
    pub fn before(&mut self, path: &Path, offset: u64) -> Option<ImportedCall> {
        match self.file(path)?.at_offset(offset)?.after? {
            Call::Plt(symbol) => Some(ImportedCall::Plt(symbol)),
            Call::AtLoad(symbol) => Some(ImportedCall::Got(symbol)),
            Call::Own(_) | Call::Indirect => None,
        }
    }

    /// True if slot number `slot` of the file's PLT is what is called there: PLT entries push that
    /// number on the stack, right after the return address, for the dynamic linker alone.
    pub fn is_first_call(&mut self, path: &Path, offset: u64, slot: u64) -> bool {
        let Some(file) = self.file(path) else { return false };
        let slot = usize::try_from(slot).ok().and_then(|slot| file.elf().slots.get(slot));
        let Some(symbol) = slot.map(|slot| file.elf().symbol(slot)) else { return false };
        let called = file.at_offset(offset).and_then(|place| place.after);
        called == Some(Call::Plt(symbol.into_owned()))
    }

    fn file(&mut self, path: &Path) -> Option<&CallSites> {
        let data = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
        let open = || CallSites::open(path).ok();
        self.files.entry((data.st_dev(), data.st_ino())).or_insert_with(open).as_ref()
    }
}

/// How many calls of the library at this address are not bound yet, read from the memory of the
/// running process. Costs some 100 us and the pages of the file's tables.
pub fn slots_left(tgid: u32, address: u64) -> Option<SlotsLeft> {
    let process = Process::open(tgid).ok()?;
    let (slots, unbound) = bindings_at(&process, address).ok()??.counts()?;
    Some(SlotsLeft { unbound: unbound as u64, slots: slots as u64 })
}
