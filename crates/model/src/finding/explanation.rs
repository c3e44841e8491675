//! All that is said of a run, or of a part of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::patterns::{Coincidence, Rhythm};
use crate::{Account, Finding, OnCpu, RunId};

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
    /// time only; of each first what takes the largest part of the slowest requests of a port, then
    /// the largest share; empty: no known cause.
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
    /// What the slowest requests did, where no finding says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow_requests: Option<SlowRequests>,
    /// A thread that always had something to do, while others waited for it: it limits what all of them do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub never_rests: Option<NeverRests>,
    /// Child processes that a process waits for, one after the other, while they compute for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_children: Option<WorkingChildren>,
    /// A short system call that is made very often.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frequent_call: Option<FrequentCall>,
    /// The peer that each request of a process calls many times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub many_calls: Option<ManyCalls>,
    /// Time that the threads waited for child processes which are not recorded themselves.
    #[serde(default)]
    pub unrecorded_children_ns: u64,
    /// Ports and paths of which requests were held open, those with most time first.
    #[serde(default)]
    pub held_open: Vec<HeldOpen>,
    /// Peers that have not answered what was sent to them when the recording ended, the longest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unanswered: Vec<Unanswered>,
    /// Causes that are no findings and were not looked for, by what was missing.
    #[serde(default)]
    pub not_looked_at: Vec<NotLookedAt>,
    /// Lost time that no finding explains, by account, largest first.
    pub unexplained: Vec<(Account, u64)>,
    /// The largest stacks in these accounts, account by account; of an account that is explained
    /// in part, what is explained may be among them.
    pub unexplained_stacks: Vec<LostStack>,
    /// Where there is no finding above the bar, and most of the time went by waiting for work: its
    /// largest stacks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub idle_stacks: Vec<LostStack>,
    /// Tasks that wait inside of a runtime, where no thread sleeps for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unseen_tasks: Vec<UnseenTasks>,
    /// Threads that were on a CPU for most of their time, and what they ran there; of a thread that
    /// was asked about, whatever it ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on_cpu: Vec<OnCpu>,
    /// Repeated events that come at a phase of some period, the surest first.
    #[serde(default)]
    pub rhythms: Vec<Rhythm>,
    /// Other programs that ran when repeated events came, the surest first.
    #[serde(default)]
    pub coincidences: Vec<Coincidence>,
    /// Count by kind.
    pub losses: BTreeMap<String, u64>,
}

