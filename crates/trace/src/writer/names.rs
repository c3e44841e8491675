//! The table of names: appended to, at set-up only.

use std::sync::{Mutex, PoisonError};

use super::area::Area;
use crate::Error;
use crate::layout::{NAME_BYTES, Name};

/// The names so far, in the order of their ids.
#[derive(Default)]
pub(crate) struct Names(Mutex<Vec<String>>);

impl Names {
    /// The id of a name, which is appended if it is new.
    pub fn id(&self, area: &Area, text: &str) -> Result<u32, Error> {
        if text.is_empty() || text.len() > NAME_BYTES || text.chars().any(char::is_control) {
            return Err(Error::Name(text.to_owned()));
        }
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = names.iter().position(|name| name == text) {
            return Ok(index as u32 + 1);
        }
        let Some(entry) = area.names().get(names.len()) else {
            area.header().dropped_others.add_shared(1);
            return Err(Error::Full { what: "names", most: names.len() });
        };
        names.push(text.to_owned());
        let id = names.len() as u32;
        write(entry, text, id);
        Ok(id)
    }
}

fn write(entry: &Name, text: &str, id: u32) {
    let mut bytes = [0; NAME_BYTES];
    bytes[..text.len()].copy_from_slice(text.as_bytes());
    for (word, piece) in entry.text.iter().zip(bytes.as_chunks::<8>().0) {
        word.store_relaxed(u64::from_le_bytes(*piece));
    }
    entry.length.store_relaxed(text.len() as u32);
    entry.id.store_release(id);
}
