//! Requests that waited in the queues of their sockets, and what the threads that read them in the
//! end did meanwhile.
//!
//! Known of the requests that were kept whole: slow ones and a sample of the others.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    Account, Accounts, Blocked, FlowKind, Histogram, Message, MessageFlow, MessageMetric, MessageTime, Metric,
    Outlier, RequestCost, Run, Syscall, TracedProgram,
};

use crate::messages::{intervals, time_within};

/// A time on a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Span {
    pub from_ns: u64,
    pub to_ns: u64,
}

impl Span {
    pub(crate) fn ns(self) -> u64 {
        self.to_ns.saturating_sub(self.from_ns)
    }
}

/// The same times without overlaps, in order.
pub(crate) fn union(spans: &[Span]) -> Vec<Span> {
    let mut sorted = spans.to_vec();
    sorted.sort();
    let mut union: Vec<Span> = Vec::new();
    for span in sorted {
        match union.last_mut() {
            Some(last) if span.from_ns <= last.to_ns => last.to_ns = last.to_ns.max(span.to_ns),
            _ => union.push(span),
        }
    }
    union
}

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
    /// All threads that read requests that were kept.
    pub readers: BTreeSet<u32>,
    /// What kept them from those that waited, the thread with the most first.
    pub busy: Vec<Busy>,
    /// How a thread reads: requests of many connections in turn, or of one until that is done.
    pub is_loop: bool,
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
    /// What it did, by account, but for waiting for a CPU or for work; where that is not known it ran.
    pub(crate) fn accounts(&self) -> Accounts {
        let account = |time: &MessageTime| time.account.unwrap_or(Account::User);
        let did = self.did.iter().filter(|time| keeps_from_reading(time));
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

/// The ports and paths of a run where requests waited, those with the longest waiting first.
pub(crate) fn queues(run: &Run) -> Vec<Queue<'_>> {
    let mut by_thread = BTreeMap::<u32, Vec<&Outlier>>::new();
    for outlier in intervals(run) {
        by_thread.entry(outlier.tid).or_default().push(outlier);
    }
    by_thread.values_mut().for_each(|all| all.sort_by_key(|outlier| outlier.start_ns));
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
    let kept = run.messages.looked_at().iter().chain(&run.messages.fast);
    let kept: Vec<&Message> =
        kept.filter(|m| (m.program, m.flow) == (program.program, flow.flow)).collect();
    let has_waited = |m: &&&Message| m.infrastructure_ns() >= run.header.threshold_ns.max(1);
    let waited: Vec<&Message> = kept.iter().filter(has_waited).copied().collect();
    let mut spans = BTreeMap::<u32, Vec<Span>>::new();
    for message in &waited {
        let span = Span { from_ns: message.t0_ns, to_ns: message.logic_start_ns };
        spans.entry(message.tid).or_default().push(span);
    }
    let busy = |(tid, spans): (&u32, &Vec<Span>)| {
        let spans = union(spans);
        let own = by_thread.get(tid).map_or(&[][..], Vec::as_slice);
        Busy { tid: *tid, did: did(run, &spans, own), spans }
    };
    let mut busy: Vec<Busy> = spans.iter().map(busy).collect();
    busy.sort_by_key(|busy| std::cmp::Reverse(busy.accounts().total()));
    let histogram = |metric| run.messages.histogram(program.program, flow.flow, metric);
    let is_loop = reads_in_turn(run, program.tgid, &kept);
    (!waited.is_empty()).then(|| Queue {
        program,
        flow,
        queued: histogram(MessageMetric::Infrastructure),
        total: histogram(MessageMetric::Total),
        readers: kept.iter().map(|message| message.tid).collect(),
        waited,
        busy,
        is_loop,
    })
}

/// What a thread did in these times.
fn did(run: &Run, spans: &[Span], intervals: &[&Outlier]) -> Vec<MessageTime> {
    let mut all = Vec::new();
    for span in spans {
        for time in time_within(run, span.from_ns, span.to_ns, intervals) {
            add(&mut all, time);
        }
    }
    all.sort_by_key(|time| std::cmp::Reverse(time.ns));
    all
}

/// It is no wait for a CPU or for requests: where a request has come for which it waits it is woken.
pub(crate) fn keeps_from_reading(time: &MessageTime) -> bool {
    time.account.is_none_or(|account| {
        !account.is_waiting_for_cpu()
            && account != Account::Blocked(Blocked::SocketAccept)
            && !(account == Account::Blocked(Blocked::Poll) && time.call.is_some_and(is_epoll))
    })
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

/// An event loop comes back to a connection after it has read others; a worker of a pool takes a
/// connection, and has done with it before the next. Where each connection has one request that does
/// not show: then a lone thread that waits with epoll is a loop.
fn reads_in_turn(run: &Run, tgid: u32, kept: &[&Message]) -> bool {
    let mut in_time = kept.to_vec();
    in_time.sort_by_key(|message| message.logic_start_ns);
    let mut last = BTreeMap::<u32, u64>::new();
    let mut reader_of = BTreeMap::<u64, u32>::new();
    let (mut back, mut moved) = (0u64, 0u64);
    for message in in_time {
        let Some(at) = &message.at_socket else { continue };
        let before = last.insert(message.tid, at.link);
        match reader_of.insert(at.link, message.tid) {
            Some(reader) if reader != message.tid => moved += 1,
            Some(_) if before.is_some_and(|link| link != at.link) => back += 1,
            _ => {}
        }
    }
    if back + moved > 0 {
        return back > moved;
    }
    let readers: BTreeSet<u32> = kept.iter().map(|message| message.tid).collect();
    let epoll = EPOLL.iter().filter_map(|name| Syscall::named(name)).map(Metric::Syscall);
    let epoll: Vec<Metric> = epoll.collect();
    readers.len() == 1
        && run.seconds.iter().any(|s| s.tgid == tgid && epoll.contains(&s.metric))
}

/// Messages that count as the slowest of a run.
const SLOWEST: usize = 100;

/// The slowest requests, or messages of programs that trace them, of a run.
pub(crate) fn slowest(run: &Run) -> &[Message] {
    let slow = run.messages.looked_at();
    &slow[..slow.len().min(SLOWEST)]
}

/// A cause took so much of each of the slowest.
pub(crate) fn cost(run: &Run, of_one: impl Fn(usize, &Message) -> u64) -> RequestCost {
    let mut cost = RequestCost { with: 0, of: 0, ns: 0, total_ns: 0 };
    for (place, message) in slowest(run).iter().enumerate() {
        let total = message.total_ns();
        let taken = of_one(place, message).min(total);
        cost.of += 1;
        cost.with += u64::from(taken > 0 && taken >= total / 10);
        cost.ns = cost.ns.saturating_add(taken);
        cost.total_ns = cost.total_ns.saturating_add(total);
    }
    cost
}
