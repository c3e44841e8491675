//! Requests wait in the queue of their socket because whoever reads them does something else: what an
//! event loop that is blocked and a pool whose workers are all busy have in common.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use model::{Account, Accounts, Message, MessageTime, Outlier, Run, ThreadAccounts, part_of};

use crate::case::Case;
use crate::case::lost::{Class, class};
use crate::case::requests::{
    Busy, Queue, did, intervals_by_thread, is_in_epoll, kept, load_ns, queues,
};
use crate::case::safepoints::is_stop;
use crate::case::slowest::cost;
use crate::cause::{Absent, Claim, OfRequests};
use crate::causes::ids;
use crate::causes::tries::{SLEEP, sleeps_between_tries};
use crate::text::{count, counted, duration, mean, percent, quantiles};

/// What to do where all workers of a pool are busy.
pub(super) const COMPUTES: &str = "The workers compute: let a request take less CPU time, or add workers and CPUs \
                        together.";
pub(super) const WAITS: &str = "The workers wait themselves for most of the time: shorten that wait, or have more \
                     workers (pm.max_children, MaxRequestWorkers, --workers, --threads), which costs \
                     memory and no CPU.";

/// Things that threads did which are worth words.
const SHOWN: usize = 4;
/// Stacks of samples worth a line, and their frames.
const STACKS_SHOWN: usize = 2;
const FRAMES_SHOWN: usize = 6;

/// A port or path, and what its readers did while its requests waited.
pub(super) struct HeldUp<'a> {
    pub queue: Queue<'a>,
    /// Of the readers: what kept them from reading and is nobody else's cause.
    pub lost: Accounts,
    /// What that took of the slowest requests.
    pub cost: OfRequests,
}

/// The one with the longest waiting whose readers are of this kind, and were kept from reading by
/// nothing that has a cause of its own. One whose requests wait for a small part of their time, though
/// that is long, hides no other.
pub(super) fn held_up<'a>(case: &Case<'a>, is_loop: bool) -> Result<HeldUp<'a>, Absent> {
    let queues = queues(case.run);
    let queued = queues.iter().map(Queue::waited_ns).fold(0u64, u64::saturating_add);
    let (mut all, mut absent) = (Vec::new(), None);
    for queue in queues.into_iter().filter(|queue| queue.is_loop == is_loop) {
        match of_queue(case, queue) {
            Ok(held) => all.push(held),
            Err(why) => _ = absent.get_or_insert(why),
        }
    }
    let felt = all.iter().position(|held| held.cost.is_felt()).unwrap_or(0);
    match all.is_empty() {
        false => Ok(all.swap_remove(felt)),
        true => Err(absent.unwrap_or_else(|| no_queue(case.run, queued, is_loop))),
    }
}

fn no_queue(run: &Run, queued: u64, is_loop: bool) -> Absent {
    if run.messages.programs.is_empty() {
        return Absent("no requests were seen at sockets".to_owned());
    }
    let kept_ns = kept(run).map(|message| message.total_ns()).fold(0u64, u64::saturating_add);
    let readers = if is_loop { "an event loop" } else { "a pool of workers" };
    Absent(format!(
        "of the {} that {} took which were kept whole, {} was waiting in the queues of sockets, and none of \
         it for {readers}",
        duration(kept_ns),
        counted(kept(run).count() as u64, "request"),
        duration(queued)
    ))
}

fn of_queue<'a>(case: &Case<'a>, queue: Queue<'a>) -> Result<HeldUp<'a>, Absent> {
    let lost = lost(case, &queue);
    let whole: u64 = queue.busy.iter().map(Busy::ns).fold(0, u64::saturating_add);
    if lost.total() < whole / 2 {
        return Err(Absent(format!(
            "{} waited {} for {} that did not wait for work or for a CPU, a disk or a lock for {} of \
             that only",
            counted(queue.waited.len() as u64, "request"),
            duration(queue.waited_ns()),
            counted(queue.busy.len() as u64, "thread"),
            percent(lost.total(), whole)
        )));
    }
    let program = queue.program.program;
    let slowest = cost(case.slowest(), |one| match one.message.program == program {
        true => queue.waited_for_reader(one),
        false => 0,
    });
    let of_all = queue.queued.sum() as f64 / queue.total.sum().max(1) as f64;
    let of_all = of_all * lost.total() as f64 / whole.max(1) as f64;
    let of_all = of_all.max(slept_beside(case, &queue));
    let lost = of_all_turns(case, &queue, lost, whole);
    Ok(HeldUp { queue, lost, cost: OfRequests { slowest, of_all } })
}

