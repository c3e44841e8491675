//! Requests that waited in the queues of their sockets, and what the threads that read them in the
//! end did meanwhile.
//!
//! Known of the requests that were kept whole: slow ones and a sample of the others.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    Account, Accounts, Blocked, FlowKind, Histogram, Message, MessageBreakdown, MessageFlow,
    MessageMetric, MessageTime, Metric, Outlier, Run, SegmentKind, Syscall, TracedProgram,
};

use crate::case::loop_sleeps::loop_sleeps;
use crate::case::lost::{Class, class};
use crate::case::spans::{Span, union, within_all};
use crate::messages::{intervals, time_within};

/// A port or path of which requests waited to be read.
pub(crate) struct Queue<'a> {
    pub program: &'a TracedProgram,
    pub flow: &'a MessageFlow,
    /// Times in the queue of all requests.
    pub queued: Histogram,
    /// Times of all requests until they were answered.
    pub total: Histogram,
    /// Those kept that waited for as long as what is kept whole, and longer.
    pub waited: Vec<&'a Message>,
    /// Requests that were kept.
    pub kept: u64,
    /// All threads that read them.
    pub readers: BTreeSet<u32>,
    /// What kept them from those that waited, the thread with the most first.
    pub busy: Vec<Busy>,
    /// How a thread reads: requests of many connections in turn, or of one until that is done.
    pub is_loop: bool,
    /// The sleeps of the loop in epoll, while requests waited, were not for these.
    pub polls_for_others: bool,
    /// Times in which a loop slept for one of several that it had read, by thread.
    pub sleeps: BTreeMap<u32, Vec<Span>>,
}

/// A thread while requests waited that it read afterwards.
pub(crate) struct Busy {
    pub tid: u32,
    /// Without overlaps.
    pub spans: Vec<Span>,
    /// What it did, the largest first.
    pub did: Vec<MessageTime>,
}

impl Busy {
    /// What is claimable of what it did, by account; where that is not known it ran, which is put down
    /// to `ran`.
    pub(crate) fn accounts(&self, ran: Account, polls_for_others: bool) -> Accounts {
        let account = |time: &MessageTime| time.account.unwrap_or(ran);
        let did = self.did.iter().filter(|time| is_claimable(time, polls_for_others));
        did.map(|time| (account(time), time.ns)).collect()
    }

    /// All its times.
    pub(crate) fn ns(&self) -> u64 {
        self.spans.iter().map(|span| span.ns()).fold(0, u64::saturating_add)
    }
}

impl Queue<'_> {
    /// What the requests that were kept waited, together.
    pub(crate) fn waited_ns(&self) -> u64 {
        let waits = self.waited.iter().map(|message| message.infrastructure_ns());
        waits.fold(0, u64::saturating_add)
    }

    /// It is no wait for a CPU or for requests.
    pub(crate) fn keeps_from_reading(&self, time: &MessageTime) -> bool {
        keeps_from_reading(time, self.polls_for_others)
    }

    /// What one of its requests waited to be read while its reader did something else, which is no wait for a
    /// disk or a lock.
    pub(crate) fn waited_for_reader(&self, one: &MessageBreakdown) -> u64 {
        let queued = one.parts.iter().filter(|part| part.segment.kind == SegmentKind::ToLogic);
        let times = queued.flat_map(|part| &part.time);
        let times = times.filter(|time| is_claimable(time, self.polls_for_others));
        times.map(|time| time.ns).fold(self.slept_beside(&one.message), u64::saturating_add)
    }

    /// What one of its requests was in the hand of a loop that slept for this or another one.
    pub(crate) fn slept_beside(&self, message: &Message) -> u64 {
        let worked = Span { from_ns: message.logic_start_ns, to_ns: message.end_ns };
        self.sleeps.get(&message.tid).map_or(0, |sleeps| within_all(worked, sleeps))
    }

    /// All threads together, the largest first.
    pub(crate) fn did(&self) -> Vec<MessageTime> {
        let mut all = Vec::new();
        for busy in &self.busy {
            busy.did.iter().for_each(|time| add(&mut all, time.clone()));
        }
        all.sort_by_key(|time| std::cmp::Reverse(time.ns));
        all
    }
}

