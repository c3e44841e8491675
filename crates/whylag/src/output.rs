//! Where output goes and how it looks there.

use std::io::{self, BufWriter, IsTerminal, Write};

use report::Style;

/// Standard output, buffered, and the style for it.
pub fn stdout() -> (impl Write, Style) {
    let style = Style::detect(io::stdout().is_terminal());
    (BufWriter::new(io::stdout().lock()), style)
}

/// Standard error, buffered, and the style for it.
pub fn stderr() -> (impl Write, Style) {
    let style = Style::detect(io::stderr().is_terminal());
    (BufWriter::new(io::stderr().lock()), style)
}
