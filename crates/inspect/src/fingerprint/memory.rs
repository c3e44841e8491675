//! Memory: how much, huge pages, swap.

use model::Fact;

use crate::read::{fact_of, file_fact, text};

const MEMINFO: &str = "/proc/meminfo";
const SWAPS: &str = "/proc/swaps";

pub fn facts() -> Vec<Fact> {
    let total = text(MEMINFO).map_err(|e| e.to_string()).and_then(|meminfo| {
        total_bytes(&meminfo).map(|n| n.to_string()).ok_or_else(|| "no MemTotal in kB".to_owned())
    });
    vec![
        fact_of("memory.total_bytes", total, MEMINFO),
        fact_of("swaps", text(SWAPS).map(|table| swaps(&table)), SWAPS),
        choice("thp.enabled", "/sys/kernel/mm/transparent_hugepage/enabled"),
        choice("thp.defrag", "/sys/kernel/mm/transparent_hugepage/defrag"),
    ]
}

fn total_bytes(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// The swap areas in priority order as the kernel lists them; how full they are is left out, for
/// that is no property of the environment.
fn swaps(table: &str) -> String {
    let area = |line: &str| match line.split_whitespace().collect::<Vec<_>>()[..] {
        [name, kind, kib, _used, priority] => {
            format!("{name} ({kind}, {kib} KiB, priority {priority})")
        }
        _ => line.to_owned(),
    };
    let areas: Vec<_> = table.lines().skip(1).map(area).collect();
    if areas.is_empty() { "none".to_owned() } else { areas.join("; ") }
}

/// The word in brackets of a file such as `always [madvise] never`.
fn choice(name: &str, path: &str) -> Fact {
    let mut fact = file_fact(name, path);
    if let Some((_, rest)) = fact.value.split_once('[')
        && let Some((chosen, _)) = rest.split_once(']')
    {
        fact.value = chosen.to_owned();
    }
    fact
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn total_is_in_bytes() {
        assert_eq!(total_bytes("MemTotal:        2048 kB\nMemFree: 1 kB"), Some(2 << 20));
        assert_eq!(total_bytes("MemTotal: many kB"), None);
        assert_eq!(total_bytes("MemTotal: 18446744073709551615 kB"), None);
    }

    #[test]
    fn swap_areas_without_their_use() {
        let header = "Filename\tType\tSize\tUsed\tPriority\n";
        assert_eq!(swaps(header), "none");
        let table = format!("{header}/dev/sda2  partition\t1024\t\t77\t\t-2\n/swap file 8 0 5\n");
        let expected =
            "/dev/sda2 (partition, 1024 KiB, priority -2); /swap (file, 8 KiB, priority 5)";
        assert_eq!(swaps(&table), expected);
    }
}
