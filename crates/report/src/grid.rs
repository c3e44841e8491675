//! `whylag runs --grid`, for people.

use std::collections::BTreeMap;
use std::io::{self, Write};

use model::units::counted;
use model::{Grid, GridCell, GridRow, Outcome, Split};

use crate::style::Paint;
use crate::{Style, text};

/// Columns of the names of rows.
const NAMES: usize = 26;
/// Runs in a line, at most: more of them go below.
const LEAST_COLUMNS: usize = 10;
/// Splits that are shown.
const MOST_SPLITS: usize = 8;
/// Others that are there in the same runs, of each split.
const MOST_SAME: usize = 4;

/// Writes each grid: a run a column, what splits the bad runs from the clean ones below it.
///
/// # Errors
/// Those of `out`.
pub fn write(out: &mut dyn Write, grids: &[Grid], style: &Style) -> io::Result<()> {
    for (n, grid) in grids.iter().enumerate() {
        if n > 0 {
            writeln!(out)?;
        }
        write_grid(out, grid, style)?;
    }
    writeln!(out)?;
    let legend = "A run a column, oldest first: . clean, r recovered, L lost. Causes and accounts: \
                  tenths of the wall time (0: some, 9: nine tenths or more); losses: the digits of \
                  the count; facts: a letter for each value. p: Fisher's exact test of what is \
                  there or not, Mann-Whitney test of sizes, over runs; corrected for all that was \
                  tried (Holm).";
    for line in text::wrap(legend, style.width) {
        writeln!(out, "{}", style.dim(&line))?;
    }
    Ok(())
}

fn write_grid(out: &mut dyn Write, grid: &Grid, style: &Style) -> io::Result<()> {
    let of = |outcome| grid.outcomes.iter().filter(|one| **one == outcome).count() as u64;
    let heading = format!(
        "{}: {} clean, {} recovered, {} lost",
        grid.group,
        counted(of(Outcome::Clean), "run"),
        of(Outcome::Recovered),
        of(Outcome::Lost)
    );
    for line in text::wrap(&heading, style.width) {
        writeln!(out, "{}", style.bold(&line))?;
    }
    let columns = style.width.saturating_sub(NAMES + 2).max(LEAST_COLUMNS);
    let rows: Vec<(&GridRow, Vec<char>)> =
        grid.rows.iter().map(|row| (row, characters(row))).collect();
    let mut from = 0;
    while from < grid.runs.len() {
        let to = (from + columns).min(grid.runs.len());
        let ids = format!("runs {} to {}", grid.runs[from], grid.runs[to - 1]);
        writeln!(out, "  {ids:<NAMES$}{}", outcomes(&grid.outcomes[from..to], style))?;
        for (row, characters) in &rows {
            let part = &characters[from..to];
            if part.iter().any(|c| *c != '.') {
                let name: String = text::clean(&row.name).chars().take(NAMES - 1).collect();
                writeln!(out, "  {name:<NAMES$}{}", part.iter().collect::<String>())?;
            }
        }
        from = to;
    }
    for (row, characters) in &rows {
        write_values(out, row, characters, style)?;
    }
    write_splits(out, grid, style)
}

fn outcomes(outcomes: &[Outcome], style: &Style) -> String {
    let paint = |outcome: &Outcome| match outcome {
        Outcome::Clean => ".".to_owned(),
        Outcome::Recovered => style.paint(Paint::Yellow, "r"),
        Outcome::Lost => style.paint(Paint::Red, "L"),
    };
    outcomes.iter().map(paint).collect()
}

/// A character for each run.
fn characters(row: &GridRow) -> Vec<char> {
    let letters = letters(row);
    let cell = |cell: &GridCell| match cell {
        GridCell::Share(share) if *share <= 0.0 => '.',
        GridCell::Share(share) => digit((share * 10.0) as u32),
        GridCell::Count(0) => '.',
        GridCell::Count(count) => digit(count.ilog10() + 1),
        GridCell::Value(value) => letters.get(value).copied().unwrap_or('?'),
    };
    row.cells.iter().map(cell).collect()
}

fn digit(value: u32) -> char {
    char::from_digit(value.min(9), 10).unwrap_or('9')
}

/// `a` for the first value, and so on; those beyond the alphabet have none.
fn letters(row: &GridRow) -> BTreeMap<Option<String>, char> {
    let mut letters = BTreeMap::new();
    let mut free = 'a'..='z';
    for cell in &row.cells {
        if let GridCell::Value(value) = cell
            && !letters.contains_key(value)
            && let Some(letter) = free.next()
        {
            letters.insert(value.clone(), letter);
        }
    }
    letters
}

