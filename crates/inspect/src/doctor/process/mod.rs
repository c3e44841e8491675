//! Checks of one process.

mod binding;
mod files;
mod held_up;
mod jvm;
mod memory;
mod scheduling;
mod sockets;

use std::cell::OnceCell;

use model::Unbound;

use super::entry::{Entry, get, row};
use crate::live::{Library, Process};
use crate::patience;
use scheduling::Stat;
use sockets::Socket;

/// The tables, in the order of the report.
pub(super) const TABLES: [&[Entry<Target>]; 7] = [
    binding::ENTRIES,
    scheduling::ENTRIES,
    held_up::ENTRIES,
    memory::ENTRIES,
    files::ENTRIES,
    sockets::ENTRIES,
    jvm::ENTRIES,
];

/// The process that is looked at.
pub(super) struct Target {
    pub process: Process,
    libraries: Result<Vec<Library>, String>,
    /// /proc/PID/status.
    status: String,
    /// Asked once, when the first check wants them.
    sockets: OnceCell<Result<Vec<Socket>, String>>,
    stats: OnceCell<Vec<Stat>>,
}

impl Target {
    pub fn new(process: Process, libraries: Result<Vec<Library>, String>) -> Target {
        let status = get(&format!("/proc/{}/status", process.pid())).unwrap_or_default();
        let (sockets, stats) = (OnceCell::new(), OnceCell::new());
        Target { process, libraries, status, sockets, stats }
    }

    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// The files with code that it has loaded.
    pub fn libraries(&self) -> Result<&[Library], String> {
        self.libraries.as_deref().map_err(Clone::clone)
    }

    /// Its sockets.
    fn sockets(&self) -> Result<&[Socket], String> {
        let sockets = self.sockets.get_or_init(|| sockets::read(self));
        sockets.as_deref().map_err(Clone::clone)
    }

    /// /proc/PID/task/TID/stat of its threads.
    fn stats(&self) -> &[Stat] {
        self.stats.get_or_init(|| scheduling::read(self))
    }

    /// A file of /proc/PID.
    pub fn get(&self, file: &str) -> Result<String, String> {
        let path = format!("/proc/{}/{file}", self.pid());
        patience::ask(self.pid(), move || get(&path)).map_err(|error| error.to_string())?
    }

    /// A number of /proc/PID/status.
    pub fn number(&self, name: &str) -> Result<u64, String> {
        row(&self.status, name).ok_or_else(|| format!("no {name} in its status"))
    }

    /// A text of /proc/PID/status.
    pub fn text(&self, name: &str) -> Result<&str, String> {
        let line = self.status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.map(str::trim).ok_or_else(|| format!("no {name} in its status"))
    }
}

/// The libraries that have slots, and those of which nothing is known.
pub(super) fn unbound(libraries: &[Library]) -> Vec<Unbound> {
    let one = |library: &Library| {
        let (slots, because) = match &library.slots {
            Ok(known) if known.elf.slots.is_empty() => return None,
            Ok(known) => (known.elf.slots.len(), known.unbound.as_ref().err().cloned()),
            Err(because) => (0, Some(because.clone())),
        };
        Some(Unbound {
            library: library.path.clone(),
            slots,
            symbols: library.unbound().collect(),
            unknown_because: because.unwrap_or_default(),
        })
    };
    libraries.iter().filter_map(one).collect()
}
