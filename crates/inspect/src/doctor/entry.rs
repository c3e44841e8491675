//! What an entry of a table is, and what entries share.

use crate::secrets::masked;
use std::fmt::Display;
use std::io::{self, Read};

use model::{Check, CheckResult, Compared, Subject};

use crate::fingerprint::kernel;
use crate::read::text;

/// A check before it is made.
pub(super) struct Entry<A> {
    /// Stable name.
    pub id: &'static str,
    /// Why it matters for latency: one sentence.
    pub why: &'static str,
    /// Where it is read.
    pub source: &'static str,
    /// Reads and judges; an error is why that is not possible here.
    pub look: fn(&A) -> Result<Look, String>,
}

/// What was found.
#[derive(Debug)]
pub(super) struct Look {
    pub verdict: CheckResult,
    pub fact: String,
    detail: String,
    advice: String,
    compared: Compared,
}

impl Look {
    pub fn good(fact: impl Display) -> Look {
        Look::new(CheckResult::Good, fact, String::new())
    }

    pub fn attention(fact: impl Display, advice: impl Into<String>) -> Look {
        Look::new(CheckResult::Attention, fact, advice.into())
    }

    pub fn bad(fact: impl Display, advice: impl Into<String>) -> Look {
        Look::new(CheckResult::Bad, fact, advice.into())
    }

    fn new(verdict: CheckResult, fact: impl Display, advice: String) -> Look {
        let (fact, detail) = (fact.to_string(), String::new());
        Look { verdict, fact, detail, advice, compared: Compared::Setting }
    }

    /// Bad from `bad` on, attention from `attention` on.
    pub fn by(value: f64, attention: f64, bad: f64, fact: impl Display, advice: &str) -> Look {
        match value {
            much if much >= bad => Look::bad(fact, advice),
            some if some >= attention => Look::attention(fact, advice),
            _ => Look::good(fact),
        }
    }

    /// More about the fact.
    pub fn detail(self, detail: impl Display) -> Look {
        Look { detail: detail.to_string(), ..self }
    }

    /// The fact changes by itself.
    pub fn passing(self) -> Look {
        Look { compared: Compared::Passing, ..self }
    }

    /// The fact is measured.
    pub fn measured(self, value: f64) -> Look {
        Look { compared: Compared::Measure(value), ..self }
    }
}

/// Makes the checks of a table.
pub(super) fn examine<A>(subject: Subject, table: &[Entry<A>], of: &A) -> Vec<Check> {
    let check = |entry: &Entry<A>| {
        let look = (entry.look)(of).unwrap_or_else(|because| {
            Look { verdict: CheckResult::Unknown, ..Look::good(because) }.passing()
        });
        Check {
            id: entry.id.to_owned(),
            subject,
            verdict: look.verdict,
            fact: masked(&look.fact).into_owned(),
            detail: masked(&look.detail).into_owned(),
            why: entry.why.to_owned(),
            advice: look.advice,
            source: entry.source.to_owned(),
            compared: look.compared,
        }
    };
    table.iter().map(check).collect()
}

/// Files of the host that several checks look at.
pub(super) struct Host {
    /// The kernel's configuration.
    pub config: Result<String, String>,
    pub command_line: String,
    pub cpuinfo: String,
    pub vmstat: String,
    /// The kernel's log.
    pub log: Result<String, String>,
}

impl Host {
    pub fn read() -> Host {
        Host {
            config: kernel::config()
                .map(|(config, _)| config)
                .map_err(|tried| format!("no {tried}")),
            command_line: text("/proc/cmdline").unwrap_or_default(),
            cpuinfo: beginning("/proc/cpuinfo"),
            vmstat: text("/proc/vmstat").unwrap_or_default(),
            log: super::log::read(),
        }
    }

    /// The value of `name=value` on the kernel's command line; the last one holds.
    pub fn kernel_word(&self, name: &str) -> Option<&str> {
        let words = self.command_line.split_whitespace().rev();
        words.filter_map(|word| word.split_once('=')).find(|(n, _)| *n == name).map(|(_, v)| v)
    }

