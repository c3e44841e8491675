//! Whose mounts a process sees.
//!
//! Anybody can make a user namespace, and in it mount FUSE and overlays over that. Their server
//! decides when a lookup, an open or a read ends; who waits for it cannot even be killed, and no
//! process ends before its last thread. Mounts of a namespace that the host's root has made (those of
//! containers, as a rule) are root's own.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// `_IO(0xb7, 1)` of linux/nsfs.h: the user namespace that owns a namespace.
const NS_GET_USERNS: libc::Ioctl = 0xb701;

/// True if the mounts of a process may have been made in a user namespace that is not this process's
/// own, nor above it; also where that cannot be found out. False if there is no such process.
pub fn has_mounts_of_others(pid: u32) -> bool {
    match owner_of_mounts(pid) {
        Ok(owner) => owner != own().ok(),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

/// Device and inode number of a user namespace.
type Identity = (u64, u64);

fn own() -> io::Result<Identity> {
    let status = rustix::fs::stat("/proc/self/ns/user")?;
    Ok((status.st_dev, status.st_ino))
}

/// Our own if it is one above ours, which the kernel does not show.
fn owner_of_mounts(pid: u32) -> io::Result<Option<Identity>> {
    let mounts = File::open(format!("/proc/{pid}/ns/mnt"))?;
    // SAFETY: the call takes no memory of ours, and `mounts` is open until it returns.
    let owner = unsafe { libc::ioctl(mounts.as_raw_fd(), NS_GET_USERNS) };
    if owner < 0 {
        let error = io::Error::last_os_error();
        return match error.raw_os_error() {
            Some(libc::EPERM) => Ok(own().ok()),
            _ => Err(error),
        };
    }
    // SAFETY: the kernel has just given us this descriptor, which nobody else has.
    let owner = unsafe { OwnedFd::from_raw_fd(owner) };
    let status = rustix::fs::fstat(&owner)?;
    Ok(Some((status.st_dev, status.st_ino)))
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn mounts_of_a_user_namespace_below_are_somebody_elses() {
        assert!(!has_mounts_of_others(std::process::id()));
        assert!(!has_mounts_of_others(i32::MAX as u32), "there is no such process");
        let script = "echo ready; read -r nothing";
        let unshare = |options: &[&str]| {
            let mut command = Command::new("unshare");
            command.args(options).args(["sh", "-c", script]);
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
        };
        for (options, others) in [(&["-r", "-m"][..], true), (&["-r"][..], false)] {
            let mut child = unshare(options);
            let mut line = String::new();
            BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
            let seen = has_mounts_of_others(child.id());
            drop(child.stdin.take());
            child.wait().unwrap();
            if line != "ready\n" {
                println!("skipped: no user namespaces here");
                return;
            }
            assert_eq!(seen, others, "{options:?}");
        }
    }
}
