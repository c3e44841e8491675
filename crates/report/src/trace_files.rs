//! The table of trace files: `whylag trace ls`.

use std::io::{self, Write};

use serde::Serialize;

use crate::style::Paint;
use crate::table::{Align, Cell, Table};
use crate::{Style, runs};

/// A file that is called like a trace.
#[derive(Clone, Debug, Serialize)]
pub struct TraceListing {
    /// Where it is.
    pub path: String,
    /// Its writer, as the writer's own pid namespace counts.
    pub pid: Option<u32>,
    /// What became of the writer.
    pub standing: TraceStanding,
    /// What its tracer was written in.
    pub language: String,
    /// When it was made.
    pub created_unix_ns: u64,
    /// Why it is not read; empty if it is.
    pub refused: String,
}

/// Whether somebody still writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TraceStanding {
    /// Its program runs.
    Live,
    /// Its program ended, and left it.
    Closed,
    /// Its program died, or made an exec.
    Crashed,
    /// Of another boot or pid namespace.
    Foreign,
    /// It is not read.
    Refused,
}

/// Writes the table.
///
/// # Errors
/// Those of `out`.
pub fn write(out: &mut dyn Write, files: &[TraceListing], style: &Style) -> io::Result<()> {
    if files.is_empty() {
        return writeln!(out, "no program traces its messages, and none has left a trace behind");
    }
    let columns = [
        ("pid", Align::Right),
        ("state", Align::Left),
        ("tracer", Align::Left),
        ("since (UTC)", Align::Left),
    ];
    let mut table = Table::new(0, &columns);
    for file in files {
        let (word, paint) = match file.standing {
            TraceStanding::Live => ("live", Paint::Green),
            TraceStanding::Closed => ("closed", Paint::Dim),
            TraceStanding::Crashed => ("crashed", Paint::Red),
            TraceStanding::Foreign => ("foreign", Paint::Dim),
            TraceStanding::Refused => ("refused", Paint::Red),
        };
        let since = i64::try_from(file.created_unix_ns).ok().filter(|ns| *ns > 0);
        table.row([
            file.pid.map_or_else(|| "-".to_owned(), |pid| pid.to_string()).into(),
            Cell::painted(word, paint),
            if file.language.is_empty() { "-".into() } else { file.language.as_str().into() },
            since.map_or_else(|| "-".to_owned(), runs::utc).into(),
        ]);
        table.note(1, &file.path);
        if !file.refused.is_empty() {
            table.note(1, &file.refused);
        }
    }
    table.write(out, style)?;
    let left = |file: &&TraceListing| {
        matches!(file.standing, TraceStanding::Crashed | TraceStanding::Closed)
    };
    if files.iter().any(|file| left(&file)) {
        writeln!(out, "'whylag trace harvest' stores what was left behind, and removes it")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn a_refused_file_has_its_reason_and_long_paths_are_not_cut() {
        let file = |pid, standing, refused: &str| TraceListing {
            path: format!("/dev/shm/whylag-1000/{:?}-123456.trace", pid),
            pid,
            standing,
            language: if refused.is_empty() { "C".into() } else { String::new() },
            created_unix_ns: 1_772_359_203_000_000_000,
            refused: refused.into(),
        };
        let files = [
            file(Some(77), TraceStanding::Crashed, ""),
            file(None, TraceStanding::Refused, "the magic of a trace is missing"),
        ];
        let text = sample::written(|out| write(out, &files, &Style::default()));
        sample::assert_fits(&text, 80);
        assert!(text.contains(" 77  crashed  C"), "{text}");
        assert!(text.contains("refused  -"), "{text}");
        assert!(text.contains("the magic of a trace is missing"), "{text}");
        assert!(text.contains("trace harvest"), "{text}");
    }
}