    /// A count of /proc/vmstat.
    pub fn vmstat(&self, name: &str) -> Result<u64, String> {
        row(&self.vmstat, name).ok_or_else(|| format!("no {name} in /proc/vmstat"))
    }

    /// True if a count of /proc/vmstat of this beginning, summed over its zones, is there.
    pub fn vmstat_sum(&self, beginning: &str) -> u64 {
        let rows = self.vmstat.lines().filter(|line| line.starts_with(beginning));
        let counts = rows.filter_map(|line| line.split_once(' ')?.1.parse::<u64>().ok());
        counts.fold(0, u64::saturating_add)
    }
}

/// The first few KiB of a file: with hundreds of CPUs all of /proc/cpuinfo takes long, and the first
/// CPU is like the others.
fn beginning(path: &str) -> String {
    const LENGTH: u64 = 8 << 10;
    let mut bytes = Vec::new();
    let read = std::fs::File::open(path).map(|file| file.take(LENGTH).read_to_end(&mut bytes));
    read.map_or_else(|_| String::new(), |_| String::from_utf8_lossy(&bytes).into_owned())
}

/// A file's text, or why there is none.
pub(super) fn get(path: &str) -> Result<String, String> {
    text(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => format!("this host has no {path}"),
        io::ErrorKind::PermissionDenied => format!("no permission to read {path} (needs root)"),
        _ => format!("{path} cannot be read: {error}"),
    })
}

/// The first number of a file.
pub(super) fn number(path: &str) -> Result<i64, String> {
    let text = get(path)?;
    let first = text.split_ascii_whitespace().next().and_then(|word| word.parse().ok());
    first.ok_or_else(|| format!("{path} holds no number"))
}

/// The word in brackets of a file such as `always [madvise] never`; else all of it.
pub(super) fn choice(path: &str) -> Result<String, String> {
    let text = get(path)?;
    let inside = text.split_once('[').and_then(|(_, rest)| Some(rest.split_once(']')?.0));
    Ok(inside.unwrap_or(&text).to_owned())
}

/// The number in a row `name value` or `name: value unit` of a table.
pub(super) fn row(table: &str, name: &str) -> Option<u64> {
    table.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        (words.next()?.trim_end_matches(':') == name).then(|| words.next()?.parse().ok())?
    })
}

/// Directories in a directory whose names begin so and end in a number, such as cpu0.
pub(super) fn numbered(directory: &str, beginning: &str) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let is_numbered = |name: &String| {
        name.strip_prefix(beginning).is_some_and(|rest| rest.parse::<u32>().is_ok())
    };
    let mut paths: Vec<String> =
        names.filter(is_numbered).map(|name| format!("{directory}/{name}")).collect();
    paths.sort();
    paths
}

/// `some avg10=` of a pressure file, percent.
pub(super) fn pressure(path: &str) -> Result<f64, String> {
    let text = get(path)?;
    let value = text.split_ascii_whitespace().find_map(|word| word.strip_prefix("avg10="));
    value.and_then(|value| value.parse().ok()).ok_or_else(|| format!("{path} has no avg10"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_readers() {
        assert_eq!(row("Threads:\t7\nVmLck: 12 kB", "VmLck"), Some(12));
        assert_eq!(row("Threads:\t7", "Thread"), None);
        assert!(get("/proc/no-such-file").unwrap_err().contains("this host has no"));
        assert!(pressure("/proc/uptime").is_err());
    }

    #[test]
    fn the_last_word_of_the_command_line_holds() {
        let host = Host {
            config: Err(String::new()),
            command_line: "quiet nohz=on isolcpus=1 nohz=off".to_owned(),
            cpuinfo: String::new(),
            vmstat: "allocstall_dma 1\nallocstall_normal 4\npgmajfault 9".to_owned(),
            log: Err(String::new()),
        };
        assert_eq!((host.kernel_word("nohz"), host.kernel_word("quiet")), (Some("off"), None));
        assert_eq!((host.vmstat_sum("allocstall_"), host.vmstat("pgmajfault")), (5, Ok(9)));
    }
}
