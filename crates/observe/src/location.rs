//! Where a file is whose names the kernel side sent.

use std::path::{Path, PathBuf};

use procfs::FromRead;
use procfs::process::{MountInfo, MountInfos};
use rustix::fs::{Mode, OFlags, ResolveFlags};

/// The path of a file whose names are given innermost first, up to the root of its mount: the
/// mount point in front is the one that makes the inode number right.
pub fn locate(names: &[String], inode: u64) -> PathBuf {
    let relative: PathBuf = names.iter().rev().collect();
    if is_below(Path::new("/"), &relative, inode) {
        return Path::new("/").join(relative);
    }
    let mounts = mounts();
    // Nothing that lies behind a server is asked: it answers when it likes.
    let served: Vec<&Path> =
        mounts.iter().filter(|m| is_served(&m.fs_type)).map(|m| m.mount_point.as_path()).collect();
    let is_asked = |point: &Path| !served.iter().any(|served| point.starts_with(served));
    let mut points = mounts.iter().map(|mount| mount.mount_point.as_path());
    let found = points.find(|point| is_asked(point) && is_below(point, &relative, inode));
    found.map_or_else(|| relative.clone(), |point| point.join(&relative))
}

/// A mount point may have any bytes in its name: users may mount FUSE.
fn mounts() -> Vec<MountInfo> {
    let text = inspect::read::text("/proc/self/mountinfo").unwrap_or_default();
    MountInfos::from_read(text.as_bytes()).map_or_else(|_| Vec::new(), |mounts| mounts.0)
}

/// True of file systems whose files are somebody's answers.
fn is_served(kind: &str) -> bool {
    kind.starts_with("fuse")
        || ["autofs", "nfs", "nfs4", "cifs", "smb3", "9p", "ceph"].contains(&kind)
}

/// True if a path below a mount point leads to that file, on the same file system.
fn is_below(point: &Path, relative: &Path, inode: u64) -> bool {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_XDEV | ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH;
    let found = rustix::fs::open(point, flags | OFlags::DIRECTORY, Mode::empty())
        .and_then(|root| rustix::fs::openat2(root, relative, flags, Mode::empty(), resolve))
        .and_then(rustix::fs::fstat);
    found.is_ok_and(|status| status.st_ino == inode)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::linux::fs::MetadataExt;

    use super::*;

    #[test]
    fn a_file_is_located_by_its_names_and_inode() {
        let exe = std::env::current_exe().unwrap();
        let inode = fs::metadata(&exe).unwrap().st_ino();
        let mounts = mounts().into_iter();
        let points = mounts.map(|m| m.mount_point).filter(|point| exe.starts_with(point));
        let point = points.max_by_key(|point| point.components().count()).unwrap();
        let names: Vec<String> = exe
            .strip_prefix(point)
            .unwrap()
            .components()
            .rev()
            .filter_map(|part| match part {
                std::path::Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
                _ => None,
            })
            .collect();
        assert_eq!(locate(&names, inode), exe);
        let other = locate(&names, inode + 1);
        assert!(other.is_relative(), "{other:?} has another inode");
    }

    #[test]
    fn only_what_lies_on_the_same_file_system_is_looked_at() {
        let inode = fs::metadata("/proc/self/mounts").unwrap().st_ino();
        assert!(!is_below(Path::new("/"), Path::new("proc/version"), inode));
        let version = fs::metadata("/proc/version").unwrap().st_ino();
        assert!(is_below(Path::new("/proc"), Path::new("version"), version));
        assert!(!is_below(Path::new("/"), Path::new("proc/version"), version), "another mount");
        assert!(is_served("fuse.sshfs") && is_served("fuseblk") && !is_served("ext4"));
    }
}
