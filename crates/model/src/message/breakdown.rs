//! Where the time of a message went, and how that differs from others.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Message, MessageSegment};
use crate::{Account, Syscall};

/// A message, its parts, and what the threads that had it did meanwhile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MessageBreakdown {
    /// The message.
    pub message: Message,
    /// What its flow is called.
    pub flow: String,
    /// Its parts in time order; their lengths sum to that of the message.
    pub parts: Vec<MessagePart>,
}

/// A part of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MessagePart {
    /// `to journalled`, `queued behind order 8122`, `gap to fill`.
    pub name: String,
    /// The part itself.
    #[serde(skip)]
    pub segment: MessageSegment,
    /// Length.
    pub ns: u64,
    /// Name of the thread that had the message, empty if it is not known.
    pub comm: String,
    /// What that thread did; sums to `ns`, the largest first.
    pub time: Vec<MessageTime>,
}

/// Some of a thread's time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageTime {
    /// The account; `None`: in no interval that was kept, so it ran, or waited for shorter than
    /// `Message::kept_ns` at a time.
    pub account: Option<Account>,
    /// How long.
    pub ns: u64,
    /// The system call it was in.
    pub call: Option<Syscall>,
    /// The function of the kernel in which it slept.
    pub place: Option<String>,
    /// Who ended the wait, held the lock or ran instead, in words.
    pub by: Option<String>,
    /// A time that the thread had set ended the wait.
    pub by_timer: bool,
}

/// What slow messages have more of than the control group has.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MessageContrast {
    /// The part of the message.
    pub part: ContrastPart,
    /// What was done in it; `None` as in [`MessageTime`], or if the part says it all.
    pub account: Option<Account>,
    /// The system call.
    pub call: Option<Syscall>,
    /// Of the slow messages.
    pub slow: ContrastSide,
    /// Of the control group.
    pub fast: ContrastSide,
}

/// A part that messages are compared by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(into = "String")]
pub enum ContrastPart {
    /// It waited for messages that came before it.
    Queued,
    /// A part by its name, as [`MessagePart`] has it.
    Named(String),
}

impl fmt::Display for ContrastPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ContrastPart::Queued => f.pad("queued behind earlier messages"),
            ContrastPart::Named(name) => f.pad(name),
        }
    }
}

impl From<ContrastPart> for String {
    fn from(part: ContrastPart) -> String {
        part.to_string()
    }
}

/// One group of messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ContrastSide {
    /// Messages of the group.
    pub n: u64,
    /// Those that had any of it.
    pub with: u64,
    /// Mean over all of the group.
    pub mean_ns: f64,
}

impl MessageContrast {
    /// By how much the mean of the slow ones is greater.
    pub fn difference_ns(&self) -> f64 {
        self.slow.mean_ns - self.fast.mean_ns
    }
}

/// The slow messages of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SlowMessages {
    /// Where the time of each went, the slowest first.
    pub slowest: Vec<MessageBreakdown>,
    /// By flow: its name, and what its slow messages have more of than its control group.
    pub contrasts: Vec<(String, Vec<MessageContrast>)>,
}
