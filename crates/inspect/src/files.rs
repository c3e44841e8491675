//! Opens files that others chose. Whoever may put a file at a path that is read here (a program that
//! is looked at, or a user who can write in its folder) may put anything there.
//!
//! What lies there is first taken hold of without being opened (O_PATH), so that a FIFO does not
//! wait for a writer, and a device (a watchdog, a tape) does nothing. Only a regular file is then
//! opened, and the very one that was looked at. O_NONBLOCK, because who owns a file can hold a lease
//! on it. Files on FUSE are refused before anything is asked of them: their server answers when it
//! likes, and so are overlays, which do not show what is below them, and paths, of a process whose
//! mounts were made in a user namespace of its own, or whose root lies on such mounts. Everything is
//! read by copying (`pread`), never mapped: a mapped file that is cut short meanwhile ends its reader
//! with SIGBUS.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FileType, MemfdFlags, Mode, OFlags, ResolveFlags, Stat, StatxFlags,
};
use thiserror::Error;

use crate::elf::{Bytes, build_id_of};
use crate::mount::{self, Mount};
use crate::patience;
use crate::patient_file::PatientFile;
use crate::user_namespace::has_mounts_of_others;

/// Why a file is not opened.
#[derive(Debug, Error)]
pub enum FileError {
    /// A folder, a FIFO, a socket, a device.
    #[error("no regular file")]
    NotRegular,
    /// Its server could make the reader wait.
    #[error("on a FUSE file system, whose files are not read: its server could make whylag wait")]
    Fuse,
    /// So could those of its process's mounts.
    #[error(
        "on mounts of a user namespace of its process's own, whose files are not read: their server \
         could make whylag wait"
    )]
    MountsOfOthers,
    /// What kind of file system it is on cannot be found out without asking its server.
    #[error("on a file system that is mounted nowhere any more")]
    Unmounted,
    /// There is another file now where it was.
    #[error("its file was replaced since it was loaded")]
    Replaced,
    /// It has no path any more, and what is mapped may not be opened.
    #[error("its file was deleted, and {link} cannot be read: {source}")]
    Deleted {
        /// The link to what is mapped.
        link: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// What the kernel said.
    #[error("{0}")]
    System(#[from] io::Error),
}

impl From<rustix::io::Errno> for FileError {
    fn from(error: rustix::io::Errno) -> FileError {
        FileError::System(error.into())
    }
}

/// A mapping of a file, as /proc/PID/maps or the kernel has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapped<'a> {
    /// First address.
    pub start: u64,
    /// First address beyond.
    pub end: u64,
    /// Path of the file; ` (deleted)` at its end if it has none any more.
    pub path: &'a str,
    /// Major and minor number of the file system.
    pub device: (u32, u32),
    /// Number of the file on it; 0 for what is no file.
    pub inode: u64,
}

/// A file that a process runs or has mapped.
#[derive(Debug)]
pub struct FileOfProcess {
    file: File,
    /// The process.
    pub pid: u32,
    /// The user that it belongs to.
    pub owner: u32,
    is_on_overlay: bool,
}

impl FileOfProcess {
    /// Its bytes; those of an overlay by a thread that may be left behind, because what is below it
    /// is not shown, and can be FUSE.
    ///
    /// # Errors
    /// If this process may have no more open files.
    pub fn bytes(&self) -> io::Result<Box<dyn Bytes>> {
        let file = self.file.try_clone()?;
        Ok(match self.is_on_overlay {
            true => Box::new(PatientFile::new(self.pid, file)),
            false => Box::new(file),
        })
    }

    /// The GNU build id, as [`elf::build_id`](crate::elf::build_id()) has it.
    pub fn build_id(&self) -> Option<String> {
        let file = self.file.try_clone().ok()?;
        match self.is_on_overlay {
            true => patience::ask(self.pid, move || build_id_of(file)).ok()?,
            false => build_id_of(file),
        }
    }
}

