//! How large the maps of the kernel side are: what is kept per CPU grows with the host.

use std::fs;

use model::Fact;

use crate::bpf::{cpu, hist};

const MIB: u64 = 1 << 20;

/// Memory for histograms on all CPUs together. 64 MiB are 113 histograms at 64 CPUs and half of
/// that at 128, too few for a program with some hundred kinds of calls and waits; a host with that
/// many CPUs has the memory. A 64th of what is available is as much as a recorder should take of
/// a production host, and 512 MiB are 900 histograms at 64 CPUs.
const HISTOGRAMS: std::ops::RangeInclusive<u64> = 64 * MIB..=512 * MIB;
const PART_OF_AVAILABLE: u64 = 64;

/// Slots for histograms, whatever the memory: fewer are of no use, and more nobody fills.
const SLOTS: std::ops::RangeInclusive<u64> = 64..=1024;

/// Each of the two rings, bytes, a power of two. All of it is memory of the recorder, which has it mapped
/// twice. What may come between two looks of the recorder grows with the CPUs, and with the threads: of
/// 2,000 that end at once (12,586 outliers in one run of half a second) each sends some while they keep the
/// recorder from its CPU, so rings of 2 MiB were too small. A larger one does not help where events come faster
/// than they are stored: PostgreSQL on 2 busy CPUs with every wait of 20 us kept (80,000 events a second) lost
/// 27, 23, 26 % of them with rings of 4 MiB, and 26, 30, 28 % with 8.
const RING_OF_CPU: u64 = MIB;
const RING: std::ops::RangeInclusive<u64> = 4 * MIB..=16 * MIB;

/// Sizes that follow the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Histograms; the kernel side has two halves of each.
    pub histograms: u32,
    /// Bytes of each ring.
    pub ring: u32,
    /// Kernel memory that maps take on each CPU.
    pub bytes_per_cpu: u64,
    /// Possible CPUs.
    pub cpus: u64,
}

impl Sizes {
    /// On a host with so many possible CPUs and so much memory available.
    pub fn on(cpus: usize, available_bytes: u64) -> Sizes {
        let cpus = (cpus as u64).max(1);
        let of_slot = 2 * size_of::<hist>() as u64;
        let budget =
            (available_bytes / PART_OF_AVAILABLE).clamp(*HISTOGRAMS.start(), *HISTOGRAMS.end());
        let slots = (budget / (of_slot * cpus)).clamp(*SLOTS.start(), *SLOTS.end());
        let bytes_per_cpu = slots * of_slot + size_of::<cpu>() as u64;
        let ring = (RING_OF_CPU * cpus).clamp(*RING.start(), *RING.end()).next_power_of_two();
        Sizes { histograms: slots as u32, ring: ring as u32, bytes_per_cpu, cpus }
    }

    /// The same on all CPUs.
    fn bytes(&self) -> u64 {
        self.bytes_per_cpu * self.cpus
    }

    /// For the facts of a run.
    pub fn fact(&self) -> Fact {
        Fact {
            name: "recorder.memory_per_cpu".to_owned(),
            value: format!(
                "{} bytes on each of {} possible CPUs, {} in all: {} histograms",
                self.bytes_per_cpu,
                self.cpus,
                self.bytes(),
                self.histograms
            ),
            source: "sizes of the recorder's maps".to_owned(),
        }
    }

    /// On this host.
    pub fn of_this_host(cpus: usize) -> Sizes {
        let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        Sizes::on(cpus, available_bytes(&meminfo).unwrap_or(0))
    }
}

/// `MemAvailable` of /proc/meminfo.
fn available_bytes(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.split_ascii_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn a_host_with_many_cpus_has_histograms_for_a_large_program() {
        assert_eq!(Sizes::on(2, 4 * GIB).histograms, 1024);
        let of_128 = Sizes::on(128, 256 * GIB);
        assert!(of_128.histograms > 400, "{of_128:?}");
        assert!(of_128.bytes() <= 520 * MIB, "{of_128:?}");
        let fact = of_128.fact().value;
        assert!(fact.contains("on each of 128 possible CPUs"), "{fact}");
        assert!(Sizes::on(64, 128 * GIB).histograms > 800);
        // What was there before, where memory is short: never less.
        assert_eq!(Sizes::on(64, 2 * GIB).histograms, 113);
    }

    #[test]
    fn memory_is_limited_by_what_the_host_has_and_slots_have_their_bounds() {
        for cpus in [1, 2, 8, 64, 128] {
            for gib in [1, 4, 16, 64, 1024] {
                let sizes = Sizes::on(cpus, gib * GIB);
                assert!((64..=1024).contains(&sizes.histograms), "{cpus} {gib} {sizes:?}");
                let budget = (gib * GIB / 64).clamp(64 * MIB, 512 * MIB);
                let least = 64 * 2 * size_of::<hist>() as u64 * cpus as u64;
                let others = size_of::<cpu>() as u64 * cpus as u64;
                assert!(sizes.bytes() <= budget.max(least) + others, "{cpus} {gib} {sizes:?}");
            }
        }
    }

    #[test]
    fn a_ring_is_a_power_of_two_and_grows_with_the_cpus_up_to_its_bound() {
        let ring = |cpus| u64::from(Sizes::on(cpus, GIB).ring);
        assert_eq!(
            [ring(1), ring(2), ring(3), ring(8), ring(128)].map(|bytes| bytes / MIB),
            [4, 4, 4, 8, 16]
        );
    }

    #[test]
    fn available_memory_is_read() {
        let text = "MemTotal:  8000 kB\nMemAvailable:    5000 kB\n";
        assert_eq!(available_bytes(text), Some(5_120_000));
        assert_eq!(available_bytes("MemTotal: 1 kB\n"), None);
    }
}
