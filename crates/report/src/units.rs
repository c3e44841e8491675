//! Numbers with units: durations, counts, bytes and shares, and durations as people type them.

/// Nanoseconds per unit, smallest first: the units that are printed and parsed.
const UNITS: [(&str, u64); 6] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// A duration with three significant digits: `37 ns`, `250 us`, `12.1 ms`, `1.20 s`. Seconds are
/// used up to 1,000; from then on `20.5 min`, and from 100 minutes `3.40 h`.
pub fn duration(ns: u64) -> String {
    if ns < 1_000 {
        return format!("{ns} ns");
    }
    let limits = [0.0, 999.5, 999.5, 999.5, 99.95, f64::INFINITY];
    for ((unit, size), limit) in UNITS.into_iter().zip(limits).skip(1) {
        let value = ns as f64 / size as f64;
        if value < limit {
            return format!("{} {unit}", three_digits(value));
        }
    }
    format!("{ns} ns")
}

/// A value of at least about 1 with three significant digits, or all digits before the point.
fn three_digits(value: f64) -> String {
    if value < 9.995 {
        format!("{value:.2}")
    } else if value < 99.95 {
        format!("{value:.1}")
    } else {
        count(value.round() as u64)
    }
}

/// A duration that may be a part of a nanosecond: `11.3 ns` below 100 ns, from there as
/// [`duration`].
pub(crate) fn fine_duration(ns: f64) -> String {
    if ns < 99.95 { format!("{ns:.1} ns") } else { duration(ns.round() as u64) }
}

/// Seconds with three digits and without their unit: `0.667`, `2.00`, `31.4`.
pub(crate) fn seconds(ns: f64) -> String {
    let value = ns / 1e9;
    if value < 0.999_5 { format!("{value:.3}") } else { three_digits(value) }
}

/// A large number with three digits: `123`, `12.3 k`, `1.85 M`.
pub(crate) fn compact(value: f64) -> String {
    let (value, unit) = match value {
        small if small < 999.5 => (small, ""),
        thousands if thousands < 999.5e3 => (thousands / 1e3, " k"),
        millions if millions < 999.5e6 => (millions / 1e6, " M"),
        more => (more / 1e9, " G"),
    };
    format!("{}{unit}", three_digits(value))
}

/// How many times as much: `2.41x`, `31.4x`, `150x`.
pub(crate) fn times(ratio: f64) -> String {
    format!("{}x", three_digits(ratio))
}

/// A count with a comma after each three digits: `1,234`.
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

/// Bytes in binary units: `512 B`, `1.50 KiB`, `37.2 MiB`.
pub fn bytes(n: u64) -> String {
    if n < 1024 {
        return format!("{n} B");
    }
    let mut value = n as f64 / 1024.0;
    let mut unit = "KiB";
    for larger in ["MiB", "GiB", "TiB"] {
        if value < 999.5 {
            break;
        }
        value /= 1024.0;
        unit = larger;
    }
    format!("{} {unit}", three_digits(value))
}

/// A share of 0 to 1 as `47.3 %`; `-` if it is not a number. What is not zero is never shown as
/// zero, and what is not all never as all: `<0.1 %`, `>99.9 %`.
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

/// `part` of `whole` as a share; `-` if `whole` is 0.
pub fn part(part: u64, whole: u64) -> String {
    share(part as f64 / if whole == 0 { f64::NAN } else { whole as f64 })
}

/// `1 thread`, `2 threads`: a count with its noun.
pub(crate) fn plural(n: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(n), if n == 1 { "" } else { "s" })
}

/// Why a text is no duration.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// No unit.
    #[error("'{0}' has no unit: write a duration as 250us, 20ms, 1s or 1.5s")]
    NoUnit(String),
    /// Not a number with a unit.
    #[error("'{0}' is no duration: write 250us, 20ms, 1s or 1.5s (units: ns, us, ms, s, min, h)")]
    Malformed(String),
    /// More digits than there are nanoseconds.
    #[error("'{0}' is finer than a nanosecond: write fewer digits")]
    TooFine(String),
    /// Beyond 64 bits of nanoseconds.
    #[error("'{0}' is too long: durations end at about 500 years")]
    TooLong(String),
}

