//! What a benchmark leaves behind in the kernel if it is killed, and its removal.
//!
//! Processes end with their parent. Whoever outlives the measurement can remove the rest: files
//! are in one folder, the keys of System V objects begin with the same bytes, and POSIX queues
//! have a note in the folder.
//!
//! Anybody can make a folder of that name, and any program can have such keys (those of ftok with 'W').
//! So only this user's own folders count, and of the objects those that this user made, and not
//! before the folder.

use std::ffi::CString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::UNIX_EPOCH;

use crate::Error;

/// First byte of the keys of all our System V objects ('W').
const KEY_PREFIX: u32 = 0x57 << 24;
/// Name of our folders, followed by the pid of who made them and a number.
const FOLDER: &str = "whylag-bench.";
/// Name of the note that there is a POSIX queue, followed by its number.
const QUEUE: &str = "queue.";

/// What one run may make; removed when dropped.
#[derive(Debug)]
pub struct Traces {
    folder: PathBuf,
    tag: u32,
}

impl Traces {
    /// Makes the folder, below $TMPDIR. Removes what runs that were killed have left.
    pub fn begin() -> Result<Traces, Error> {
        static BEGUN: AtomicU32 = AtomicU32::new(0);
        let (pid, nth) = (std::process::id(), BEGUN.fetch_add(1, Ordering::Relaxed));
        sweep(&std::env::temp_dir());
        let folder = std::env::temp_dir().join(format!("{FOLDER}{pid}.{nth}"));
        fs::create_dir(&folder).map_err(|source| Error::Os {
            doing: format!("making {}", folder.display()),
            source,
        })?;
        Ok(Traces { folder, tag: tag_of(pid, nth) })
    }

    /// Where files go.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A key for a System V object, different for each `slot`.
    pub fn key(&self, slot: u16) -> i32 {
        (self.tag | u32::from(slot)).cast_signed()
    }

    /// Removes everything.
    pub fn remove(&self) {
        remove(&self.folder, self.tag);
    }
}

impl Drop for Traces {
    fn drop(&mut self) {
        self.remove();
    }
}

/// The second byte of a key distinguishes runs that are under way at the same time.
fn tag_of(pid: u32, nth: u32) -> u32 {
    KEY_PREFIX | (pid.wrapping_add(nth) & 0xff) << 16
}

/// Removes what runs have left whose process is gone.
fn sweep(temporary: &Path) {
    let Ok(entries) = fs::read_dir(temporary) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some((pid, nth)) = name.to_str().and_then(whose) else { continue };
        if !Path::new(&format!("/proc/{pid}")).exists() {
            remove(&entry.path(), tag_of(pid, nth));
        }
    }
}

/// Removes a folder and what was made with it, if it is this user's own.
fn remove(folder: &Path, tag: u32) {
    let own = rustix::process::geteuid().as_raw();
    let Ok(found) = fs::symlink_metadata(folder) else { return };
    if found.is_dir() && found.uid() == own {
        remove_keys(tag, own, made(&found));
        remove_folder(folder);
    }
}

/// When a folder was made, in seconds since 1970; at least when it was last changed, where the file
/// system does not know.
fn made(folder: &fs::Metadata) -> i64 {
    let born = folder.created().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    born.and_then(|born| i64::try_from(born.as_secs()).ok()).unwrap_or_else(|| folder.mtime())
}

/// The name for a POSIX queue of the run with this folder, which notes that there may be one: the
/// kernel lists queues only where its file system of them is mounted.
pub fn posix_queue(folder: &Path, number: usize) -> Result<CString, Error> {
    let note = folder.join(format!("{QUEUE}{number}"));
    fs::write(&note, [])
        .map_err(|source| Error::Os { doing: format!("making {}", note.display()), source })?;
    queue_name(folder, &number.to_string())
        .ok_or_else(|| Error::Refused("a folder with a zero byte in its name".to_owned()))
}

fn queue_name(folder: &Path, number: &str) -> Option<CString> {
    let folder = folder.file_name()?.to_str()?;
    CString::new(format!("/{folder}.{number}")).ok()
}

/// Removes the folder, and the POSIX queues that it has notes of.
fn remove_folder(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix(QUEUE));
        if let Some(queue) = number.and_then(|number| queue_name(folder, number)) {
            // SAFETY: a name that ends with zero. It is no error if the queue is gone.
            unsafe { libc::mq_unlink(queue.as_ptr()) };
        }
    }
    let _ = fs::remove_dir_all(folder);
}

/// The pid and the number in the name of a folder of ours.
fn whose(name: &str) -> Option<(u32, u32)> {
    let (pid, nth) = name.strip_prefix(FOLDER)?.split_once('.')?;
    Some((pid.parse().ok()?, nth.parse().ok()?))
}

