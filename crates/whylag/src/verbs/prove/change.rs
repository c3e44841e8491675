//! What differs between the sides, and how a side is come by.

use std::ffi::OsString;
use std::process::{Command, Stdio};

use anyhow::{Context, anyhow};
use model::TrialSide;

use crate::failure::Failure;

/// A change that can be made and taken back.
pub struct Change {
    kind: Kind,
    command: Vec<OsString>,
}

enum Kind {
    /// Environment variables.
    Environment(Vec<(String, String)>),
    /// Two lines for the shell.
    Commands { before: String, after: String },
    /// Something outside of the program, and whether it is made at the moment.
    Outside { fix: String, undo: String, is_made: bool },
}

impl Change {
    /// As the options say.
    pub fn of(
        fix: Option<&str>,
        undo: Option<&str>,
        sides: Option<(&str, &str)>,
        command: &[OsString],
    ) -> Result<Change, Failure> {
        let kind = match (fix, undo, sides) {
            (_, _, Some((before, after))) => {
                Kind::Commands { before: before.to_owned(), after: after.to_owned() }
            }
            (Some(fix), None, None) => Kind::Environment(variables(fix)?),
            (Some(fix), Some(undo), None) => {
                Kind::Outside { fix: fix.to_owned(), undo: undo.to_owned(), is_made: false }
            }
            (None, ..) => return Err(Failure::Usage("no change was given: see --fix".to_owned())),
        };
        Ok(Change { kind, command: command.to_vec() })
    }

    /// For people.
    pub fn in_words(&self) -> String {
        match &self.kind {
            Kind::Environment(variables) => {
                let words = variables.iter().map(|(name, value)| format!("{name}={value}"));
                words.collect::<Vec<_>>().join(" ")
            }
            Kind::Commands { before, after } => format!("'{after}' instead of '{before}'"),
            Kind::Outside { fix, .. } => fix.clone(),
        }
    }

    /// Facts that are meant to differ.
    pub fn facts(&self) -> Vec<String> {
        match &self.kind {
            Kind::Environment(variables) => {
                variables.iter().map(|(name, _)| format!("env.{name}")).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Makes the change, or takes it back, if that is not so already. One that failed may be half
    /// made, and is to be taken back as well.
    pub fn prepare(&mut self, side: TrialSide) -> Result<(), Failure> {
        let Kind::Outside { fix, undo, is_made } = &mut self.kind else { return Ok(()) };
        let wanted = side == TrialSide::After;
        if *is_made == wanted {
            return Ok(());
        }
        if wanted {
            *is_made = true;
            return shell(fix);
        }
        shell(undo)?;
        *is_made = false;
        Ok(())
    }

    /// True if it is made by a command, and taken back by another one.
    pub fn is_outside(&self) -> bool {
        matches!(self.kind, Kind::Outside { .. })
    }

    /// The words of the command of a side.
    pub fn command(&self, side: TrialSide) -> Vec<OsString> {
        match (&self.kind, side) {
            (Kind::Commands { before, .. }, TrialSide::Before) => line(before),
            (Kind::Commands { after, .. }, TrialSide::After) => line(after),
            _ => self.command.clone(),
        }
    }

    /// Variables that a side is given.
    pub fn environment(&self, side: TrialSide) -> &[(String, String)] {
        match (&self.kind, side) {
            (Kind::Environment(variables), TrialSide::After) => variables,
            _ => &[],
        }
    }
}

/// A line of the shell is executed in its place where it is a single command: the shell's own time
/// is not the program's.
fn line(text: &str) -> Vec<OsString> {
    const OF_THE_SHELL: &[char] =
        &['|', '&', ';', '<', '>', '(', ')', '$', '`', '*', '?', '[', '~', '#'];
    let is_plain = !text.contains(OF_THE_SHELL) && !text.contains('\n');
    match shlex::split(text).filter(|words| is_plain && !words.is_empty()) {
        Some(words) if !words[0].contains('=') => words.into_iter().map(OsString::from).collect(),
        _ => ["sh", "-c", text].map(OsString::from).to_vec(),
    }
}

/// `NAME=VALUE`, several with spaces between them.
fn variables(fix: &str) -> Result<Vec<(String, String)>, Failure> {
    let is_name = |name: &str| {
        let mut letters = name.chars();
        letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
            && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
    };
    let variable = |word: &String| {
        let (name, value) = word.split_once('=')?;
        is_name(name).then(|| (name.to_owned(), value.to_owned()))
    };
    let words = shlex::split(fix).unwrap_or_default();
    let variables: Option<Vec<_>> = words.iter().map(variable).collect();
    variables.filter(|variables| !variables.is_empty()).ok_or_else(|| {
        Failure::Usage(format!(
            "--fix {fix}: that is no environment variable, NAME=VALUE; a command that makes the \
             change needs another one that takes it back: --undo CMD"
        ))
    })
}

/// Executes a line of the shell, which has to succeed.
fn shell(line: &str) -> Result<(), Failure> {
    let status = Command::new("sh")
        .args(["-c", line])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .context("cannot start sh")
        .map_err(Failure::Failed)?;
    match status.success() {
        true => Ok(()),
        false => Err(Failure::Failed(anyhow!("'{line}' failed: {status}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_told_from_commands() {
        let both = [("A".to_owned(), "1".to_owned()), ("B_2".to_owned(), "x y".to_owned())];
        assert_eq!(variables("A=1 'B_2=x y'").ok().unwrap(), both);
        for command in ["./fix.sh", "A=1 ./fix.sh", "1A=2", "=1", "", "'A=1"] {
            assert!(variables(command).is_err(), "{command}");
        }
    }

    #[test]
    fn a_plain_line_needs_no_shell() {
        let words =
            |text| line(text).into_iter().map(|w| w.into_string().unwrap()).collect::<Vec<_>>();
        assert_eq!(words("./db --mode 'a b'"), ["./db", "--mode", "a b"]);
        for shells in ["./db | tail", "A=1 ./db", "./db $HOME", "./a; ./b", "./db 'open"] {
            assert_eq!(words(shells), ["sh", "-c", shells], "{shells}");
        }
    }
}
