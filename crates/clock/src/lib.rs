//! The clocks that whylag reads, in nanoseconds.
//!
//! Every time that is kept is CLOCK_MONOTONIC, as `bpf_ktime_get_ns` and Java's nanoTime have it;
//! the wall clock is read once per recording, to say when that was. All go through the vDSO, so a
//! read is no system call where the clocksource allows that; CPU times always are one.
//!
//! What is not here: `bench` times single operations by the TSC, which it calibrates itself, and
//! `trace` has its own read of the same clock, because it is published alone.

use rustix::time::{ClockId, Timespec, clock_getres, clock_gettime};

/// CLOCK_MONOTONIC.
#[inline]
pub fn monotonic_ns() -> u64 {
    now(ClockId::Monotonic)
}

/// CLOCK_MONOTONIC_RAW: the hardware's own speed, which no NTP corrects.
#[inline]
pub fn monotonic_raw_ns() -> u64 {
    now(ClockId::MonotonicRaw)
}

/// CLOCK_REALTIME: since 1970, before it negative.
pub fn unix_ns() -> i64 {
    let now = clock_gettime(ClockId::Realtime);
    now.tv_sec.saturating_mul(1_000_000_000).saturating_add(now.tv_nsec)
}

/// What is to be added to a time of CLOCK_MONOTONIC for that of CLOCK_REALTIME.
pub fn monotonic_to_unix_ns() -> i64 {
    unix_ns() - monotonic_ns() as i64
}

/// CPU time of the calling thread so far.
pub fn thread_cpu_ns() -> u64 {
    now(ClockId::ThreadCPUTime)
}

/// CPU time of this process so far.
pub fn process_cpu_ns() -> u64 {
    now(ClockId::ProcessCPUTime)
}

/// The smallest step of CLOCK_MONOTONIC: 1, or a jiffy where high-resolution timers are off.
pub fn resolution_ns() -> u64 {
    nanoseconds(clock_getres(ClockId::Monotonic))
}

/// One tick of the kernel's low-resolution clock, 1/HZ: the resolution of the coarse clock.
pub fn jiffy_ns() -> u64 {
    nanoseconds(clock_getres(ClockId::MonotonicCoarse))
}

#[inline]
fn now(clock: ClockId) -> u64 {
    nanoseconds(clock_gettime(clock))
}

#[inline]
fn nanoseconds(time: Timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, SystemTime, UNIX_EPOCH};

    #[test]
    fn the_wall_clock_is_that_of_the_standard_library() {
        let before = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as i64;
        let (now, sum) = (unix_ns(), monotonic_ns() as i64 + monotonic_to_unix_ns());
        assert!((0..5_000_000_000).contains(&(now - before)), "{before}, {now}");
        assert!((now - sum).abs() < 5_000_000_000, "{now}, {sum}");
    }

    #[test]
    fn a_sleep_takes_time_and_no_cpu() {
        let times = || [monotonic_ns(), monotonic_raw_ns(), thread_cpu_ns()];
        let before = times();
        std::thread::sleep(Duration::from_millis(20));
        let after = times();
        let [monotonic, raw, cpu] = [0, 1, 2].map(|i| after[i] - before[i]);
        // NTP corrects the speed by 500 ppm at most.
        assert!(monotonic >= 20_000_000 && raw >= 19_900_000 && cpu < 10_000_000);
        assert!(process_cpu_ns() >= thread_cpu_ns());
    }

    #[test]
    fn a_jiffy_is_one_of_the_kernels_choices() {
        let jiffy = jiffy_ns();
        assert!([1_000_000, 3_333_333, 4_000_000, 10_000_000].contains(&jiffy), "{jiffy}");
        assert!(resolution_ns() == 1 || resolution_ns() == jiffy);
    }
}
