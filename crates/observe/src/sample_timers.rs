//! Timers that sample what runs on each CPU.

use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd};

use libbpf_rs::libbpf_sys::{
    PERF_COUNT_SW_CPU_CLOCK, PERF_FLAG_FD_CLOEXEC, PERF_TYPE_SOFTWARE, perf_event_attr,
};
use libbpf_rs::{Link, ProgramMut};

use crate::Error;

/// From one sample of a CPU to the next, ns: about 997 a second, so as not to run in step with the
/// timer ticks of the kernel (100, 250 or 1,000 a second) or of the program.
pub const PERIOD_NS: u32 = 1_003_009;

/// Runs `program` on every online CPU, each time its clock has moved on by [`PERIOD_NS`].
pub fn attach(program: &ProgramMut<'_>) -> Result<Vec<Link>, Error> {
    let cpus = std::fs::read_to_string("/sys/devices/system/cpu/online")
        .map_err(Error::io("reading the online CPUs"))?;
    let mut links = Vec::new();
    for cpu in listed(cpus.trim()) {
        let timer = timer(cpu)?;
        // The link closes the descriptor when it is dropped.
        let link = program.attach_perf_event(timer.into_raw_fd());
        links.push(link.map_err(Error::bpf("attaching the sampling timer"))?);
    }
    Ok(links)
}

/// The CPUs of a list such as `0-3,8`.
fn listed(list: &str) -> impl Iterator<Item = i32> {
    let range = |text: &str| {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        Some(first.parse::<i32>().ok()?..=last.parse().ok()?)
    };
    list.split(',').filter_map(range).flatten()
}

fn timer(cpu: i32) -> Result<OwnedFd, Error> {
    // SAFETY: a structure of integers and unions of integers, for which zero is a value.
    let mut attr: perf_event_attr = unsafe { std::mem::zeroed() };
    attr.type_ = PERF_TYPE_SOFTWARE;
    attr.size = size_of::<perf_event_attr>() as u32;
    attr.config = u64::from(PERF_COUNT_SW_CPU_CLOCK);
    attr.__bindgen_anon_1.sample_period = u64::from(PERIOD_NS);
    // SAFETY: `attr` lives through the call and says its own size; -1: any process, no group.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attr,
            -1,
            cpu,
            -1,
            u64::from(PERF_FLAG_FD_CLOEXEC),
        )
    };
    if fd < 0 {
        let error = std::io::Error::last_os_error();
        return Err(Error::io("opening a sampling timer (perf_event_open)")(error));
    }
    // SAFETY: a descriptor that was just opened and that nobody else has.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_are_read() {
        assert_eq!(listed("0-3,8").collect::<Vec<_>>(), [0, 1, 2, 3, 8]);
        assert_eq!(listed("5").collect::<Vec<_>>(), [5]);
        assert_eq!(listed("").count(), 0);
    }
}
