//! Text that came from outside: names, paths, command lines, environments, labels. Whoever runs a
//! program decides what is in them.
//!
//! [`visible`] is the one rule: a character that could steer a terminal, break a line, or show a
//! text in another order than it has is replaced by its escape (`\n`, `\x1b`, `\u{202e}`).
//! [`shown`] applies it to every text of a value, so no field of any type can be forgotten: the
//! store does so with all that it gives out, the verbs with what they read elsewhere.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::ser::{CharEscape, CompactFormatter, Formatter};

/// True if the character must not reach a reader as it is: controls (C0, DEL, C1), separators of
/// lines, and format characters that are not seen or change the order of others. Those are the
/// general categories Cc, Cf, Zl and Zp of Unicode 16, and the Hangul fillers, which are blank.
pub fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}'
            | '\u{890}'..='\u{891}' | '\u{8e2}' | '\u{115f}'..='\u{1160}' | '\u{180e}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{110bd}'
            | '\u{110cd}' | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e007f}')
}

/// The text with every unsafe character as its escape.
pub fn visible(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| (b' '..0x7f).contains(&byte)) || !text.contains(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\n' => escaped.push_str("\\n"),
            '\r' => escaped.push_str("\\r"),
            '\t' => escaped.push_str("\\t"),
            c if is_unsafe(c) && u32::from(c) < 0x80 => {
                let _ = write!(escaped, "\\x{:02x}", u32::from(c));
            }
            c if is_unsafe(c) => {
                let _ = write!(escaped, "\\u{{{:x}}}", u32::from(c));
            }
            c => escaped.push(c),
        }
    }
    Cow::Owned(escaped)
}

/// At most `longest` characters of a text, and how long it was if that is not all.
pub fn brief(text: &str, longest: usize) -> Cow<'_, str> {
    match text.char_indices().nth(longest) {
        None => Cow::Borrowed(text),
        Some((end, _)) => {
            let all = crate::units::bytes(text.len() as u64);
            Cow::Owned(format!("{}... ({all} in all)", &text[..end]))
        }
    }
}

/// The value with every text in it [`visible`]. One without unsafe characters, as nearly all are,
/// is given back as it is, for the cost of writing it as JSON to nowhere.
///
/// # Errors
/// If the value cannot be taken through JSON.
pub fn shown<T: Serialize + DeserializeOwned>(value: T) -> serde_json::Result<T> {
    let mut search = Search { found: false };
    let mut serializer = serde_json::Serializer::with_formatter(io::sink(), &mut search);
    value.serialize(&mut serializer)?;
    if !search.found {
        return Ok(value);
    }
    let mut tree = serde_json::to_value(&value)?;
    escape(&mut tree);
    serde_json::from_value(tree)
}

fn escape(tree: &mut Value) {
    match tree {
        Value::String(text) => {
            if let Cow::Owned(escaped) = visible(text) {
                *text = escaped;
            }
        }
        Value::Array(values) => values.iter_mut().for_each(escape),
        Value::Object(fields) => {
            let all = std::mem::take(fields);
            fields.extend(all.into_iter().map(|(name, mut value)| {
                escape(&mut value);
                (visible(&name).into_owned(), value)
            }));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Looks for unsafe characters in the texts of JSON, and writes nothing.
struct Search {
    found: bool,
}

macro_rules! write_nothing {
    ($($write:ident: $number:ty),*) => {
        $(fn $write<W: ?Sized + Write>(&mut self, _: &mut W, _: $number) -> io::Result<()> {
            Ok(())
        })*
    };
}

impl Formatter for &mut Search {
    // Most of a run is numbers, and to write them is most of the cost.
    write_nothing!(write_u8: u8, write_u16: u16, write_u32: u32, write_u64: u64, write_i8: i8,
                   write_i16: i16, write_i32: i32, write_i64: i64, write_f32: f32, write_f64: f64);

    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        _: &mut W,
        part: &str,
    ) -> io::Result<()> {
        self.found |= (!part.is_ascii() && part.contains(is_unsafe)) || part.contains('\x7f');
        Ok(())
    }

    fn write_char_escape<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        escape: CharEscape,
    ) -> io::Result<()> {
        self.found |=
            !matches!(escape, CharEscape::Quote | CharEscape::ReverseSolidus | CharEscape::Solidus);
        CompactFormatter.write_char_escape(writer, escape)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fact, Metric, Target};
    use std::collections::BTreeMap;

    const HOSTILE: &str = "a\x1b[2J\nb\r\tc\u{9b}\u{202e}d\u{7f}\u{200b}\u{2028}e";

    #[test]
    fn what_steers_a_terminal_is_escaped_and_the_rest_stays() {
        let escaped = r"a\x1b[2J\nb\r\tc\u{9b}\u{202e}d\x7f\u{200b}\u{2028}e";
        assert_eq!(visible(HOSTILE), escaped);
        assert_eq!(visible(escaped), escaped, "once is enough");
        for text in ["", "rwsem<-vfs\\x2d", "größe: 1 µs", "数据库", "▊ → ~"] {
            assert!(matches!(visible(text), Cow::Borrowed(same) if same == text));
        }
    }

    #[test]
    fn every_text_of_a_value_is_escaped() {
        let evil = || HOSTILE.to_owned();
        let fact = Fact { name: evil(), value: evil(), source: String::new() };
        let value = (
            vec![fact],
            Target::Command(vec![evil()]),
            BTreeMap::from([(evil(), 0.1f64)]),
            Metric::Lock(evil()),
            u64::MAX,
        );
        let (facts, target, map, metric, number) = shown(value).unwrap();
        let escaped = visible(HOSTILE).into_owned();
        assert_eq!((&facts[0].name, &facts[0].value), (&escaped, &escaped));
        assert_eq!(target, Target::Command(vec![escaped.clone()]));
        assert_eq!(map, BTreeMap::from([(escaped.clone(), 0.1)]));
        assert_eq!(metric, Metric::Lock(escaped));
        assert_eq!(number, u64::MAX);
        // Each kind alone is found.
        for c in HOSTILE.chars().filter(|c| is_unsafe(*c)) {
            assert_ne!(shown(c.to_string()).unwrap(), c.to_string(), "{c:?}");
        }
    }

    #[test]
    fn a_long_text_is_cut_and_says_how_long_it_was() {
        assert_eq!(brief("µµµ", 3), "µµµ");
        assert_eq!(brief(&"µ".repeat(1_000_000), 2), "µµ... (1.91 MiB in all)");
    }
}
