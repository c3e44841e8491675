//! Symbols of just-in-time compiled code, as runtimes write them to /tmp/perf-PID.map.

use std::fs;

use crate::namespace;

/// Larger files are not read: they would cost more memory than the recorder has promised.
const MAX_BYTES: u64 = 64 << 20;

/// Functions of one process, by address.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct PerfMap {
    functions: Vec<(u64, u64, String)>,
}

impl PerfMap {
    /// Reads the file of a process; empty if there is none. A container's own /tmp is seen
    /// through /proc/PID/root while the process lives, and the file has the number that the process
    /// has in there.
    pub fn of_process(tgid: u32) -> PerfMap {
        let own = namespace::innermost(tgid);
        let places =
            [format!("/proc/{tgid}/root/tmp/perf-{own}.map"), format!("/tmp/perf-{tgid}.map")];
        let text = places.iter().find_map(|path| {
            let small =
                fs::metadata(path).is_ok_and(|data| data.is_file() && data.len() <= MAX_BYTES);
            if small { fs::read(path).ok() } else { None }
        });
        text.map_or_else(PerfMap::default, |text| PerfMap::parse(&String::from_utf8_lossy(&text)))
    }

    /// Lines of `start size name`, both numbers in hex; others are skipped.
    fn parse(text: &str) -> PerfMap {
        let mut functions: Vec<_> = text
            .lines()
            .filter_map(|line| {
                let mut words = line.splitn(3, ' ');
                let start = u64::from_str_radix(words.next()?.trim_start_matches("0x"), 16).ok()?;
                let size = u64::from_str_radix(words.next()?, 16).ok()?;
                Some((start, start.checked_add(size)?, words.next()?.to_owned()))
            })
            .collect();
        functions.sort();
        PerfMap { functions }
    }

    /// Name of the function at an address, and the offset in it.
    pub fn find(&self, address: u64) -> Option<(&str, u64)> {
        let after = self.functions.partition_point(|(start, _, _)| *start <= address);
        let (start, end, name) = self.functions.get(after.checked_sub(1)?)?;
        (address < *end).then(|| (name.as_str(), address - start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_by_address_and_bad_lines_skipped() {
        let map = PerfMap::parse("3000 10 LSpin;run(int)\nnonsense\n1000 20 first\nzz 1 bad\n");
        assert_eq!(map.find(0x3004), Some(("LSpin;run(int)", 4)));
        assert_eq!(map.find(0x101f), Some(("first", 0x1f)));
        assert_eq!(map.find(0x1020), None);
        assert_eq!(map.find(0), None);
    }
}
