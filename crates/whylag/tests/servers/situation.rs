//! What a situation is, and its truth.

use serde::{Deserialize, Serialize};

use crate::process::{command, find};
use crate::stage::Stage;

/// One server, its load, and its fault if it has one.
pub struct Situation {
    /// The same as its file.
    pub name: &'static str,
    pub software: &'static str,
    /// Prints the version of the software.
    pub version: &'static [&'static str],
    /// Other programs that it needs.
    pub needs: &'static [&'static str],
    /// What goes on.
    pub what: &'static str,
    /// What it may be called by the pages of the catalogue, and why; nothing of a healthy server.
    /// Written before any answer was seen.
    pub accepted: &'static [(&'static str, &'static str)],
    /// Starts server and load, records, and asks the software what happened.
    pub play: fn(&mut Stage) -> Truth,
}

impl Situation {
    pub fn is_healthy(&self) -> bool {
        self.accepted.is_empty()
    }

    /// The first program that is not there.
    pub fn missing(&self) -> Option<&'static str> {
        let mut programs = self.version[..1].iter().chain(self.needs);
        programs.find(|program| find(program).is_none()).copied()
    }

    /// As the software says it.
    pub fn version(&self) -> String {
        let output = command(self.version).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        let is_number = |word: &&str| word.contains('.') && word.starts_with(char::is_numeric);
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '.');
        let words = words.map(|word| word.trim_start_matches("go").trim_start_matches('v'));
        words.into_iter().find(is_number).unwrap_or("?").to_owned()
    }
}

/// What the software itself says of what happened.
#[derive(Serialize, Deserialize)]
pub struct Truth {
    /// Who waits, for what, who holds it, what the holder did; of a healthy server how it did.
    pub text: String,
    /// Seconds that were lost, by the software's own figures; 0 of a healthy server.
    pub lost_s: f64,
}

impl Truth {
    pub fn healthy(text: String) -> Truth {
        Truth { text, lost_s: 0.0 }
    }
}
