//! Where a few functions of the kernel are, for the kernel side to recognise them in stacks.

use std::fs;

/// Address ranges (start, end); zeros where unknown, which no address lies in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextRanges {
    /// `__sched_text_start` to `__sched_text_end`: the scheduler and the sleeping locks.
    pub sched: [u64; 2],
    /// `__lock_text_start` to `__lock_text_end`: spinlocks.
    pub lock: [u64; 2],
    /// `handle_mm_fault` to the symbol after it.
    pub handle_mm_fault: [u64; 2],
    /// Length of a jiffy, ns.
    pub jiffy_ns: u32,
}

impl TextRanges {
    /// Of the running kernel; /proc/kallsyms shows zeros without CAP_SYSLOG.
    pub fn of_this_kernel() -> TextRanges {
        let symbols = fs::read_to_string("/proc/kallsyms").unwrap_or_default();
        TextRanges { jiffy_ns: u32::try_from(clock::jiffy_ns()).unwrap_or(0), ..parse(&symbols) }
    }
}

/// Why functions of this kernel have no names for us; `None` if they have.
pub fn nameless_kernel() -> Option<String> {
    let symbols = fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    if has_addresses(&symbols) {
        return None;
    }
    let restricted = fs::read_to_string("/proc/sys/kernel/kptr_restrict").unwrap_or_default();
    Some(format!(
        "/proc/kallsyms shows no addresses (kernel.kptr_restrict is {}): 2 hides them from \
         everybody, 1 from who is not root and has no CAP_SYSLOG",
        restricted.trim()
    ))
}

fn has_addresses(kallsyms: &str) -> bool {
    let mut addresses = kallsyms.lines().filter_map(|line| line.split_ascii_whitespace().next());
    addresses.any(|address| address.bytes().any(|digit| digit != b'0'))
}

fn parse(kallsyms: &str) -> TextRanges {
    let mut ranges = TextRanges::default();
    let mut after_fault = u64::MAX;
    let symbols = || {
        kallsyms.lines().filter_map(|line| {
            let mut words = line.split_ascii_whitespace();
            let address = u64::from_str_radix(words.next()?, 16).ok()?;
            Some((address, words.nth(1)?))
        })
    };
    for (address, name) in symbols() {
        match name {
            "__sched_text_start" => ranges.sched[0] = address,
            "__sched_text_end" => ranges.sched[1] = address,
            "__lock_text_start" => ranges.lock[0] = address,
            "__lock_text_end" => ranges.lock[1] = address,
            "handle_mm_fault" => ranges.handle_mm_fault[0] = address,
            _ => {}
        }
    }
    let start = ranges.handle_mm_fault[0];
    if start != 0 {
        for (address, _) in symbols() {
            if address > start && address < after_fault {
                after_fault = address;
            }
        }
        ranges.handle_mm_fault[1] = after_fault;
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_addresses_are_zeros() {
        assert!(has_addresses("ffffffff81000100 T handle_mm_fault\n"));
        assert!(!has_addresses("0000000000000000 T handle_mm_fault\n"));
        assert!(!has_addresses(""));
    }

    #[test]
    fn ranges_are_found_whatever_the_order() {
        let ranges = parse(
            "ffffffff82000010 T __sched_text_end\nffffffff82000000 T __sched_text_start\n\
             ffffffff81000400 t later\nffffffff81000100 T handle_mm_fault\n\
             ffffffff81000200 t next [module]\n",
        );
        assert_eq!(ranges.sched, [0xffffffff82000000, 0xffffffff82000010]);
        assert_eq!(ranges.handle_mm_fault, [0xffffffff81000100, 0xffffffff81000200]);
        assert_eq!(ranges.lock, [0, 0]);
    }
}
