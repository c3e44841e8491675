//! The environment of a program, secrets left out by the rule of [`crate::secrets`].

use std::ffi::OsString;

use model::Fact;

use crate::read::{bytes_of_memory, fact, unknown};
use crate::secrets::without_secret;

/// `env.NAME` for each variable, by name.
pub fn of_command(environment: &[(OsString, OsString)]) -> Vec<Fact> {
    let texts =
        environment.iter().map(|(name, value)| (name.to_string_lossy(), value.to_string_lossy()));
    let mut facts: Vec<_> =
        texts.map(|(name, value)| variable(&name, &value, "environment of the command")).collect();
    facts.sort_by(|a, b| a.name.cmp(&b.name));
    facts
}

/// The same for a live process, as it was when the process was started.
pub fn of_process(pid: u32) -> Vec<Fact> {
    let path = format!("/proc/{pid}/environ");
    let environment = match bytes_of_memory(pid, path.clone()) {
        Ok(environment) => environment,
        Err(reason) => return vec![unknown("env", reason, path)],
    };
    let mut facts = Vec::new();
    for entry in environment.split(|byte| *byte == 0) {
        // A process may have written something else over its environment, such as a title.
        if let Some((name, value)) = String::from_utf8_lossy(entry).split_once('=') {
            facts.push(variable(name, value, &path));
        }
    }
    facts.sort_by(|a, b| a.name.cmp(&b.name));
    facts
}

fn variable(name: &str, value: &str, source: &str) -> Fact {
    fact(&format!("env.{name}"), without_secret(name, value), source)
}
