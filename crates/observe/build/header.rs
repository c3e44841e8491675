//! The enums, the constants and the names of the structs of a C header in Rust.
//!
//! It relies on the style of bpf/wire.h: enums have a name, their enumerators share a prefix up to
//! an underscore, a value is a number or the one after the enumerator before, and one that ends in
//! `_MAX` counts the others. `ACCT_MMAP_LOCK_READ` of `enum account` becomes
//! `Account::MmapLockRead`. An enum that it does not understand is an error.

use std::fmt::Write;

/// One enum.
struct Enum<'a> {
    name: &'a str,
    /// Name without the prefix, and number.
    members: Vec<(&'a str, u64)>,
}

/// All enums as Rust enums, all constants that are numbers as `u64`.
pub fn in_rust(header: &str) -> Result<String, String> {
    let header = without_comments(header)?;
    let mut rust = String::new();
    for (name, value) in constants(&header) {
        rust += &format!("pub const {name}: u64 = {value};\n");
    }
    for part in header.split("enum ").skip(1) {
        // A use of an enum has no body.
        let Some((name, body)) = part.split_once('{').filter(|(name, _)| is_name(name.trim()))
        else {
            continue;
        };
        let name = name.trim();
        let (body, _) = body.split_once('}').ok_or_else(|| format!("enum {name} has no end"))?;
        let members = members(body).map_err(|error| format!("enum {name}: {error}"))?;
        write(&mut rust, &Enum { name, members });
    }
    Ok(rust)
}

/// The names of all structs, each of which has to consist of integers, so that any bytes are a valid
/// value of it.
pub fn structs_of_integers(header: &str) -> Result<Vec<String>, String> {
    let header = without_comments(header)?;
    let mut structs: Vec<String> = Vec::new();
    for part in header.split("\nstruct ").skip(1) {
        let (name, rest) = part.split_once('{').ok_or("a struct has no body")?;
        let (body, _) = rest.split_once('}').ok_or("a struct has no end")?;
        let name = name.trim();
        for field in body.split(';').map(str::trim).filter(|field| !field.is_empty()) {
            let words: Vec<_> = field.split_whitespace().collect();
            let known = match words[..] {
                ["struct", of, ..] => structs.iter().any(|known| known == of),
                [kind, ..] => INTEGERS.contains(&kind),
                [] => true,
            };
            // Outside of the size of an array an asterisk makes a pointer.
            let pointer = field
                .split('[')
                .any(|part| part.rsplit_once(']').map_or(part, |(_, behind)| behind).contains('*'));
            if !known || pointer {
                return Err(format!("struct {name}: '{field}' is no integer"));
            }
        }
        structs.push(name.to_owned());
    }
    Ok(structs)
}

const INTEGERS: [&str; 9] = ["u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "char"];

fn without_comments(header: &str) -> Result<String, String> {
    let mut parts = header.split("/*");
    let mut code = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (_, rest) = part.split_once("*/").ok_or("a comment has no end")?;
        code += rest;
    }
    Ok(code)
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// `#define NAME number`.
fn constants(header: &str) -> impl Iterator<Item = (&str, u64)> {
    header.lines().filter_map(|line| {
        let mut words = line.strip_prefix("#define ")?.split_whitespace();
        Some((words.next()?, number(words.next()?)?))
    })
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Enumerators without their prefix, with their numbers.
fn members(body: &str) -> Result<Vec<(&str, u64)>, String> {
    let mut members: Vec<(&str, u64)> = Vec::new();
    for item in body.split(',').map(str::trim).filter(|item| !item.is_empty()) {
        let (name, value) = match item.split_once('=') {
            None => (item, members.last().map_or(0, |(_, before)| before + 1)),
            Some((name, value)) => {
                let value = number(value.trim()).ok_or_else(|| format!("'{item}' is no number"))?;
                (name.trim(), value)
            }
        };
        if !is_name(name) || members.iter().any(|(_, known)| *known == value) {
            return Err(format!("'{item}' is not understood, or its number is taken"));
        }
        members.push((name, value));
    }
    members.pop_if(|(name, _)| name.ends_with("_MAX"));
    let prefix = prefix(&members).ok_or("its names have no common prefix")?;
    Ok(members.into_iter().map(|(name, value)| (&name[prefix..], value)).collect())
}

/// Length of what all names begin with, up to an underscore.
fn prefix(members: &[(&str, u64)]) -> Option<usize> {
    let (first, _) = members.first()?;
    let ends = first.match_indices('_').map(|(at, _)| at + 1);
    ends.rev().find(|end| members.iter().all(|(name, _)| name.starts_with(&first[..*end])))
}

/// `mmap_lock` and `MMAP_LOCK` become `MmapLock`.
fn camel(name: &str) -> String {
    let word = |word: &str| {
        let (first, rest) = word.split_at(word.len().min(1));
        first.to_uppercase() + &rest.to_lowercase()
    };
    name.split('_').map(word).collect()
}

fn write(rust: &mut String, Enum { name, members }: &Enum) {
    let camel_name = camel(name);
    let mut variants = String::new();
    let mut all = String::new();
    let (mut of, mut names) = (String::new(), String::new());
    for (member, number) in members {
        let variant = camel(member);
        let lower = member.to_lowercase();
        // Writing to a string does not fail.
        let _ = writeln!(variants, "    {variant} = {number},");
        let _ = write!(all, "{camel_name}::{variant}, ");
        let _ = writeln!(of, "            {number} => {camel_name}::{variant},");
        let _ = writeln!(names, "            {camel_name}::{variant} => \"{lower}\",");
    }
    let count = members.len();
    *rust += &format!(
        "/// `enum {name}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum {camel_name} {{
{variants}}}

impl {camel_name} {{
    /// In the order of the header.
    pub const ALL: [{camel_name}; {count}] = [{all}];

    /// The one with this number, if there is one.
    pub fn of(number: impl Into<u64>) -> Option<{camel_name}> {{
        Some(match number.into() {{
{of}            _ => return None,
        }})
    }}

    /// As in the header, without the prefix and in small letters.
    pub fn name(self) -> &'static str {{
        match self {{
{names}        }}
    }}
}}
"
    );
}
