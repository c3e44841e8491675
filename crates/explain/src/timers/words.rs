//! Numbers in sentences.

/// A time with its sign and three digits: `-57.0 us`, `1.20 ms`.
pub fn time(ns: f64) -> String {
    let (value, unit) = match ns.abs() {
        size if size < 1e3 => (ns, "ns"),
        size if size < 1e6 => (ns / 1e3, "us"),
        size if size < 1e9 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    };
    format!("{} {unit}", three_digits(value))
}

/// A part as a percentage with three digits: `0.400 %`; small ones as ppm: `12.0 ppm`.
pub fn part(part: f64) -> String {
    if part.abs() < 1e-3 {
        format!("{} ppm", three_digits(part * 1e6))
    } else {
        format!("{} %", three_digits(part * 100.0))
    }
}

/// Three significant digits, no exponent.
pub fn three_digits(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let before_point = value.abs().log10().floor() as i32 + 1;
    let digits = (3 - before_point).clamp(0, 9) as usize;
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_parts() {
        assert_eq!(time(-57_000.0), "-57.0 us");
        assert_eq!(time(1_200_000.0), "1.20 ms");
        assert_eq!(time(0.0), "0 ns");
        assert_eq!(part(0.004), "0.400 %");
        assert_eq!(part(-1.25e-5), "-12.5 ppm");
        assert_eq!(three_digits(12_345.0), "12345");
    }
}
