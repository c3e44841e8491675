//! The clock behind gettimeofday and clock_gettime, and what a read of it costs.
//!
//! `tsc` is read in user mode within tens of nanoseconds; `hpet` and `acpi_pm` need a system call
//! and a slow device read, so this fact alone can explain a host on which everything timed is slow.
//! The cost is measured, too: the name does not show what a hypervisor makes of a clock, nor whether
//! reads get by without a system call here.

use model::Fact;

use crate::clock;
use crate::read::{fact, file_fact};

pub fn facts() -> Vec<Fact> {
    const DIRECTORY: &str = "/sys/devices/system/clocksource/clocksource0";
    let which = ["current", "available"].map(|which| {
        let path = format!("{DIRECTORY}/{which}_clocksource");
        file_fact(&format!("clocksource.{which}"), &path)
    });
    let cost = fact(
        "clocksource.read_ns",
        format!("{:.0}", clock::read_alone()),
        "CPU time of a clock_gettime(CLOCK_MONOTONIC), measured",
    );
    let jiffy = fact(
        "clock.jiffy_ns",
        ::clock::jiffy_ns().to_string(),
        "resolution of CLOCK_MONOTONIC_COARSE, which advances once a jiffy",
    );
    which.into_iter().chain([cost, jiffy]).collect()
}
