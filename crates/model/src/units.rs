//! How numbers are written for people: one form for each kind, always with its unit.
//!
//! The rules:
//! - Three significant digits in the largest unit that fits, so never 1000 of a unit: `45.6 us`,
//!   `1.00 ms`. All digits before the point are kept, with a comma between thousands.
//! - Whole nanoseconds and bytes have no digits after the point.
//! - Zero is `0` with its unit. What is not zero is never written as zero.
//! - A percentage in a sentence ([`percent`]) has two significant digits. In a column ([`share`]) it
//!   has one digit after the point, so that the rows can be compared.
//!
//! What people type goes the other way: [`parse_duration`], [`parse_window`], [`parse_size`].

mod parse;

pub use parse::{DurationError, parse_duration, parse_size, parse_window};

/// Nanoseconds per unit, smallest first: the units that are written and read.
const UNITS: [(&str, u64); 6] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// A number with three significant digits, or all digits before the point: `0.400`, `2.41`, `31.4`,
/// `12,345`; `0`.
pub fn number(value: f64) -> String {
    let size = value.abs();
    match size {
        0.0 => "0".to_owned(),
        _ if size >= 999.5 => {
            format!("{}{}", if value < 0.0 { "-" } else { "" }, count(size.round() as u64))
        }
        _ if size >= 99.95 => format!("{value:.0}"),
        _ if size >= 9.995 => format!("{value:.1}"),
        _ if size >= 0.999_5 => format!("{value:.2}"),
        _ => {
            let zeros = (-size.log10().floor()).clamp(1.0, 12.0) as usize - 1;
            format!("{value:.digits$}", digits = zeros + 3)
        }
    }
}

/// A duration: `37 ns`, `250 us`, `12.1 ms`, `1.20 s`. Seconds are used up to 1,000; from then on
/// `20.5 min`, and from 100 minutes `3.40 h`.
pub fn duration(ns: u64) -> String {
    if ns < 1_000 {
        return format!("{ns} ns");
    }
    let limits = [0.0, 999.5, 999.5, 999.5, 99.95, f64::INFINITY];
    for ((unit, size), limit) in UNITS.into_iter().zip(limits).skip(1) {
        let value = ns as f64 / size as f64;
        if value < limit {
            return format!("{} {unit}", number(value));
        }
    }
    format!("{ns} ns")
}

/// A duration that is computed, so it may be a part of a nanosecond, or negative: `11.3 ns`,
/// `-57.0 us`.
pub fn fine_duration(ns: f64) -> String {
    if ns.abs() < 999.5 { format!("{} ns", number(ns)) } else { signed_duration(ns) }
}

/// A duration in whole nanoseconds that may be negative: `57 ns`, `-1.20 ms`.
pub fn signed_duration(ns: f64) -> String {
    let sign = if ns < 0.0 { "-" } else { "" };
    format!("{sign}{}", duration(ns.abs().round() as u64))
}

/// The mean as a duration; of nothing, 0.
pub fn mean(ns: u64, n: u64) -> String {
    duration(ns.checked_div(n).unwrap_or(0))
}

/// A moment in a run, to the millisecond: `1.234 s`. Moments are compared with each other, so all
/// have the same digits.
pub fn moment(ns: u64) -> String {
    format!("{:.3} s", ns as f64 / 1e9)
}

/// Seconds for a column, whose head has the unit: `0.667`, `2.00`, `31.4`.
pub fn seconds(ns: f64) -> String {
    let value = ns / 1e9;
    if value < 0.999_5 { format!("{value:.3}") } else { number(value) }
}

/// A count with a comma between thousands: `12,345`.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count with its noun: `1 wait`, `12 waits`, `2 processes`.
pub fn counted(n: u64, noun: &str) -> String {
    let ending = match n {
        1 => "",
        _ if noun.ends_with('s') => "es",
        _ => "s",
    };
    format!("{} {noun}{ending}", count(n))
}

/// A large number for a column: `123`, `12.3 k`, `1.85 M`.
pub fn compact(value: f64) -> String {
    let (value, unit) = match value {
        small if small < 999.5 => (small, ""),
        thousands if thousands < 999.5e3 => (thousands / 1e3, " k"),
        millions if millions < 999.5e6 => (millions / 1e6, " M"),
        more => (more / 1e9, " G"),
    };
    format!("{}{unit}", number(value))
}

/// How many times as much: `0.50x`, `2.41x`, `31.4x`. Two digits after the point at most, since
/// ratios below 1 are read next to others.
pub fn times(ratio: f64) -> String {
    if ratio < 0.995 { format!("{ratio:.2}x") } else { format!("{}x", number(ratio)) }
}

/// Bytes in binary units: `512 B`, `1.50 KiB`, `37.2 MiB`; limits and buffers are mostly whole, and
/// written so: `208 KiB`, `3 GiB`.
pub fn bytes(n: u64) -> String {
    if n < 1024 {
        return format!("{n} B");
    }
    let (mut size, mut unit) = (1u64 << 10, "KiB");
    for larger in ["MiB", "GiB", "TiB"] {
        if (n as f64) < 999.5 * size as f64 {
            break;
        }
        size <<= 10;
        unit = larger;
    }
    let value =
        if n.is_multiple_of(size) { count(n / size) } else { number(n as f64 / size as f64) };
    format!("{value} {unit}")
}

