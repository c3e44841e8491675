//! System calls: their names, and sums of those that failed.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Sum;
use crate::sums::add_each;
use crate::text_form::text_form;
use syscalls::Sysno;

/// A system call by its number on this architecture.
///
/// Shown by its name (`mmap`); a number the architecture does not define is shown as `syscall#N`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Syscall(pub u16);

impl Syscall {
    /// The call of this name, if the architecture has it.
    pub fn named(name: &str) -> Option<Syscall> {
        Sysno::from_str(name).ok().map(|s| Syscall(s.id() as u16))
    }

    /// True if this is one of the calls in `names`.
    pub fn is_one_of(self, names: &[&str]) -> bool {
        Sysno::new(usize::from(self.0)).is_some_and(|s| names.contains(&s.name()))
    }
}

impl fmt::Display for Syscall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Sysno::new(usize::from(self.0)) {
            Some(s) => f.write_str(s.name()),
            None => write!(f, "syscall#{}", self.0),
        }
    }
}

impl FromStr for Syscall {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        if let Some(number) = s.strip_prefix("syscall#") {
            return number.parse().map(Syscall).map_err(|_| format!("'{s}' is no system call"));
        }
        Syscall::named(s).ok_or_else(|| format!("'{s}' is no system call of this architecture"))
    }
}

text_form!(Syscall);

/// System calls of a process that failed in the same way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallError {
    /// Process.
    pub tgid: u32,
    /// The call.
    pub call: Syscall,
    /// Error number, positive: 11 is EAGAIN.
    pub errno: i32,
    /// How often.
    pub count: u64,
}

impl Sum for CallError {
    fn key(&self) -> impl Serialize {
        (self.tgid, self.call, self.errno)
    }

    fn amount(&self) -> u64 {
        self.count
    }

    fn count(&self) -> u64 {
        self.count
    }

    fn ns(&self) -> u64 {
        0
    }

    fn tgid(&self) -> Option<u32> {
        Some(self.tgid)
    }

    fn processes(&mut self) -> [Option<&mut u32>; 2] {
        [Some(&mut self.tgid), None]
    }

    fn add(&mut self, other: &Self) {
        add_each!(self, other, [count]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_for_every_number() {
        for n in 0..600 {
            let call = Syscall(n);
            assert_eq!(call.to_string().parse::<Syscall>().unwrap(), call);
        }
        assert_eq!(Syscall::named("mmap").unwrap().to_string(), "mmap");
        assert!(Syscall::named("no_such_call").is_none());
    }
}
