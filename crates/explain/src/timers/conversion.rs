//! `--factor`: what an integer number of nanoseconds per tick costs.

use model::Conversion;
use stats::conversion::{error, largest_error, needed};

/// A factor against what it should be, if that is known, and a wanted bound of the error.
pub fn conversion(factor_ns: f64, true_ns: Option<f64>, bound_ppm: f64) -> Conversion {
    let (needed_ns, needed_bits) = needed(factor_ns, bound_ppm / 1e6);
    Conversion {
        factor_ns,
        true_ns,
        inferred: false,
        error_ppm: true_ns.map(|truth| error(factor_ns, truth) * 1e6),
        largest_error_ppm: largest_error(factor_ns, 1.0) * 1e6,
        bound_ppm,
        needed_ns,
        needed_bits,
    }
}

/// What the factor should have been, if timers are late by the part `late` of what they ask for.
pub fn inferred(asked: &Conversion, late: f64) -> Conversion {
    let truth = asked.factor_ns * (1.0 + late);
    Conversion { inferred: true, ..conversion(asked.factor_ns, Some(truth), asked.bound_ppm) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_law_gives_back_the_true_factor() {
        let given = conversion(10.0, Some(10.04), 1.0);
        assert!((given.error_ppm.unwrap() - 4000.0).abs() < 1e-6);
        let found = inferred(&conversion(10.0, None, 1.0), 0.004);
        assert!((found.true_ns.unwrap() - 10.04).abs() < 1e-9 && found.inferred);
    }
}
