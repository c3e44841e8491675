//! Return addresses of a live process as text.

use super::bindings::files;
use super::error::LiveError;
use super::process::Process;
use crate::elf::{CallSites, Place};

/// Code of one loaded file.
struct Loaded {
    start: u64,
    end: u64,
    base: u64,
    sites: CallSites,
}

/// The code of a process, to look addresses up in.
pub struct Places {
    loaded: Vec<Loaded>,
}

impl Places {
    /// Opens the files that the process has loaded; those that cannot be read have no places.
    ///
    /// # Errors
    /// If the process may not be looked into.
    pub fn of(process: &Process) -> Result<Places, LiveError> {
        let mappings = &process.mappings()?.all;
        let mut loaded = Vec::new();
        for file in files(mappings, process) {
            let name = file.path.rsplit('/').next().unwrap_or(&file.path);
            for base in &file.bases {
                let Some(source) = mappings.iter().find_map(|mapping| {
                    let (path, _) = mapping.path_of_file()?;
                    (path == file.path).then(|| process.file(mapping).ok())?
                }) else {
                    continue;
                };
                let Ok(sites) = CallSites::new(name, source) else { continue };
                let code = sites.elf().segments().iter().filter(|segment| segment.is_code);
                let ends = code.map(|segment| {
                    let start = base.wrapping_add(segment.address);
                    (start, start.saturating_add(segment.in_file))
                });
                let (start, end) =
                    ends.fold((u64::MAX, 0), |all, one| (all.0.min(one.0), all.1.max(one.1)));
                loaded.push(Loaded { start, end, base: *base, sites });
            }
        }
        Ok(Places { loaded })
    }

    /// The place at an address of the process; `None` if no file's code is there.
    pub fn at(&self, address: u64) -> Option<Place> {
        let is_around = |code: &&Loaded| code.start <= address && address <= code.end;
        let code = self.loaded.iter().find(is_around)?;
        Some(code.sites.at(address.wrapping_sub(code.base)))
    }
}