/// The part of the time of the requests that were kept in which their loop slept with several in hand.
fn slept_beside(case: &Case, queue: &Queue) -> f64 {
    let is_of_it = |m: &&Message| (m.program, m.flow) == (queue.program.program, queue.flow.flow);
    let (slept, all) = kept(case.run).filter(is_of_it).fold((0u64, 0u64), |(slept, all), m| {
        (slept.saturating_add(queue.slept_beside(m)), all.saturating_add(m.total_ns()))
    });
    slept as f64 / all.max(1) as f64
}

/// How many requests waited to be read by a loop, if these are more than were kept.
fn waited_of_all(run: &Run, queue: &Queue) -> Option<u64> {
    let long = queue.queued.ranges().filter(|(from, _, _)| *from >= run.header.threshold_ns.max(1));
    let waited = long.map(|(_, _, n)| n).sum();
    (queue.is_loop && waited > queue.waited.len() as u64).then_some(waited)
}

/// Most requests of a busy port are not kept, and what a loop did while these waited is in no span. Whoever
/// comes at no special time finds it at something else as often as it is: the part of all requests that waited
/// is that of the time in which there were any (Poisson arrivals see time averages: Wolff, 1982; requests that come
/// together count as often as they are, so the thread's own time in the account is the most).
fn of_all_turns(case: &Case, queue: &Queue, lost: Accounts, whole_ns: u64) -> Accounts {
    let Some(waited) = waited_of_all(case.run, queue) else { return lost };
    let is_of_it = |m: &&Message| (m.program, m.flow) == (queue.program.program, queue.flow.flow);
    let load = load_ns(case.run, is_of_it, 0).min(case.run.length_ns());
    let busy_ns = part_of(load, waited, queue.queued.count());
    let tids: BTreeSet<u32> = queue.busy.iter().map(|busy| busy.tid).collect();
    let threads = case.run.threads.iter().filter(|thread| tids.contains(&thread.tid));
    let mut most = Accounts::new();
    threads.for_each(|thread| most.merge(&thread.accounts));
    let all_ns = busy_ns.saturating_mul(tids.len() as u64);
    let scale = (all_ns as f64 / whole_ns.max(1) as f64).max(1.0);
    let of_all = |ns: u64| (ns as f64 * scale) as u64;
    let is_work = |account| class(account) == Class::Work;
    let (ran, could_run) = (of_all(lost.sum_of(is_work)), most.sum_of(is_work));
    // A loop that runs does so in many accounts, of which the spans of a few requests show one.
    let ran = most
        .iter()
        .filter(|(account, _)| is_work(*account))
        .map(|(account, ns)| (account, part_of(ran.min(could_run), ns, could_run)));
    let slept = lost.iter().filter(|(account, _)| !is_work(*account));
    let slept = slept.map(|(account, ns)| (account, of_all(ns).min(most.get(account))));
    ran.chain(slept).collect()
}

/// What kept the readers from reading. What they were held up for themselves, a disk or a lock, has a
/// cause of its own.
fn lost(case: &Case, queue: &Queue) -> Accounts {
    let mut lost = Accounts::new();
    let by_thread = intervals_by_thread(case.run);
    for busy in &queue.busy {
        let own = by_thread.get(&busy.tid).map_or(&[][..], Vec::as_slice);
        let theirs: Vec<&Outlier> =
            own.iter().filter(|wait| has_own_cause(case, wait)).copied().collect();
        let theirs: Accounts = did(case.run, &busy.spans, &theirs)
            .iter()
            .filter_map(|time| Some((time.account?, time.ns)))
            .collect();
        let Some(thread) = case.run.threads.iter().find(|t| t.tid == busy.tid) else { continue };
        let ran = thread.accounts.own_code();
        let unknown = busy.did.iter().filter(|time| time.account.is_none());
        let unknown = unknown.map(|time| time.ns).fold(0, u64::saturating_add);
        let waited = unknown - part_of(unknown, ran_ns(thread), not_kept_ns(thread, own));
        for (account, ns) in busy.accounts(ran, queue.polls_for_others).iter() {
            let ns = ns.saturating_sub(if account == ran { waited } else { 0 });
            let ns = ns.saturating_sub(theirs.get(account));
            lost.add(account, ns.min(thread.accounts.get(account)));
        }
    }
    lost
}

/// What a thread ran.
fn ran_ns(thread: &ThreadAccounts) -> u64 {
    thread.accounts.sum_of(|account| class(account) == Class::Work)
}

