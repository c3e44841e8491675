//! Makes a trace file: written whole, filled in, then given its name.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{self, AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::area::Area;
use super::folder;
use crate::layout::{self, Plan};
use crate::{Error, clock, process};

/// A trace file of this process.
pub(crate) struct TraceFile {
    folder: OwnedFd,
    name: String,
    pub path: PathBuf,
    pub area: Area,
}

impl TraceFile {
    pub fn make(folder_path: &Path, plan: &Plan) -> Result<TraceFile, Error> {
        let folder = folder::open(folder_path)?;
        let pid = std::process::id();
        let start = process::start_of("/proc/self/stat").map_err(|source| Error::System {
            path: "/proc/self/stat".into(),
            doing: "reading when this process started",
            source,
        })?;
        let name = format!("{pid}-{start}.trace");
        let path = folder_path.join(&name);
        let system = |doing, source: io::Error| Error::System { path: path.clone(), doing, source };

        // A file of this name is that of a program before an exec, or of a tracer that lives.
        if let Ok(there) = fs::statat(&folder, &name, AtFlags::SYMLINK_NOFOLLOW) {
            let mapped = process::maps("self", there.st_ino)
                .map_err(|source| system("looking for another tracer", source))?;
            if mapped {
                return Err(Error::Second);
            }
        }
        let draft = Draft::make(&folder, format!(".{pid}-{start}.new"))
            .map_err(|source| system("making the file", source))?;
        write_zeros(&draft.file, plan.length()).map_err(|source| {
            if matches!(
                source.kind(),
                io::ErrorKind::StorageFull
                    | io::ErrorKind::QuotaExceeded
                    | io::ErrorKind::FileTooLarge
            ) {
                Error::NoRoom { path: path.clone(), bytes: plan.length(), source }
            } else {
                system("writing the file", source)
            }
        })?;
        let area = Area::map(&draft.file, *plan)
            .map_err(|source| system("mapping the file", source.into()))?;
        let filled = fill_header(&area, pid, start)
            .and_then(|()| Ok(fs::renameat(&folder, &draft.name, &folder, &name)?));
        if let Err(source) = filled {
            area.let_go();
            return Err(system("giving the file its name", source));
        }
        draft.keep();
        Ok(TraceFile { folder, name, path, area })
    }

    /// Marks the file as that of a program that ended well, and removes it unless it is to stay.
    pub fn close(&self, keep: bool) {
        self.area.header().state.store_release(layout::CLOSED);
        if !keep {
            // There is nobody to report it to; a reader takes a file that stays for a closed one.
            let _ = fs::unlinkat(&self.folder, &self.name, AtFlags::empty());
        }
        self.area.let_go();
    }
}

/// A file that is removed again unless it is kept.
struct Draft<'a> {
    folder: &'a OwnedFd,
    name: String,
    file: File,
    keep: bool,
}

impl<'a> Draft<'a> {
    fn make(folder: &'a OwnedFd, name: String) -> io::Result<Self> {
        let flags =
            OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = || fs::openat(folder, &name, flags, Mode::RUSR | Mode::WUSR);
        let file = match open() {
            // Left by a program that made an exec, or was killed, in the middle of this.
            Err(Errno::EXIST) => {
                fs::unlinkat(folder, &name, AtFlags::empty())?;
                open()?
            }
            other => other?,
        };
        Ok(Draft { folder, name, file: file.into(), keep: false })
    }

    fn keep(mut self) {
        self.keep = true;
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        if !self.keep {
            // The error that led here is the one to report.
            let _ = fs::unlinkat(self.folder, &self.name, AtFlags::empty());
        }
    }
}

/// Not ftruncate: a hole that finds no memory later is a SIGBUS in the traced program.
fn write_zeros(mut file: &File, length: usize) -> io::Result<()> {
    let zeros = [0; 64 << 10];
    let mut left = length;
    while left > 0 {
        let piece = left.min(zeros.len());
        file.write_all(&zeros[..piece])?;
        left -= piece;
    }
    Ok(())
}

fn fill_header(area: &Area, pid: u32, start: u64) -> io::Result<()> {
    let header = area.header();
    let version = u32::from(layout::MAJOR) | u32::from(layout::MINOR) << 16;
    header.version.store_relaxed(version);
    header.byte_order.store_relaxed(layout::BYTE_ORDER);
    header.length.store_relaxed(area.plan().length() as u64);
    header.pid.store_relaxed(pid);
    header.language.store_relaxed(layout::LANGUAGE_RUST);
    header.start.store_relaxed(start);
    header.pid_namespace.store_relaxed(process::pid_namespace()?);
    for (word, text) in header.boot_id.iter().zip(process::boot_id()?.as_chunks::<4>().0) {
        word.store_relaxed(u32::from_le_bytes(*text));
    }
    header.state.store_relaxed(layout::RUNNING);
    header.created_unix.store_relaxed(clock::since_1970());
    header.created.store_relaxed(clock::now());
    header.clock.store_relaxed(layout::CLOCK_MONOTONIC);
    let places = area.plan().places();
    header.sections.store_relaxed(places.len() as u32);
    for (entry, place) in header.table.iter().zip(places) {
        entry.kind.store_relaxed(place.kind);
        entry.entry_bytes.store_relaxed(place.entry_bytes as u32);
        entry.entries.store_relaxed(place.entries as u64);
        entry.offset.store_relaxed(place.offset as u64);
        entry.length.store_relaxed((place.entries * place.entry_bytes) as u64);
    }
    header.magic.store_release(layout::MAGIC);
    Ok(())
}
