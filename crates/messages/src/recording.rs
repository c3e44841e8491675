//! The traces of recorded programs: their messages go into the run, and what the threads did
//! meanwhile is kept in more detail.
//!
//! The recorder keeps intervals from `--threshold` on. Messages are slow from much less on; so
//! while a trace is read, the kernel also gives shorter intervals, and those that lie in a slow
//! message, or in one of the control group, are kept too.

use std::collections::VecDeque;
use std::time::Duration;

use model::{Batch, Message, Messages, Outlier, RunHeader};
use trace::reader::TraceFile;

use crate::requests::Requests;
use crate::{Watched, guarded};

/// Intervals are kept from this part of the lowest threshold of a flow on.
const PART_OF_THRESHOLD: u64 = 10;

/// And at least this long, ns: shorter ones cost more to record than they take.
const SHORTEST_NS: u64 = 10_000;

/// More intervals a second than this cost too much: from then on only longer ones are asked for.
const INTERVALS_PER_S: usize = 20_000;

/// Short intervals that wait to be asked for, some 600 bytes each, and how long they do.
const WAITING: usize = 32_768;
const WAITING_NS: u64 = 10_000_000_000;

/// How long after its end a message may still find intervals: they come about once a second.
const LATE_NS: u64 = 3_000_000_000;

/// What is traced during a recording.
pub struct Traced {
    watched: Watched,
    requests: Requests,
    /// From when on requests at sockets are slow, if that was asked for.
    slow_request_ns: Option<u64>,
    pending: Messages,
    /// The threshold of the run.
    asked_ns: u64,
    /// From when on intervals of which length were recorded.
    kept: Vec<(u64, u64)>,
    /// No shorter ones are asked for.
    floor_ns: u64,
    short: VecDeque<Outlier>,
    /// Shorter intervals that ended before this are not there any more.
    forgotten_ns: u64,
    windows: Vec<Window>,
    arrived: usize,
    counting_since_ns: u64,
}

/// The time of a message whose intervals are kept.
struct Window {
    from_ns: u64,
    to_ns: u64,
    /// Of these threads; empty: of all, also of those that it waited for.
    tids: Vec<u32>,
}

impl Traced {
    /// For the recording that begins with this header; requests at sockets are slow from
    /// `slow_request_ns` on, if that was asked for.
    pub fn new(header: &RunHeader, slow_request_ns: Option<u64>) -> Traced {
        // Sampled states have no intervals.
        let asked_ns = if header.sampled { 0 } else { header.threshold_ns };
        Traced {
            watched: Watched::new(header.started_ns),
            requests: Requests::default(),
            slow_request_ns,
            pending: Messages::default(),
            asked_ns,
            kept: vec![(0, asked_ns)],
            floor_ns: SHORTEST_NS,
            short: VecDeque::new(),
            forgotten_ns: 0,
            windows: Vec::new(),
            arrived: 0,
            counting_since_ns: header.started_ns,
        }
    }

    /// A process that is to be recorded.
    pub fn add(&mut self, tgid: u32) {
        self.watched.add(tgid, true);
    }

    /// Reads what is new; `also_keep` asks the recorder for intervals from this length on, ns. Gives
    /// why traces are not read, once each.
    pub fn look(&mut self, now_ns: u64, also_keep: impl FnOnce(u64) -> bool) -> Vec<String> {
        let messages = self.watched.look(now_ns);
        self.take(messages);
        let thresholds = self.watched.lowest_threshold_ns().into_iter().chain(self.slow_request_ns);
        let wanted = thresholds.min().map_or(self.asked_ns, |threshold| {
            (threshold / PART_OF_THRESHOLD).max(self.floor_ns).min(self.asked_ns)
        });
        let now = self.kept.last().map_or(self.asked_ns, |(_, ns)| *ns);
        if wanted != now && also_keep(wanted) {
            self.kept.push((now_ns, wanted));
        }
        let refusals = self.watched.take_refusals().into_iter();
        refusals.map(|(tgid, why)| format!("the trace of pid {tgid} is not read: {why}")).collect()
    }

    /// How long the next look may be put off at this moment.
    pub fn rest(&self, now_ns: u64) -> Duration {
        Duration::from_nanos(self.watched.rest_ns(now_ns))
    }

    /// The rest, when the recording ends.
    pub fn finish(&mut self, now_ns: u64) {
        self.requests.ends();
        let messages = self.watched.finish(now_ns);
        self.take(messages);
    }

    /// Puts the messages into a batch, and takes out of it what is shorter than the threshold and
    /// lies in no message.
    pub fn complete(&mut self, batch: &mut Batch) {
        for process in batch.processes.iter().filter(|process| process.watched) {
            self.watched.add(process.tgid, false);
        }
        let mut seen = std::mem::take(&mut batch.messages);
        let watched = &self.watched;
        let traces = |tgid| watched.traces(tgid);
        self.requests.add_sleeps(batch.outliers.iter());
        self.requests.keep(batch.heartbeat_ns, &mut seen, &mut batch.sums, traces);
        self.take(seen);
        self.keep_pace(batch);
        let asked_ns = self.asked_ns;
        let is_short = |outlier: &Outlier| outlier.duration_ns < asked_ns;
        if self.kept.len() > 1 {
            let (short, long) = std::mem::take(&mut batch.outliers).into_iter().partition(is_short);
            batch.outliers = long;
            self.short.extend::<Vec<Outlier>>(short);
        }
        let now_ns = batch.heartbeat_ns;
        self.take_wanted(&mut batch.outliers);
        self.forget(now_ns);
        self.windows.retain(|window| window.to_ns.saturating_add(LATE_NS) > now_ns);
        batch.messages = std::mem::take(&mut self.pending);
    }

