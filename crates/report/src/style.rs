//! Colour and width, decided by the caller.

use std::ffi::OsStr;

use crate::Class;

/// Width of the lines when nothing else is known.
pub const DEFAULT_WIDTH: usize = 80;

/// Narrower terminals get lines of this width.
const NARROWEST: usize = 60;

/// Wider terminals get lines of this width: longer ones are hard to follow with the eye.
const WIDEST: usize = 160;

/// How to write for one terminal or file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Write ANSI escape codes.
    pub color: bool,
    /// Columns that a line may use.
    pub width: usize,
}

impl Default for Style {
    /// For a file or pipe: no colour, 80 columns.
    fn default() -> Self {
        Style { color: false, width: DEFAULT_WIDTH }
    }
}

/// What a piece of text is, which decides how it is painted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Paint {
    Bold,
    Dim,
    Red,
    Yellow,
    Green,
    Cyan,
    /// The colour that the accounts of a class have everywhere.
    Account(Class),
}

impl Style {
    /// `terminal`: the columns of the terminal that is written to, `None` if it is none. Colour on
    /// a terminal if NO_COLOR is unset or empty; the width of COLUMNS if it is a number, else that
    /// of the terminal, kept within 60 to 160, else 80.
    pub fn detect(terminal: Option<usize>) -> Style {
        let no_color = std::env::var_os("NO_COLOR");
        let columns = std::env::var_os("COLUMNS");
        Style::from_environment(terminal, no_color.as_deref(), columns.as_deref())
    }

    fn from_environment(
        terminal: Option<usize>,
        no_color: Option<&OsStr>,
        columns: Option<&OsStr>,
    ) -> Style {
        let columns = columns.and_then(OsStr::to_str).and_then(|text| text.parse::<usize>().ok());
        // A serial line says that it has none.
        let columns = columns.or(terminal).filter(|columns| *columns > 0);
        Style {
            color: terminal.is_some() && no_color.is_none_or(OsStr::is_empty),
            width: columns.map_or(DEFAULT_WIDTH, |columns| columns.clamp(NARROWEST, WIDEST)),
        }
    }

    /// `text` in the given paint; unchanged without colour.
    pub(crate) fn paint(&self, paint: Paint, text: &str) -> String {
        if !self.color || text.is_empty() {
            return text.to_owned();
        }
        let code = match paint {
            Paint::Bold => 1,
            Paint::Dim => 2,
            Paint::Red => 31,
            Paint::Yellow => 33,
            Paint::Green => 32,
            Paint::Cyan => 36,
            Paint::Account(class) => {
                return format!("\x1b[38;5;{}m{text}\x1b[0m", class.of_terminal());
            }
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }

    /// `text` in bold.
    pub(crate) fn bold(&self, text: &str) -> String {
        self.paint(Paint::Bold, text)
    }

    /// `text` dimmed.
    pub(crate) fn dim(&self, text: &str) -> String {
        self.paint(Paint::Dim, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn style(terminal: Option<usize>, no_color: Option<&str>, columns: Option<&str>) -> Style {
        Style::from_environment(terminal, no_color.map(OsStr::new), columns.map(OsStr::new))
    }

    #[test]
    fn colour_needs_a_terminal_and_no_color_unset_or_empty() {
        assert!(style(Some(80), None, None).color);
        assert!(style(Some(0), Some(""), None).color);
        assert!(!style(Some(80), Some("1"), None).color);
        assert!(!style(None, None, Some("80")).color);
    }

    #[test]
    fn width_is_that_of_the_terminal_within_reason() {
        assert_eq!(style(None, None, None).width, 80);
        assert_eq!(style(Some(123), None, None).width, 123);
        assert_eq!(style(Some(0), None, None).width, 80);
        assert_eq!(style(Some(123), None, Some("100")).width, 100);
        assert_eq!(style(Some(123), None, Some("wide")).width, 123);
        assert_eq!(style(None, None, Some("3")).width, NARROWEST);
        assert_eq!(style(Some(999), None, None).width, WIDEST);
    }

    #[test]
    fn paint_does_nothing_without_colour() {
        assert_eq!(Style::default().bold("x"), "x");
        assert_eq!(Style { color: true, width: 80 }.bold("x"), "\x1b[1mx\x1b[0m");
    }
}
