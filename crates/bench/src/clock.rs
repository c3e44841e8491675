//! The clock that times single operations.

use std::fs;
use std::time::{Duration, Instant};

use clock::monotonic_ns;
use model::units::duration;

/// Where the choice is read from.
const CURRENT: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
/// Length of the calibration; the slope of 100 ms is good to about 1e-6.
const CALIBRATION: Duration = Duration::from_millis(100);
const POINTS: u32 = 50;

/// A clock with its unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Clock {
    /// The processor's time stamp counter, with its calibrated unit.
    Tsc {
        /// Nanoseconds per tick.
        ns_per_tick: f64,
    },
    /// CLOCK_MONOTONIC through the vDSO: 1 tick is 1 ns.
    Monotonic,
}

impl Clock {
    /// The time stamp counter where the kernel itself trusts it (its clocksource is tsc, and the
    /// processor says that the counter is invariant), else CLOCK_MONOTONIC. Takes 100 ms.
    pub fn choose() -> Clock {
        let trusted = fs::read_to_string(CURRENT).is_ok_and(|name| name.trim() == "tsc");
        if !(trusted && has_invariant_tsc()) {
            return Clock::Monotonic;
        }
        calibrate().map_or(Clock::Monotonic, |ns_per_tick| Clock::Tsc { ns_per_tick })
    }

    /// Ticks now.
    #[inline(always)]
    pub fn ticks(self) -> u64 {
        match self {
            Clock::Tsc { .. } => tsc(),
            Clock::Monotonic => monotonic_ns(),
        }
    }

    /// Length of so many ticks.
    #[inline(always)]
    pub fn ns(self, ticks: u64) -> u64 {
        match self {
            Clock::Tsc { ns_per_tick } => (ticks as f64 * ns_per_tick) as u64,
            Clock::Monotonic => ticks,
        }
    }

    /// The smallest step between two reads that differ, ns: some processors and hypervisors count
    /// in steps of tens of ticks. Takes a millisecond.
    pub fn step_ns(self) -> u64 {
        let differences = (0..20_000).map(|_| {
            let before = self.ticks();
            self.ns(self.ticks().saturating_sub(before))
        });
        differences.filter(|ns| *ns > 0).min().unwrap_or(1)
    }

    /// For the report: `rdtsc at 2.450 GHz, in steps of 10 ns`.
    pub fn describe(self) -> String {
        let name = match self {
            Clock::Tsc { ns_per_tick } => format!("rdtsc at {:.3} GHz", 1.0 / ns_per_tick),
            Clock::Monotonic => "clock_gettime(CLOCK_MONOTONIC)".to_owned(),
        };
        format!("{name}, in steps of {}", duration(self.step_ns()))
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn tsc() -> u64 {
    // SAFETY: every x86-64 processor has rdtsc; user space may use it wherever the clocksource is
    // tsc, since the vDSO does.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(target_arch = "x86_64")]
fn has_invariant_tsc() -> bool {
    use core::arch::x86_64::__cpuid;
    const POWER: u32 = 0x8000_0007;
    __cpuid(0x8000_0000).eax >= POWER && __cpuid(POWER).edx >> 8 & 1 == 1
}

#[cfg(not(target_arch = "x86_64"))]
fn tsc() -> u64 {
    monotonic_ns()
}

#[cfg(not(target_arch = "x86_64"))]
fn has_invariant_tsc() -> bool {
    false
}

/// Slope of CLOCK_MONOTONIC over the counter by least squares; `None` if they do not advance together.
fn calibrate() -> Option<f64> {
    let (ticks_0, ns_0) = pair();
    let began = Instant::now();
    let mut points = Vec::with_capacity(POINTS as usize);
    for point in 1..=POINTS {
        let until = CALIBRATION * point / POINTS;
        std::thread::sleep(until.saturating_sub(began.elapsed()));
        let (ticks, ns) = pair();
        points.push(((ticks - ticks_0) as f64, (ns - ns_0) as f64));
    }
    let n = points.len() as f64;
    let mean_x = points.iter().map(|p| p.0).sum::<f64>() / n;
    let mean_y = points.iter().map(|p| p.1).sum::<f64>() / n;
    let xy: f64 = points.iter().map(|p| (p.0 - mean_x) * (p.1 - mean_y)).sum();
    let xx: f64 = points.iter().map(|p| (p.0 - mean_x) * (p.0 - mean_x)).sum();
    let slope = xy / xx;
    // From 100 MHz to 10 GHz.
    (0.1..=10.0).contains(&slope).then_some(slope)
}

/// Both clocks at nearly one moment: the closest of a few tries.
fn pair() -> (u64, u64) {
    let attempt = || {
        let before = tsc();
        let ns = monotonic_ns();
        let after = tsc();
        (after - before, before + (after - before) / 2, ns)
    };
    let best = (0..5).map(|_| attempt()).min_by_key(|(distance, ..)| *distance);
    best.map_or((0, 0), |(_, ticks, ns)| (ticks, ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_agrees_with_the_kernels() {
        let clock = Clock::choose();
        let (ticks, ns) = (clock.ticks(), monotonic_ns());
        std::thread::sleep(Duration::from_millis(200));
        let (ticks, ns) = (clock.ns(clock.ticks() - ticks), monotonic_ns() - ns);
        assert!((ticks as f64 / ns as f64 - 1.0).abs() < 1e-3, "{ticks} against {ns} ns");
    }
}