/// The nanoseconds of a duration as typed on a command line: a decimal number and a unit (`ns`,
/// `us`, `ms`, `s`, `min`, `h`), with or without a space between them. Exact.
///
/// # Errors
/// Says what is wrong with the text and how to write it.
pub fn parse_duration(text: &str) -> Result<u64, DurationError> {
    let typed = text.trim();
    let malformed = || DurationError::Malformed(text.to_owned());
    let unit_at = typed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(typed.len());
    let (number, unit) = (&typed[..unit_at], typed[unit_at..].trim_start());
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || fraction.contains('.') || (number.ends_with('.')) {
        return Err(malformed());
    }
    if unit.is_empty() {
        return Err(DurationError::NoUnit(text.to_owned()));
    }
    let (_, size) = UNITS.into_iter().find(|(name, _)| *name == unit).ok_or_else(malformed)?;
    let too_long = || DurationError::TooLong(text.to_owned());
    let whole: u64 = whole.parse().map_err(|_| too_long())?;
    let mut ns = whole.checked_mul(size).ok_or_else(too_long)?;

    // The digits after the point, as `fraction / 10^n` of the unit.
    let fraction = fraction.trim_end_matches('0');
    if !fraction.is_empty() {
        let too_fine = || DurationError::TooFine(text.to_owned());
        let digits: u128 = fraction.parse().map_err(|_| too_fine())?;
        let scale = 10u128.checked_pow(fraction.len() as u32).ok_or_else(too_fine)?;
        let scaled = digits.checked_mul(u128::from(size)).ok_or_else(too_fine)?;
        if scaled % scale != 0 {
            return Err(too_fine());
        }
        ns = ns.checked_add((scaled / scale) as u64).ok_or_else(too_long)?;
    }
    Ok(ns)
}

