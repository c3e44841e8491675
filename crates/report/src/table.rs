//! Aligned tables that keep to a width.

use std::io::{self, Write};

use crate::Style;
use crate::style::Paint;
use crate::text;

/// Columns between columns.
const GAP: usize = 2;

/// The narrowest that a column is made to make a table fit.
const NARROWEST: usize = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    Left,
    Right,
}

/// One cell: its text, and how to paint it.
#[derive(Clone, Debug)]
pub struct Cell {
    text: String,
    paint: Option<Paint>,
}

impl Cell {
    pub fn painted(text: impl Into<String>, paint: Paint) -> Cell {
        Cell { text: text::clean(&text.into()), paint: Some(paint) }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Cell {
        Cell { text: text::clean(&text.into()), paint: None }
    }
}

enum Row {
    Cells(Vec<Cell>),
    /// Text across the table, beginning under the given column.
    Note(usize, String),
}

/// Rows under column titles. If they are wider than the style allows, the last left-aligned
/// column is broken into lines.
pub struct Table {
    indent: usize,
    columns: Vec<(&'static str, Align)>,
    rows: Vec<Row>,
}

impl Table {
    pub fn new(indent: usize, columns: &[(&'static str, Align)]) -> Table {
        Table { indent, columns: columns.to_vec(), rows: Vec::new() }
    }

    /// Adds a row; cells beyond the columns are not shown.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(Row::Cells(cells.into_iter().collect()));
    }

    /// Adds a line of dim text that begins under column `column`.
    pub fn note(&mut self, column: usize, text: impl Into<String>) {
        self.rows.push(Row::Note(column, text.into()));
    }

    /// Writes the titles (unless all are empty) and the rows.
    pub fn write(&self, out: &mut dyn Write, style: &Style) -> io::Result<()> {
        let widths = self.widths(style.width);
        if self.columns.iter().any(|(title, _)| !title.is_empty()) {
            let titles: Vec<Cell> =
                self.columns.iter().map(|(title, _)| Cell::painted(*title, Paint::Dim)).collect();
            self.write_cells(out, style, &widths, &titles)?;
        }
        for row in &self.rows {
            match row {
                Row::Cells(cells) => self.write_cells(out, style, &widths, cells)?,
                Row::Note(column, note) => {
                    let before: usize = widths.iter().take(*column).map(|width| width + GAP).sum();
                    let indent = self.indent + before;
                    for line in text::wrap(note, style.width.saturating_sub(indent)) {
                        writeln!(out, "{:indent$}{}", "", style.dim(&line))?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Natural widths, with the last left-aligned column narrowed as far as needed.
    fn widths(&self, available: usize) -> Vec<usize> {
        let mut widths: Vec<usize> =
            self.columns.iter().map(|(title, _)| text::width(title)).collect();
        for row in &self.rows {
            let Row::Cells(cells) = row else { continue };
            for (width, cell) in widths.iter_mut().zip(cells) {
                *width = (*width).max(text::width(&cell.text));
            }
        }
        let gaps = GAP * widths.len().saturating_sub(1);
        let excess = (self.indent + gaps + widths.iter().sum::<usize>()).saturating_sub(available);
        if let Some(last) = self.columns.iter().rposition(|(_, align)| *align == Align::Left) {
            let narrow = NARROWEST.min(widths[last]);
            widths[last] = widths[last].saturating_sub(excess).max(narrow);
        }
        widths
    }

    fn write_cells(
        &self,
        out: &mut dyn Write,
        style: &Style,
        widths: &[usize],
        cells: &[Cell],
    ) -> io::Result<()> {
        let wrapped: Vec<Vec<String>> =
            cells.iter().zip(widths).map(|(cell, w)| text::wrap_hard(&cell.text, *w)).collect();
        let height = wrapped.iter().map(Vec::len).max().unwrap_or(0);
        for n in 0..height {
            let mut line = " ".repeat(self.indent);
            // Spaces are written only once something follows: no line ends in spaces.
            let mut pending = 0;
            for (column, lines) in wrapped.iter().enumerate() {
                let cell = lines.get(n).map_or("", String::as_str);
                let padding = widths[column] - text::width(cell);
                let right = self.columns[column].1 == Align::Right;
                if right {
                    pending += padding;
                }
                if !cell.is_empty() {
                    line.push_str(&" ".repeat(pending));
                    pending = 0;
                    line.push_str(&match cells[column].paint {
                        Some(paint) => style.paint(paint, cell),
                        None => cell.to_owned(),
                    });
                }
                pending += GAP + if right { 0 } else { padding };
            }
            writeln!(out, "{line}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(table: &Table, style: &Style) -> String {
        let mut out = Vec::new();
        table.write(&mut out, style).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn columns_are_aligned_and_no_line_ends_in_spaces() {
        let mut table =
            Table::new(1, &[("name", Align::Left), ("n", Align::Right), ("", Align::Left)]);
        table.row(["a".into(), "1,000".into(), "x".into()]);
        table.row(["longer".into(), "5".into(), "".into()]);
        table.note(1, "more");
        let expected = " name        n\n a       1,000  x\n longer      5\n         more\n";
        assert_eq!(written(&table, &Style::default()), expected);
    }

    #[test]
    fn a_wide_table_breaks_its_last_left_column() {
        let mut table = Table::new(0, &[("what", Align::Left), ("n", Align::Right)]);
        table.row(["word ".repeat(30).into(), "7".into()]);
        let text = written(&table, &Style { color: false, width: 60 });
        assert!(text.lines().all(|line| line.len() <= 60), "{text}");
        assert_eq!(text.matches("word").count(), 30);
    }

    #[test]
    fn cells_cannot_carry_escape_codes_and_colour_does_not_shift_columns() {
        let mut table = Table::new(0, &[("", Align::Left), ("", Align::Left)]);
        table.row([Cell::painted("a\x1b[2J", Paint::Red), "b".into()]);
        assert_eq!(written(&table, &Style::default()), "a\\x1b[2J  b\n");
        assert_eq!(
            written(&table, &Style { color: true, width: 80 }),
            "\x1b[31ma\\x1b[2J\x1b[0m  b\n"
        );
    }
}
