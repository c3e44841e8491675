//! The parts of the recorder.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A group of probes that is on or off as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", from = "String")]
pub enum RecorderPart {
    /// On and off the CPU, asleep, woken, born, dead.
    Threads,
    /// Which system call, for how long.
    SystemCalls,
    /// System calls in short windows, where not all are recorded.
    SampledCalls,
    /// Contended kernel locks.
    Locks,
    /// Who holds mmap_lock.
    MmapLock,
    /// Page faults.
    Faults,
    /// Device interrupts.
    Interrupts,
    /// Time in softirqs.
    Softirqs,
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
    /// Pages that come into the page cache, and go.
    PageCache,
    /// What runs on the CPUs, by a timer.
    Samples,
    /// Which timer ended a sleep, and when it should have.
    Timers,
    /// Queues of sockets, and what TCP sent once more.
    Sockets,
    /// When and why packets were dropped at a socket.
    Drops,
    /// Requests and calls, as sockets show them.
    Requests,
    /// One that a later whylag recorded with.
    Unknown(PartName),
}

/// Name of a part that this version does not know. Within the part, so that a part can be copied.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartName {
    bytes: [u8; PartName::LONGEST],
    length: usize,
}

impl PartName {
    /// A longer name is cut to so many bytes.
    const LONGEST: usize = 40;

    fn of(name: &str) -> PartName {
        let mut length = name.len().min(PartName::LONGEST);
        while !name.is_char_boundary(length) {
            length -= 1;
        }
        let mut bytes = [0; PartName::LONGEST];
        for (byte, from) in bytes.iter_mut().zip(&name.as_bytes()[..length]) {
            *byte = *from;
        }
        PartName { bytes, length }
    }

    fn as_str(&self) -> &str {
        self.bytes.get(..self.length).and_then(|name| str::from_utf8(name).ok()).unwrap_or_default()
    }
}

impl fmt::Debug for PartName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl RecorderPart {
    /// Every part that this version knows.
    pub const ALL: [RecorderPart; 20] = [
        RecorderPart::Threads,
        RecorderPart::SystemCalls,
        RecorderPart::SampledCalls,
        RecorderPart::Locks,
        RecorderPart::MmapLock,
        RecorderPart::Faults,
        RecorderPart::Interrupts,
        RecorderPart::Softirqs,
        RecorderPart::Vectors,
        RecorderPart::BlockIo,
        RecorderPart::Signals,
        RecorderPart::Reclaim,
        RecorderPart::Writeback,
        RecorderPart::Journal,
        RecorderPart::PageCache,
        RecorderPart::Samples,
        RecorderPart::Timers,
        RecorderPart::Sockets,
        RecorderPart::Drops,
        RecorderPart::Requests,
    ];

    /// Its name, as reports show it.
    pub fn name(&self) -> &str {
        match self {
            RecorderPart::Threads => "threads",
            RecorderPart::SystemCalls => "system calls",
            RecorderPart::SampledCalls => "sampled system calls",
            RecorderPart::Locks => "kernel locks",
            RecorderPart::MmapLock => "mmap_lock holders",
            RecorderPart::Faults => "page faults",
            RecorderPart::Interrupts => "interrupts",
            RecorderPart::Softirqs => "softirqs",
            RecorderPart::Vectors => "interrupt vectors",
            RecorderPart::BlockIo => "block I/O",
            RecorderPart::Signals => "signals",
            RecorderPart::Reclaim => "reclaim and compaction",
            RecorderPart::Writeback => "dirty throttling",
            RecorderPart::Journal => "journal commits",
            RecorderPart::PageCache => "page cache",
            RecorderPart::Samples => "on-CPU samples",
            RecorderPart::Timers => "timers",
            RecorderPart::Sockets => "sockets",
            RecorderPart::Drops => "dropped packets",
            RecorderPart::Requests => "requests",
            RecorderPart::Unknown(name) => name.as_str(),
        }
    }
}

impl fmt::Display for RecorderPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl From<RecorderPart> for String {
    fn from(part: RecorderPart) -> String {
        part.name().to_owned()
    }
}

impl From<String> for RecorderPart {
    fn from(name: String) -> RecorderPart {
        /// One part until the two were told apart; a run of then has its name.
        const FORMER_WRITEBACK: &str = "writeback and journal";
        if name == FORMER_WRITEBACK {
            return RecorderPart::Writeback;
        }
        let known = RecorderPart::ALL.into_iter().find(|part| part.name() == name);
        known.unwrap_or_else(|| RecorderPart::Unknown(PartName::of(&name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for part in RecorderPart::ALL {
            assert_eq!(RecorderPart::from(part.to_string()), part);
        }
        let former = RecorderPart::from("writeback and journal".to_owned());
        assert_eq!(former, RecorderPart::Writeback);
        let later = RecorderPart::from("locks".to_owned());
        assert!(!RecorderPart::ALL.contains(&later));
        assert_eq!(later.name(), "locks");
    }

    #[test]
    fn an_unknown_name_is_cut_between_two_characters() {
        let name = |length: usize| RecorderPart::from("\u{fc}".repeat(length)).name().len();
        assert_eq!([0, 20, 21, 99].map(name), [0, 40, 40, 40]);
        let odd = RecorderPart::from(format!("x{}", "\u{fc}".repeat(30)));
        assert_eq!(odd.name(), format!("x{}", "\u{fc}".repeat(19)));
    }
}
