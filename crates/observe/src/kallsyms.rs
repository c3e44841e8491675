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
}

impl TextRanges {
    /// Of the running kernel; /proc/kallsyms shows zeros without CAP_SYSLOG. It takes 50 ms.
    pub fn of_this_kernel() -> TextRanges {
        parse(&fs::read_to_string("/proc/kallsyms").unwrap_or_default())
    }
}

fn parse(kallsyms: &str) -> TextRanges {
    let range = |start: &str, end: &str| {
        [address_of(kallsyms, start), address_of(kallsyms, end)].map(Option::unwrap_or_default)
    };
    TextRanges {
        sched: range("__sched_text_start", "__sched_text_end"),
        lock: range("__lock_text_start", "__lock_text_end"),
        handle_mm_fault: extent_of(kallsyms, "handle_mm_fault").unwrap_or_default(),
    }
}

/// From the address of a function to that of the next symbol: the kernel lists its own by address.
fn extent_of(kallsyms: &str, name: &str) -> Option<[u64; 2]> {
    let lines = kallsyms.get(line_of(kallsyms, name)?..)?.lines();
    let mut addresses = lines.filter_map(address);
    let start = addresses.next().filter(|start| *start != 0)?;
    Some([start, addresses.find(|address| *address > start)?])
}

fn address_of(kallsyms: &str, name: &str) -> Option<u64> {
    address(kallsyms.get(line_of(kallsyms, name)?..)?)
}

/// Where the line of a symbol of the kernel itself begins. Lines are searched, not split: there are
/// more than 100,000.
fn line_of(kallsyms: &str, name: &str) -> Option<usize> {
    let end = kallsyms.find(&format!(" {name}\n"))?;
    Some(kallsyms.get(..end)?.rfind('\n').map_or(0, |newline| newline + 1))
}

fn address(line: &str) -> Option<u64> {
    u64::from_str_radix(line.get(..line.find(' ')?)?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_found_and_a_module_has_none_of_them() {
        let ranges = parse(
            "0000000000000000 A fixed_percpu_data\nffffffff81000100 T handle_mm_fault\n\
             ffffffff81000100 T same\nffffffff81000200 t next\n\
             ffffffff82000000 T __sched_text_start\nffffffff82000010 T __sched_text_end\n\
             ffffffffc0000000 t __lock_text_start\t[module]\n",
        );
        assert_eq!(ranges.sched, [0xffffffff82000000, 0xffffffff82000010]);
        assert_eq!(ranges.handle_mm_fault, [0xffffffff81000100, 0xffffffff81000200]);
        assert_eq!(ranges.lock, [0, 0]);
        let hidden = "0000000000000000 T handle_mm_fault\n0000000000000000 t next\n";
        assert_eq!(parse(hidden), TextRanges::default());
    }
}
