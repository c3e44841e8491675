//! Where output goes and how it looks there.
//!
//! All text that whylag writes passes through a [`Screen`]: no character reaches a terminal, or a
//! file that is shown on one, that could steer it. Newlines are the report's own: those in texts
//! from outside were escaped when they came in ([`model::outside`]).

use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, Stderr, Stdout, Write};
use std::os::fd::AsFd;

use model::outside::{is_unsafe, visible};
use report::Style;
use terminal_size::{Width, terminal_size_of};

/// Standard output, buffered, and the style for it.
pub fn stdout() -> (Screen<BufWriter<Stdout>>, Style) {
    let out = io::stdout();
    let style = Style::detect(columns(&out));
    (Screen::new(BufWriter::new(out), style.color), style)
}

/// Standard error, buffered, and the style for it. What cannot be written there is left out: that
/// nobody reads what whylag says (the terminal is gone, the log's disk is full) is no reason to end
/// a measurement or to lose it.
pub fn stderr() -> (Screen<BufWriter<Heedless>>, Style) {
    let out = io::stderr();
    let style = Style::detect(columns(&out));
    (Screen::new(BufWriter::new(Heedless(out)), style.color), style)
}

/// Those of a terminal; `None` if it is none, 0 if it does not say.
fn columns<F: AsFd + IsTerminal>(out: &F) -> Option<usize> {
    let columns = || terminal_size_of(out).map_or(0, |(Width(columns), _)| columns.into());
    out.is_terminal().then(columns)
}

/// Writes a line that begins with `whylag: ` to standard error, in one piece, or leaves it out.
/// Nothing else than that line can be in it.
pub fn tell(line: impl Display) {
    tell_plainly(format_args!("whylag: {line}"));
}

/// The same without that beginning.
pub fn tell_plainly(line: impl Display) {
    let line = line.to_string();
    let _ = io::stderr().lock().write_all(format!("{}\n", visible(&line)).as_bytes());
}

/// Standard error that takes all, and forgets what cannot be written.
pub struct Heedless(Stderr);

impl Write for Heedless {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = self.0.write_all(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let _ = self.0.flush();
        Ok(())
    }
}

/// Replaces what could steer a terminal by `?`, but newlines, tabs and whylag's own colours.
///
/// The second line of defence: texts from outside have their escapes by now. A `?` because it is
/// right in JSON, XML and CSV as well.
pub struct Screen<W: Write> {
    out: W,
    colors: bool,
    /// The beginning of a character whose end is still to come.
    pending: Vec<u8>,
}

impl<W: Write> Screen<W> {
    /// A screen before `out`; `colors`: the sequences that set colours pass.
    pub fn new(out: W, colors: bool) -> Screen<W> {
        Screen { out, colors, pending: Vec::new() }
    }

    fn put(&mut self, text: &str) -> io::Result<()> {
        let mut rest = text;
        while let Some(at) = rest.find(|c| is_unsafe(c) && c != '\n' && c != '\t') {
            self.out.write_all(&rest.as_bytes()[..at])?;
            rest = &rest[at..];
            let color = if self.colors { color_at_start(rest) } else { 0 };
            if color > 0 {
                self.out.write_all(&rest.as_bytes()[..color])?;
                rest = &rest[color..];
            } else {
                self.out.write_all(b"?")?;
                rest = &rest[rest.chars().next().map_or(0, char::len_utf8)..];
            }
        }
        self.out.write_all(rest.as_bytes())
    }
}

/// Length of the sequence `ESC [ numbers m` that the text begins with; 0 if it does not.
fn color_at_start(text: &str) -> usize {
    let Some(numbers) = text.strip_prefix("\x1b[") else { return 0 };
    let end = numbers.find(|c: char| !c.is_ascii_digit() && c != ';').unwrap_or(numbers.len());
    if numbers[end..].starts_with('m') { "\x1b[".len() + end + 1 } else { 0 }
}

impl<W: Write> Write for Screen<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let begun = std::mem::take(&mut self.pending);
        let joined = if begun.is_empty() { Vec::new() } else { [&begun, bytes].concat() };
        let mut rest = if begun.is_empty() { bytes } else { &joined };
        loop {
            match std::str::from_utf8(rest) {
                Ok(text) => {
                    self.put(text)?;
                    return Ok(bytes.len());
                }
                Err(error) => {
                    let (text, after) = rest.split_at(error.valid_up_to());
                    self.put(&String::from_utf8_lossy(text))?;
                    let Some(length) = error.error_len() else {
                        self.pending = after.to_vec();
                        return Ok(bytes.len());
                    };
                    self.out.write_all(b"?")?;
                    rest = &after[length..];
                }
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn screened(colors: bool, pieces: &[&[u8]]) -> String {
        let mut screen = Screen::new(Vec::new(), colors);
        pieces.iter().for_each(|piece| screen.write_all(piece).unwrap());
        String::from_utf8(screen.out).unwrap()
    }

    #[test]
    fn only_colours_pass_and_only_where_there_are_any() {
        let text = "\x1b[31mred\x1b[0m\x1b[2J\x1b]0;x\x07 \u{9b}1m\u{202e}\r\n\tµ".as_bytes();
        assert_eq!(screened(true, &[text]), "\x1b[31mred\x1b[0m?[2J?]0;x? ?1m??\n\tµ");
        assert_eq!(screened(false, &[text]), "?[31mred?[0m?[2J?]0;x? ?1m??\n\tµ");
    }

    #[test]
    fn a_character_may_come_in_pieces() {
        let text = "a\u{202e}▊".as_bytes();
        let bytes: Vec<&[u8]> = text.chunks(1).collect();
        assert_eq!(screened(false, &bytes), "a?▊");
        assert_eq!(screened(false, &[b"a\xff", b"b\xe2\x80", b"\xaec"]), "a?b?c");
    }
}
