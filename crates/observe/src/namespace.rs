//! The PID namespace that whylag runs in: whose numbers it is given, prints and finds in /proc.

use std::fs;
use std::os::linux::fs::MetadataExt;

use inspect::read::text;

use crate::Error;

/// Inode numbers of the first PID namespace and of the first user namespace (PROC_PID_INIT_INO and
/// PROC_USER_INIT_INO, part of the kernel's ABI).
const FIRST: u64 = 0xEFFF_FFFC;
const FIRST_USER: u64 = 0xEFFF_FFFD;

/// True in a PID namespace below the first. An error where the numbers of /proc, of whylag and of a
/// command that it starts would not be those of one namespace.
pub fn is_inner() -> Result<bool, Error> {
    let own = inode("pid")?;
    let status = text("/proc/self/status").map_err(|_| Error::OtherProc)?;
    if numbers(&status).count() > 1 {
        return Err(Error::OtherProc);
    }
    // The kernel lets nobody have threads whose children would be elsewhere. The link leads nowhere
    // as long as that namespace has no process.
    let of_children = "/proc/self/ns/pid_for_children";
    if fs::symlink_metadata(of_children).is_ok()
        && !fs::metadata(of_children).is_ok_and(|data| data.st_ino() == own)
    {
        return Err(Error::NoThreads);
    }
    let offsets = text("/proc/self/timens_offsets").unwrap_or_default();
    if offsets.lines().any(has_other_monotonic_clock) {
        return Err(Error::OtherClock);
    }
    Ok(own != FIRST)
}

/// True in a user namespace below the first, where capabilities do not count for eBPF.
pub fn is_inner_user() -> bool {
    inode("user").is_ok_and(|own| own != FIRST_USER)
}

fn inode(kind: &str) -> Result<u64, Error> {
    let namespace = fs::metadata(format!("/proc/self/ns/{kind}"));
    namespace.map(|data| data.st_ino()).map_err(|_| Error::OtherProc)
}

/// Number of a process in the innermost namespace that it is in, such as a container's.
pub fn innermost(tgid: u32) -> u32 {
    let status = text(format!("/proc/{tgid}/status")).unwrap_or_default();
    numbers(&status).last().unwrap_or(tgid)
}

/// Numbers of a process in each namespace, from that of /proc inwards.
fn numbers(status: &str) -> impl Iterator<Item = u32> + '_ {
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    line.unwrap_or_default().split_ascii_whitespace().filter_map(|number| number.parse().ok())
}

/// Of a line `monotonic SECONDS NANOSECONDS`.
fn has_other_monotonic_clock(line: &str) -> bool {
    let words: Vec<_> = line.split_ascii_whitespace().collect();
    matches!(words[..], ["monotonic", seconds, ns] if seconds != "0" || ns != "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_number_is_that_of_the_innermost_namespace() {
        let status = "Name:\tsh\nNSpid:\t4711\t12\t1\nVmPeak: 5 kB\n";
        assert_eq!(numbers(status).collect::<Vec<_>>(), [4711, 12, 1]);
        assert_eq!(innermost(std::process::id()), std::process::id());
        assert_eq!(innermost(u32::MAX), u32::MAX, "a process that has ended keeps its number");
    }

    #[test]
    fn a_shifted_clock_is_seen() {
        assert!(!has_other_monotonic_clock("monotonic           0         0"));
        assert!(has_other_monotonic_clock("monotonic      -86400         0"));
        assert!(!has_other_monotonic_clock("boottime       -86400         0"));
    }
}