    /// Moves the short intervals that lie in messages.
    fn take_wanted(&mut self, into: &mut Vec<Outlier>) {
        let merged = merged(self.windows.iter().filter(|window| window.tids.is_empty()));
        let few: Vec<&Window> =
            self.windows.iter().filter(|window| !window.tids.is_empty()).collect();
        let is_wanted = |outlier: &Outlier| {
            let place = merged.partition_point(|(_, to_ns)| *to_ns <= outlier.start_ns);
            merged.get(place).is_some_and(|(from_ns, _)| *from_ns < outlier.end_ns())
                || few.iter().any(|window| window.holds(outlier))
        };
        let short = std::mem::take(&mut self.short);
        let (wanted, rest): (Vec<Outlier>, Vec<Outlier>) = short.into_iter().partition(is_wanted);
        into.extend(wanted);
        self.short = rest.into();
    }

    /// Lets go of the oldest short intervals.
    fn forget(&mut self, now_ns: u64) {
        while let Some(oldest) = self.short.front() {
            let end_ns = oldest.end_ns();
            if self.short.len() <= WAITING && end_ns.saturating_add(WAITING_NS) > now_ns {
                return;
            }
            self.forgotten_ns = self.forgotten_ns.max(end_ns);
            self.short.pop_front();
        }
    }

    /// Removes what crashed programs left, now that all of it is stored; a line for each.
    pub fn remove_abandoned(&mut self) -> Vec<String> {
        let remove = |file: TraceFile| {
            let path = file.path().display().to_string();
            match guarded::remove(file) {
                Ok(()) => format!("{path}: left by a crashed program, stored, removed"),
                Err(why) => why.to_string(),
            }
        };
        self.watched.take_abandoned().into_iter().map(remove).collect()
    }

    fn take(&mut self, mut messages: Messages) {
        for message in messages.slow.iter_mut().chain(&mut messages.fast) {
            message.kept_ns = self.kept_over(message);
            self.windows.push(Window {
                from_ns: message.t0_ns,
                to_ns: message.end_ns,
                tids: if message.is_slow() { Vec::new() } else { threads_of(message) },
            });
        }
        let pending = &mut self.pending;
        for program in messages.programs {
            pending.programs.retain(|known| known.program != program.program);
            pending.programs.push(program);
        }
        pending.seconds.extend(messages.seconds);
        pending.slow.extend(messages.slow);
        pending.fast.extend(messages.fast);
    }

    /// From which length on intervals were kept all the time that a message took.
    fn kept_over(&self, message: &Message) -> u64 {
        if message.t0_ns < self.forgotten_ns {
            return self.asked_ns;
        }
        let began = self.kept.partition_point(|(since, _)| *since <= message.t0_ns);
        let ended = self.kept.partition_point(|(since, _)| *since <= message.end_ns);
        let over = &self.kept[began.saturating_sub(1)..ended.max(began)];
        over.iter().map(|(_, ns)| *ns).max().unwrap_or(self.asked_ns)
    }

    /// Asks for longer intervals only, if there are too many.
    fn keep_pace(&mut self, batch: &Batch) {
        self.arrived += batch.outliers.len();
        let length_ns = batch.heartbeat_ns.saturating_sub(self.counting_since_ns);
        if length_ns < 1_000_000_000 {
            return;
        }
        let limit = INTERVALS_PER_S as u64 * (length_ns / 1_000_000_000);
        if self.arrived as u64 > limit && self.kept.len() > 1 {
            let now = self.kept.last().map_or(SHORTEST_NS, |(_, ns)| *ns);
            self.floor_ns = now.saturating_mul(2);
        }
        (self.arrived, self.counting_since_ns) = (0, batch.heartbeat_ns);
    }
}

impl Window {
    fn holds(&self, outlier: &Outlier) -> bool {
        outlier.start_ns < self.to_ns
            && outlier.end_ns() > self.from_ns
            && self.tids.contains(&outlier.tid)
    }
}

/// The times that any of these cover, in order and apart.
fn merged<'a>(windows: impl Iterator<Item = &'a Window>) -> Vec<(u64, u64)> {
    let mut times: Vec<(u64, u64)> = windows.map(|w| (w.from_ns, w.to_ns)).collect();
    times.sort_unstable();
    let mut merged: Vec<(u64, u64)> = Vec::new();
    for (from_ns, to_ns) in times {
        match merged.last_mut() {
            Some(last) if from_ns <= last.1 => last.1 = last.1.max(to_ns),
            _ => merged.push((from_ns, to_ns)),
        }
    }
    merged
}

fn threads_of(message: &Message) -> Vec<u32> {
    message.points.iter().filter_map(|point| point.tid).chain([message.tid]).collect()
}

#[cfg(test)]
mod tests;