/// Waits that are not looked at: of a runtime's tasks for one another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS))]
pub struct UnseenTasks {
    /// Name of the runtime.
    pub runtime: String,
    /// Which tasks, and what they wait for.
    pub waits: String,
    /// What shows them instead.
    pub shown_by: String,
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

/// A thread that waits for something to do for less than a tenth of its life, while at least one other sleeps
/// until it lets that one go on: for room in its queue or for what it works on, or for something to do that
/// it gives out, which looks the same. Those waits count as waiting for work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS))]
pub struct NeverRests {
    /// Thread.
    pub tid: u32,
    /// Its name.
    pub comm: String,
    /// How long others waited for it.
    pub waited_ns: u64,
    /// The same as a part of the wall time, 0 to 1.
    pub wall_share: f64,
    /// The part of its life in which it had something to do, 0 to 1.
    pub busy_share: f64,
}

/// A process waits for child processes of one name, one after the other, which run on a CPU for most of that. What
/// they compute is its own work, done by others, so these waits count as waiting for work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS))]
pub struct WorkingChildren {
    /// The process that waits.
    pub tgid: u32,
    /// Its name.
    pub comm: String,
    /// That of the children.
    pub child: String,
    /// How many there were.
    pub children: u64,
    /// How long it waited for them.
    pub ns: u64,
    /// The same as a part of the recording, 0 to 1.
    pub share: f64,
}

/// A system call that takes a quarter of the wall time on CPUs, and so little each time that most of that is for
/// making it at all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS))]
pub struct FrequentCall {
    /// Which.
    pub call: String,
    /// How often it was made, by all recorded threads.
    pub count: u64,
    /// Not all were recorded: that is estimated from windows.
    pub is_estimate: bool,
    /// `count` for each second of the recording.
    pub per_second: f64,
    /// How long one took on average, with what recording it adds, ns.
    pub mean_ns: u64,
    /// The part of the wall time, 0 to 1.
    pub share: f64,
}

/// The slowest requests of a port, and what their threads did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS))]
pub struct SlowRequests {
    /// Its name; `None` where there is only this.
    pub at: Option<String>,
    /// How many.
    pub of: u64,
    /// Mean time until they were answered.
    pub mean_ns: u64,
    /// What their threads did, the largest part first.
    pub times: Vec<RequestTime>,
    /// Where their threads were on a CPU most often, by samples, if that is most of their time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_cpu: Option<RequestFunction>,
}

/// A function in which threads of requests were on a CPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS))]
pub struct RequestFunction {
    /// Its name.
    pub name: String,
    /// Part of the CPU time of these threads in it and in what it calls, 0 to 1.
    pub share: f64,
}

/// A part of the time of requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS))]
pub struct RequestTime {
    /// They were in the queues of their sockets, and this is what whoever read them later did; else what the
    /// thread did that had read them.
    pub in_queue: bool,
    /// The account; `None`: on a CPU, or in waits too short to be kept.
    pub account: Option<Account>,
    /// System call it was in.
    pub call: Option<String>,
    /// Part of the time of the requests, 0 to 1.
    pub share: f64,
    /// Most of that ended because a time was over that the thread, or its process, had set.
    #[serde(default)]
    pub by_timer: bool,
}

/// The requests of a process call the same peer ten times or more each, and that takes a tenth of their time at
/// least.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS))]
pub struct ManyCalls {
    /// Process that calls: `gunicorn (pid 12)`.
    pub process: String,
    /// Whom it calls: `127.0.0.1:6379 (redis-server, pid 81)`.
    pub peer: String,
    /// Calls for each request, on average.
    pub per_request: f64,
    /// Mean time of a call until its answer arrived.
    pub mean_ns: u64,
    /// Mean time of a request until it was answered.
    pub request_ns: u64,
}

/// Requests that nobody worked on until they were answered: long polls and subscriptions, or waits for
/// what another request has, which looks the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS))]
pub struct HeldOpen {
    /// Process that answered.
    pub tgid: u32,
    /// Its name.
    pub comm: String,
    /// Port or path: `port 5432`.
    pub at: String,
    /// Requests.
    pub count: u64,
    /// Their times until they were answered, together.
    pub ns: u64,
    /// Longest.
    pub max_ns: u64,
    /// `ns` as a part of the time of all requests at that port, 0 to 1.
    pub share: f64,
    /// That is to be shown with the findings: there is none, or they are most of that time.
    pub matters: bool,
}

/// Connections on which a process has sent something to a peer and has had no answer for a second or more
/// when the recording ended: the peer hangs, or it has nothing to tell yet (a queue, a long poll, a log
/// that is shipped), which looks the same. Or packets of UDP to a peer that answered none of them, sent by a
/// process that asks a name server, or owes answers itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS))]
pub struct Unanswered {
    /// Process that has sent.
    pub tgid: u32,
    /// Its name.
    pub comm: String,
    /// Address of the peer; empty for sockets of AF_UNIX.
    pub to: String,
    /// The process at the other end, if it was recorded.
    pub peer: Option<u32>,
    /// Its name; empty if it is not known.
    pub peer_comm: String,
    /// Such connections.
    pub connections: u64,
    /// Of these, those on which nothing ever came.
    pub never: u64,
    /// Since the longest of them sent, until the end of the recording.
    pub ns: u64,
    /// Packets of UDP that were sent to it; 0 of connections of another kind.
    #[serde(default)]
    pub packets: u64,
    /// That is to be shown with the findings: nothing else is found, or an answer is owed.
    pub matters: bool,
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
