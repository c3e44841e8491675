//! Who waited for whom, on an axis of time: one interval of the run for each finding.
//!
//! The interval is one of the longest, of which `explain --outlier` says that its first cause is the
//! finding's, or one in its chain, and that these took at least half of it. From it the picture goes to the thread that held the lock, had the CPU or ended the
//! wait, to what that one waited for meanwhile, and so on.

use std::collections::{HashMap, HashSet};

use explain::{PartialRun, Question};
use model::units::duration;
use model::{Account, Context, Explanation, Finding, Outlier, OutlierKind, Run};
use report::Class;
use serde::Serialize;

use crate::timeline::largest;

/// Findings that get a picture: the first.
const FINDINGS: usize = 4;
/// Intervals that are asked about, the longest first, ...
const ASKED: usize = 30;
/// ... and of these so many of one kind of wait of one program.
const OF_A_KIND: usize = 3;
/// Threads in a picture.
const LANES: usize = 6;

/// An interval that shows a finding.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Picture {
    /// Place of the finding.
    pub finding: usize,
    /// Number of the interval in `show` and `explain --outlier`.
    pub number: usize,
    /// The interval in words.
    pub text: String,
    /// The command that explains it.
    pub command: String,
    /// Its begin, since the start of the run.
    pub from_ns: u64,
    /// Its end.
    pub to_ns: u64,
    /// Who waited first, then whom it waited for, and so on.
    pub lanes: Vec<PictureLane>,
}

/// A thread of a picture.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct PictureLane {
    /// Its name and number.
    pub name: String,
    /// What it has to do with the one above.
    pub role: String,
    /// What it did.
    pub bars: Vec<Bar>,
    /// When it let the one above go on; `None`: it is not known to have.
    pub ends_ns: Option<u64>,
}

/// Something that a thread did for a time.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Bar {
    /// Begin, since the start of the run.
    pub from_ns: u64,
    /// End.
    pub to_ns: u64,
    /// Place of its class.
    pub class: usize,
    /// What it did.
    pub text: String,
    /// True if the length is known and where it lies is not.
    pub somewhere: bool,
}

/// Pictures for the first findings, where an interval shows them.
pub fn pictures(run: &Run, explanation: &Explanation, name: &str) -> Vec<Picture> {
    let mut wanted: Vec<(usize, Vec<&str>)> =
        explanation.findings.iter().map(causes).enumerate().take(FINDINGS).collect();
    let mut pictures = Vec::new();
    if run.jitter.is_some() {
        return pictures;
    }
    for number in candidates(run) {
        if wanted.is_empty() {
            break;
        }
        let Some(answer) = answer(run, number) else { continue };
        let most = run.outliers[number - 1].duration_ns / 2;
        if let Some(at) = wanted.iter().position(|(_, causes)| shows(&answer, causes, most)) {
            let (finding, _) = wanted.remove(at);
            pictures.push(picture(run, number, finding, name));
        }
    }
    pictures.sort_by_key(|picture| picture.finding);
    pictures
}

/// The cause of a finding, and those that its chain goes through.
fn causes(finding: &Finding) -> Vec<&str> {
    let chain = finding.chain.iter().filter_map(|link| link.cause.as_deref());
    [finding.cause.as_str()].into_iter().chain(chain).collect()
}

/// Numbers of the intervals that are asked about, from 1.
fn candidates(run: &Run) -> Vec<usize> {
    let mut seen: HashMap<(&str, Account, OutlierKind), usize> = HashMap::new();
    let mut numbers = Vec::new();
    // Of a wait it is known who ended it; a whole system call may have had several.
    // Most waits for what others send, and most sleeps, are waits for work.
    let may_be_idle = |o: &Outlier| {
        matches!(Class::of(largest(o)), Class::Message | Class::Sleep | Class::Unknown)
    };
    let mut order: Vec<(usize, &Outlier)> = run.outliers.iter().enumerate().collect();
    order.sort_by_key(|(_, o)| (o.kind == OutlierKind::Syscall, may_be_idle(o)));
    for (place, outlier) in order {
        let n = seen.entry((&outlier.comm, largest(outlier), outlier.kind)).or_default();
        *n += 1;
        let is_of_thread = outlier.kind != OutlierKind::LockHold;
        if is_of_thread && *n <= OF_A_KIND && numbers.len() < ASKED {
            numbers.push(place + 1);
        }
    }
    numbers
}