/// Those that are looked at, slow ones and a sample of the others.
pub(crate) fn kept(run: &Run) -> impl Iterator<Item = &Message> {
    run.messages.looked_at().chain(&run.messages.fast)
}

/// Without a request for so long there is no load. Of a port at least 50 requests of each second are kept, or all,
/// but in its first second, when it is not known how many there are, fewer.
const REST_NS: u64 = 1_000_000_000;

/// For how long there were such requests, ns, without the rests between them: a load may come in bursts, and a
/// recording begin before it and end after it. Where those who worked on them did so for longer, too few were
/// kept to show it, and it is the recording.
pub(crate) fn load_ns(run: &Run, is_such: impl Fn(&&Message) -> bool, worked_ns: u64) -> u64 {
    let with_rest = |message: &Message| Span {
        from_ns: message.t0_ns,
        to_ns: message.end_ns.saturating_add(REST_NS),
    };
    let bursts = union(&kept(run).filter(is_such).map(with_rest).collect::<Vec<_>>());
    let load =
        bursts.iter().map(|burst| burst.ns().saturating_sub(REST_NS)).fold(0, u64::saturating_add);
    if worked_ns > load.saturating_add(load / 20) { run.length_ns().max(1) } else { load.max(1) }
}

/// The intervals that were kept of each thread, in the order of their start.
pub(crate) fn intervals_by_thread(run: &Run) -> BTreeMap<u32, Vec<&Outlier>> {
    let mut by_thread = BTreeMap::<u32, Vec<&Outlier>>::new();
    for outlier in intervals(run) {
        by_thread.entry(outlier.tid).or_default().push(outlier);
    }
    by_thread.values_mut().for_each(|all| all.sort_by_key(|outlier| outlier.start_ns));
    by_thread
}

/// The ports and paths of a run where requests waited, those with the longest waiting first.
pub(crate) fn queues(run: &Run) -> Vec<Queue<'_>> {
    let by_thread = intervals_by_thread(run);
    let mut queues: Vec<Queue> = Vec::new();
    for program in &run.messages.programs {
        for flow in program.flows.iter().filter(|flow| flow.kind == FlowKind::Request) {
            queues.extend(queue(run, program, flow, &by_thread));
        }
    }
    queues.sort_by_key(|queue| std::cmp::Reverse(queue.waited_ns()));
    queues
}

fn queue<'a>(
    run: &'a Run,
    program: &'a TracedProgram,
    flow: &'a MessageFlow,
    by_thread: &BTreeMap<u32, Vec<&Outlier>>,
) -> Option<Queue<'a>> {
    let kept: Vec<&Message> =
        kept(run).filter(|m| (m.program, m.flow) == (program.program, flow.flow)).collect();
    let has_waited = |m: &&&Message| m.infrastructure_ns() >= run.header.threshold_ns.max(1);
    let waited: Vec<&Message> = kept.iter().filter(has_waited).copied().collect();
    let mut spans = BTreeMap::<u32, Vec<Span>>::new();
    for message in &waited {
        let span = Span { from_ns: message.t0_ns, to_ns: message.logic_start_ns };
        spans.entry(message.tid).or_default().push(span);
    }
    let is_loop = reads_in_turn(run, program.tgid, &kept);
    let sleeps = if is_loop { loop_sleeps(&kept, by_thread) } else { BTreeMap::new() };
    for (tid, sleeps) in &sleeps {
        spans.entry(*tid).or_default().extend(sleeps);
    }
    let busy = |(tid, spans): (&u32, &Vec<Span>)| {
        let spans = union(spans);
        let own = by_thread.get(tid).map_or(&[][..], Vec::as_slice);
        Busy { tid: *tid, did: did(run, &spans, own), spans }
    };
    let mut busy: Vec<Busy> = spans.iter().map(busy).collect();
    let polls_for_others = is_loop && wait_idle_connections(&waited, &kept);
    busy.sort_by_key(|busy| {
        std::cmp::Reverse(busy.accounts(Account::User, polls_for_others).total())
    });
    let histogram = |metric| run.messages.histogram(program.program, flow.flow, metric);
    (!waited.is_empty() || !sleeps.is_empty()).then(|| Queue {
        program,
        flow,
        queued: histogram(MessageMetric::Infrastructure),
        total: histogram(MessageMetric::Total),
        kept: kept.len() as u64,
        readers: run.messages.readers(program.program, flow.flow),
        waited,
        busy,
        is_loop,
        polls_for_others,
        sleeps,
    })
}

