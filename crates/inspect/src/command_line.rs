//! A command line as it is shown and stored.

use std::borrow::Cow;
use std::ffi::OsString;

use model::units::bytes;

use crate::secrets::masked_words;

/// So much of a command line is kept, bytes. The kernel takes megabytes of arguments.
const LONGEST: usize = 4096;

/// Secrets are looked for in so much of it: one that begins in what is kept is whole here.
const LOOKED_AT: usize = 64 << 10;

/// The words, secrets left out unless they are to be kept, and what is beyond 4 KiB cut off: then
/// the last word says so.
pub fn to_store(words: &[OsString], keep_secrets: bool) -> Vec<String> {
    let all: usize = words.iter().map(|word| word.len() + 1).sum();
    let some = first_bytes(words.iter().map(|word| word.to_string_lossy()), LOOKED_AT);
    let some = if keep_secrets { some } else { masked_words(&some) };
    let mut kept = first_bytes(some.iter().map(|word| Cow::Borrowed(word.as_str())), LONGEST);
    if kept != some || all > LOOKED_AT {
        kept.push(format!("... ({} in all)", bytes(all as u64)));
    }
    kept
}

/// The words as far as there is room, the last one cut.
fn first_bytes<'w>(words: impl Iterator<Item = Cow<'w, str>>, mut room: usize) -> Vec<String> {
    let mut kept = Vec::new();
    for word in words {
        if word.len() < room {
            room -= word.len() + 1;
            kept.push(word.into_owned());
            continue;
        }
        let beginning = beginning(&word, room);
        if !beginning.is_empty() {
            kept.push(beginning.to_owned());
        }
        break;
    }
    kept
}

/// So many bytes of a text at most, cut where a character begins.
pub(crate) fn beginning(text: &str, most: usize) -> &str {
    let mut ends = (0..=most.min(text.len())).rev();
    let end = ends.find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(words: &[&str], keep: bool) -> Vec<String> {
        to_store(&words.iter().map(OsString::from).collect::<Vec<_>>(), keep)
    }

    #[test]
    fn secrets_are_left_out_unless_asked_for() {
        let words = ["mysql", "--password", "hunter2"];
        assert_eq!(stored(&words, false), ["mysql", "--password", "***"]);
        assert_eq!(stored(&words, true), words);
    }

    #[test]
    fn a_long_one_is_cut_and_says_so() {
        let long = "µ".repeat(800_000);
        for words in [&["echo", long.as_str()][..], &vec!["word"; 320_000]] {
            let kept = stored(words, false);
            let length: usize = kept.iter().map(|word| word.len() + 1).sum();
            assert!(length <= LONGEST + 40, "{length}");
            assert!(kept.last().unwrap().ends_with(" MiB in all)"), "{:?}", kept.last());
        }
        assert_eq!(stored(&["a", "", "b"], false), ["a", "", "b"]);
    }
}
