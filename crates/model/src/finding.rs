//! What explain says of a run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Account, Capability, ChainEnd, RunId};

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS))]
pub struct RequestCost {
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

/// Causes of the catalogue that were not looked for: their evidence was not recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS))]
pub struct NotLookedAt {
    /// What was missing, and why.
    pub because: String,
    /// Ids of the causes.
    pub causes: Vec<String>,
}

/// Where lost time was spent that no finding explains.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS))]
pub struct LostStack {
    /// What the threads did.
    pub account: Account,
    /// Intervals, or samples.
    pub count: u64,
    /// Their time.
    pub ns: u64,
    /// Functions of the kernel, innermost first; empty if not known.
    pub kernel: Vec<String>,
    /// Functions of the program, innermost first; empty if not known.
    pub user: Vec<String>,
}

/// A cause with its evidence that explains too little to be a finding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS))]
pub struct BelowBar {
    /// Id of the cause.
    pub cause: String,
    /// What it explains that no finding does.
    pub lost_ns: u64,
    /// The same as a part of the wall time, 0 to 1.
    pub wall_share: f64,
    /// What that is below.
    pub because: String,
}

/// The account that most time was lost in, where no cause explains it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS))]
pub struct LeadingAccount {
    /// Which.
    pub account: Account,
    /// The system call in which most of that time was, if one had most of it.
    pub call: Option<String>,
    /// The time that no finding explains.
    pub ns: u64,
    /// The same as a part of the wall time, 0 to 1.
    pub wall_share: f64,
}

/// Time that the recorder itself took from the watched threads.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS))]
pub struct OwnDelay {
    /// Watched threads were ready to run while it was on their CPU.
    pub queued_ns: u64,
    /// Watched threads waited for mmap_lock while it held that lock.
    pub locked_ns: u64,
    /// Both as a part of the wall time, 0 to 1.
    pub wall_share: f64,
    /// That is so much that it comes before the findings.
    pub matters: bool,
}

/// The part of a run that was asked about, and what is known of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS))]
pub struct Scope {
    /// `outlier 3`, `the window 1.20 s..1.50 s`, `thread worker (tid 81)`.
    pub what: String,
    /// Number of the outlier, if one was asked about: 1 is the longest of the run.
    pub outlier: Option<u64>,
    /// Its start, since the start of the run.
    pub from_ns: u64,
    /// Its end, since the start of the run.
    pub to_ns: u64,
    /// Threads that are in it.
    pub threads: u64,
    /// Intervals kept whole that are in it.
    pub intervals: u64,
    /// True if the accounts of its threads are complete, short intervals included.
    pub exact: bool,
    /// Time on a CPU that was between the intervals, and is estimated from the rest of the lives of
    /// the threads.
    #[serde(default)]
    pub estimated_ns: u64,
    /// What the explanation rests on, and what is not in it.
    pub basis: String,
}

/// How a cause of the catalogue stands in a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WhyNot {
    /// The run.
    pub run: RunId,
    /// The part of it that was asked about; `None`: all of it.
    pub scope: Option<Scope>,
    /// Id of the cause.
    pub cause: String,
    /// The cause in one line.
    pub title: String,
    /// Whether it is a finding, and if not, why.
    pub standing: Standing,
    /// Parts of the recorder that its evidence needs and that were off.
    pub off: Vec<Capability>,
}

/// Whether a cause is a finding, and if not, why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Standing {
    /// It is.
    Finding {
        /// Its place, from 1.
        rank: u64,
        /// How many findings there are.
        findings: u64,
        /// Part of the lost time that it explains, 0 to 1.
        share: f64,
        /// The same in nanoseconds.
        lost_ns: u64,
        /// 0 to 1.
        confidence: f64,
    },
    /// Its evidence is there, but it explains too little.
    BelowFloor {
        /// What it claims.
        claimed_ns: u64,
        /// What of this no other cause explains.
        left_ns: u64,
        /// What that is below.
        because: String,
    },
    /// A piece of its evidence was not there.
    Absent {
        /// Which, and what was seen instead.
        missing: String,
    },
    /// Nothing that could show it was measured in this run.
    NotLookedFor {
        /// What was measured instead, and what measures it.
        because: String,
    },
}

/// Everything `whylag explain` says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS))]
pub struct Explanation {
    /// The run.
    pub run: RunId,
    /// The part of it that was asked about; `None`: all of it.
    pub scope: Option<Scope>,
    /// Wall time of all watched threads.
    pub wall_ns: u64,
    /// Wall time that is in no account.
    pub unaccounted_ns: u64,
    /// Wall time that the threads did not choose to spend.
    pub lost_ns: u64,
    /// Wall time waiting for work.
    pub idle_ns: u64,
    /// (account, ns, share of the wall time), largest first.
    pub accounts: Vec<(Account, u64, f64)>,
    /// Those through which packets were dropped, then the others, then those that struck at one
    /// time only; of each first what takes most of the slowest requests, then the largest share;
    /// empty: no known cause.
    pub findings: Vec<Finding>,
    /// Set where the largest account of lost time is explained by none of them: that comes first.
    #[serde(default)]
    pub leading_account: Option<LeadingAccount>,
    /// Causes with evidence that are too small to be findings, the largest first.
    #[serde(default)]
    pub below_bar: Vec<BelowBar>,
    /// What the recorder itself took, which is in no finding; `None`: nothing that was seen.
    #[serde(default)]
    pub own_delay: Option<OwnDelay>,
    /// Causes that are no findings and were not looked for, by what was missing.
    #[serde(default)]
    pub not_looked_at: Vec<NotLookedAt>,
    /// Lost time that no finding explains, by account, largest first.
    pub unexplained: Vec<(Account, u64)>,
    /// The largest stacks in these accounts, account by account; of an account that is explained
    /// in part, what is explained may be among them.
    pub unexplained_stacks: Vec<LostStack>,
    /// Repeated events that come at a phase of some period, the surest first.
    #[serde(default)]
    pub rhythms: Vec<Rhythm>,
    /// Other programs that ran when repeated events came, the surest first.
    #[serde(default)]
    pub coincidences: Vec<Coincidence>,
    /// Count by kind.
    pub losses: BTreeMap<String, u64>,
}

/// Repeated events that do not come at any time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS))]
pub struct Rhythm {
    /// Which, in words.
    pub events: String,
    /// How many; those that follow closely count as one.
    pub n: u64,
    /// What they keep to.
    pub kind: RhythmKind,
    /// Probability that events at any time would look so, times the number of tests made.
    pub p: f64,
}

/// What repeated events keep to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum RhythmKind {
    /// A phase of a period of the wall clock.
    WallClock {
        /// Its length.
        period_ns: u64,
        /// Mean time after its beginning.
        phase_ns: u64,
    },
    /// A phase of the period of other events.
    Others {
        /// Which, in words.
        events: String,
        /// Their period.
        period_ns: u64,
        /// Mean time after them.
        phase_ns: u64,
    },
    /// Exactly one in the life of each process, from one exec to the next.
    OncePerProcess,
}

/// Repeated events come while another program runs, more often than chance would have it. That is no
/// cause yet: both may follow from a third.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS))]
pub struct Coincidence {
    /// Name of the program.
    pub comm: String,
    /// Its processes that ran: one after the other, or at once.
    pub pids: Vec<u32>,
    /// The events, in words.
    pub events: String,
    /// How many; those that follow closely count as one.
    pub n: u64,
    /// Of these, while the program ran.
    pub seen: u64,
    /// How many would be by chance.
    pub expected: f64,
    /// Probability that chance does as well, times the number of tests made.
    pub p: f64,
}
