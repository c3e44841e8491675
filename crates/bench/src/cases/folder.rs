//! Files for the cases that need some: below the run's folder, on the file system of $TMPDIR.

use std::ffi::CString;
use std::fmt::Display;
use std::ops::Deref;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use rustix::fs::{Mode, OFlags, mkdir, open};
use rustix::io::{Errno, pwrite, read};

use super::{Alone, Prepared, Request};
use crate::{Error, Work};

/// What reads and writes move at a time, bytes.
pub const BLOCK: usize = 4096;

/// Mode of the files that are made.
pub const MODE: Mode = Mode::from_raw_mode(0o600);

/// Prepares a case whose workers have a folder each: they do not even meet in the lock of one.
pub fn each<W: Work + 'static>(
    request: &Request<'_>,
    make: impl Fn(&Folder) -> Result<W, Error> + Sync + 'static,
) -> Result<Box<dyn Prepared>, Error> {
    together(request, move |shared, id| make(&shared.folder(id)?))
}

/// Prepares a case whose workers have one folder together.
pub fn together<W: Work + 'static>(
    request: &Request<'_>,
    make: impl Fn(&Folder, usize) -> Result<W, Error> + Sync + 'static,
) -> Result<Box<dyn Prepared>, Error> {
    let root = root(request)?;
    Ok(Box::new(Alone(move |id| Ok(Box::new(make(&root, id)?) as _))))
}

/// The folder of a case.
pub fn root(request: &Request<'_>) -> Result<Root, Error> {
    Folder(request.traces.folder().to_owned()).folder("files").map(Root)
}

/// A folder that is removed, with all that is in it, when dropped.
pub struct Root(Folder);

impl Deref for Root {
    type Target = Folder;

    fn deref(&self) -> &Folder {
        &self.0
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0.0);
    }
}

/// A folder.
pub struct Folder(PathBuf);

impl Folder {
    /// Path of `name`, as system calls want it: no conversion is timed.
    pub fn path(&self, name: impl Display) -> Result<CString, Error> {
        let path = self.0.join(name.to_string()).into_os_string().into_vec();
        CString::new(path).map_err(|_| Errno::INVAL.into())
    }

    /// A folder in it, made if it is not there.
    pub fn folder(&self, name: impl Display) -> Result<Folder, Error> {
        let path = self.0.join(name.to_string());
        match mkdir(&path, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => Ok(Folder(path)),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Opens the file `name` for reading and writing. Its first `bytes` are written, so that they
    /// are in the page cache.
    pub fn file(&self, name: impl Display, bytes: usize) -> Result<OwnedFd, Error> {
        let flags = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC;
        let file = open(self.path(name)?, flags, MODE)?;
        let mut written = 0;
        while written < bytes {
            written += pwrite(&file, &vec![b'w'; bytes - written], written as u64)?;
        }
        Ok(file)
    }
}

/// A call that moves less than a block is another operation than the one that is measured.
pub fn whole(moved: usize) -> Result<(), Errno> {
    if moved == BLOCK { Ok(()) } else { Err(Errno::IO) }
}

/// Reads what there is in a descriptor that does not block.
pub fn drain(from: &OwnedFd) -> Result<(), Errno> {
    let mut buffer = [0u8; 4 * BLOCK];
    loop {
        match read(from, &mut buffer[..]) {
            Ok(0) | Err(Errno::AGAIN) => return Ok(()),
            Ok(_) => {}
            Err(errno) => return Err(errno),
        }
    }
}
