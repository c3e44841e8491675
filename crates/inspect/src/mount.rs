//! Where a file is mounted, learnt without asking its file system.
//!
//! What tells that of any mount is the list of all of them, which a process can make as long as it
//! likes: in a user namespace of its own anybody can have 100,000 mounts. So what was found of a mount
//! is remembered, by a number that no other ever has (Linux 6.8).

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::{LazyLock, Mutex, PoisonError};

use rustix::fs::{AtFlags, StatxFlags};

/// What is read of a list of mounts, bytes: some 20,000 mounts.
const LONGEST_LIST: u64 = 4 << 20;

/// Mounts that are remembered.
const KNOWN: usize = 4_096;

/// `STATX_MNT_ID_UNIQUE` of linux/stat.h.
const UNIQUE_NUMBER: StatxFlags = StatxFlags::from_bits_retain(0x4000);

/// What was found of mounts.
static FOUND: LazyLock<Mutex<Found>> = LazyLock::new(Mutex::default);

/// A mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    pub device: (u32, u32),
    /// Kind of its file system, such as `ext4`.
    pub kind: String,
}

impl Mount {
    /// Looked for among the mounts that the process sees now, then among our own.
    pub fn of(file: &OwnedFd, pid: Option<u32>) -> Option<Mount> {
        let number = number(file)?;
        let of_process = pid.and_then(|pid| text(&format!("/proc/{pid}/mountinfo")));
        let found = of_process.and_then(|mounts| Mount::find(&mounts, &number));
        found.or_else(|| Mount::find(&text("/proc/self/mountinfo")?, &number))
    }

    /// The same, or what was found before: whoever sees a mount, what is mounted there stays the same.
    pub fn known(file: &OwnedFd, pid: Option<u32>) -> Option<Mount> {
        let Some(number) = unique_number(file) else { return Mount::of(file, pid) };
        let found = FOUND.lock().unwrap_or_else(PoisonError::into_inner).get(number, pid);
        found.unwrap_or_else(|| {
            // Not locked: reading a list takes time.
            let mount = Mount::of(file, pid);
            let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
            found.put(number, pid, mount.as_ref());
            mount
        })
    }

    /// `36 35 98:0 /root /point options - ext4 source options`.
    fn find(mounts: &str, number: &str) -> Option<Mount> {
        let mut lines = mounts.lines().map(|line| line.split(' '));
        let mut line = lines.find(|line| line.clone().next() == Some(number))?;
        let (major, minor) = line.nth(2)?.split_once(':')?;
        let device = (major.parse().ok()?, minor.parse().ok()?);
        let kind = line.skip_while(|word| *word != "-").nth(1)?.to_owned();
        Some(Mount { device, kind })
    }
}

#[derive(Default)]
struct Found {
    mounts: HashMap<u64, Mount>,
    /// Those that are in no list, or too far behind in one: another process may have it in its own.
    nowhere: HashSet<(u64, Option<u32>)>,
}

impl Found {
    /// `None` if it was not looked for.
    fn get(&self, number: u64, pid: Option<u32>) -> Option<Option<Mount>> {
        match self.mounts.get(&number) {
            Some(mount) => Some(Some(mount.clone())),
            None => self.nowhere.contains(&(number, pid)).then_some(None),
        }
    }

    fn put(&mut self, number: u64, pid: Option<u32>, mount: Option<&Mount>) {
        if self.mounts.len() + self.nowhere.len() >= KNOWN {
            *self = Found::default();
        }
        match mount {
            Some(mount) => _ = self.mounts.insert(number, mount.clone()),
            None => _ = self.nowhere.insert((number, pid)),
        }
    }
}

/// Number of the mount in the lists. No other mount has it as long as the file is held.
pub(crate) fn number(file: &OwnedFd) -> Option<String> {
    let info = text(&format!("/proc/self/fdinfo/{}", file.as_raw_fd()))?;
    let number = info.lines().find_map(|line| line.strip_prefix("mnt_id:"))?;
    Some(number.trim().to_owned())
}

/// A number that no other mount has had or will have; `None` before Linux 6.8.
fn unique_number(file: &OwnedFd) -> Option<u64> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let status = rustix::fs::statx(file.as_fd(), "", flags, UNIQUE_NUMBER).ok()?;
    (status.stx_mask & UNIQUE_NUMBER.bits() != 0).then_some(status.stx_mnt_id)
}

fn text(path: &str) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(LONGEST_LIST).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_is_found_by_its_number() {
        let mounts = "22 1 0:21 / /proc rw - proc proc rw\n\
                      122 1 8:17 /a /b\\040c rw shared:1 - ext4 /dev/sdb1 rw\n\
                      30 1 0:50 / /f rw - fuse.sshfs a: rw\n";
        let ext4 = Mount { device: (8, 17), kind: "ext4".to_owned() };
        assert_eq!(Mount::find(mounts, "122"), Some(ext4));
        assert_eq!(Mount::find(mounts, "30").unwrap().kind, "fuse.sshfs");
        assert_eq!(Mount::find(mounts, "2"), None);
    }

    #[test]
    fn what_was_found_is_remembered_and_what_was_not_of_that_process_alone() {
        let mut found = Found::default();
        let ext4 = Mount { device: (8, 17), kind: "ext4".to_owned() };
        found.put(7, Some(1), Some(&ext4));
        found.put(8, Some(1), None);
        assert_eq!(found.get(7, Some(2)), Some(Some(ext4)));
        assert_eq!(found.get(8, Some(1)), Some(None));
        assert_eq!((found.get(8, Some(2)), found.get(9, Some(1))), (None, None));
        (10..10 + KNOWN as u64).for_each(|number| found.put(number, None, None));
        assert!(found.mounts.len() + found.nowhere.len() <= KNOWN);
    }
}