/// What `explain --outlier` says.
fn answer(run: &Run, number: usize) -> Option<Explanation> {
    let partial = PartialRun::new(run, &Question::Outlier(number)).ok()?;
    Some(explain::explain_part(&partial))
}

/// True if the first cause is one of these, and they took `most` of the interval.
fn shows(answer: &Explanation, causes: &[&str], most: u64) -> bool {
    let is_one = |finding: &&Finding| causes.contains(&finding.cause.as_str());
    let of_these = answer.findings.iter().filter(is_one);
    let lost_ns = of_these.fold(0u64, |sum, finding| sum.saturating_add(finding.lost_ns));
    answer.findings.first().as_ref().is_some_and(is_one) && lost_ns >= most
}

fn picture(run: &Run, number: usize, finding: usize, name: &str) -> Picture {
    let outlier = &run.outliers[number - 1];
    let since = |ns: u64| ns.saturating_sub(run.header.started_ns);
    Picture {
        finding,
        number,
        text: report::outlier::sentence(outlier, run),
        command: format!("whylag explain {name} --outlier {number}"),
        from_ns: since(outlier.start_ns),
        to_ns: since(outlier.end_ns()),
        lanes: lanes(run, outlier),
    }
}

/// The thread that waited, the one that it waited for, and so on.
fn lanes(run: &Run, first: &Outlier) -> Vec<PictureLane> {
    let since = |ns: u64| ns.saturating_sub(run.header.started_ns);
    let mut lanes = vec![PictureLane {
        name: format!("{} (tid {})", first.comm, first.tid),
        role: "was held up".to_owned(),
        bars: bars(run, first),
        ends_ns: None,
    }];
    let mut known = HashSet::from([first.tid]);
    let mut at = first;
    if matches!(first.kind, OutlierKind::Syscall | OutlierKind::FirstCall) {
        let waits: Vec<&Outlier> = overlapping(run, first.tid, first)
            .into_iter()
            .filter(|one| one.kind != OutlierKind::Syscall)
            .collect();
        if let Some(longest) = waits.iter().max_by_key(|one| one.duration_ns) {
            lanes.push(PictureLane {
                name: format!("{} (tid {})", first.comm, first.tid),
                role: "its waits in that time".to_owned(),
                bars: waits.iter().flat_map(|one| bars(run, one)).collect(),
                ends_ns: None,
            });
            at = longest;
        }
    }
    while lanes.len() < LANES
        && let Some(other) = Other::of(at)
        && known.insert(other.tid)
    {
        let theirs = overlapping(run, other.tid, at);
        let mut drawn: Vec<Bar> = theirs.iter().flat_map(|one| bars(run, one)).collect();
        drawn.retain(|bar| bar.to_ns > since(at.start_ns) && bar.from_ns < since(at.end_ns()));
        drawn.extend(other.bar(run, at));
        if drawn.is_empty() {
            drawn.push(unseen(run, at));
        }
        let ends_ns = other.ended.then(|| since(woken_ns(at)));
        let (name, role) = (format!("{} (tid {})", other.comm, other.tid), other.role.to_owned());
        lanes.push(PictureLane { name, role, bars: drawn, ends_ns });
        match theirs.into_iter().max_by_key(|one| one.duration_ns) {
            Some(next) => at = next,
            None => break,
        }
    }
    lanes
}

/// What an interval consists of, where the order is known: a sleep, then the wait for a CPU.
fn bars(run: &Run, outlier: &Outlier) -> Vec<Bar> {
    let since = |ns: u64| ns.saturating_sub(run.header.started_ns);
    let (from_ns, to_ns) = (since(outlier.start_ns), since(outlier.end_ns()));
    let account = largest(outlier);
    let bar = |from_ns: u64, to_ns: u64, account: Account| Bar {
        from_ns,
        to_ns,
        class: Class::of(account).place(),
        text: match (outlier.kind, &outlier.syscall) {
            (OutlierKind::Syscall, Some(call)) => {
                let (length, call) = (duration(to_ns - from_ns), call.call);
                format!("{length} in {call}, most of it {}", account.describe())
            }
            (OutlierKind::FirstCall, _) => {
                format!(
                    "{} in a first call, most of it {}",
                    duration(to_ns - from_ns),
                    account.describe()
                )
            }
            _ => format!("{} {}", duration(to_ns - from_ns), account.describe()),
        },
        somewhere: false,
    };
    let woken = since(woken_ns(outlier)).max(from_ns);
    if outlier.kind == OutlierKind::OffCpu && !account.is_waiting_for_cpu() && woken < to_ns {
        return vec![bar(from_ns, woken, account), bar(woken, to_ns, Account::RunnableWakeup)];
    }
    vec![bar(from_ns, to_ns, account)]
}

