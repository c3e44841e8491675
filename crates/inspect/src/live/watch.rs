//! Calls as they become bound.

use std::collections::HashMap;

use super::bindings::{Library, bindings, code, is_unbound};
use super::error::LiveError;
use super::process::Process;

/// A slot that was not bound when last looked at, and is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Path of the library that called.
    pub library: String,
    /// What it called.
    pub symbol: String,
    /// Path of the library that has it, if that is known.
    pub provider: Option<String>,
}

/// The slots of a process that are not bound yet.
pub struct Watch {
    process: Process,
    libraries: Vec<Library>,
}

impl Watch {
    /// Begins with what is not bound now.
    ///
    /// # Errors
    /// If the process is gone.
    pub fn new(process: Process) -> Result<Watch, LiveError> {
        let libraries = bindings(&process)?;
        Ok(Watch { process, libraries })
    }

    /// The libraries as they were when last looked at.
    pub fn libraries(&self) -> &[Library] {
        &self.libraries
    }

    /// What became bound since the last look; only the slots that were not bound are read again.
    ///
    /// # Errors
    /// If the process is gone, or does not answer.
    pub fn look(&mut self) -> Result<Vec<Bound>, LiveError> {
        let addresses = self.libraries.iter().map(waiting).collect();
        let values = self.process.words(addresses)?;
        let mut bound = Vec::new();
        for (library, values) in self.libraries.iter_mut().zip(values) {
            // One that cannot be read is being unloaded; refresh() will forget it.
            if let Ok(values) = values {
                take_bound(&self.process, library, values, &mut bound);
            }
        }
        self.process.is_still_there()?;
        Ok(bound)
    }

    /// Finds libraries that were loaded since, and forgets those that are gone. A library that is
    /// new has no history: what is bound in it already is not reported.
    ///
    /// # Errors
    /// If the process is gone.
    pub fn refresh(&mut self) -> Result<(), LiveError> {
        self.process.refresh()?;
        let place = |library: &Library| (library.path.clone(), library.base);
        let mut known: HashMap<_, Library> =
            self.libraries.drain(..).map(|library| (place(&library), library)).collect();
        let now = bindings(&self.process)?;
        self.libraries =
            now.into_iter().map(|new| known.remove(&place(&new)).unwrap_or(new)).collect();
        Ok(())
    }
}

/// An address of its code, and those of its slots that are not bound.
fn waiting(library: &Library) -> (u64, Vec<u64>) {
    let Ok(slots) = &library.slots else { return (u64::MAX, Vec::new()) };
    let waiting = slots.unbound.iter().flatten();
    let addresses = waiting.map(|at| library.base.wrapping_add(slots.elf.slots[*at].address));
    (code(&slots.elf, library.base), addresses.collect())
}

/// Compares what is in these slots now.
fn take_bound(process: &Process, library: &mut Library, values: Vec<u64>, bound: &mut Vec<Bound>) {
    let Ok(slots) = &mut library.slots else { return };
    let (elf, base) = (&slots.elf, library.base);
    let Ok(waiting) = &mut slots.unbound else { return };
    let mut still = Vec::with_capacity(waiting.len());
    for (at, value) in waiting.iter().zip(values) {
        let slot = &elf.slots[*at];
        if is_unbound(elf, base, slot, value) {
            still.push(*at);
        } else {
            bound.push(Bound {
                library: library.path.clone(),
                symbol: elf.symbol(slot).into_owned(),
                provider: process.file_at(value),
            });
        }
    }
    *waiting = still;
}