/// The regular file at a path. Links are followed, but not those of /proc that lead into what a
/// process has: whoever writes the path of another namespace can have them in it here.
///
/// # Errors
/// See [`FileError`].
pub fn regular(path: impl AsRef<Path>) -> Result<File, FileError> {
    let (flags, resolve) = (OFlags::PATH | OFlags::CLOEXEC, ResolveFlags::NO_MAGICLINKS);
    let held = rustix::fs::openat2(CWD, path.as_ref(), flags, Mode::empty(), resolve)?;
    Held::new(held, None)?.open()
}

/// The program that a process runs, also one that was deleted or that has no path here.
///
/// # Errors
/// See [`FileError`].
pub fn program(pid: u32) -> Result<FileOfProcess, FileError> {
    let link = format!("/proc/{pid}/exe");
    let held = rustix::fs::open(link, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    Held::new(held, Some(pid))?.open_for(pid)
}

/// The regular file that a process has at a path. Links lead nowhere outside of its own root, and
/// the last part of the path may not be one.
///
/// # Errors
/// See [`FileError`].
pub fn of_process(pid: u32, path: &Path) -> Result<File, FileError> {
    held(pid, path, ResolveFlags::empty())?.open()
}

/// The kind of file system (`ext4`) that a process has at a path; one that is not absolute may not
/// lead out of its working directory. What a path that a process names leads through is asked:
/// see [`patience`].
///
/// # Errors
/// See [`FileError`].
pub fn file_system(pid: u32, path: &Path) -> Result<String, FileError> {
    let found = hold(pid, path, ResolveFlags::empty())?;
    Ok(Mount::of(&found, Some(pid)).ok_or(FileError::Unmounted)?.kind)
}

/// The root of a process. Paths in it are walked on mounts that the host's root has made.
///
/// # Errors
/// [`FileError::MountsOfOthers`].
pub fn root(pid: u32) -> Result<OwnedFd, FileError> {
    folder(pid, "root")
}

/// The file behind a mapping of a process: the very file that is mapped where the kernel lets it be
/// opened (CAP_CHECKPOINT_RESTORE); else the one at its path, if that is the same; after the end of
/// the process, the one at this path here, if that is.
///
/// # Errors
/// See [`FileError`].
pub fn mapped(pid: u32, mapping: &Mapped<'_>) -> Result<FileOfProcess, FileError> {
    if mapping.inode == 0 || !mapping.path.starts_with('/') {
        return Err(FileError::NotRegular);
    }
    let link = format!("/proc/{pid}/map_files/{:x}-{:x}", mapping.start, mapping.end);
    let source = match rustix::fs::open(&link, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
        Ok(held) => {
            let held = Held::new(held, Some(pid))?;
            if held.status.st_ino == mapping.inode {
                return held.open_for(pid);
            }
            // Something else is mapped there by now.
            io::ErrorKind::NotFound.into()
        }
        Err(error) => io::Error::from(error),
    };
    if mapping.path.ends_with(" (deleted)") {
        return Err(FileError::Deleted { link, source });
    }
    let path = Path::new(mapping.path);
    // The kernel gives paths without links.
    let held = match held(pid, path, ResolveFlags::NO_SYMLINKS) {
        Err(FileError::System(error)) if is_gone(pid, &error) => {
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let resolve = ResolveFlags::NO_SYMLINKS;
            Held::new(rustix::fs::openat2(CWD, path, flags, Mode::empty(), resolve)?, None)?
        }
        held => held?,
    };
    match held.is(mapping) {
        true => held.open_for(pid),
        false => Err(FileError::Replaced),
    }
}

fn held(pid: u32, path: &Path, resolve: ResolveFlags) -> Result<Held, FileError> {
    Held::new(hold(pid, path, resolve)?, Some(pid))
}

/// Takes hold of what a process has at a path.
fn hold(pid: u32, path: &Path, resolve: ResolveFlags) -> Result<OwnedFd, FileError> {
    let (from, within) = match path.is_absolute() {
        true => ("root", ResolveFlags::IN_ROOT),
        false => ("cwd", ResolveFlags::BENEATH),
    };
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = resolve | within | ResolveFlags::NO_MAGICLINKS;
    Ok(rustix::fs::openat2(folder(pid, from)?, path, flags, Mode::empty(), resolve)?)
}

/// A folder of a process, `root` or `cwd`. It can lie on a mount of another namespace than the process
/// is in: whoever has chroot and a mount in a user namespace of his own needs no more than the link
/// to it in /proc. So its mount has to be among those of the process, or ours; whose they are is
/// asked last, because a process can go to mounts of its own at any moment, and not back; and first,
/// which spares the list of these mounts, of which it can have many.
fn folder(pid: u32, name: &str) -> Result<OwnedFd, FileError> {
    if has_mounts_of_others(pid) {
        return Err(FileError::MountsOfOthers);
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = rustix::fs::open(format!("/proc/{pid}/{name}"), flags, Mode::empty())?;
    let own = rustix::fs::open("/", flags, Mode::empty())?;
    // This spares the list of mounts of nearly every process.
    if mount::number(&folder) != mount::number(&own) {
        match Mount::of(&folder, Some(pid)) {
            Some(mount) if mount.kind.starts_with("fuse") => return Err(FileError::Fuse),
            Some(_) => {}
            None => return Err(FileError::MountsOfOthers),
        }
    }
    match has_mounts_of_others(pid) {
        true => Err(FileError::MountsOfOthers),
        false => Ok(folder),
    }
}

/// A zombie still has its folder in /proc, and nothing in it leads anywhere.
fn is_gone(pid: u32, error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
        && std::fs::read_link(format!("/proc/{pid}/root"))
            .is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// A regular file that is held and not open.
struct Held {
    file: OwnedFd,
    status: Stat,
    mount: Option<Mount>,
}

impl Held {
    /// Takes no more than a look at what is held.
    fn new(file: OwnedFd, pid: Option<u32>) -> Result<Held, FileError> {
        let mount = Mount::known(&file, pid);
        match &mount {
            Some(mount) if mount.kind.starts_with("fuse") => return Err(FileError::Fuse),
            Some(mount) if mount.kind == "overlay" && pid.is_some_and(has_mounts_of_others) => {
                return Err(FileError::MountsOfOthers);
            }
            None if !is_in_memory(&file)? => return Err(FileError::Unmounted),
            _ => {}
        }
        let status = rustix::fs::fstat(&file)?;
        if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
            return Err(FileError::NotRegular);
        }
        Ok(Held { file, status, mount })
    }

    /// True if it is what is mapped. The device of a mapping is that of the mount; what `stat` says
    /// is another on btrfs. Of an overlay older kernels give that of the layer.
    fn is(&self, mapping: &Mapped<'_>) -> bool {
        let on_device = match &self.mount {
            Some(mount) => mount.kind == "overlay" || mount.device == mapping.device,
            None => {
                let device = self.status.st_dev;
                (rustix::fs::major(device), rustix::fs::minor(device)) == mapping.device
            }
        };
        self.status.st_ino == mapping.inode && on_device
    }

    fn open_for(self, pid: u32) -> Result<FileOfProcess, FileError> {
        let is_on_overlay = self.mount.as_ref().is_some_and(|mount| mount.kind == "overlay");
        Ok(FileOfProcess { owner: self.status.st_uid, is_on_overlay, pid, file: self.open()? })
    }

    fn open(self) -> Result<File, FileError> {
        let mut options = File::options();
        options.read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
        Ok(options.open(itself(&self.file))?)
    }
}

/// Files in memory (memfd) are on a file system that the kernel has mounted for itself. No server is
/// asked for what is compared.
fn is_in_memory(file: &OwnedFd) -> Result<bool, FileError> {
    let device = |file: &OwnedFd| -> rustix::io::Result<(u32, u32)> {
        let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
        let status = rustix::fs::statx(file, "", flags, StatxFlags::INO)?;
        Ok((status.stx_dev_major, status.stx_dev_minor))
    };
    let own = rustix::fs::memfd_create("whylag", MemfdFlags::CLOEXEC)?;
    Ok(device(file)? == device(&own)?)
}

/// The link in /proc that leads to what is held.
fn itself(file: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_fd().as_raw_fd()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn only_regular_files_are_opened_and_nothing_waits() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        rustix::fs::mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR, 0).unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
        for path in [&fifo, &link, &folder.path().to_owned()] {
            assert!(matches!(regular(path), Err(FileError::NotRegular)), "{path:?}");
        }
        let file = folder.path().join("file");
        std::fs::write(&file, "x").unwrap();
        assert!(regular(&file).is_ok());
        let me = std::process::id();
        assert!(of_process(me, &file).is_ok());
        let to_file = folder.path().join("to-file");
        std::os::unix::fs::symlink(&file, &to_file).unwrap();
        assert!(of_process(me, &to_file).is_err(), "no link at the end");
        assert!(regular(&to_file).is_ok());
    }

    #[test]
    fn a_link_into_what_a_process_has_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("file"), "x").unwrap();
        let here = folder.path().strip_prefix("/").unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(Path::new("/proc/self/root").join(here), &link).unwrap();
        assert!(std::fs::read(link.join("file")).is_ok());
        let loop_error = |result: Result<File, FileError>| match result {
            Err(FileError::System(error)) => error.raw_os_error() == Some(libc::ELOOP),
            _ => false,
        };
        assert!(loop_error(regular(link.join("file"))));
        assert!(loop_error(of_process(std::process::id(), &link.join("file"))));
        assert!(loop_error(regular("/proc/self/exe")));
        let own = program(std::process::id()).unwrap();
        assert_eq!(own.build_id(), crate::elf::build_id(std::env::current_exe().unwrap()));
        assert!(program(i32::MAX as u32).is_err());
    }

    #[test]
    fn the_kind_of_a_file_system_is_known_without_asking_it() {
        let me = std::process::id();
        let kind = |path: &str| file_system(me, Path::new(path));
        assert_eq!(kind("/proc/self/status").unwrap(), "proc");
        assert_eq!(kind("/dev/shm").unwrap(), "tmpfs");
        let here = kind(".").unwrap();
        assert_eq!(kind(std::env::current_dir().unwrap().to_str().unwrap()).unwrap(), here);
        assert!(kind("..").is_err() && kind("no-such-file").is_err());
        assert!(kind("/proc/self/cwd").is_ok(), "the link itself");
        assert!(kind("/proc/self/cwd/.").is_err());
    }

    #[test]
    fn a_file_is_the_mapped_one_by_inode_and_device() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().canonicalize().unwrap();
        let held = rustix::fs::open(&path, OFlags::PATH, Mode::empty()).unwrap();
        let device = Mount::of(&held, None).unwrap().device;
        let inode = file.as_file().metadata().unwrap().ino();
        let of = |pid, device, inode| {
            let path = path.to_str().unwrap();
            mapped(pid, &Mapped { start: 0x1000, end: 0x2000, path, device, inode })
        };
        // This process, another that is gone: the path does.
        for pid in [std::process::id(), i32::MAX as u32] {
            assert!(of(pid, device, inode).is_ok());
            assert!(matches!(of(pid, device, inode + 1), Err(FileError::Replaced)));
            let kind = rustix::fs::fstatfs(&held).unwrap().f_type;
            const OVERLAY_MAGIC: i64 = 0x794c_7630;
            if kind as i64 != OVERLAY_MAGIC {
                assert!(matches!(of(pid, (7, 777), inode), Err(FileError::Replaced)));
            }
        }
    }
}