/// When a sleep ended: what comes after it is the wait for a CPU.
fn woken_ns(outlier: &Outlier) -> u64 {
    let ready = outlier.breakdown.sum_of(Account::is_runnable).min(outlier.duration_ns);
    outlier.end_ns().saturating_sub(ready)
}

/// Intervals of a thread that overlap another interval, in time order: those off the CPU, or else
/// its system calls.
fn overlapping<'a>(run: &'a Run, tid: u32, at: &Outlier) -> Vec<&'a Outlier> {
    let mut theirs: Vec<&Outlier> = run
        .outliers
        .iter()
        .filter(|o| o.tid == tid && o.kind.is_own_time())
        .filter(|o| o.start_ns < at.end_ns() && o.end_ns() > at.start_ns)
        .collect();
    if theirs.iter().any(|o| o.kind != OutlierKind::Syscall) {
        theirs.retain(|o| o.kind != OutlierKind::Syscall);
    }
    theirs.sort_by_key(|outlier| outlier.start_ns);
    theirs
}

/// Nothing long is known of the thread in that time.
fn unseen(run: &Run, at: &Outlier) -> Bar {
    let since = |ns: u64| ns.saturating_sub(run.header.started_ns);
    Bar {
        from_ns: since(at.start_ns),
        to_ns: since(at.end_ns()),
        class: Class::Unknown.place(),
        text: format!(
            "on a CPU, or in waits below {}: none of its intervals here was kept",
            duration(run.header.threshold_ns)
        ),
        somewhere: false,
    }
}

/// Whom a thread waited for.
struct Other<'a> {
    tid: u32,
    comm: &'a str,
    role: &'static str,
    /// It ended the wait.
    ended: bool,
    /// For how long it was in the way, and what it did then.
    time: Option<(u64, Account, &'static str)>,
}

impl<'a> Other<'a> {
    /// The holder of the lock, who had the CPU, or who ended the wait.
    fn of(outlier: &'a Outlier) -> Option<Other<'a>> {
        let waker = outlier.waker.as_ref().filter(|waker| waker.context == Context::Task);
        if let Some(holder) = &outlier.holder {
            return Some(Other {
                tid: holder.tid,
                comm: &holder.comm,
                role: "had the lock",
                ended: waker.is_some_and(|waker| waker.tid == holder.tid),
                time: Some((holder.overlap_ns, Account::Kernel, "with the lock")),
            });
        }
        let for_cpu = largest(outlier).is_waiting_for_cpu();
        if let (true, Some(runner)) = (for_cpu, outlier.ran_instead.first()) {
            return Some(Other {
                tid: runner.tid,
                comm: &runner.comm,
                role: "had the CPU",
                ended: false,
                time: Some((runner.ns, Account::Running, "on that CPU")),
            });
        }
        let waker = waker?;
        let (tid, comm) = (waker.tid, waker.comm.as_str());
        Some(Other { tid, comm, role: "ended the wait", ended: true, time: None })
    }

    /// The time in which it was in the way.
    fn bar(&self, run: &Run, at: &Outlier) -> Option<Bar> {
        let (ns, account, doing) = self.time?;
        let since = |ns: u64| ns.saturating_sub(run.header.started_ns);
        let length = ns.min(at.duration_ns);
        let to_ns = since(at.end_ns());
        Some(Bar {
            from_ns: to_ns.saturating_sub(length),
            to_ns,
            class: Class::of(account).place(),
            text: format!("{} {doing}", duration(ns)),
            somewhere: length < at.duration_ns,
        })
    }
}
