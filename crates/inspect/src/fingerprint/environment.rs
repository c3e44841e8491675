//! The environment of a program, secrets left out by the rule of [`crate::secrets`].
//!
//! A process has megabytes of it if it likes: of very many variables the first are kept, of a long
//! value the beginning.

use std::borrow::Cow;
use std::ffi::OsString;

use model::Fact;
use model::units::{bytes, counted};

use crate::command_line::beginning;
use crate::read::{bytes_of_memory, fact, unknown};
use crate::secrets::without_secret;

/// So many variables are kept, and so many bytes of names and values together.
const MOST: usize = 1_000;
const MOST_BYTES: usize = 256 << 10;

/// So much of a value is kept, bytes. No name is longer.
const LONGEST: usize = 4 << 10;

/// Secrets are looked for in so much of it: one that begins in what is kept is seen.
const LOOKED_AT: usize = 8 << 10;

/// `env.NAME` for each variable, by name; `env.left_out` if there are too many.
pub fn of_command(environment: &[(OsString, OsString)]) -> Vec<Fact> {
    let texts =
        environment.iter().map(|(name, value)| (name.to_string_lossy(), value.to_string_lossy()));
    facts(texts, "environment of the command")
}

/// The same for a live process, as it was when the process was started.
pub fn of_process(pid: u32) -> Vec<Fact> {
    let path = format!("/proc/{pid}/environ");
    let environment = match bytes_of_memory(pid, path.clone()) {
        Ok(environment) => environment,
        Err(reason) => return vec![unknown("env", reason, path)],
    };
    // A process may have written something else over its environment, such as a title.
    let variables = environment.split(|byte| *byte == 0).filter_map(|entry| {
        let equals = entry.iter().position(|byte| *byte == b'=')?;
        let (name, value) = (&entry[..equals], &entry[equals + 1..]);
        Some((String::from_utf8_lossy(name), String::from_utf8_lossy(value)))
    });
    facts(variables, &path)
}

fn facts<'e>(
    variables: impl Iterator<Item = (Cow<'e, str>, Cow<'e, str>)>,
    source: &str,
) -> Vec<Fact> {
    let mut facts = Vec::new();
    let (mut room, mut left_out) = (MOST_BYTES, 0);
    for (name, value) in variables {
        if facts.len() == MOST || name.len() > LONGEST {
            left_out += 1;
            continue;
        }
        let value = to_store(&name, &value);
        match room.checked_sub(name.len() + value.len()) {
            Some(less) => {
                room = less;
                facts.push(fact(&format!("env.{name}"), value, source));
            }
            None => left_out += 1,
        }
    }
    facts.sort_by(|a, b| a.name.cmp(&b.name));
    if left_out > 0 {
        let kept = format!("{MOST} and {} are kept", bytes(MOST_BYTES as u64));
        let value = format!("{}: at most {kept}", counted(left_out, "variable"));
        facts.push(fact("env.left_out", value, source));
    }
    facts
}

/// A value without a secret, and its end cut off if it is long: then it says so.
fn to_store(name: &str, value: &str) -> String {
    let shown = without_secret(name, beginning(value, LOOKED_AT));
    match beginning(shown, LONGEST) {
        all if all.len() == shown.len() => all.to_owned(),
        some => format!("{some}... ({} in all)", bytes(value.len() as u64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(variables: &[(String, String)]) -> Vec<Fact> {
        let variables = variables.iter().map(|(name, value)| (name.into(), value.into()));
        facts(variables, "a test")
    }

    fn of_bytes(facts: &[Fact]) -> usize {
        facts.iter().map(|fact| fact.name.len() + fact.value.len()).sum()
    }

    #[test]
    fn a_long_value_is_cut_and_says_so() {
        let value = |value: &str| to_store("A", value);
        assert_eq!(value("abc"), "abc");
        assert_eq!(value(&"a".repeat(LONGEST)), "a".repeat(LONGEST));
        let cut = value(&"µ".repeat(65_000));
        assert_eq!(cut, format!("{}... (127 KiB in all)", "µ".repeat(LONGEST / 2)));
        // It begins in what is kept, and would not be known by that part.
        let secret = format!("{} ghp_{}", "a".repeat(LONGEST - 10), "b".repeat(36));
        assert_eq!(value(&secret), "***");
        assert_eq!(to_store("A_TOKEN", &"a".repeat(100_000)), "***");
    }

    #[test]
    fn of_too_many_the_first_are_kept_and_the_others_counted() {
        // As many as fit into what is read.
        let many = vec![(String::new(), String::new()); 2 << 20];
        let facts = stored(&many);
        assert_eq!(facts.len(), MOST + 1);
        let left_out = facts.last().unwrap();
        assert_eq!(left_out.name, "env.left_out");
        assert!(left_out.value.starts_with("2,096,152 variables: at most"), "{left_out:?}");
        let variable = |n: usize| (format!("A{n:03}"), "a".repeat(3_000));
        let large: Vec<_> = (0..300).map(variable).collect();
        let facts = stored(&large);
        let kept = facts.len() as u64 - 1;
        let left_out = counted(300 - kept, "variable");
        assert!(facts.last().unwrap().value.starts_with(&left_out), "{kept} are kept");
        assert!((80..90).contains(&kept) && of_bytes(&facts) < MOST_BYTES + 1_000, "{kept}");
        let long_name = [("A".repeat(3 << 20), String::new()), ("B".into(), "b".into())];
        let facts = stored(&long_name);
        assert_eq!(facts[0].name, "env.B");
        assert!(facts[1].value.starts_with("1 variable: at most"), "{facts:?}");
        assert!(stored(&large[..5]).iter().all(|fact| fact.name != "env.left_out"));
    }
}
