//! Sockets of the target: how full their queues were, what was dropped at them and sent again.

use std::fmt;
use std::net::{AddrParseError, SocketAddr};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::text_form::text_form;

/// What a queue of a socket is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SocketKind {
    /// Bytes, with what the kernel needs around them.
    Udp,
    /// Bytes of payload.
    Tcp,
    /// Connections that wait for accept.
    TcpListening,
    /// Datagrams or pieces of a stream.
    Unix,
    /// Another protocol, bytes.
    Other,
}

impl SocketKind {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            SocketKind::Udp => "udp",
            SocketKind::Tcp => "tcp",
            SocketKind::TcpListening => "tcp listening",
            SocketKind::Unix => "unix",
            SocketKind::Other => "other",
        }
    }

    /// True if its queue for receiving is counted in bytes.
    pub fn counts_bytes(self) -> bool {
        !matches!(self, SocketKind::TcpListening | SocketKind::Unix)
    }
}

/// Addresses of a socket: `OWN`, or `OWN to OTHER`; empty if it has none.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(into = "String", try_from = "String")]
pub struct SocketAddress {
    /// Its own.
    pub local: Option<SocketAddr>,
    /// Of the other end, if it is connected.
    pub remote: Option<SocketAddr>,
}

impl SocketAddress {
    /// True if it has none.
    pub fn is_empty(&self) -> bool {
        self.local.is_none()
    }

    /// The address of the other end of this connection; `None` if there is none.
    pub fn mirrored(&self) -> Option<SocketAddress> {
        let (local, remote) = (self.remote?, self.local?);
        Some(SocketAddress { local: Some(local), remote: Some(remote) })
    }
}

impl fmt::Display for SocketAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.local, self.remote) {
            (None, _) => Ok(()),
            (Some(local), None) => write!(f, "{local}"),
            (Some(local), Some(remote)) => write!(f, "{local} to {remote}"),
        }
    }
}

impl FromStr for SocketAddress {
    type Err = AddrParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (local, remote) = match text.split_once(" to ") {
            Some((local, remote)) => (local, Some(remote.parse()?)),
            None => (text, None),
        };
        let local = if local.is_empty() { None } else { Some(local.parse()?) };
        Ok(SocketAddress { local, remote })
    }
}

text_form!(SocketAddress);

/// A socket.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Socket {
    /// Inode, as in /proc/PID/fd.
    pub inode: u64,
    /// The process it was found in first.
    pub tgid: u32,
    /// Its descriptor there.
    pub fd: u32,
    /// Kind.
    pub kind: SocketKind,
    /// Its address, and that of the other end.
    pub address: SocketAddress,
}

impl fmt::Display for Socket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind.name())?;
        if !self.address.is_empty() {
            write!(f, " {}", self.address)?;
        }
        write!(f, " (fd {})", self.fd)
    }
}

/// One direction of a socket over a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Depth {
    /// Mean of all looks.
    pub mean: u64,
    /// Largest that was seen.
    pub max: u64,
    /// When.
    pub max_ns: u64,
    /// What it may hold, 0: not limited here.
    pub limit: u64,
}

/// What set off a segment that TCP sent once more, without news from the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeoutKind {
    /// The retransmission timer: nothing was acknowledged for this long.
    Retransmission,
    /// The same, of the first segment of a connection that is not yet established.
    Connecting,
    /// A probe whether the last segment was lost, before that timer.
    Probe,
}

/// A timer of a connection fired, and a segment was sent once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeout {
    /// When.
    pub at_ns: u64,
    /// Which timer.
    pub kind: TimeoutKind,
    /// What the timer was set to; 0 for a probe.
    pub after_ns: u64,
}

/// What a connection sent once more in a second.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resent {
    /// Segments, those resent because later ones had arrived (fast) included.
    pub segments: u64,
    /// Of these, those that a timer sent; the last only of several between two looks.
    pub timeouts: Vec<Timeout>,
}

/// Sends on a socket that found no room in a second.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockedSends {
    /// Failed with EAGAIN or ENOBUFS.
    pub refused: u64,
    /// Slept until there was room.
    pub waited: u64,
    /// Asleep in these.
    pub waited_ns: u64,
    /// When bursts began that have less than 20 ms between two such sends.
    pub bursts_ns: Vec<u64>,
}

impl BlockedSends {
    /// Of both kinds.
    pub fn count(&self) -> u64 {
        self.refused.saturating_add(self.waited)
    }
}

/// What was sent on a connection that this side has opened, and has had no answer when the recording
/// ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentLast {
    /// When it was sent, CLOCK_MONOTONIC; before the recording to a jiffy.
    pub sent_ns: u64,
    /// When anything last came from the other side; `None`: nothing ever did.
    pub heard_ns: Option<u64>,
}

/// The queues of a socket over a second. Seconds in which all queues were empty and nothing else
/// happened are left out, but for the first of a socket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueSecond {
    /// Start of the interval (about one second long).
    pub start_ns: u64,
    /// Which.
    pub socket: Socket,
    /// How often it was looked at; 0: it was too short-lived for that.
    pub looks: u64,
    /// Received and not yet read; of one that listens, not yet accepted.
    pub receive: Depth,
    /// Sent and not yet taken by the other side.
    pub send: Depth,
    /// Looks that found the end of what was written held back by Nagle's algorithm: less than a
    /// segment, which waits until what is on its way is acknowledged.
    #[serde(default)]
    pub nagle_looks: u64,
    /// When it had no answer to its SYN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connecting: Option<Connecting>,
    /// Packets dropped at it.
    pub drops: u64,
    /// Segments sent once more.
    #[serde(default)]
    pub resent: Resent,
    /// Sends of this process and descriptor that found no room.
    #[serde(default)]
    pub blocked_sends: BlockedSends,
    /// Set in the last second of a recording only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_last: Option<SentLast>,
}

/// Looks that found a socket without an answer to its SYN: it was sent before the first of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connecting {
    /// The first, in whichever second.
    pub since_ns: u64,
    /// The last so far.
    pub last_ns: u64,
}

/// Packets that were dropped at a socket, one after the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drops {
    /// Where.
    pub socket: Socket,
    /// The kernel's reason, `SOCKET_RCVBUFF`; empty if it gave none.
    pub reason: String,
    /// When the queue was last seen nearly empty, before.
    pub filling_ns: u64,
    /// The first; known to a look (20 ms) only if there is no reason.
    pub first_ns: u64,
    /// The last.
    pub last_ns: u64,
    /// How many.
    pub count: u64,
    /// Received and not yet read, the largest that was seen meanwhile.
    pub queued: u64,
    /// What the queue may hold.
    pub limit: u64,
}

/// All that is known of sockets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sockets {
    /// In time order.
    pub queues: Vec<QueueSecond>,
    /// In time order.
    pub drops: Vec<Drops>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_back_from_their_text() {
        for text in ["", "127.0.0.1:9000", "10.0.0.7:40000 to 10.0.0.1:53", "[::1]:80 to [::1]:8"] {
            assert_eq!(text.parse::<SocketAddress>().unwrap().to_string(), text);
        }
        assert!("a to b".parse::<SocketAddress>().is_err());
        let address: SocketAddress = "10.0.0.7:40000 to 10.0.0.1:53".parse().unwrap();
        let other = address.mirrored().unwrap();
        assert_eq!(other.to_string(), "10.0.0.1:53 to 10.0.0.7:40000");
        assert_eq!("127.0.0.1:9000".parse::<SocketAddress>().unwrap().mirrored(), None);
    }
}
