//! Where output goes and how it looks there.

use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, Write};

use report::Style;

/// Standard output, buffered, and the style for it.
pub fn stdout() -> (impl Write, Style) {
    let style = Style::detect(io::stdout().is_terminal());
    (BufWriter::new(io::stdout().lock()), style)
}

/// Standard error, buffered, and the style for it. What cannot be written there is left out: that
/// nobody reads what whylag says (the terminal is gone, the log's disk is full) is no reason to end
/// a measurement or to lose it.
pub fn stderr() -> (impl Write, Style) {
    let style = Style::detect(io::stderr().is_terminal());
    (BufWriter::new(Heedless(io::stderr().lock())), style)
}

/// Writes a line that begins with `whylag: ` to standard error, in one piece, or leaves it out.
pub fn tell(line: impl Display) {
    tell_plainly(format_args!("whylag: {line}"));
}

/// The same without that beginning.
pub fn tell_plainly(line: impl Display) {
    let _ = io::stderr().lock().write_all(format!("{line}\n").as_bytes());
}

/// Takes all, and forgets what cannot be written.
struct Heedless<W>(W);

impl<W: Write> Write for Heedless<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = self.0.write_all(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let _ = self.0.flush();
        Ok(())
    }
}
