//! Settings and state of a host or a process that are known to cost latency, and what to do.
//!
//! [`host()`] and [`process()`] give a list of [`Check`]s. A check is an entry in the table of its
//! subject's file: a name, why it matters, and a function that reads a fact and has it judged. The
//! judgement is a function of what was read alone, so it can be tested on made-up values.
//!
//! Caveats. Nothing is changed; what cannot be read is [`model::CheckResult::Unknown`], with the reason. The
//! cost of a clock read is measured, which keeps each CPU busy for some milliseconds at the lowest
//! priority. "Bad" means that it costs latency by itself, "attention" that it can.
//! Network figures are those of the network namespace that whylag runs in, and pressure and
//! counters say what has been since boot, not what is now.

mod cgroups;
mod cpu;
mod entry;
mod io;
mod log;
mod memory;
mod memory_use;
mod network;
mod pattern;
mod populations;
mod process;
mod scheduler;
mod tcp;
mod time;
mod timers;

use model::{Check, Subject, Unbound};

use crate::live::{Library, LiveError, Process, bindings};
use entry::{Entry, Host, examine};
use process::Target;

/// A subject with its table.
type Table<A> = (Subject, &'static [Entry<A>]);

const OF_HOST: [Table<Host>; 11] = [
    (Subject::Time, time::ENTRIES),
    (Subject::Time, timers::ENTRIES),
    (Subject::KernelLog, log::ENTRIES),
    (Subject::Cpu, cpu::ENTRIES),
    (Subject::Cpu, scheduler::ENTRIES),
    (Subject::Memory, memory::ENTRIES),
    (Subject::Memory, memory_use::ENTRIES),
    (Subject::Io, io::ENTRIES),
    (Subject::Network, network::ENTRIES),
    (Subject::Network, tcp::ENTRIES),
    (Subject::Populations, populations::ENTRIES),
];

/// Checks of the host, by subject. Takes some 100 ms.
pub fn host() -> Vec<Check> {
    let host = Host::read();
    let tables = OF_HOST.iter();
    tables.flat_map(|(subject, table)| examine(*subject, table, &host)).collect()
}

/// Checks of a process, and its calls that are not bound yet.
///
/// # Errors
/// If there is no such process, or if it ends meanwhile. What may not be looked into is unknown.
pub fn process(pid: u32) -> Result<(Vec<Check>, Vec<Unbound>), LiveError> {
    let process = Process::open(pid)?;
    let libraries = match bindings(&process) {
        Err(error @ (LiveError::NoPermission(_) | LiveError::NoAnswer(_))) => {
            Err(error.to_string())
        }
        libraries => Ok(libraries?),
    };
    let target = Target::new(process, libraries);
    let checks = process::TABLES.iter().flat_map(|table| examine(Subject::Process, table, &target));
    let checks = checks.collect();
    target.process.is_still_there()?;
    Ok((checks, unbound(target.libraries().unwrap_or_default())))
}

/// What a table says about a check.
pub struct Described {
    /// Under which heading it is reported.
    pub subject: Subject,
    /// Its name.
    pub id: &'static str,
    /// Why it matters for latency.
    pub why: &'static str,
    /// Where it is read.
    pub source: &'static str,
}

/// All checks of a host and of a process, in the order of the report.
pub fn described() -> Vec<Described> {
    fn of<A>(subject: Subject, table: &'static [Entry<A>]) -> impl Iterator<Item = Described> {
        table.iter().map(move |entry| Described {
            subject,
            id: entry.id,
            why: entry.why,
            source: entry.source,
        })
    }
    let of_host = OF_HOST.iter().flat_map(|(subject, table)| of(*subject, table));
    let of_process = process::TABLES.iter().flat_map(|table| of(Subject::Process, table));
    of_host.chain(of_process).collect()
}

/// The calls of libraries that are not bound yet, by name.
pub fn unbound(libraries: &[Library]) -> Vec<Unbound> {
    process::unbound(libraries)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use model::{CheckResult, Compared};

    use super::*;

    fn check_each(checks: &[Check]) {
        let mut ids = HashSet::new();
        for check in checks {
            assert!(ids.insert(&check.id), "{} twice", check.id);
            assert!(!check.fact.is_empty() && !check.why.is_empty() && !check.source.is_empty());
            let is_asked = matches!(check.verdict, CheckResult::Attention | CheckResult::Bad);
            assert_eq!(is_asked, !check.advice.is_empty(), "{check:?}");
            assert!(check.why.ends_with('.') && !check.fact.ends_with('.'), "{check:?}");
            assert!(!check.fact.contains('\n'), "{check:?}");
        }
    }

    #[test]
    fn every_check_of_this_host_says_what_and_why() {
        let checks = host();
        check_each(&checks);
        assert!(checks.len() >= 60, "{}", checks.len());
        // Without root there is no kernel log; without hardware no frequencies.
        let unknown: Vec<_> = checks.iter().filter(|c| c.verdict == CheckResult::Unknown).collect();
        assert!(unknown.len() < checks.len() / 2, "{unknown:#?}");
    }

    #[test]
    fn every_check_of_this_process_says_what_and_why() {
        let (checks, unbound) = process(std::process::id()).unwrap();
        check_each(&checks);
        assert!(checks.len() >= 20, "{}", checks.len());
        assert!(unbound.iter().any(|library| library.library.contains("/libc.so")), "{unbound:?}");
    }

    #[test]
    fn what_two_hosts_choose_is_the_same_when_asked_twice() {
        let settings = |checks: Vec<Check>| -> Vec<(String, String)> {
            let chosen = checks.into_iter().filter(|c| c.compared == Compared::Setting);
            chosen.map(|check| (check.id, check.fact)).collect()
        };
        assert_eq!(settings(host()), settings(host()));
    }
}