/// The same, and what it waited for in intervals too short to be kept that is no waiting for work.
fn not_kept_ns(thread: &ThreadAccounts, kept: &[&Outlier]) -> u64 {
    let mut of_kept = Accounts::new();
    kept.iter().for_each(|interval| of_kept.merge(&interval.breakdown));
    let waits = thread.accounts.iter().filter(|(account, _)| is_wait_of_its_own(*account));
    let short = waits.map(|(account, ns)| ns.saturating_sub(of_kept.get(account)));
    short.fold(ran_ns(thread), u64::saturating_add).max(1)
}

/// A disk, a lock: neither work nor waiting for work, nor for a CPU.
fn is_wait_of_its_own(account: Account) -> bool {
    matches!(account, Account::Blocked(_)) && class(account) == Class::Lost
}

/// A wait for a lock, or for the answer of a recorded thread, a sleep between tries, or a stop of the
/// whole program, which have causes of their own.
pub(super) fn has_own_cause(case: &Case, wait: &Outlier) -> bool {
    if is_stop(wait) {
        return true;
    }
    let Some(account) = wait.blocked.map(Account::Blocked) else { return false };
    if account == SLEEP && sleeps_between_tries(case, wait.tgid) {
        return true;
    }
    let peer = wait.waker.as_ref().map_or(0, |waker| waker.tgid);
    case.locks
        .iter()
        .any(|word| (word.tgid, word.account, word.address) == (wait.tgid, account, wait.object))
        || case.answers.iter().any(|pair| {
            (pair.tgid, pair.account, pair.peer_tgid) == (wait.tgid, account, peer)
                && pair.lost_ns() > 0
        })
}

impl HeldUp<'_> {
    /// A claim of it.
    pub(super) fn claim(&self, title: String) -> Claim {
        let mut claim = Claim::new(title, self.lost.clone(), self.queue.waited.len() as u64);
        claim.takes_idle = true;
        claim.requests = Some(self.cost.clone());
        claim
    }

    /// Part of what the readers did that was on a CPU.
    pub(super) fn on_cpu(&self) -> f64 {
        let ran = self.lost.sum_of(|account| class(account) == Class::Work);
        ran as f64 / self.lost.total().max(1) as f64
    }

    /// The longest time in which a thread did not read.
    pub(super) fn longest_ns(&self) -> u64 {
        let spans = self.queue.busy.iter().flat_map(|busy| &busy.spans);
        spans.map(|span| span.ns()).max().unwrap_or(0)
    }

    /// The longest that a request waited to be read, of those that were kept.
    pub(super) fn longest_wait(&self) -> String {
        let waits = self.queue.waited.iter().map(|message| message.infrastructure_ns());
        duration(waits.max().unwrap_or(0))
    }

    /// `computes`, `waits in recvfrom`: what the readers did most.
    pub(super) fn main(&self, case: &Case) -> String {
        let did = self.queue.did();
        match did.iter().find(|time| self.queue.keeps_from_reading(time)) {
            None => "computes".to_owned(),
            Some(MessageTime { account: None, .. }) => match self.has_run(case) {
                true => "computes".to_owned(),
                false => "runs, or waits for short times,".to_owned(),
            },
            Some(time) => match (time.account, time.call) {
                (Some(Account::Blocked(_)), Some(call)) => format!("waits in {call}"),
                (Some(account @ Account::Blocked(_)), None) => account.describe().to_owned(),
                _ => "computes".to_owned(),
            },
        }
    }

    /// What kept the readers most is another epoll than that of their connections.
    pub(super) fn is_mostly_in_epoll(&self) -> bool {
        let did = self.queue.did();
        let most = did.iter().find(|time| self.queue.keeps_from_reading(time));
        most.is_some_and(is_in_epoll)
    }

    /// No interval was kept of that time of the readers: they were on a CPU for most of it, by what they were in
    /// all that was not kept.
    fn has_run(&self, case: &Case) -> bool {
        let by_thread = intervals_by_thread(case.run);
        let readers = self.queue.busy.iter().map(|busy| busy.tid);
        let (mut ran, mut all) = (0u64, 0u64);
        for tid in readers {
            let kept = by_thread.get(&tid).map_or(&[][..], Vec::as_slice);
            for thread in case.run.threads.iter().filter(|thread| thread.tid == tid) {
                ran = ran.saturating_add(ran_ns(thread));
                all = all.saturating_add(not_kept_ns(thread, kept));
            }
        }
        ran >= all / 2
    }

    /// What the readers did, in words.
    pub(super) fn did(&self) -> String {
        let did = self.queue.did();
        let all = did.iter().map(|time| time.ns).fold(0u64, u64::saturating_add);
        let worth = did.iter().take(SHOWN).filter(|time| time.ns >= all / 50);
        worth.map(|time| in_words(time, all)).collect::<Vec<_>>().join(", ")
    }

    /// Evidence that both kinds have.
    pub(super) fn evidence(&self, case: &Case, claim: &mut Claim) {
        let queue = &self.queue;
        let waited = queue.waited.len() as u64;
        claim.saw(
            format!(
                "{} of {} ({}): {} until answered; in the sockets' queues {}",
                counted(queue.total.count(), "request"),
                queue.flow.name,
                case.process_name(queue.program.tgid),
                quantiles(&queue.total),
                quantiles(&queue.queued),
            ),
            "arrival, read and send of each request at its socket",
        );
        claim.saw(
            format!(
                "of those kept whole {} waited {} to be read, {} on average; up to {} at once",
                count(waited),
                duration(queue.waited_ns()),
                mean(queue.waited_ns(), waited),
                count(self.most_at_once())
            ),
            "slow requests and the control group",
        );
        claim.saw_if(
            waited_of_all(case.run, queue).map(|waited| {
                let all = queue.queued.count();
                format!(
                    "{} of all {} waited to be read ({}): for that part of the time in which there \
                     were requests the loop was at something else",
                    count(waited),
                    count(all),
                    percent(waited, all)
                )
            }),
            "histogram of the times in the sockets' queues; an estimate",
        );
        for line in stacks(case, queue.program.tgid) {
            claim.saw(line, "CPU samples of the process");
        }
    }

    /// As many of those kept waited at the same time.
    fn most_at_once(&self) -> u64 {
        let waited = self.queue.waited.iter();
        let mut edges: Vec<(u64, i64)> =
            waited.flat_map(|m| [(m.t0_ns, 1), (m.logic_start_ns, -1)]).collect();
        edges.sort_unstable();
        let (mut now, mut most) = (0i64, 0i64);
        for (_, step) in edges {
            now += step;
            most = most.max(now);
        }
        most.unsigned_abs()
    }

    /// Excludes that they waited for a CPU, if they did not.
    pub(super) fn rule_runqueue_out(&self, claim: &mut Claim) {
        let did = self.queue.did();
        let all = did.iter().map(|time| time.ns).fold(0u64, u64::saturating_add);
        let for_cpu = did.iter().filter(|t| t.account.is_some_and(|a| a.is_waiting_for_cpu()));
        let for_cpu = for_cpu.map(|time| time.ns).fold(0u64, u64::saturating_add);
        if for_cpu < all / 5 {
            claim.rule_out(
                ids::CPU_RUNQUEUE,
                format!(
                    "while requests waited, their readers were without a CPU for {} of {} ({})",
                    duration(for_cpu),
                    duration(all),
                    percent(for_cpu, all)
                ),
            );
        }
    }
}