/// What the letters of a fact mean, if they are few.
fn write_values(
    out: &mut dyn Write,
    row: &GridRow,
    characters: &[char],
    style: &Style,
) -> io::Result<()> {
    const MOST: usize = 4;
    let letters = letters(row);
    if letters.is_empty() || letters.len() > MOST || characters.is_empty() {
        return Ok(());
    }
    let mut values: Vec<(char, String)> = letters
        .into_iter()
        .map(|(value, letter)| (letter, value.unwrap_or_else(|| "(not set)".to_owned())))
        .collect();
    values.sort();
    let words: Vec<String> =
        values.iter().map(|(letter, value)| format!("{letter} = {value}")).collect();
    let line = format!("{}: {}", row.name, words.join(", "));
    write!(out, "{}", text::labelled(" ", 4, &line, style.width))
}

fn write_splits(out: &mut dyn Write, grid: &Grid, style: &Style) -> io::Result<()> {
    if let Some(why) = no_splits(grid) {
        let lines = text::labelled(" ", 2, &why, style.width);
        return writeln!(out, "{}", style.dim(lines.trim_end()));
    }
    writeln!(out, "  {}", style.bold("What the bad runs have, of all that was tried:"))?;
    for line in splits(grid) {
        write!(out, "{}", text::labelled("  -", 4, &line, style.width))?;
    }
    Ok(())
}

/// Why nothing splits the bad runs from the clean ones; `None` if something does.
pub fn no_splits(grid: &Grid) -> Option<String> {
    if grid.tried == 0 {
        return Some("Nothing to tell apart: it takes clean runs and bad ones.".to_owned());
    }
    let tried = counted(grid.tried as u64, "comparison");
    grid.splits
        .is_empty()
        .then(|| format!("Nothing splits the bad runs from the clean ones beyond chance: {tried}."))
}

/// What splits the bad runs from the clean ones, the surest first: a sentence each.
pub fn splits(grid: &Grid) -> Vec<String> {
    let sentence = |split: &Split| {
        let mut line = format!("{}: {}", split.what, split.how);
        if !split.same.is_empty() {
            let shown = split.same.len().min(MOST_SAME);
            line += &format!(
                "; in the same runs, or in exactly the others: {}",
                split.same[..shown].join(", ")
            );
            if split.same.len() > shown {
                line += &format!(" and {} more", split.same.len() - shown);
            }
        }
        line + &format!(
            " (p = {:.1e}, corrected for {} tried {:.1e})",
            split.p, grid.tried, split.p_corrected
        )
    };
    grid.splits.iter().take(MOST_SPLITS).map(sentence).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use model::RunId;

    #[test]
    fn a_run_is_a_column_and_everything_fits() {
        let outcome = |n: i64| if n % 4 == 0 { Outcome::Lost } else { Outcome::Clean };
        let row = |name: &str, cell: &dyn Fn(i64) -> GridCell| GridRow {
            name: name.to_owned(),
            cells: (0..120).map(cell).collect(),
        };
        let binding =
            |n: i64| GridCell::Value(Some(if n % 4 == 0 { "lazy" } else { "now" }.to_owned()));
        let grid = Grid {
            group: format!("./server, a, {}", "word ".repeat(20).trim()),
            runs: (0..120).map(RunId).collect(),
            outcomes: (0..120).map(outcome).collect(),
            rows: vec![
                row("cause lazy-binding", &|n| {
                    GridCell::Share(if n % 4 == 0 { 0.35 } else { 0.0 })
                }),
                row("loss of-a-very-long-name-that-does-not-fit", &|n| {
                    GridCell::Count(if n == 8 { 1_234 } else { 0 })
                }),
                row("fact binary.binding", &binding),
            ],
            splits: vec![Split {
                what: "binary.binding = lazy".to_owned(),
                same: vec!["binary.binding = now".to_owned(); 6],
                how: "30 of 30 bad runs have it, 0 of 90 clean ones".to_owned(),
                p: 1e-9,
                p_corrected: 3e-8,
            }],
            tried: 30,
        };
        let text =
            sample::written(|out| write(out, std::slice::from_ref(&grid), &Style::default()));
        sample::assert_fits(&text, 80);
        for part in [
            "90 runs clean, 0 recovered, 30 lost",
            "runs 0 to 51              L...L...",
            "cause lazy-binding        3...3...",
            "........4...",
            "fact binary.binding: a = lazy, b = now",
            "and 2 more",
            "corrected for 30 tried 3.0e-8",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        let none = Grid { splits: Vec::new(), ..grid };
        let text = sample::written(|out| write(out, &[none], &Style::default()));
        assert!(text.contains("beyond chance: 30 comparisons"), "{text}");
    }
}
