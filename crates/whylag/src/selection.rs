//! Which of the stored runs are meant: by what they are called, what was watched, where, when, and
//! what came out.

use clap::Args;
use model::{Labels, RunSummary};
use store::{Sqlite, Store};

use crate::failure::Failure;
use crate::stored::label;

const DAY_NS: u64 = 86_400_000_000_000;

/// Options that choose among the stored runs. All that are given have to hold.
#[derive(Args, Clone, Debug, Default)]
pub struct Selection {
    /// Runs with this label, such as build=42; may be given several times
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = label)]
    labels: Vec<(String, String)>,
    /// Runs that were recorded with --set NAME
    #[arg(long, value_name = "NAME")]
    set: Option<String>,
    /// Runs whose command or target has this text
    #[arg(long, value_name = "TEXT")]
    command: Option<String>,
    /// Runs of the host of this name
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// Runs in which this cause was found
    #[arg(long, value_name = "ID")]
    cause: Option<String>,
    /// Runs that began then or later: an age such as 7d, or a date as 2026-03-01 or
    /// '2026-03-01 10:00' (UTC)
    #[arg(long, value_name = "TIME", value_parser = moment)]
    since: Option<Moment>,
    /// Runs that began before this
    #[arg(long, value_name = "TIME", value_parser = moment)]
    until: Option<Moment>,
}

/// A point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moment {
    /// Nanoseconds since 1970 (UTC).
    At(i64),
    /// Nanoseconds before now.
    Ago(u64),
}

impl Moment {
    fn unix_ns(self) -> i64 {
        match self {
            Moment::At(unix_ns) => unix_ns,
            Moment::Ago(ns) => {
                clock::unix_ns().saturating_sub(i64::try_from(ns).unwrap_or(i64::MAX))
            }
        }
    }
}

impl Selection {
    /// The runs of the store that are meant, oldest first.
    pub fn of(&self, store: &Sqlite) -> Result<Vec<RunSummary>, Failure> {
        if let Some(cause) = &self.cause {
            explain::page(cause).map_err(|error| Failure::Usage(error.to_string()))?;
        }
        let (since, until) = (self.since.map(Moment::unix_ns), self.until.map(Moment::unix_ns));
        let mut runs = store.runs()?;
        runs.retain(|run| {
            let started = run.header.started_unix_ns;
            let labels = &run.header.labels;
            let has = |name: &str, value: &str| labels.get(name).is_some_and(|v| v == value);
            self.labels.iter().all(|(name, value)| has(name, value))
                && self.set.as_deref().is_none_or(|set| has(SET, set))
                && self
                    .command
                    .as_deref()
                    .is_none_or(|text| run.header.target.to_string().contains(text))
                && since.is_none_or(|since| started >= since)
                && until.is_none_or(|until| started < until)
        });
        if self.host.is_none() && self.cause.is_none() {
            return Ok(runs);
        }
        let mut chosen = Vec::new();
        for run in runs {
            if self.is_in_figures(store, &run)? {
                chosen.push(run);
            }
        }
        Ok(chosen)
    }

    /// What only the figures of a run say.
    fn is_in_figures(&self, store: &Sqlite, run: &RunSummary) -> Result<bool, Failure> {
        let figures = store.figures(run.id)?.unwrap_or_default();
        let host = figures.facts.get("host.name");
        let is_of_host = self.host.as_ref().is_none_or(|name| host == Some(name));
        let has_cause = self.cause.as_deref().is_none_or(|cause| {
            figures.cause(cause).is_some() || run.leading_cause.as_deref() == Some(cause)
        });
        Ok(is_of_host && has_cause)
    }
}

/// The label that names a set of runs.
pub const SET: &str = "set";

/// The labels of a run that --label and --set ask for.
pub fn labels(given: &[(String, String)], set: Option<&str>) -> Labels {
    let set = set.map(|name| (SET.to_owned(), name.to_owned()));
    given.iter().cloned().chain(set).collect()
}

/// A duration, for which days are a unit, too.
pub fn age(text: &str) -> Result<u64, String> {
    let days = text.trim().strip_suffix('d').and_then(|days| days.trim().parse::<u64>().ok());
    match days {
        Some(days) => days.checked_mul(DAY_NS).ok_or_else(|| format!("'{text}' is too long")),
        None => model::units::parse_duration(text).map_err(|error| error.to_string()),
    }
}

fn moment(text: &str) -> Result<Moment, String> {
    if let Some(unix_ns) = date(text) {
        return Ok(Moment::At(unix_ns));
    }
    let is_age =
        text.trim().starts_with(|c: char| c.is_ascii_digit()) && !text.contains(['-', ':']);
    if is_age && let Ok(ns) = age(text) {
        return Ok(Moment::Ago(ns));
    }
    Err("write an age as 7d or 12h, or a date as 2026-03-01 or '2026-03-01 10:00' (UTC)".to_owned())
}

/// `2026-03-01`, with ` 10:00` or ` 10:00:03` behind it, in UTC.
fn date(text: &str) -> Option<i64> {
    let (day, time) = text.trim().split_once([' ', 'T']).unwrap_or((text.trim(), "0:0"));
    let numbers = |text: &str, between| -> Option<Vec<i64>> {
        text.split(between).map(|part| part.parse().ok()).collect()
    };
    let (day, time) = (numbers(day, '-')?, numbers(time, ':')?);
    let [year, month, day] = day[..] else { return None };
    let (hour, minute, second) = match time[..] {
        [hour, minute] => (hour, minute, 0),
        [hour, minute, second] => (hour, minute, second),
        _ => return None,
    };
    let is_in_range = (1970..=2200).contains(&year)
        && (1..=12).contains(&month)
        && (1..=days_of(year, month)).contains(&day)
        && (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0..60).contains(&second);
    if !is_in_range {
        return None;
    }
    let years: i64 = (1970..year).map(|year| 365 + i64::from(is_leap(year))).sum();
    let months: i64 = (1..month).map(|month| days_of(year, month)).sum();
    let days = years + months + day - 1;
    Some((((days * 24 + hour) * 60 + minute) * 60 + second) * 1_000_000_000)
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_of(year: i64, month: i64) -> i64 {
    match month {
        2 => 28 + i64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages() {
        assert_eq!(age("30d"), Ok(30 * DAY_NS));
        assert_eq!(age("12h"), Ok(DAY_NS / 2));
        assert!(age("d").is_err() && age("99999999999d").is_err());
    }

    #[test]
    fn moments() {
        let at = |text: &str| moment(text).unwrap();
        assert_eq!(at("1970-01-02"), Moment::At(DAY_NS as i64));
        assert_eq!(at("2000-02-29 00:00:00"), Moment::At(951_782_400_000_000_000));
        assert_eq!(at("2026-03-01 10:00:03"), Moment::At(1_772_359_203_000_000_000));
        assert_eq!(at("2026-03-01T10:00"), Moment::At(1_772_359_200_000_000_000));
        assert_eq!(at("7d"), Moment::Ago(7 * DAY_NS));
        for text in ["", "7", "2026-02-30", "2026-13-01", "2026-03-01 25:00", "-7d", "soon"] {
            assert!(moment(text).is_err(), "{text}");
        }
    }
}
