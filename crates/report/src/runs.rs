//! The table of `whylag runs`.

use std::io::{self, Write};

use model::outside::brief;
use model::units::{bytes, count, duration};
use model::{Origin, RunStatus, RunSummary, Target};

use crate::Style;
use crate::style::Paint;
use crate::table::{Align, Cell, Table};

/// Characters of what was watched: a line or two.
const TARGET: usize = 160;

/// Writes two lines per run: its numbers and leading cause, and below them what was watched and
/// what it takes; then the size of the store, `store_bytes`.
///
/// # Errors
/// Those of `out`.
pub fn write(
    out: &mut dyn Write,
    runs: &[RunSummary],
    store_bytes: u64,
    style: &Style,
) -> io::Result<()> {
    if runs.is_empty() {
        return writeln!(out, "No such run in this store. Make one with: whylag record -p PID");
    }
    let mut table = Table::new(
        0,
        &[
            ("run", Align::Right),
            ("started (UTC)", Align::Left),
            ("length", Align::Right),
            ("threads", Align::Right),
            ("outliers", Align::Right),
            ("status", Align::Left),
            ("leading cause", Align::Left),
        ],
    );
    for run in runs {
        let recorded = |n| match is_unrecorded(&run.header.target, run.threads) {
            true => "-".to_owned(),
            false => count(n),
        };
        table.row([
            run.id.to_string().into(),
            utc(run.header.started_unix_ns).into(),
            duration(run.length_ns).into(),
            recorded(run.threads).into(),
            recorded(run.outliers).into(),
            status(run.status),
            run.leading_cause.as_deref().unwrap_or("-").into(),
        ]);
        let target = run.header.target.to_string();
        table.note(1, format!("{} ({})", brief(&target, TARGET), bytes(run.bytes)));
        if let Some(Origin { file, number }) = &run.origin {
            table.note(1, format!("imported from {file}, where it was run {number}"));
        }
    }
    table.write(out, style)?;
    let all = format!("The store has {}; 'whylag forget' removes runs.", bytes(store_bytes));
    writeln!(out, "{}", style.dim(&all))
}

/// True for benchmarks, timers and traces without the recorder: threads and outliers were not looked at, which is not
/// the same as none.
pub(crate) fn is_unrecorded(target: &Target, threads: u64) -> bool {
    matches!(target, Target::Bench(_) | Target::Jitter(_) | Target::Trace(_)) && threads == 0
}

/// The status in a word.
pub(crate) fn status(status: RunStatus) -> Cell {
    match status {
        RunStatus::Recording => Cell::painted("recording", Paint::Green),
        RunStatus::Complete => "complete".into(),
        RunStatus::Interrupted => Cell::painted("interrupted", Paint::Red),
    }
}

/// `2026-03-01 10:00:03` of nanoseconds since 1970 in UTC; earlier times are shown as 1970.
pub(crate) fn utc(unix_ns: i64) -> String {
    let seconds = unix_ns.max(0) / 1_000_000_000;
    let (mut days, of_day) = (seconds / 86_400, seconds % 86_400);
    let is_leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let mut year = 1970;
    while days >= 365 + i64::from(is_leap(year)) {
        days -= 365 + i64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + i64::from(is_leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
    format!("{year}-{month:02}-{:02} {hour:02}:{minute:02}:{second:02}", days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use model::{RunId, Target};

    #[test]
    fn dates() {
        for (seconds, text) in [
            (0, "1970-01-01 00:00:00"),
            (951_782_399, "2000-02-28 23:59:59"),
            (951_782_400, "2000-02-29 00:00:00"),
            (951_868_800, "2000-03-01 00:00:00"),
            (1_767_225_599, "2025-12-31 23:59:59"),
            (1_772_359_203, "2026-03-01 10:00:03"),
            (4_107_542_400, "2100-03-01 00:00:00"),
        ] {
            assert_eq!(utc(seconds * 1_000_000_000), text);
        }
        assert_eq!(utc(i64::MIN), "1970-01-01 00:00:00");
        assert_eq!(utc(i64::MAX), "2262-04-11 23:47:16");
    }

    fn summary(id: i64, status: RunStatus, cause: Option<&str>) -> RunSummary {
        RunSummary {
            id: RunId(id),
            header: sample::run().header,
            status,
            length_ns: 2_000_000_000,
            threads: 1_234,
            outliers: 123_456,
            bytes: 12_345_678,
            leading_cause: cause.map(str::to_owned),
            origin: None,
        }
    }

    #[test]
    fn the_table_fits_and_says_everything() {
        let mut runs = vec![
            summary(1, RunStatus::Complete, Some("mmap-lock")),
            summary(1_000, RunStatus::Interrupted, Some("cputime-clock-threads")),
            summary(1_001, RunStatus::Recording, None),
        ];
        runs[2].header.target = Target::Command(vec!["argument".to_owned(); 30]);
        runs[0].origin = Some(Origin { file: "x.whylag".to_owned(), number: RunId(7) });
        let text = sample::written(|out| write(out, &runs, 3 << 30, &Style::default()));
        sample::assert_fits(&text, 80);
        for part in [
            "mmap-lock",
            "interrupted",
            "recording",
            "123,456",
            "2.00 s",
            "pid 77",
            "imported from x.whylag, where it was run 7",
            "(11.8 MiB)",
            "has 3 GiB",
            "... (269 B in all)",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert!(text.matches("argument").count() < 20, "{text}");
        runs[2].header.target = Target::Bench(vec!["getppid".to_owned()]);
        let (threads, outliers) = (0, 0);
        let bench = RunSummary { threads, outliers, ..runs.remove(2) };
        let text = sample::written(|out| write(out, &[bench], 5_000, &Style::default()));
        assert!(text.contains("2.00 s        -         -"), "{text}");
        assert!(text.contains("bench getppid") && !text.contains(" 0 "), "{text}");
        let none = sample::written(|out| write(out, &[], 0, &Style::default()));
        assert!(none.contains("whylag record"));
    }
}
