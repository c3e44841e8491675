//! What an integer conversion factor costs: nanoseconds per tick, rounded.

/// The error of waiting `time / factor` ticks when a tick takes `truth`, as a part of the time:
/// positive, if timers come late.
pub fn error(factor: f64, truth: f64) -> f64 {
    truth / factor - 1.0
}

/// The error that a factor may have if it was rounded to a multiple of `resolution`.
pub fn largest_error(factor: f64, resolution: f64) -> f64 {
    resolution / 2.0 / factor
}

/// The resolution that keeps the error of a factor of this size within `bound`, and the bits that
/// it needs after the binary point.
pub fn needed(factor: f64, bound: f64) -> (f64, u32) {
    let resolution = 2.0 * bound * factor;
    (resolution, (-resolution.log2()).ceil().max(0.0) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_storys_factor_is_4000_ppm_off() {
        assert!((error(10.0, 10.04) - 0.004).abs() < 1e-12);
        // 20 ms are 80 us late, 14.6 ms 58.4 us, 5.5 ms 22 us.
        assert!((20e6 * error(10.0, 10.04) - 80_000.0).abs() < 1e-3);
        assert!((largest_error(10.0, 1.0) - 0.05).abs() < 1e-12);
    }

    #[test]
    fn one_ppm_of_10_ns_needs_16_bits() {
        let (resolution, bits) = needed(10.0, 1e-6);
        assert!((resolution - 2e-5).abs() < 1e-12);
        assert_eq!(bits, 16);
        assert!(largest_error(10.0, 0.5f64.powi(16)) <= 1e-6);
        assert_eq!(needed(10.0, 0.5).1, 0);
    }
}