/// What a thread did in these times.
pub(crate) fn did(run: &Run, spans: &[Span], intervals: &[&Outlier]) -> Vec<MessageTime> {
    let mut all = Vec::new();
    for span in spans {
        for time in time_within(run, span.from_ns, span.to_ns, intervals) {
            add(&mut all, time);
        }
    }
    all.sort_by_key(|time| std::cmp::Reverse(time.ns));
    all
}

/// Where a request has come for which it waits it is woken.
fn keeps_from_reading(time: &MessageTime, polls_for_others: bool) -> bool {
    time.account.is_none_or(|account| {
        !account.is_waiting_for_cpu()
            && account != Account::Blocked(Blocked::SocketAccept)
            && (polls_for_others || !is_in_epoll(time))
    })
}

/// Most of the waiting was on connections that a loop has read from before, and none of whose requests was in
/// progress. A loop that is in epoll meanwhile is in another one than that of its connections, for something
/// that it waits for within a turn (execSync of Node.js). It may leave a new connection alone, as there are too
/// many, or one that sends the next request before it has its answer.
fn wait_idle_connections(waited: &[&Message], kept: &[&Message]) -> bool {
    let mut by_link = BTreeMap::<u64, Vec<&Message>>::new();
    for message in kept {
        if let Some(at) = &message.at_socket {
            by_link.entry(at.link).or_default().push(message);
        }
    }
    let is_idle = |message: &&&Message| {
        message.at_socket.as_ref().is_some_and(|at| {
            let mut others = by_link[&at.link].iter();
            !at.is_first && !others.any(|m| m.t0_ns < message.t0_ns && m.end_ns > message.t0_ns)
        })
    };
    let ns = |message: &&Message| message.infrastructure_ns();
    let all = waited.iter().map(ns).fold(0u64, u64::saturating_add);
    let on_idle = waited.iter().filter(is_idle).map(ns).fold(0u64, u64::saturating_add);
    on_idle > all / 2
}

/// It slept in epoll.
pub(crate) fn is_in_epoll(time: &MessageTime) -> bool {
    time.account == Some(Account::Blocked(Blocked::Poll)) && time.call.is_some_and(is_epoll)
}

const EPOLL: [&str; 4] = ["epoll_wait", "epoll_pwait", "epoll_pwait2", "epoll_wait_old"];

fn is_epoll(call: Syscall) -> bool {
    EPOLL.iter().any(|name| Syscall::named(name) == Some(call))
}

fn add(all: &mut Vec<MessageTime>, time: MessageTime) {
    let is_same = |known: &&mut MessageTime| {
        (known.account, known.call, &known.place) == (time.account, time.call, &time.place)
    };
    match all.iter_mut().find(is_same) {
        Some(known) => known.ns = known.ns.saturating_add(time.ns),
        None => all.push(time),
    }
}

/// Of a loop more than so many requests are of a connection that stayed, for each of one that has moved;
/// of two workers, for one, as many as have moved.
const STAYED_FOR_ONE_MOVED: u64 = 4;

