//! The traces of recorded programs: their messages go into the run, and what the threads did
//! meanwhile is kept in more detail.
//!
//! The recorder keeps intervals from `--threshold` on. Messages are slow from much less on; so
//! while a trace is read, the kernel also gives shorter intervals, and those that lie in a slow
//! message, or in one of the control group, are kept too.

use std::collections::VecDeque;

use messages::Watched;
use model::{Batch, Message, Messages, Outlier, RunHeader};
use observe::Recorder;

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
    pub fn new(header: &RunHeader) -> Traced {
        // Sampled states have no intervals.
        let asked_ns = if header.sampled { 0 } else { header.threshold_ns };
        Traced {
            watched: Watched::new(header.started_ns),
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

    /// Reads what is new.
    pub fn look(&mut self, now_ns: u64, recorder: &mut Recorder) {
        let messages = self.watched.look(now_ns);
        self.take(messages);
        for (tgid, why) in self.watched.take_refusals() {
            eprintln!("whylag: the trace of pid {tgid} is not read: {why}");
        }
        let wanted = self.watched.lowest_threshold_ns().map_or(self.asked_ns, |threshold| {
            (threshold / PART_OF_THRESHOLD).max(self.floor_ns).min(self.asked_ns)
        });
        let now = self.kept.last().map_or(self.asked_ns, |(_, ns)| *ns);
        if wanted != now && recorder.also_keep(wanted) {
            self.kept.push((now_ns, wanted));
        }
    }

    /// The rest, when the recording ends.
    pub fn finish(&mut self, now_ns: u64) {
        let messages = self.watched.finish(now_ns);
        self.take(messages);
    }

    /// Puts the messages into a batch, and takes out of it what is shorter than the threshold and
    /// lies in no message.
    pub fn complete(&mut self, batch: &mut Batch) {
        for process in batch.processes.iter().filter(|process| process.watched) {
            self.watched.add(process.tgid, false);
        }
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
            merged.get(place).is_some_and(|(from_ns, _)| *from_ns < end_of(outlier))
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
            let end_ns = end_of(oldest);
            if self.short.len() <= WAITING && end_ns.saturating_add(WAITING_NS) > now_ns {
                return;
            }
            self.forgotten_ns = self.forgotten_ns.max(end_ns);
            self.short.pop_front();
        }
    }

    /// Removes what crashed programs left, now that all of it is stored.
    pub fn remove_abandoned(&mut self) {
        for file in self.watched.take_abandoned() {
            let path = file.path().display().to_string();
            match file.remove() {
                Ok(()) => eprintln!("whylag: {path}: left by a crashed program, stored, removed"),
                Err(why) => eprintln!("whylag: {why}"),
            }
        }
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
            && end_of(outlier) > self.from_ns
            && self.tids.contains(&outlier.tid)
    }
}

fn end_of(outlier: &Outlier) -> u64 {
    outlier.start_ns.saturating_add(outlier.duration_ns)
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
mod tests {
    use model::{Account, Accounts, Blocked, MessagePoint, OutlierKind, Target};

    use super::*;
    use crate::stored;

    const MS: u64 = 1_000_000;

    fn traced() -> Traced {
        let header = stored::header(Target::Host);
        Traced::new(&RunHeader { threshold_ns: MS, started_ns: 0, ..header })
    }

    fn interval(tid: u32, start_ns: u64, duration_ns: u64) -> Outlier {
        let account = Account::Blocked(Blocked::Disk);
        Outlier {
            kind: OutlierKind::OffCpu,
            tid,
            tgid: 1,
            comm: String::new(),
            cpu: 0,
            start_ns,
            duration_ns,
            syscall: None,
            blocked: None,
            breakdown: [(account, duration_ns)].into_iter().collect::<Accounts>(),
            object: 0,
            fault_ip: None,
            kernel_stack: None,
            user_stack: None,
            waker: None,
            ran_instead: Vec::new(),
            holder: None,
            timer: None,
            interrupts: None,
            first_call: None,
        }
    }

    fn message(t0_ns: u64, end_ns: u64, sample: Option<u32>) -> Message {
        Message {
            program: 0,
            flow: 1,
            id: 1,
            sample,
            t0_ns,
            logic_start_ns: t0_ns,
            end_ns,
            tid: 7,
            points: vec![MessagePoint { point: 0, time_ns: t0_ns, tid: Some(8) }],
            published: Vec::new(),
            publishes: 0,
            longest_gap_ns: 0,
            depth: None,
            ahead: Vec::new(),
            kept_ns: 0,
        }
    }

    fn completed(traced: &mut Traced, heartbeat_ns: u64, outliers: Vec<Outlier>) -> Vec<u64> {
        let mut batch = Batch { heartbeat_ns, outliers, ..Batch::default() };
        traced.complete(&mut batch);
        batch.outliers.iter().map(|outlier| outlier.start_ns).collect()
    }

    #[test]
    fn short_intervals_are_kept_in_messages_whichever_comes_first() {
        let mut traced = traced();
        traced.kept.push((0, MS / 10));
        let slow = message(10 * MS, 14 * MS, None);
        let fast = message(20 * MS, 21 * MS, Some(0));
        traced.take(Messages { slow: vec![slow], fast: vec![fast], ..Messages::default() });
        let short = MS / 5;
        let outliers = vec![
            interval(9, MS, 2 * MS),     // long
            interval(9, 9 * MS, short),  // before the slow one
            interval(9, 13 * MS, short), // of another thread, but in a slow one
            interval(9, 20 * MS, short), // of another thread, and in a fast one
            interval(8, 20 * MS, short), // of a thread of the fast one
            interval(7, 30 * MS, short), // in a message that is read later
        ];
        let kept = completed(&mut traced, 40 * MS, outliers);
        assert_eq!(kept, [MS, 13 * MS, 20 * MS]);
        let later = message(29 * MS, 35 * MS, None);
        traced.take(Messages { slow: vec![later], ..Messages::default() });
        assert_eq!(completed(&mut traced, 41 * MS, Vec::new()), [30 * MS]);
    }

    #[test]
    fn a_message_says_from_which_length_on_its_intervals_are_there() {
        let mut traced = traced();
        traced.kept.push((50 * MS, MS / 10));
        traced.kept.push((80 * MS, MS / 5));
        let kept = |traced: &Traced, from, to| traced.kept_over(&message(from * MS, to * MS, None));
        assert_eq!(kept(&traced, 10, 20), MS, "before");
        assert_eq!(kept(&traced, 40, 60), MS, "it began before");
        assert_eq!(kept(&traced, 55, 60), MS / 10);
        assert_eq!(kept(&traced, 55, 90), MS / 5, "fewer were asked for meanwhile");
        traced.forgotten_ns = 70 * MS;
        assert_eq!(kept(&traced, 55, 60), MS, "the short ones are gone");
    }

    #[test]
    fn too_many_intervals_are_answered_by_asking_for_longer_ones() {
        let mut traced = traced();
        traced.kept.push((0, MS / 10));
        let many: Vec<Outlier> = (0..30_000).map(|n| interval(7, n, MS / 5)).collect();
        completed(&mut traced, 1_000 * MS, many);
        assert_eq!(traced.floor_ns, MS / 5);
        completed(&mut traced, 2_000 * MS, vec![interval(7, 1, MS / 5)]);
        assert_eq!(traced.floor_ns, MS / 5, "once they are few it stays");
        assert!(traced.short.len() <= WAITING);
    }
}
