//! Small files of /proc and /sys, read with a bound, as text or facts.
//!
//! Who runs a program shapes what they say: a thread's name, a cgroup's, a mount point's may be any
//! bytes. So such a file is never read as if it were UTF-8: [`text()`] is for all of them.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use model::Fact;

use crate::patience;

/// No file of /proc or /sys read here is longer, in bytes (the longest, an environment, is bounded
/// by the stack limit of its process).
const LONGEST: u64 = 4 << 20;

/// Contents of a file, at most 4 MiB of it.
///
/// # Errors
/// What opening or reading it says.
pub fn bytes(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let mut contents = Vec::new();
    File::open(path)?.take(LONGEST).read_to_end(&mut contents)?;
    Ok(contents)
}

/// CPUs of a list such as `0-3,8`, ascending where the kernel wrote it.
pub fn cpu_list(list: &str) -> Vec<u32> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse::<u32>().ok()?..=last.trim().parse().ok()?)
    };
    list.split(',').filter_map(range).flatten().take(1 << 16).collect()
}

/// The same of a file of /proc/PID that shows its memory, which the process can withhold.
pub(crate) fn bytes_of_memory(pid: u32, path: String) -> io::Result<Vec<u8>> {
    patience::ask(pid, || bytes(path))?
}

/// Contents of a file, at most 4 MiB of it, as text without white space around it; bytes that are not
/// UTF-8 are replaced.
///
/// # Errors
/// What opening or reading it says.
pub fn text(path: impl AsRef<Path>) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&bytes(path)?).trim().to_owned())
}

/// True if a file of /proc/PID cannot be read because its process or thread is there no more; not if
/// descriptors or memory ran out, or it may not be read.
pub fn is_of_the_ended(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ESRCH))
}

/// A fact with a known value.
pub(crate) fn fact(name: &str, value: impl Into<String>, source: impl Into<String>) -> Fact {
    Fact { name: name.to_owned(), value: value.into(), source: source.into() }
}

/// A fact that could not be read.
pub(crate) fn unknown(
    name: &str,
    reason: impl std::fmt::Display,
    source: impl Into<String>,
) -> Fact {
    fact(name, format!("unknown: {reason}"), source)
}

/// A value, or the reason why there is none, as a fact.
pub(crate) fn fact_of<E: std::fmt::Display>(
    name: &str,
    value: Result<String, E>,
    source: impl Into<String>,
) -> Fact {
    match value {
        Ok(value) => fact(name, value, source),
        Err(reason) => unknown(name, reason, source),
    }
}

/// The whole text of a file as a fact.
pub(crate) fn file_fact(name: &str, path: &str) -> Fact {
    fact_of(name, text(path), path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_cpus_has_ranges() {
        assert_eq!(cpu_list("0-3,8\n"), [0, 1, 2, 3, 8]);
        assert!(cpu_list("").is_empty());
    }

    #[test]
    fn a_file_that_is_not_there_is_unknown_with_the_reason() {
        let fact = file_fact("some.name", "/proc/no-such-file");
        assert_eq!(fact.value, "unknown: No such file or directory (os error 2)");
        assert_eq!(fact.source, "/proc/no-such-file");
    }

    #[test]
    fn an_endless_file_is_cut() {
        assert_eq!(bytes("/dev/zero").unwrap().len() as u64, LONGEST);
    }
}
