//! The `key=value` pairs in which a program says what it measured itself.

use std::collections::HashMap;

/// Whole numbers by key; nanoseconds unless the key says otherwise.
pub struct Values(HashMap<String, u64>);

impl Values {
    /// Every `key=number` in `text`, whatever stands around them.
    pub fn of(text: &str) -> Values {
        let pairs = text.split_ascii_whitespace().filter_map(|word| word.split_once('='));
        Values(pairs.filter_map(|(key, n)| Some((key.to_owned(), n.parse().ok()?))).collect())
    }

    #[track_caller]
    pub fn get(&self, key: &str) -> u64 {
        *self.0.get(key).unwrap_or_else(|| panic!("the program did not print {key}: {:?}", self.0))
    }

    pub fn keys_after<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, u64)> {
        self.0.iter().filter_map(move |(key, n)| Some((key.strip_prefix(prefix)?, *n)))
    }
}
