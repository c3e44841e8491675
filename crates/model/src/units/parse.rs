//! Durations as people type them.

use super::UNITS;

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

/// The bytes of a size as typed on a command line: `500MB`, `2GB`, `1.5GiB`, `4096`. A unit with `i`
/// is a power of 1,024, one without of 1,000.
///
/// # Errors
/// Says how to write it.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let refused = || format!("'{text}' is no size: write 500MB, 2GB or 1.5GiB");
    let typed = text.trim();
    let unit_at = typed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(typed.len());
    let (number, unit) = (&typed[..unit_at], typed[unit_at..].trim_start());
    let unit = unit.to_ascii_lowercase();
    let bytes = match unit.strip_suffix('b').unwrap_or(&unit) {
        "" => 1u64,
        "k" => 1_000,
        "m" => 1_000_000,
        "g" => 1_000_000_000,
        "t" => 1_000_000_000_000,
        "ki" => 1 << 10,
        "mi" => 1 << 20,
        "gi" => 1 << 30,
        "ti" => 1 << 40,
        _ => return Err(refused()),
    };
    let size = number.parse::<f64>().map_err(|_| refused())? * bytes as f64;
    if size >= 1.0 && size < (1u64 << 53) as f64 { Ok(size as u64) } else { Err(refused()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::duration;
    use proptest::prelude::*;

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
    fn typed_sizes() {
        for (text, size) in [
            ("4096", 4096),
            ("500MB", 500_000_000),
            ("2 gb", 2_000_000_000),
            ("1.5GiB", 3 << 29),
            ("64k", 64_000),
        ] {
            assert_eq!(parse_size(text), Ok(size), "{text}");
        }
        for text in ["", "0", "MB", "-1MB", "1.2.3MB", "5 parsecs", "1e9", "99999999TB", "1bbs"] {
            assert!(parse_size(text).is_err(), "{text}");
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
