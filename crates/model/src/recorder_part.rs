//! The parts of the recorder.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::text_form::text_form;

/// A group of probes that is on or off as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum RecorderPart {
    /// On and off the CPU, asleep, woken, born, dead.
    Threads,
    /// Which system call, for how long.
    SystemCalls,
    /// Contended kernel locks.
    Locks,
    /// Who holds mmap_lock.
    MmapLock,
    /// Page faults.
    Faults,
    /// Device interrupts and softirqs.
    Interrupts,
    /// Inter-processor and timer interrupts.
    Vectors,
    /// Block I/O.
    BlockIo,
    /// Signals.
    Signals,
    /// Direct reclaim and compaction.
    Reclaim,
    /// Dirty page throttling.
    Writeback,
    /// Commits of the ext4 journal.
    Journal,
    /// What runs on the CPUs, by a timer.
    Samples,
    /// Which timer ended a sleep, and when it should have.
    Timers,
    /// Queues of sockets, and what TCP sent once more.
    Sockets,
    /// When and why packets were dropped at a socket.
    Drops,
}

impl RecorderPart {
    /// Every part.
    pub const ALL: [RecorderPart; 16] = [
        RecorderPart::Threads,
        RecorderPart::SystemCalls,
        RecorderPart::Locks,
        RecorderPart::MmapLock,
        RecorderPart::Faults,
        RecorderPart::Interrupts,
        RecorderPart::Vectors,
        RecorderPart::BlockIo,
        RecorderPart::Signals,
        RecorderPart::Reclaim,
        RecorderPart::Writeback,
        RecorderPart::Journal,
        RecorderPart::Samples,
        RecorderPart::Timers,
        RecorderPart::Sockets,
        RecorderPart::Drops,
    ];

    /// Its name, as reports show it.
    pub fn name(self) -> &'static str {
        match self {
            RecorderPart::Threads => "threads",
            RecorderPart::SystemCalls => "system calls",
            RecorderPart::Locks => "kernel locks",
            RecorderPart::MmapLock => "mmap_lock holders",
            RecorderPart::Faults => "page faults",
            RecorderPart::Interrupts => "interrupts",
            RecorderPart::Vectors => "interrupt vectors",
            RecorderPart::BlockIo => "block I/O",
            RecorderPart::Signals => "signals",
            RecorderPart::Reclaim => "reclaim and compaction",
            RecorderPart::Writeback => "dirty throttling",
            RecorderPart::Journal => "journal commits",
            RecorderPart::Samples => "on-CPU samples",
            RecorderPart::Timers => "timers",
            RecorderPart::Sockets => "sockets",
            RecorderPart::Drops => "dropped packets",
        }
    }
}

impl fmt::Display for RecorderPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for RecorderPart {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        /// One part until the two were told apart; a run of then has its name.
        const FORMER_WRITEBACK: &str = "writeback and journal";
        if name == FORMER_WRITEBACK {
            return Ok(RecorderPart::Writeback);
        }
        let part = RecorderPart::ALL.into_iter().find(|part| part.name() == name);
        part.ok_or_else(|| format!("'{name}' is no part of the recorder"))
    }
}

text_form!(RecorderPart);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for part in RecorderPart::ALL {
            assert_eq!(part.to_string().parse(), Ok(part));
        }
        assert!("locks".parse::<RecorderPart>().is_err());
    }
}
