//! What identifies a process, of this boot and namespace or of another.

use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::MetadataExt;

fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{what} has another form than expected"))
}

/// A file of /proc. A thread's name in it may be any bytes: what is not UTF-8 is replaced.
fn text_of(path: &str) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&fs::read(path)?).into_owned())
}

/// Field 22 of a stat file in /proc: when a process or thread started, ticks since boot.
pub fn start_of(stat: &str) -> io::Result<u64> {
    let text = text_of(stat)?;
    // The name in parentheses may hold anything, also parentheses and blanks.
    let after_name = text.rsplit_once(')').map(|(_, rest)| rest);
    after_name
        .and_then(|rest| rest.split_ascii_whitespace().nth(19))
        .and_then(|field| field.parse().ok())
        .ok_or_else(|| malformed(stat))
}

/// The stat file of a process's main thread, which started with it. That of the process sums over
/// all threads, under a lock that they need to end.
pub fn main_stat(pid: u32) -> String {
    format!("/proc/{pid}/task/{pid}/stat")
}

/// Inode of the own pid namespace.
pub fn pid_namespace() -> io::Result<u64> {
    Ok(fs::metadata("/proc/self/ns/pid")?.ino())
}

/// The id of this boot, 36 characters.
pub fn boot_id() -> io::Result<[u8; 36]> {
    let path = "/proc/sys/kernel/random/boot_id";
    let text = text_of(path)?;
    text.trim_end().as_bytes().try_into().map_err(|_| malformed(path))
}

/// The pid of a process, or of a thread, as its innermost pid namespace counts.
pub fn pid_in_its_namespace(pid: u32) -> io::Result<u32> {
    inner_pid(&format!("/proc/{pid}/status"))
}

fn inner_pid(path: &str) -> io::Result<u32> {
    let text = text_of(path)?;
    text.lines()
        .find_map(|line| line.strip_prefix("NSpid:")?.split_ascii_whitespace().last()?.parse().ok())
        .ok_or_else(|| malformed(path))
}

/// The threads of a process: number in its innermost pid namespace, and number here.
pub fn threads_of(pid: u32) -> io::Result<Vec<(u32, u32)>> {
    let mut threads = Vec::new();
    for entry in fs::read_dir(format!("/proc/{pid}/task"))? {
        let name = entry?.file_name();
        let Some(tid) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
        // One that has just ended has no number any more.
        threads.extend(inner_pid(&format!("/proc/{pid}/task/{tid}/status")).map(|own| (own, tid)));
    }
    Ok(threads)
}

/// Effective user of a process.
pub fn user_of(pid: u32) -> io::Result<u32> {
    let path = format!("/proc/{pid}/status");
    let text = text_of(&path)?;
    text.lines()
        .find_map(|line| line.strip_prefix("Uid:")?.split_ascii_whitespace().nth(1)?.parse().ok())
        .ok_or_else(|| malformed(&path))
}

/// Effective user of a process, by the number that the process itself knows.
pub fn user_in_its_namespace(pid: u32) -> io::Result<u32> {
    let outside = user_of(pid)?;
    let map = text_of(&format!("/proc/{pid}/uid_map"))?;
    Ok(map.lines().find_map(|line| inside(line, outside)).unwrap_or(outside))
}

/// The number inside of a user, by a line `first inside, first outside, how many`.
fn inside(line: &str, outside: u32) -> Option<u32> {
    let mut numbers = line.split_ascii_whitespace().map(|number| number.parse::<u32>().ok());
    let (first, first_outside, count) = (numbers.next()??, numbers.next()??, numbers.next()??);
    let place = outside.checked_sub(first_outside).filter(|place| *place < count)?;
    first.checked_add(place)
}

/// Whether a process has the file with this inode among its mappings, by its own table of them.
/// `process` is a pid or `self`. Only the inode is compared: the device in that table is that of
/// the superblock, which differs from the one stat gives on some file systems.
pub fn maps(process: &str, inode: u64) -> io::Result<bool> {
    let inode = inode.to_string();
    let mut is_mapped = false;
    // address permissions offset device inode path
    each_mapping(process, |line| {
        let mut fields = line.split(|byte| *byte == b' ');
        is_mapped = fields.nth(4).is_some_and(|field| field == inode.as_bytes())
            && line.ends_with(b".trace") | line.ends_with(b".new") | line.ends_with(b"(deleted)");
        is_mapped
    })?;
    Ok(is_mapped)
}

/// What is read of a list of mappings, bytes: more than a process may have, with paths of usual
/// length.
const LONGEST_LIST: u64 = 8 << 20;

/// Gives the lines of the list of mappings, until one is the last that is wanted.
pub fn each_mapping(process: &str, mut is_last: impl FnMut(&[u8]) -> bool) -> io::Result<()> {
    let file = fs::File::open(format!("/proc/{process}/maps"))?;
    let mut list = BufReader::with_capacity(64 << 10, file.take(LONGEST_LIST));
    let mut line = Vec::new();
    while list.read_until(b'\n', &mut line)? > 0 {
        if is_last(line.strip_suffix(b"\n").unwrap_or(&line)) {
            break;
        }
        line.clear();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_identified_whatever_its_name() {
        std::thread::spawn(|| {
            fs::write("/proc/thread-self/comm", b"\xff) (\xfe").unwrap();
            let tid = rustix::thread::gettid().as_raw_nonzero().get() as u32;
            assert!(start_of("/proc/thread-self/stat").unwrap() > 0);
            assert!(pid_in_its_namespace(tid).is_ok());
            assert_eq!(user_of(tid).unwrap(), rustix::process::geteuid().as_raw());
            let threads = threads_of(std::process::id()).unwrap();
            assert!(threads.iter().any(|(_, here)| *here == tid), "{threads:?}");
        })
        .join()
        .unwrap();
    }

    #[test]
    fn users_have_other_numbers_inside() {
        assert_eq!(inside("         0       1000          1", 1000), Some(0));
        assert_eq!(inside("0 1000 1", 1001), None);
        assert_eq!(inside("1 100000 65536", 100_069), Some(70));
        assert_eq!(inside("0 0 4294967295", 1000), Some(1000));
        assert_eq!(inside("", 1000), None);
        let me = std::process::id();
        assert_eq!(user_in_its_namespace(me).unwrap(), user_of(me).unwrap());
    }
}
