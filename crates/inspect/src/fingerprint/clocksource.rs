//! The clock behind gettimeofday and clock_gettime.
//!
//! `tsc` is read in user mode within tens of nanoseconds; `hpet` and `acpi_pm` need a system call
//! and a slow device read, so this fact alone can explain a host on which everything timed is slow.

use model::Fact;

use crate::read::file_fact;

pub fn facts() -> Vec<Fact> {
    const DIRECTORY: &str = "/sys/devices/system/clocksource/clocksource0";
    ["current", "available"]
        .map(|which| {
            let path = format!("{DIRECTORY}/{which}_clocksource");
            file_fact(&format!("clocksource.{which}"), &path)
        })
        .to_vec()
}
