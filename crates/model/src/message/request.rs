//! What is known of requests that were seen at sockets, and of no other messages.

use serde::{Deserialize, Serialize};

/// Of a request at a socket.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AtSocket {
    /// The process that answered.
    pub tgid: u32,
    /// Number of its connection, the same at both ends; of this run. A later connection between the same
    /// addresses has it again.
    pub link: u64,
    /// No request of its connection was seen before; false also in runs of before this was recorded.
    #[serde(default)]
    pub is_first: bool,
    /// The thread that answered, if it was not the one that began.
    pub handed: Option<HandOver>,
    /// Calls that its threads made while they worked on it: the longest, in time order.
    pub calls: Vec<Call>,
}

/// From one thread to another, within the logic of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandOver {
    /// The thread that answered.
    pub tid: u32,
    /// When the thread that had read the request woke it; `None` if that was not seen: then it is not
    /// known how long the request waited for it.
    pub time_ns: Option<u64>,
}

/// A call to a peer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// Number of the program that stands for the peer.
    pub program: u32,
    /// Who called.
    pub tgid: u32,
    /// The thread.
    pub tid: u32,
    /// As in [`AtSocket`].
    pub link: u64,
    /// Number of the connection of the request that it was made for; 0 if that was not seen.
    pub cause: u64,
    /// When it was sent.
    pub sent_ns: u64,
    /// When the answer arrived.
    pub arrived_ns: u64,
    /// When that was read.
    pub read_ns: u64,
    /// What the peer did, if that was recorded and kept.
    pub answer: Option<Answer>,
}

/// The request that a call was, at the other end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Number of the program that answered.
    pub program: u32,
    /// The thread that read it.
    pub tid: u32,
    /// When it arrived.
    pub arrived_ns: u64,
    /// When it was read.
    pub read_ns: u64,
    /// When the answer was sent.
    pub served_ns: u64,
    /// Calls that were made for it in turn.
    pub calls: Vec<Call>,
}

impl Call {
    /// From the send to the arrival of the answer.
    pub fn ns(&self) -> u64 {
        self.arrived_ns.saturating_sub(self.sent_ns)
    }
}
