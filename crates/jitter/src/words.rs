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

/// Three significant digits, no exponent.
fn three_digits(value: f64) -> String {
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
    fn times_have_three_digits() {
        assert_eq!(time(-57_000.0), "-57.0 us");
        assert_eq!(time(1_200_000.0), "1.20 ms");
        assert_eq!(time(0.0), "0 ns");
    }
}