/// `ran on a CPU 98 % (1.20 s)`, `waiting for a socket in recvfrom 91 % (1.10 s)`.
pub(super) fn in_words(time: &MessageTime, all: u64) -> String {
    let what = match (time.account, time.call) {
        (None, _) => "on a CPU, or waiting for short times,".to_owned(),
        (Some(account), Some(call)) => format!("{} in {call}", account.describe()),
        (Some(account), None) => account.describe().to_owned(),
    };
    format!("{what} {} ({})", percent(time.ns, all), duration(time.ns))
}

/// Where the process ran, by its samples.
fn stacks(case: &Case, tgid: u32) -> Vec<String> {
    let samples = case.run.sums.paths.iter().filter(|path| path.sampled && path.tgid == tgid);
    let samples: Vec<_> = samples.collect();
    let all = samples.iter().map(|path| path.ns).fold(0u64, u64::saturating_add);
    let mut by_stack = BTreeMap::<Vec<String>, (u64, u64)>::new();
    for path in samples {
        let mut frames = case.labels(path.user);
        frames.truncate(FRAMES_SHOWN);
        if !frames.is_empty() {
            let (ns, samples) = by_stack.entry(frames).or_default();
            *ns = ns.saturating_add(path.ns);
            *samples = samples.saturating_add(path.count);
        }
    }
    let mut largest: Vec<_> = by_stack.into_iter().filter(|(_, (ns, _))| *ns >= all / 20).collect();
    largest.sort_by_key(|(_, sums)| Reverse(*sums));
    let line = |(frames, (ns, n)): (Vec<String>, (u64, u64))| {
        let part = percent(ns, all);
        format!("{part} of its CPU time ({}) in {}", counted(n, "sample"), frames.join(" <- "))
    };
    largest.into_iter().take(STACKS_SHOWN).map(line).collect()
}