/// Removes the System V objects whose keys begin with `tag`, that `user` made, at `since` or later.
fn remove_keys(tag: u32, user: u32, since: i64) {
    for (table, remove) in [
        ("shm", remove_segment as fn(i32)),
        ("sem", remove_semaphores as fn(i32)),
        ("msg", remove_queue as fn(i32)),
    ] {
        let Ok(text) = fs::read_to_string(format!("/proc/sysvipc/{table}")) else { continue };
        let mut lines = text.lines();
        let names: Vec<&str> = lines.next().unwrap_or_default().split_ascii_whitespace().collect();
        let place = |name| names.iter().position(|column| *column == name);
        let (Some(maker), Some(changed)) = (place("cuid"), place("ctime")) else { continue };
        for line in lines {
            let fields: Vec<i64> =
                line.split_ascii_whitespace().map_while(|field| field.parse().ok()).collect();
            let (Some(key), Some(id)) = (fields.first(), fields.get(1)) else { continue };
            let is_ours = *key as u32 & 0xffff_0000 == tag
                && fields.get(maker) == Some(&i64::from(user))
                && fields.get(changed).is_some_and(|at| *at >= since);
            if let (true, Ok(id)) = (is_ours, i32::try_from(*id)) {
                remove(id);
            }
        }
    }
}

/// Removes a segment of shared memory; it is no error if it is gone.
pub fn remove_segment(id: i32) {
    // SAFETY: IPC_RMID takes no structure.
    unsafe { libc::shmctl(id, libc::IPC_RMID, std::ptr::null_mut()) };
}

/// Removes a set of semaphores; it is no error if it is gone.
pub fn remove_semaphores(id: i32) {
    // SAFETY: IPC_RMID takes no further argument.
    unsafe { libc::semctl(id, 0, libc::IPC_RMID) };
}

/// Removes a queue of messages; it is no error if it is gone.
pub fn remove_queue(id: i32) {
    // SAFETY: IPC_RMID takes no structure.
    unsafe { libc::msgctl(id, libc::IPC_RMID, std::ptr::null_mut()) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn posix_queues_are_removed() {
        let traces = Traces::begin().unwrap();
        let name = posix_queue(traces.folder(), 3).unwrap();
        let open = |flags| {
            // SAFETY: a name that ends with zero; the attributes are the system's.
            let queue = unsafe {
                libc::mq_open(name.as_ptr(), flags, 0o600, std::ptr::null_mut::<libc::mq_attr>())
            };
            // SAFETY: just opened, or -1, which is refused.
            queue != -1 && unsafe { libc::mq_close(queue) } == 0
        };
        assert!(open(libc::O_CREAT | libc::O_RDWR) && open(libc::O_RDWR));
        drop(traces);
        assert!(!open(libc::O_RDWR));
    }

    #[test]
    fn semaphores_and_files_are_removed() {
        let traces = Traces::begin().unwrap();
        let key = traces.key(7);
        // SAFETY: makes a set of one semaphore.
        let id = unsafe { libc::semget(key, 1, libc::IPC_CREAT | 0o600) };
        assert!(id >= 0);
        let is_there = || {
            let table = fs::read_to_string("/proc/sysvipc/sem").unwrap();
            table.lines().any(|line| line.split_ascii_whitespace().next() == Some(&key.to_string()))
        };
        assert!(is_there());
        let folder = traces.folder().to_owned();
        drop(traces);
        assert!(!is_there() && !folder.exists());
    }

    fn made_set(key: i32) -> i32 {
        // SAFETY: makes a set of one semaphore.
        let id = unsafe { libc::semget(key, 1, libc::IPC_CREAT | libc::IPC_EXCL | 0o600) };
        assert!(id >= 0, "{}", std::io::Error::last_os_error());
        id
    }

    fn is_there(key: i32) -> bool {
        let table = fs::read_to_string("/proc/sysvipc/sem").unwrap();
        table.lines().any(|line| line.split_ascii_whitespace().next() == Some(&key.to_string()))
    }

    /// Of another program whose keys begin as those of a run do, and of a folder that anybody can make.
    #[test]
    fn what_others_have_made_is_not_removed() {
        let gone = i32::MAX as u32;
        let key = |nth| (tag_of(gone, nth) | 9).cast_signed();
        let temporary = tempfile::tempdir().unwrap();
        let folder = |nth: u32| temporary.path().join(format!("{FOLDER}{gone}.{nth}"));
        let before = made_set(key(1));
        std::thread::sleep(std::time::Duration::from_millis(1100));
        fs::create_dir(folder(1)).unwrap();
        sweep(temporary.path());
        assert!(is_there(key(1)) && !folder(1).exists(), "it was there before");
        remove_semaphores(before);

        fs::create_dir(folder(2)).unwrap();
        let after = made_set(key(2));
        if std::os::unix::fs::chown(folder(2), Some(65534), None).is_ok() {
            sweep(temporary.path());
            assert!(is_there(key(2)) && folder(2).exists(), "somebody else's folder");
            std::os::unix::fs::chown(folder(2), Some(0), None).unwrap();
        }
        sweep(temporary.path());
        assert!(!is_there(key(2)) && !folder(2).exists(), "what a run has left");
        remove_semaphores(after);
    }
}
