//! `name=value`, `"name": "value"`, `name: value`, `--name value`, with the name of a secret.

use std::ops::Range;

use super::is_secret_name;

/// What a name has to contain in free text, without `_`, `-` and `.`.
const NAMES: [&str; 17] = [
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "PWD",
    "SECRET",
    "TOKEN",
    "CREDENTIAL",
    "COOKIE",
    "JWT",
    "APIKEY",
    "ACCESSKEY",
    "PRIVATEKEY",
    "SIGNINGKEY",
    "ENCRYPTIONKEY",
    "AUTHORIZATION",
    "SESSIONID",
    "DSN",
];

/// True for an option after which a secret follows: `--password`, `-pass`.
pub(super) fn is_secret_option(option: &str) -> bool {
    let name = option.trim_start_matches('-');
    is_name(name) || name.eq_ignore_ascii_case("pass")
}

fn is_name(name: &str) -> bool {
    let bare: String = name.chars().filter(|c| !matches!(c, '_' | '-' | '.')).collect();
    let bare = bare.to_ascii_uppercase();
    let is_directory = bare == "PWD" || bare == "OLDPWD";
    !is_directory && NAMES.iter().any(|part| bare.contains(part))
}

/// True if anything is assigned to a name that could be that of a secret in an environment.
pub(super) fn any(text: &str) -> bool {
    first_of(text, 0, is_secret_name).is_some()
}

/// What is assigned to names of secrets.
pub(super) fn all(text: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    while let Some(next) = first_of(text, found.last().map_or(0, |last| last.end), is_name) {
        found.push(next);
    }
    found
}

fn first_of(text: &str, from: usize, is_name: fn(&str) -> bool) -> Option<Range<usize>> {
    let in_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let mut at = from;
    while let Some(found) = text[at..].find(in_word) {
        let start = at + found;
        let rest = &text[start..];
        let end = start + rest.find(|c| !in_word(c)).unwrap_or(rest.len());
        let word = &text[start..end];
        at = end;
        let Some(value) = assigned_after(word, text, end) else { continue };
        if is_name(word) && value < text.len() {
            let value = value..end_of_value(word, text, value);
            if !value.is_empty() {
                return Some(value);
            }
        }
    }
    None
}

/// Where the value of a name begins that ends at `end`; `None` if nothing is assigned to it.
fn assigned_after(word: &str, text: &str, end: usize) -> Option<usize> {
    let after = &text[end..];
    let spaced = after.trim_start_matches(['"', '\'', '\\']);
    let is_quoted = spaced.len() < after.len();
    let next = spaced.trim_start();
    let is_assigned = next.starts_with('=')
        || (next.starts_with(':') && (is_quoted || next[1..].starts_with(' ')));
    let value = if is_assigned {
        next[1..].trim_start()
    } else if word.starts_with('-') && after.starts_with(' ') {
        after.trim_start()
    } else {
        return None;
    };
    let value = value.trim_start_matches(['"', '\'', '\\']);
    Some(text.len() - value.len())
}

/// A header has all of its line.
fn end_of_value(name: &str, text: &str, start: usize) -> usize {
    let is_header = name.to_ascii_uppercase().ends_with("AUTHORIZATION");
    let ends: &[char] = if is_header {
        &['\n', '"', '\'']
    } else {
        &[' ', '\n', '\t', '&', ';', ',', '"', '\'', '\\', '}']
    };
    text[start..].find(ends).map_or(text.len(), |length| start + length)
}

/// The tokens after `Bearer`.
pub(super) fn after_bearer(text: &str) -> Vec<Range<usize>> {
    const BEARER: &[u8] = b"bearer ";
    const SHORTEST: usize = 16;
    let mut found: Vec<Range<usize>> = Vec::new();
    for (at, word) in text.as_bytes().windows(BEARER.len()).enumerate() {
        let start = at + BEARER.len();
        let is_behind = found.last().is_none_or(|last| last.end <= at);
        if !is_behind || !word.eq_ignore_ascii_case(BEARER) {
            continue;
        }
        let length = text[start..].find([' ', '"', '\'', '\n']).unwrap_or(text.len() - start);
        if length >= SHORTEST {
            found.push(start..start + length);
        }
    }
    found
}
