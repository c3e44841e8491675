//! The folder of the trace files: in memory, and nobody else's.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{self, Mode, OFlags};

use crate::Error;

/// From linux/magic.h.
const TMPFS_MAGIC: u64 = 0x0102_1994;

/// Where the user's trace files are if nothing else is said.
pub(crate) fn usual() -> PathBuf {
    if let Some(named) = std::env::var_os("WHYLAG_TRACE_DIR").filter(|path| !path.is_empty()) {
        return named.into();
    }
    format!("/dev/shm/whylag-{}", rustix::process::geteuid().as_raw()).into()
}

/// Opens the folder, which is made if it is not there, and makes sure of it.
pub(crate) fn open(path: &Path) -> Result<OwnedFd, Error> {
    let system = |doing| {
        move |error: rustix::io::Errno| Error::System {
            path: path.to_owned(),
            doing,
            source: io::Error::from(error),
        }
    };
    match fs::mkdir(path, Mode::RWXU) {
        Err(error) if error != rustix::io::Errno::EXIST => {
            return Err(system("making the folder for traces")(error));
        }
        _ => {}
    }
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = fs::open(path, flags, Mode::empty())
        .map_err(system("opening the folder for traces (no link is followed)"))?;
    let status = fs::fstat(&folder).map_err(system("looking at the folder for traces"))?;
    if status.st_uid != rustix::process::geteuid().as_raw() {
        return Err(Error::Unsafe { path: path.to_owned(), why: "belongs to another user" });
    }
    if status.st_mode & 0o022 != 0 {
        return Err(Error::Unsafe { path: path.to_owned(), why: "others may write there" });
    }
    let kind = fs::fstatfs(&folder).map_err(system("looking at its file system"))?;
    if kind.f_type as u64 != TMPFS_MAGIC {
        return Err(Error::NotMemory(path.to_owned()));
    }
    Ok(folder)
}
