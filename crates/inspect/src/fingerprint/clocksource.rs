//! The clock behind gettimeofday and clock_gettime, and what a read of it costs.
//!
//! `tsc` is read in user mode within tens of nanoseconds; `hpet` and `acpi_pm` need a system call
//! and a slow device read, so this fact alone can explain a host on which everything timed is slow.
//! The cost is measured, too: the name does not tell what a hypervisor makes of a clock, nor whether
//! reads get by without a system call here.

use libc::clockid_t;
use model::Fact;

use crate::read::{fact, file_fact, unknown};

/// Reads in a round. The CPU-time clock that times a round costs as much as a few dozen of them.
const READS: u64 = 1000;
/// The cheapest counts: an interrupt makes a round dearer, nothing makes one cheaper.
const ROUNDS: u64 = 5;

pub fn facts() -> Vec<Fact> {
    const DIRECTORY: &str = "/sys/devices/system/clocksource/clocksource0";
    let which = ["current", "available"].map(|which| {
        let path = format!("{DIRECTORY}/{which}_clocksource");
        file_fact(&format!("clocksource.{which}"), &path)
    });
    which.into_iter().chain([read_cost()]).collect()
}

/// CPU time, so that a thread that has to wait for a CPU meanwhile does not count.
fn read_cost() -> Fact {
    const NAME: &str = "clocksource.read_ns";
    let source = format!(
        "CPU time of {READS} reads of CLOCK_MONOTONIC by clock_gettime, the cheapest of {ROUNDS} \
         times"
    );
    let round = |reads: u64| {
        let before = read(libc::CLOCK_THREAD_CPUTIME_ID)?;
        for _ in 0..reads {
            read(libc::CLOCK_MONOTONIC)?;
        }
        Some(read(libc::CLOCK_THREAD_CPUTIME_ID)?.saturating_sub(before))
    };
    let cheapest = |reads| (0..ROUNDS).filter_map(|_| round(reads)).min();
    match (cheapest(0), cheapest(READS)) {
        (Some(nothing), Some(all)) => {
            let each = all.saturating_sub(nothing).div_ceil(READS);
            fact(NAME, each.to_string(), source)
        }
        _ => unknown(NAME, std::io::Error::last_os_error(), source),
    }
}

fn read(clock: clockid_t) -> Option<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writing and of the right type.
    let done = unsafe { libc::clock_gettime(clock, &raw mut time) } == 0;
    done.then(|| time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}
