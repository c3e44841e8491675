//! Names of functions as they stand in the source.

use std::fmt::{self, Write};

use cpp_demangle::{DemangleOptions, Symbol};

/// A longer name is cut, bytes. Names that refer to parts of themselves can stand for gigabytes.
const LONGEST: usize = 1024;

/// The name that a compiler of Rust or C++ made this symbol of; else the symbol itself.
pub fn demangle(symbol: &str) -> String {
    let mut text = Text::default();
    let is_known = match rustc_demangle::try_demangle(symbol) {
        Ok(name) => {
            // Writing stops where there is no room.
            let _ = write!(text, "{name:#}");
            true
        }
        Err(_) => Symbol::new(symbol).is_ok_and(|name| {
            let written = name.structured_demangle(&mut text, &DemangleOptions::new());
            written.is_ok() || text.is_cut
        }),
    };
    if !is_known {
        text = Text::default();
        let _ = text.write_str(symbol);
    }
    if text.is_cut {
        text.name.push_str("...");
    }
    text.name
}

/// Text of bounded length.
#[derive(Default)]
struct Text {
    name: String,
    is_cut: bool,
}

impl Write for Text {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let mut room = part.len().min(LONGEST - self.name.len());
        while !part.is_char_boundary(room) {
            room -= 1;
        }
        self.name.push_str(&part[..room]);
        if room < part.len() {
            self.is_cut = true;
            return Err(fmt::Error);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_rust_and_cpp() {
        assert_eq!(demangle("main"), "main");
        assert_eq!(
            demangle("_ZNSt6vectorIiSaIiEE9push_backEOi").split('<').next(),
            Some("std::vector")
        );
        assert_eq!(demangle("_RNvC6_123foo3bar"), "123foo::bar");
        assert_eq!(
            demangle("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE"),
            "core::fmt::Formatter::pad"
        );
    }

    /// Each argument names the one before twice: 2^40 words.
    #[test]
    fn a_name_that_doubles_itself_is_cut() {
        let mut symbol = "_Z1fI1aE".to_owned();
        let mut bomb = "_Z1f".to_owned();
        bomb.push_str("1aIiE");
        for n in 0..40 {
            let before = match n {
                0 => "S_".to_owned(),
                n => {
                    format!("S{}_", char::from_digit(n - 1, 36).unwrap_or('Z').to_ascii_uppercase())
                }
            };
            bomb.push_str(&format!("1bI{before}{before}E"));
        }
        symbol.push_str(&bomb);
        for hostile in [symbol, bomb, "x".repeat(5000), format!("_Z{}", "N".repeat(4000))] {
            let name = demangle(&hostile);
            assert!(name.len() <= LONGEST + 3, "{}", name.len());
        }
        let long = demangle(&"é".repeat(3000));
        assert!(long.ends_with("é...") && long.len() <= LONGEST + 3, "{}", long.len());
    }
}
