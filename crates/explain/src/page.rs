//! The page of a cause, as Markdown: docs/causes/ID.md, and `whylag explain --cause ID`.
//!
//! What it is, its evidence and how to see it without whylag stand in the comment of the cause's
//! file (build.rs takes it); the look-alikes, the fix and a way to reproduce it in its `CAUSE`.

use std::fmt::Write;

use crate::catalogue::look_alikes;
use crate::cause::Cause;
use crate::judge::why_not::{UnknownCause, known};

include!(concat!(env!("OUT_DIR"), "/comments.rs"));

/// The page of the cause `id`.
///
/// # Errors
/// If the catalogue has no such cause.
pub fn page(id: &str) -> Result<String, UnknownCause> {
    Ok(of_cause(known(id)?))
}

fn of_cause(cause: &Cause) -> String {
    let comment =
        COMMENTS.iter().find(|(id, _)| *id == cause.id.as_str()).map_or("", |(_, text)| text);
    let prefix = format!("{}: ", cause.id);
    let comment = sentence(comment.strip_prefix(&prefix).unwrap_or(comment));
    let mut page = format!("# {}\n\n{}\n", cause.id, comment.replace("\n# ", "\n## "));
    section(&mut page, "Look-alikes", &others(cause));
    section(&mut page, "Fix", cause.fix);
    section(&mut page, "Reproduce", &format!("    {}", cause.reproduce));
    page
}

/// With a capital letter, unless it begins with the name of a function: `write() to ...`.
fn sentence(text: &str) -> String {
    let is_word = text.split_whitespace().next().is_some_and(|w| !w.contains(['(', '_', '.']));
    let mut letters = text.chars();
    match letters.next() {
        Some(first) if is_word => first.to_uppercase().chain(letters).collect(),
        _ => text.to_owned(),
    }
}

fn section(page: &mut String, heading: &str, text: &str) {
    if !text.is_empty() {
        // Writing to a String cannot fail.
        let _ = write!(page, "\n## {heading}\n\n{text}\n");
    }
}

fn others(cause: &Cause) -> String {
    let lines = look_alikes(cause).map(|(other, tell_apart)| {
        format!("- [{other}]({other}.md). To tell them apart, {tell_apart}.")
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::ALL;

    #[test]
    fn every_cause_has_a_comment_that_begins_with_its_name() {
        assert_eq!(COMMENTS.len(), ALL.len());
        for cause in ALL {
            let comment = COMMENTS.iter().find(|(id, _)| *id == cause.id.as_str()).unwrap().1;
            assert!(comment.starts_with(&format!("{}: ", cause.id)), "{comment}");
        }
    }

    #[test]
    fn a_page_has_what_is_needed_to_act() {
        let text = page("mmap-lock").unwrap();
        assert!(text.starts_with("# mmap-lock\n\nThreads of one process"), "{text}");
        for heading in ["## Look-alikes", "## Fix", "## Reproduce"] {
            assert!(text.contains(heading), "{text}");
        }
        assert!(page("mmaplock").is_err());
    }
}
