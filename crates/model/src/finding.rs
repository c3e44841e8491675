//! What explain says of a run: here a finding with all its parts, in the files beside it the rest.

mod explanation;
mod on_cpu;
mod patterns;
mod sampled_calls;
mod why_not;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ChainEnd;

pub use self::explanation::{
    BelowBar, Explanation, FrequentCall, HeldOpen, LeadingAccount, LostStack, ManyCalls,
    NeverRests, NotLookedAt, OwnDelay, RequestFunction, RequestTime, Scope, SlowRequests,
    Unanswered, UnseenTasks, WorkingChildren,
};
pub use self::on_cpu::{OnCpu, SampledFunction};
pub use self::patterns::{Coincidence, Rhythm, RhythmKind};
pub use self::sampled_calls::{CallDuration, SampledCall, SampledCalls};
pub use self::why_not::{Standing, WhyNot};

/// What a link of a chain is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// What was lost.
    Symptom,
    /// How.
    Mechanism,
    /// What set that off.
    Trigger,
}

impl Role {
    /// As in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Role::Symptom => "symptom",
            Role::Mechanism => "mechanism",
            Role::Trigger => "trigger",
        }
    }
}

/// A link of a chain, from the symptom to its trigger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS))]
pub struct Link {
    /// Where it stands in the chain.
    pub role: Role,
    /// Id of the cause that it is, if that is another than the finding's.
    #[serde(default)]
    pub cause: Option<String>,
    /// What it is, with its numbers.
    pub text: String,
}

/// A piece of evidence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS))]
pub struct Evidence {
    /// What was seen, with units and n.
    pub text: String,
    /// Where it comes from: the probe, counter or file.
    pub source: String,
}

/// A look-alike that was considered and excluded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS))]
pub struct RuledOut {
    /// Id of the other cause.
    pub cause: String,
    /// The datum that excludes it.
    pub because: String,
}

/// Another explanation that was considered and excluded, and is no cause of the catalogue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS))]
pub struct Excluded {
    /// What is excluded, in plain words.
    pub what: String,
    /// The datum that excludes it.
    pub because: String,
}

/// A look-alike that the evidence at hand does not exclude.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS))]
pub struct NotRuledOut {
    /// Id of the other cause.
    pub cause: String,
    /// Why it stays possible.
    pub because: String,
    /// The measurement that would tell the two apart.
    pub tell_apart: String,
}

/// The thread or process that a cause took the largest part of what it wanted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS))]
pub struct Hurt {
    /// `thread worker (tid 81)`, `process server (pid 80)`.
    pub who: String,
    /// What the cause took of it, if the cause is spread over an account's threads as the account is.
    pub lost_ns: u64,
    /// The time in which it worked or was wanted: all that was not waiting for work.
    pub wanted_ns: u64,
}

/// When most of a cause's time was lost, as the intervals kept whole show it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS))]
pub struct Concentration {
    /// `97 % within 45.0 ms, at the end of the run`.
    pub text: String,
    /// The part of it that was lost then, 0 to 1.
    pub share: f64,
    /// Its start, since the start of the run.
    pub from_ns: u64,
    /// Its end, since the start of the run.
    pub to_ns: u64,
}

/// What a cause takes of the slowest requests, or messages, of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS))]
pub struct RequestCost {
    /// The port where they were answered, or their kind: those of which it takes the largest part. `None`
    /// where a run has one alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "types", ts(optional))]
    pub at: Option<String>,
    /// How many of them it took a tenth of, or more.
    pub with: u64,
    /// How many were looked at.
    pub of: u64,
    /// What it took of all of them, if it is spread over an account as the account is.
    pub ns: u64,
    /// All their time.
    pub total_ns: u64,
}

impl RequestCost {
    /// ` of port 80`, where it is not the only one.
    pub fn of_port(&self) -> String {
        self.at.as_ref().map_or_else(String::new, |at| format!(" of {at}"))
    }

    /// The part of their time, 0 to 1.
    pub fn share(&self) -> f64 {
        self.ns as f64 / self.total_ns.max(1) as f64
    }
}

/// A named cause.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS))]
pub struct Finding {
    /// Id of the cause, as in `causes/`.
    pub cause: String,
    /// One line for people.
    pub title: String,
    /// Part of the lost time that it explains, 0 to 1.
    pub share: f64,
    /// The same in nanoseconds.
    pub lost_ns: u64,
    /// The same as a part of the wall time of all watched threads, 0 to 1; of late ticks 0.
    #[serde(default)]
    pub wall_share: f64,
    /// Whom it hurts most; `None` if no one thread or process was wanted for long enough.
    #[serde(default)]
    pub hurts: Option<Hurt>,
    /// When, if nearly all of it was at one time.
    #[serde(default)]
    pub when: Option<Concentration>,
    /// What it takes of the slowest requests; `None` where none are known.
    #[serde(default)]
    pub requests: Option<RequestCost>,
    /// Below 1 % of the wall time, and of what any thread wanted: it is no answer to why a program
    /// is slow.
    #[serde(default)]
    pub minor: bool,
    /// 0 to 1.
    pub confidence: f64,
    /// Why confidence is below 1; empty if it is not.
    pub doubts: Vec<String>,
    /// Symptom first.
    pub chain: Vec<Link>,
    /// Evidence.
    pub evidence: Vec<Evidence>,
    /// Of threads that go one at a time: their turns.
    #[serde(default)]
    pub turns: Option<Turns>,
    /// Look-alikes.
    pub ruled_out: Vec<RuledOut>,
    /// Other explanations that are excluded.
    #[serde(default)]
    pub excluded: Vec<Excluded>,
    /// Look-alikes that stay possible, or are findings themselves.
    #[serde(default)]
    pub not_ruled_out: Vec<NotRuledOut>,
    /// Other explanations of which it is not known: the datum that would exclude them was not
    /// recorded.
    #[serde(default)]
    pub not_looked_at: Vec<Excluded>,
    /// What to do.
    pub fix: String,
    /// A command that reproduces the cause.
    pub reproduce: String,
    /// A command that shows whether the fix works.
    pub verify: String,
}

/// What threads do one at a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS))]
pub struct Turns {
    /// What lets them in.
    pub lock: String,
    /// Turns that somebody waited for.
    pub count: u64,
    /// The same in a second of the recording.
    pub per_second: f64,
    /// How long one is on average, in ns.
    pub mean_ns: u64,
    /// Turns of which the length is known: the next one waited from begin to end.
    pub seen_whole: u64,
    /// How many threads wait on average over the recording.
    pub waiting: f64,
    /// Turns a second that a turn half as long would allow, at most.
    pub half_as_long_per_second: f64,
    /// What a turn consists of, in ns: what the one did meanwhile whose turn it was.
    pub ends: BTreeMap<ChainEnd, u64>,
}
