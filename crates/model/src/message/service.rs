//! Where requests are answered, and whom a program calls.

use serde::{Deserialize, Serialize};

use crate::Sum;
use crate::sums::add_each;

/// A port or path that recorded threads answered at, or a peer that they called: what was counted
/// of it besides the times of its requests, which are in a [`MessageFlow`](super::MessageFlow).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Service {
    /// Number of its program in [`Messages`](super::Messages).
    pub program: u32,
    /// The process that was first seen at it.
    pub tgid: u32,
    /// Who answers.
    pub role: ServiceRole,
    /// `port 6379`, `/run/redis.sock`, `10.0.0.7:5432`.
    pub name: String,
    /// Connections seen.
    pub connections: u64,
    /// Requests that came on a connection before the one before was answered.
    pub several: u64,
    /// Sends that answered no request: streams, subscriptions.
    pub pushed: u64,
    /// Slow requests that were counted and not kept: there were too many of them at a time.
    pub left_out: u64,
    /// Requests that had been read and had no answer when recording stopped.
    #[serde(default)]
    pub open: u64,
    /// Calls to a peer whose connection was closed before there was an answer; they end then.
    #[serde(default)]
    pub given_up: u64,
    /// Packets of UDP that were sent to a peer; 0 in older runs.
    #[serde(default)]
    pub packets: u64,
    /// When the first of them was.
    #[serde(default)]
    pub packets_since_ns: Option<u64>,
    /// The process that answers, of a peer on this host: the last one seen to, recorded or not.
    #[serde(default)]
    pub peer: Option<Peer>,
    /// Of a peer: for how long one call to it was on its way, two, and so on to 64 and more, ns. Of calls
    /// that took at least the threshold; empty in older runs.
    #[serde(default)]
    pub calls_at_once: Vec<u64>,
    /// When the first of the `open` ones came.
    #[serde(default)]
    pub oldest_ns: Option<u64>,
}

/// A process that answers calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peer {
    /// Its number.
    pub tgid: u32,
    /// Its name, or that of the thread that answered.
    pub comm: String,
}

/// Which side of a service recorded threads were.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServiceRole {
    /// They answered.
    Server,
    /// They called.
    Client,
}

impl Sum for Service {
    fn key(&self) -> impl Serialize {
        self.program
    }

    fn amount(&self) -> u64 {
        0
    }

    fn count(&self) -> u64 {
        self.connections
            .max(self.several)
            .max(self.pushed)
            .max(self.left_out)
            .max(self.packets)
            .max(self.given_up)
    }

    fn ns(&self) -> u64 {
        self.calls_at_once.iter().copied().max().unwrap_or(0)
    }

    fn tgid(&self) -> Option<u32> {
        Some(self.tgid)
    }

    /// None: it is a program's, whichever of its processes answered.
    fn processes(&mut self) -> [Option<&mut u32>; 2] {
        [None, None]
    }

    fn add(&mut self, other: &Self) {
        add_each!(self, other, [connections, several, pushed, left_out, open, packets, given_up]);
        self.calls_at_once.resize(self.calls_at_once.len().max(other.calls_at_once.len()), 0);
        for (sum, ns) in self.calls_at_once.iter_mut().zip(&other.calls_at_once) {
            *sum = sum.saturating_add(*ns);
        }
        self.peer = other.peer.clone().or(self.peer.take());
        self.oldest_ns = self.oldest_ns.into_iter().chain(other.oldest_ns).min();
        let since = self.packets_since_ns.into_iter().chain(other.packets_since_ns);
        self.packets_since_ns = since.min();
    }
}
