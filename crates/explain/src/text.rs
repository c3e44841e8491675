//! Numbers for people: always with a unit, and with n where it matters.

use model::Histogram;

/// Fewest values for which the 97.5 % upper bound of p99 is finite (order statistics).
const P99_NEEDS: u64 = 368;

/// Three significant digits in the largest fitting unit: `812 ns`, `45.6 us`, `9.12 ms`, `3.21 s`.
pub fn duration(ns: u64) -> String {
    if ns < 1000 {
        return format!("{ns} ns");
    }
    let (value, unit) = [(1e3, "us"), (1e6, "ms")]
        .into_iter()
        .map(|(scale, unit)| (ns as f64 / scale, unit))
        .find(|(value, _)| *value < 999.5)
        .unwrap_or((ns as f64 / 1e9, "s"));
    format!("{} {unit}", three_digits(value))
}

/// `part` of `whole` in per cent: `48 %`, `4.2 %`, `0.31 %`; `0 %` of nothing.
pub fn percent(part: u64, whole: u64) -> String {
    if part == 0 || whole == 0 {
        return "0 %".to_owned();
    }
    let value = part as f64 / whole as f64 * 100.0;
    match value {
        v if v >= 9.95 => format!("{v:.0} %"),
        v if v >= 0.995 => format!("{v:.1} %"),
        v if v >= 0.01 => format!("{v:.2} %"),
        _ => "under 0.01 %".to_owned(),
    }
}

/// A share of 0 to 1 as `47.3 %`; `-` if it is not a number. What is not zero is never shown as
/// zero, and what is not all never as all: `<0.1 %`, `>99.9 %`.
pub fn share(share: f64) -> String {
    match share {
        share if !share.is_finite() => "-".to_owned(),
        share if share > 0.0 && share < 0.000_5 => "<0.1 %".to_owned(),
        share if (0.999_5..1.0).contains(&share) => ">99.9 %".to_owned(),
        share => format!("{:.1} %", share * 100.0),
    }
}

/// How many times as much: `2.41x`, `31.4x`, `150x`.
pub fn times(ratio: f64) -> String {
    match ratio {
        ratio if ratio >= 999.5 => format!("{}x", count(ratio.round() as u64)),
        ratio => format!("{}x", three_digits(ratio)),
    }
}

/// With separators between thousands: `12,345`.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 wait`, `12 waits`, `2 processes`.
pub fn counted(n: u64, noun: &str) -> String {
    let ending = match n {
        1 => "",
        _ if noun.ends_with('s') => "es",
        _ => "s",
    };
    format!("{} {noun}{ending}", count(n))
}

/// The mean as a duration; of nothing, 0.
pub fn mean(ns: u64, n: u64) -> String {
    duration(ns.checked_div(n).unwrap_or(0))
}

/// Fastest, median and a tail no further out than the count carries.
pub fn quantiles(histogram: &Histogram) -> String {
    let at = |q| duration(histogram.quantile(q).unwrap_or(0));
    let tail =
        if histogram.count() >= P99_NEEDS { format!("p99 {}, ", at(0.99)) } else { String::new() };
    format!(
        "fastest {}, p50 {}, {tail}longest {} (n = {})",
        duration(histogram.min().unwrap_or(0)),
        at(0.5),
        duration(histogram.max().unwrap_or(0)),
        count(histogram.count())
    )
}

fn three_digits(value: f64) -> String {
    match value {
        v if v < 9.995 => format!("{v:.2}"),
        v if v < 99.95 => format!("{v:.1}"),
        v => format!("{v:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_keep_three_digits_and_never_show_1000_of_a_unit() {
        let shown = [0, 812, 45_600, 999_499, 999_999, 9_123_456, 999_999_999, 320_000_000_000];
        let texts = shown.map(duration);
        let expected =
            ["0 ns", "812 ns", "45.6 us", "999 us", "1.00 ms", "9.12 ms", "1.00 s", "320 s"];
        assert_eq!(texts, expected);
    }

    #[test]
    fn percent_is_honest_about_small_and_empty() {
        assert_eq!(percent(48, 100), "48 %");
        assert_eq!(percent(42, 1000), "4.2 %");
        assert_eq!(percent(1, 1_000_000), "under 0.01 %");
        assert_eq!(percent(5, 0), "0 %");
    }

    #[test]
    fn shares_and_ratios() {
        assert_eq!(
            [0.0, 0.000_01, 0.473, 0.999_99, 1.0, f64::NAN].map(share),
            ["0.0 %", "<0.1 %", "47.3 %", ">99.9 %", "100.0 %", "-"]
        );
        assert_eq!([0.5, 2.41, 150.2, 12_345.0].map(times), ["0.50x", "2.41x", "150x", "12,345x"]);
    }

    #[test]
    fn thousands_are_separated() {
        assert_eq!(count(0), "0");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(counted(1, "wait"), "1 wait");
        assert_eq!(counted(1200, "wait"), "1,200 waits");
    }

    #[test]
    fn a_quantile_the_count_cannot_carry_is_not_printed() {
        let mut few = Histogram::new(5);
        (1..=100).for_each(|v| few.record(v * 1000));
        assert!(!quantiles(&few).contains("p99"));
        (1..=300).for_each(|v| few.record(v * 1000));
        assert!(quantiles(&few).contains("p99"));
    }
}