/// An event loop comes back to a connection after it has read others; a worker of a pool takes a
/// connection, and has done with it before the next. Of two workers who take whichever connection has a
/// request every other one comes from the other's, of loops hardly one. Where each connection has one
/// request that does not show: then a lone thread that waits with epoll is a loop.
fn reads_in_turn(run: &Run, tgid: u32, kept: &[&Message]) -> bool {
    let mut in_time = kept.to_vec();
    in_time.sort_by_key(|message| message.logic_start_ns);
    let mut last = BTreeMap::<u32, u64>::new();
    let mut reader_of = BTreeMap::<u64, u32>::new();
    let (mut back, mut moved) = (0u64, 0u64);
    for message in in_time {
        let Some(at) = &message.at_socket else { continue };
        let before = last.insert(message.tid, at.link);
        // Ports are used again, soon where each request has its own connection.
        if at.is_first {
            reader_of.remove(&at.link);
        }
        match reader_of.insert(at.link, message.tid) {
            Some(reader) if reader != message.tid => moved += 1,
            Some(_) if before.is_some_and(|link| link != at.link) => back += 1,
            _ => {}
        }
    }
    if back + moved > 0 {
        return back > STAYED_FOR_ONE_MOVED * moved;
    }
    let readers: BTreeSet<u32> = kept.iter().map(|message| message.tid).collect();
    let epoll = EPOLL.iter().filter_map(|name| Syscall::named(name)).map(Metric::Syscall);
    let epoll: Vec<Metric> = epoll.collect();
    readers.len() == 1 && run.seconds.iter().any(|s| s.tgid == tgid && epoll.contains(&s.metric))
}

/// What a cause of waiting requests may claim: what their reader was held up for itself, a disk or a
/// lock, has a cause of its own.
fn is_claimable(time: &MessageTime, polls_for_others: bool) -> bool {
    let may_be = |account| matches!(class(account), Class::Work | Class::Idle);
    keeps_from_reading(time, polls_for_others) && time.account.is_none_or(may_be)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::requests::{MS, request, served};
    use crate::testing::{RunBuilder, SECOND, USER};

    fn requests(of: &[(u64, u32)]) -> Vec<Message> {
        let at = |n: usize| n as u64 * 100;
        let one = |(n, (link, tid)): (usize, &(u64, u32))| request(*link, *tid, at(n), 50, 20);
        of.iter().enumerate().map(one).collect()
    }

    fn is_loop_of(requests: Vec<Message>) -> bool {
        let run = RunBuilder::new().thread(11, 10, &[(USER, SECOND)]).build();
        queues(&served(run, requests))[0].is_loop
    }

    fn is_loop(of: &[(u64, u32)]) -> bool {
        is_loop_of(requests(of))
    }

    #[test]
    fn a_loop_comes_back_to_connections_and_a_worker_has_done_with_each() {
        assert!(is_loop(&[(1, 11), (2, 11), (1, 11), (2, 11)]));
        assert!(is_loop(&[(1, 11), (3, 12), (2, 11), (4, 12), (1, 11), (3, 12)]), "two loops");
        assert!(!is_loop(&[(1, 11), (1, 11), (2, 11), (2, 11)]), "one connection after the other");
        assert!(!is_loop(&[(1, 11), (2, 12), (3, 11), (4, 12)]), "a connection for each");
        assert!(!is_loop(&[(1, 11), (2, 12), (1, 12), (2, 11), (1, 11)]), "whoever is free");
        let pool = [(1, 11), (2, 11), (1, 11), (2, 11), (1, 12), (2, 12), (1, 12)];
        assert!(!is_loop(&pool), "two workers: many come from the other's connection");
        let mut new_connections = requests(&[(1, 11), (2, 11), (1, 11), (2, 11), (1, 11)]);
        for message in &mut new_connections {
            message.at_socket.as_mut().unwrap().is_first = true;
        }
        assert!(!is_loop_of(new_connections), "one request each, at ports that come again");
    }

    #[test]
    fn requests_that_end_before_they_begin_are_no_load() {
        let run = RunBuilder::new().thread(11, 10, &[(USER, SECOND)]).build();
        let mut requests = vec![request(1, 11, 100, 0, 50), request(1, 11, 2_000, 0, 0)];
        requests[1].end_ns = 0;
        let run = served(run, requests);
        assert_eq!(load_ns(&run, |_| true, 0), 50 * MS);
    }

    #[test]
    fn times_of_a_thread_count_once_however_many_waited() {
        let run = RunBuilder::new().thread(11, 10, &[(USER, SECOND)]).build();
        let requests = vec![request(1, 11, 100, 50, 1), request(2, 11, 120, 40, 1)];
        let run = served(run, requests);
        let all = queues(&run);
        assert_eq!(all[0].waited_ns(), 90 * MS);
        assert_eq!(all[0].busy[0].ns(), 60 * MS);
        assert_eq!(all[0].busy[0].accounts(USER, false).get(USER), 60 * MS);
    }
}