/// The ends of a window as typed on a command line, in nanoseconds: two durations with `..` between
/// them. The first may leave its unit to the second (`1.2..1.5s`); without any unit both are seconds.
///
/// # Errors
/// Says what is wrong with the text and how to write it.
pub fn parse_window(text: &str) -> Result<(u64, u64), String> {
    let Some((from, to)) = text.split_once("..") else {
        return Err(format!("'{text}' is no window: write 1.2..1.5s or 800ms..1.1s"));
    };
    let unit_of = |typed: &str| typed.trim_start_matches(|c: char| !c.is_alphabetic()).to_owned();
    let unit = Some(unit_of(to)).filter(|unit| !unit.is_empty()).unwrap_or("s".to_owned());
    let parse = |typed: &str| {
        let bare = unit_of(typed).is_empty() && !typed.trim().is_empty();
        let typed = if bare { format!("{}{unit}", typed.trim()) } else { typed.to_owned() };
        parse_duration(&typed).map_err(|error| error.to_string())
    };
    Ok((parse(from)?, parse(to)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn durations_have_three_digits_and_the_fitting_unit() {
        for (ns, text) in [
            (0, "0 ns"),
            (37, "37 ns"),
            (999, "999 ns"),
            (1_000, "1.00 us"),
            (250_000, "250 us"),
            (999_499, "999 us"),
            (999_500, "1.00 ms"),
            (12_149_000, "12.1 ms"),
            (99_960_000, "100 ms"),
            (1_204_000_000, "1.20 s"),
            (999_000_000_000, "999 s"),
            (1_230_000_000_000, "20.5 min"),
            (12_240_000_000_000, "3.40 h"),
            (12_345 * 3_600_000_000_000, "12,345 h"),
        ] {
            assert_eq!(duration(ns), text);
        }
    }

    #[test]
    fn counts_bytes_and_shares() {
        assert_eq!(
            (count(0), count(999), count(1_000)),
            ("0".into(), "999".into(), "1,000".into())
        );
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1536), "1.50 KiB");
        assert_eq!(bytes(39_000_000), "37.2 MiB");
        assert_eq!(share(0.473), "47.3 %");
        assert_eq!(share(0.000_01), "<0.1 %");
        assert_eq!(share(0.999_99), ">99.9 %");
        assert_eq!((share(0.0), share(1.0)), ("0.0 %".into(), "100.0 %".into()));
        assert_eq!(part(3, 0), "-");
    }

    #[test]
    fn numbers_of_benchmarks() {
        assert_eq!([11.26, 99.96, 1_234.0].map(fine_duration), ["11.3 ns", "100 ns", "1.23 us"]);
        assert_eq!([667e6, 2e9, 31.4e9, 0.0].map(seconds), ["0.667", "2.00", "31.4", "0.000"]);
        assert_eq!(
            [7.0, 12_345.0, 1.85e6, 2e9].map(compact),
            ["7.00", "12.3 k", "1.85 M", "2.00 G"]
        );
        assert_eq!([0.5, 2.41, 150.2].map(times), ["0.50x", "2.41x", "150x"]);
    }

    #[test]
    fn typed_durations() {
        assert_eq!(parse_duration("250us"), Ok(250_000));
        assert_eq!(parse_duration("20ms"), Ok(20_000_000));
        assert_eq!(parse_duration("1s"), Ok(1_000_000_000));
        assert_eq!(parse_duration("1.5s"), Ok(1_500_000_000));
        assert_eq!(parse_duration(" 1.50 s "), Ok(1_500_000_000));
        assert_eq!(parse_duration("0.000000001s"), Ok(1));
    }

    #[test]
    fn typed_windows() {
        const MS: u64 = 1_000_000;
        for (text, window) in [
            ("1.2..1.5s", (1_200 * MS, 1_500 * MS)),
            ("1..2", (1_000 * MS, 2_000 * MS)),
            ("800ms..1.1s", (800 * MS, 1_100 * MS)),
            ("800..900ms", (800 * MS, 900 * MS)),
            ("0 .. 5", (0, 5_000 * MS)),
            ("2s..1s", (2_000 * MS, 1_000 * MS)),
        ] {
            assert_eq!(parse_window(text), Ok(window), "{text}");
        }
        for text in ["", "1.2", "1.2s", "..", "1..", "..2s", "a..b", "-1..2s", "1..2..3s"] {
            assert!(parse_window(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_refused_with_its_text() {
        for text in ["", "ms", "-1s", "1..5s", "1.5.2s", "1.s", ".5s", "5 parsecs", "1e3s", "1µs"]
        {
            assert_eq!(parse_duration(text), Err(DurationError::Malformed(text.into())));
        }
        assert_eq!(parse_duration("250"), Err(DurationError::NoUnit("250".into())));
        assert_eq!(parse_duration("1.5ns"), Err(DurationError::TooFine("1.5ns".into())));
        assert!(matches!(parse_duration("99999999999s"), Err(DurationError::TooLong(_))));
        assert!(parse_duration("250").unwrap_err().to_string().contains("250us"));
    }

    proptest! {
        #[test]
        fn exact_durations_are_read_back_exactly(ns in 0u64..1 << 60) {
            prop_assert_eq!(parse_duration(&format!("{ns}ns")), Ok(ns));
            let (s, rest) = (ns / 1_000_000_000, ns % 1_000_000_000);
            prop_assert_eq!(parse_duration(&format!("{s}.{rest:09}s")), Ok(ns));
        }

        #[test]
        fn printed_durations_are_read_back_within_their_three_digits(ns in 0u64..3_600_000_000_000) {
            let back = parse_duration(&duration(ns)).unwrap();
            prop_assert!(back.abs_diff(ns) as f64 <= 0.005 * ns as f64 + 0.1, "{ns} -> {back}");
        }

        #[test]
        fn no_text_makes_it_panic(text in ".*") {
            let _ = parse_duration(&text);
        }
    }
}