/// `part` of `whole` in a sentence: `48 %`, `4.2 %`, `0.31 %`, `under 0.01 %`; `0 %` of nothing.
pub fn percent(part: u64, whole: u64) -> String {
    percentage(if whole == 0 { 0.0 } else { part as f64 / whole as f64 })
}

/// A share of 0 to 1 in a sentence, as [`percent`].
pub fn percentage(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0 %".to_owned(),
        v if v >= 9.95 => format!("{v:.0} %"),
        v if v >= 0.995 => format!("{v:.1} %"),
        v if v >= 0.01 => format!("{v:.2} %"),
        _ => "under 0.01 %".to_owned(),
    }
}

/// A share of 0 to 1 in a column, or as an exact figure: `47.3 %`; `-` if it is not a number. What
/// is not zero is never shown as zero, and what is not all never as all: `<0.1 %`, `>99.9 %`.
pub fn share(share: f64) -> String {
    if !share.is_finite() {
        "-".to_owned()
    } else if share > 0.0 && share < 0.000_5 {
        "<0.1 %".to_owned()
    } else if (0.999_5..1.0).contains(&share) {
        ">99.9 %".to_owned()
    } else {
        format!("{:.1} %", share * 100.0)
    }
}

/// `part` of `whole`, as [`share`]; `-` if `whole` is 0.
pub fn share_of(part: u64, whole: u64) -> String {
    share(part as f64 / if whole == 0 { f64::NAN } else { whole as f64 })
}

/// How far something is off, as a part of it: `0.400 %`; below 0.1 % in parts per million:
/// `-12.5 ppm`.
pub fn deviation(part: f64) -> String {
    if part.abs() < 1e-3 {
        format!("{} ppm", number(part * 1e6))
    } else {
        format!("{} %", number(part * 100.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_three_digits_and_the_fitting_unit() {
        for (ns, text) in [
            (0, "0 ns"),
            (37, "37 ns"),
            (999, "999 ns"),
            (1_000, "1.00 us"),
            (45_600, "45.6 us"),
            (250_000, "250 us"),
            (999_499, "999 us"),
            (999_500, "1.00 ms"),
            (12_149_000, "12.1 ms"),
            (99_960_000, "100 ms"),
            (999_999_999, "1.00 s"),
            (1_204_000_000, "1.20 s"),
            (999_000_000_000, "999 s"),
            (1_230_000_000_000, "20.5 min"),
            (12_240_000_000_000, "3.40 h"),
            (12_345 * 3_600_000_000_000, "12,345 h"),
        ] {
            assert_eq!(duration(ns), text);
        }
        assert_eq!(
            [11.26, 99.96, 1_234.0, 0.42, -57_000.0, 0.0, 999.7].map(fine_duration),
            ["11.3 ns", "100 ns", "1.23 us", "0.420 ns", "-57.0 us", "0 ns", "1.00 us"]
        );
        assert_eq!([57.4, -1.2e6].map(signed_duration), ["57 ns", "-1.20 ms"]);
        assert_eq!((mean(1_000, 3), mean(5, 0)), ("333 ns".into(), "0 ns".into()));
        assert_eq!(moment(1_234_567_890), "1.235 s");
        assert_eq!([667e6, 2e9, 31.4e9, 0.0].map(seconds), ["0.667", "2.00", "31.4", "0.000"]);
    }

    #[test]
    fn numbers_have_three_digits() {
        assert_eq!(
            [0.0, 0.0123, 0.4, 0.999_7, -2.414, 31.41, 150.2, 12_345.0].map(number),
            ["0", "0.0123", "0.400", "1.00", "-2.41", "31.4", "150", "12,345"]
        );
        assert_eq!(
            [7.0, 12_345.0, 1.85e6, 2e9].map(compact),
            ["7.00", "12.3 k", "1.85 M", "2.00 G"]
        );
        assert_eq!([0.5, 0.0, 2.41, 150.2].map(times), ["0.50x", "0.00x", "2.41x", "150x"]);
        assert_eq!([0.004, -1.25e-5].map(deviation), ["0.400 %", "-12.5 ppm"]);
    }

    #[test]
    fn counts_and_bytes() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(
            (counted(1, "wait"), counted(1_200, "wait")),
            ("1 wait".into(), "1,200 waits".into())
        );
        assert_eq!(counted(2, "process"), "2 processes");
        assert_eq!(
            [512, 1023, 1536, 212_992, 39_000_000, 3 << 30, 1023 << 10].map(bytes),
            ["512 B", "1023 B", "1.50 KiB", "208 KiB", "37.2 MiB", "3 GiB", "0.999 MiB"]
        );
    }

    #[test]
    fn shares_are_honest_about_the_small_and_the_empty() {
        assert_eq!(
            [(48, 100), (42, 1_000), (31, 10_000), (1, 1_000_000), (5, 0), (0, 5)]
                .map(|(part, whole)| percent(part, whole)),
            ["48 %", "4.2 %", "0.31 %", "under 0.01 %", "0 %", "0 %"]
        );
        assert_eq!(
            [0.473, 0.000_01, 0.999_99, 0.0, 1.0].map(share),
            ["47.3 %", "<0.1 %", ">99.9 %", "0.0 %", "100.0 %"]
        );
        assert_eq!(share_of(3, 0), "-");
    }
}
