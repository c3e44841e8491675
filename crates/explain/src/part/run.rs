//! A part of a run as a run of its own, which the catalogue examines like any other.
//!
//! Accounts are kept for each thread over its whole life, sums for each process over the whole
//! run. Of a part of the time only the intervals that were kept whole are known, each at least the
//! threshold long; [`PartialRun`] makes a smaller run of them, cut to the window. What a thread did
//! between two such intervals is unaccounted there. Of one thread the accounts over its life are
//! exact and are used as they are.

use std::cmp::Reverse;

use model::{
    Account, Accounts, Cost, Losses, Messages, Outlier, Run, RunEnd, Scope, Shared, Sockets, Sums,
    ThreadAccounts, Window, part_of,
};

use crate::part::clip::{Clip, clips};
use crate::part::on_cpu;
use crate::part::question::{Question, QuestionError, basis, message, must_have, what};
use crate::part::sums::PartSums;
use crate::text::{count, counted, duration};

/// Losses are counted about once a second: one noticed this far from a part may be within it.
const STEP_NS: u64 = 1_000_000_000;

/// A run made of the part that is asked about.
pub struct PartialRun<'a> {
    /// The run that it is a part of; its outliers should be those of the part, and others.
    pub whole: &'a Run,
    /// The part. Its `header.started_ns` and `length_ns()` are those of the part.
    pub run: Run,
    /// What it is, in words.
    pub scope: Scope,
}

impl<'a> PartialRun<'a> {
    /// Takes the part out of `whole`.
    ///
    /// # Errors
    /// If there is no such part.
    pub fn new(whole: &'a Run, question: &Question) -> Result<Self, QuestionError> {
        let window = question.part(whole)?;
        if let Question::Thread(tid) = question {
            must_have(whole, *tid)?;
        }
        let windows = question.parts(whole)?;
        let exact = matches!(question, Question::Thread(_));
        let kept = kept(whole, question, &windows);
        let mut run = frame(whole, &window, exact);
        if let Question::Message(number) = question {
            let this = message(whole, *number)?.clone();
            run.messages = Messages { slow: vec![this], slow_count: 1, ..run.messages };
        }
        let mut sums = PartSums::new(whole);
        let (mut intervals, mut estimated_ns) = (0, 0u64);
        let lives = Lives::of(whole, question);
        let summed = summed_thread(whole, question);
        for thread in whole.threads.iter().chain(&summed) {
            for window in windows.iter().filter(|window| is_asked(window, thread.tid)) {
                let Some(cut) = ThreadPart::new(thread, window, &kept, exact) else { continue };
                cut.clips.iter().for_each(|clip| sums.add(clip));
                intervals += cut.intervals;
                let between = lives.as_ref().map(|lives| lives.between(&cut)).unwrap_or_default();
                estimated_ns = estimated_ns.saturating_add(between.total());
                run.threads.push(if exact { thread.clone() } else { cut.thread(&between) });
            }
        }
        kept.iter().filter(|o| o.end_ns() <= window.to_ns).for_each(|o| sums.add_value(o));
        run.outliers = windows.iter().flat_map(|window| cut_outliers(&kept, window)).collect();
        run.outliers.sort_by_key(|o| Reverse(o.duration_ns));
        run.outlier_count = run.outliers.len() as u64;
        run.events.iter().for_each(|event| sums.add_event(event));
        let by_waker = sums.finish(&mut run);
        let own = match question {
            Question::Thread(tid) => on_cpu::samples_of_thread(whole, *tid),
            _ => None,
        };
        run.sums.paths.extend(own.unwrap_or_else(|| on_cpu::samples(whole, &run)));

        let alone = window.tid.filter(|_| exact).is_some_and(|tid| is_alone(whole, tid));
        if alone {
            take_sums_of_its_process(whole, &mut run);
        }
        let mut basis = basis(whole, question, intervals, alone);
        if by_waker > 0 && !alone {
            basis += &format!(
                " Who held mmap_lock was not seen in {} and is taken to be who ended it.",
                counted(by_waker, "wait")
            );
        }
        if !exact && let Some(summed) = whole.summed() {
            basis += &format!(" {summed} are not in it: when they waited is not kept.");
        }
        if estimated_ns > 0 {
            basis += &format!(
                " Of the time in between {} on a CPU: estimated from the rest of each thread's life.",
                duration(estimated_ns)
            );
        }
        let scope = Scope {
            estimated_ns,
            what: what(whole, question),
            outlier: question.outlier(),
            from_ns: window.from_ns.saturating_sub(whole.header.started_ns),
            to_ns: window.to_ns.saturating_sub(whole.header.started_ns),
            threads: run.threads.len() as u64,
            intervals,
            exact,
            basis,
        };
        Ok(PartialRun { whole, run, scope })
    }

    /// Says how many intervals of the part the store has, where that is more than it gave.
    pub fn stored(mut self, intervals: u64) -> Self {
        let given = self.run.outlier_count;
        if intervals > given {
            self.scope.basis += &format!(
                " The store has {}; the longest {} are examined.",
                count(intervals),
                count(given)
            );
        }
        self
    }
}

/// Intervals of the whole run that are in the part.
fn kept<'a>(whole: &'a Run, question: &Question, windows: &[Window]) -> Vec<&'a Outlier> {
    // Shorter ones than the threshold are there for messages.
    let shortest = match question {
        Question::Message(_) => 0,
        _ => whole.header.threshold_ns,
    };
    let long = whole.outliers.iter().filter(|o| o.duration_ns >= shortest);
    long.filter(|o| windows.iter().any(|window| is_in(o, window))).collect()
}

/// Of an outlier whose thread is only in a sum all that is known of it: that it lived then.
fn summed_thread(whole: &Run, question: &Question) -> Option<ThreadAccounts> {
    let Question::Outlier(number) = question else { return None };
    let outlier = number.checked_sub(1).and_then(|place| whole.outliers.get(place))?;
    if whole.sums.others.is_empty() || whole.threads.iter().any(|thread| is_of(outlier, thread)) {
        return None;
    }
    Some(ThreadAccounts {
        tid: outlier.tid,
        tgid: outlier.tgid,
        comm: outlier.comm.clone(),
        first_ns: outlier.start_ns,
        last_ns: outlier.end_ns(),
        alive: false,
        open: Account::Unaccounted,
        accounts: outlier.breakdown.clone(),
        realtime: 0,
        minor_faults: 0,
        major_faults: 0,
        sleeps: 0,
        preemptions: 0,
        migrations: 0,
    })
}

fn is_asked(window: &Window, tid: u32) -> bool {
    window.tid.is_none_or(|only| only == tid)
}

fn is_in(outlier: &Outlier, window: &Window) -> bool {
    is_asked(window, outlier.tid) && overlaps(outlier, window)
}

/// A thread within a window.
struct ThreadPart<'a> {
    whole: &'a ThreadAccounts,
    from_ns: u64,
    to_ns: u64,
    clips: Vec<Clip<'a>>,
    /// How many were kept whole.
    intervals: u64,
}

impl<'a> ThreadPart<'a> {
    /// `None` if the thread did not live then.
    fn new(
        thread: &'a ThreadAccounts,
        window: &Window,
        kept: &[&'a Outlier],
        exact: bool,
    ) -> Option<Self> {
        let from_ns = window.from_ns.max(thread.first_ns);
        let to_ns = window.to_ns.min(thread.last_ns);
        // A thread's last interval may end when its accounts are already closed.
        if from_ns > to_ns || (from_ns == to_ns && !exact) {
            return None;
        }
        let own = || kept.iter().copied().filter(|o| is_of(o, thread) && overlaps(o, window));
        let clips = clips(own(), from_ns, to_ns);
        let intervals = own().filter(|o| o.kind.is_own_time()).count() as u64;
        Some(ThreadPart { whole: thread, from_ns, to_ns, clips, intervals })
    }

    /// With what it did between its intervals.
    fn thread(&self, between: &Accounts) -> ThreadAccounts {
        let mut known = self.known();
        known.merge(between);
        cut_thread(self.whole, self.from_ns, self.to_ns, known)
    }

    /// What its intervals have.
    fn known(&self) -> Accounts {
        let mut known = Accounts::new();
        self.clips.iter().for_each(|clip| known.merge(&clip.accounts));
        known
    }
}

/// All intervals of each thread's life, for a window in a run of which all were loaded.
struct Lives<'a>(Vec<&'a Outlier>);

impl<'a> Lives<'a> {
    /// `None` where too little is known of what was between the intervals, or nothing was.
    fn of(whole: &'a Run, question: &Question) -> Option<Lives<'a>> {
        let is_window = matches!(question, Question::Window(..));
        let is_complete = whole.outlier_count <= whole.outliers.len() as u64;
        let long = whole.outliers.iter().filter(|o| o.duration_ns >= whole.header.threshold_ns);
        (is_window && is_complete).then(|| Lives(long.collect()))
    }

    /// What the thread did on a CPU between its intervals in the part.
    fn between(&self, part: &ThreadPart) -> Accounts {
        let life = Window { from_ns: 0, to_ns: u64::MAX, tid: Some(part.whole.tid) };
        let Some(life) = ThreadPart::new(part.whole, &life, &self.0, false) else {
            return Accounts::new();
        };
        let gap_ns = (part.to_ns - part.from_ns).saturating_sub(part.known().total());
        on_cpu::between(part.whole, &life.known(), gap_ns)
    }
}

/// The intervals of a window, as they are within it.
fn cut_outliers(kept: &[&Outlier], window: &Window) -> Vec<Outlier> {
    let inside = kept.iter().filter(|o| is_in(o, window));
    inside.map(|o| cut_outlier(o, kept, window)).collect()
}

fn overlaps(outlier: &Outlier, part: &Window) -> bool {
    outlier.start_ns < part.to_ns && outlier.end_ns() > part.from_ns
}

/// Tids are reused: an interval is of the thread during whose life it began.
fn is_of(outlier: &Outlier, thread: &ThreadAccounts) -> bool {
    outlier.tid == thread.tid
        && outlier.start_ns < thread.last_ns
        && outlier.end_ns() > thread.first_ns
}

/// All threads of its process had this tid.
fn is_alone(run: &Run, tid: u32) -> bool {
    let tgid = run.threads.iter().find(|t| t.tid == tid).map(|t| t.tgid);
    run.threads.iter().filter(|t| Some(t.tgid) == tgid).all(|t| t.tid == tid)
}

/// What is as in the whole run, with room for the rest. Facts and counters are of the whole run.
fn frame(whole: &Run, part: &Window, exact: bool) -> Run {
    // Losses from a second before it to a second after it, against what came in that time.
    let around = part.to_ns.saturating_sub(part.from_ns).saturating_add(2 * STEP_NS);
    let in_that_time = |number| part_of(number, around, whole.length_ns());
    let (events, bpf_runs) = (in_that_time(whole.cost.events), in_that_time(whole.cost.bpf_runs));
    let cost = Cost { events, bpf_runs, ..whole.cost.clone() };
    let near = |at: u64| {
        at.saturating_add(STEP_NS) >= part.from_ns && at <= part.to_ns.saturating_add(STEP_NS)
    };
    let events = whole.events.iter().filter(|event| {
        (part.from_ns..part.to_ns).contains(&event.time_ns)
            && part.tid.is_none_or(|tid| event.tid == tid || event.tid == 0)
    });
    let events: Shared<Vec<_>> = events.cloned().collect();
    Run {
        id: whole.id,
        header: model::RunHeader {
            started_unix_ns: whole
                .header
                .started_unix_ns
                .saturating_add_unsigned(part.from_ns.saturating_sub(whole.header.started_ns)),
            started_ns: part.from_ns,
            ..whole.header.clone()
        },
        status: whole.status,
        end: Some(RunEnd {
            ended_ns: part.to_ns,
            exit_status: None,
            reason: "the end of the part".to_owned(),
        }),
        heartbeat_ns: part.to_ns,
        facts: whole.facts.clone(),
        capabilities: whole.capabilities.clone(),
        processes: whole.processes.clone(),
        event_count: events.len() as u64,
        events,
        stacks: whole.stacks.clone(),
        sums: Sums {
            counters: whole.sums.counters.clone(),
            // Of a shorter time than the run it is not known how busy the CPUs were.
            cpus: if exact { whole.sums.cpus.clone() } else { Vec::new() },
            bound: if exact { whole.sums.bound.clone() } else { Vec::new() },
            ..Sums::default()
        },
        losses: Losses {
            seen: whole.losses.seen.iter().filter(|(_, at, _)| near(*at)).cloned().collect(),
        },
        cost,
        bench: whole.bench.clone(),
        jitter: whole.jitter.clone(),
        messages: whole.messages.clone(),
        sockets: sockets(&whole.sockets, part),
        // No presences: a part has too few events to be compared with the times of others.
        ..Run::default()
    }
}

/// Drops of the part, with those that came while it lasted; and the seconds that it touches.
fn sockets(whole: &Sockets, part: &Window) -> Sockets {
    let touches = |from: u64, to: u64| from < part.to_ns && to >= part.from_ns;
    let queues = whole.queues.iter().filter(|s| touches(s.start_ns, s.start_ns + STEP_NS));
    let drops = whole.drops.iter().filter(|drops| touches(drops.filling_ns, drops.last_ns));
    Sockets { queues: queues.cloned().collect(), drops: drops.cloned().collect() }
}

/// A thread from `from` to `to`: what no interval covers is unaccounted.
fn cut_thread(thread: &ThreadAccounts, from: u64, to: u64, mut known: Accounts) -> ThreadAccounts {
    let wall = to - from;
    known.add(Account::Unaccounted, wall.saturating_sub(known.total()));
    let ended = thread.last_ns <= to;
    ThreadAccounts {
        first_ns: from,
        last_ns: to,
        alive: thread.alive || !ended,
        open: if ended { thread.open } else { Account::Unaccounted },
        accounts: known,
        // The kernel's counts are of the thread's whole life.
        minor_faults: 0,
        major_faults: 0,
        sleeps: 0,
        preemptions: 0,
        migrations: 0,
        ..thread.clone()
    }
}

/// An interval as it is within the part.
fn cut_outlier(outlier: &Outlier, all: &[&Outlier], part: &Window) -> Outlier {
    let (from, to) = (outlier.start_ns.max(part.from_ns), outlier.end_ns().min(part.to_ns));
    if from == outlier.start_ns && to == outlier.end_ns() {
        return outlier.clone();
    }
    let mut breakdown = Accounts::new();
    if !outlier.kind.is_own_time() {
        breakdown.add(Account::Unaccounted, to - from);
    } else {
        let is_within = |o: &&Outlier| {
            o.tid == outlier.tid && o.start_ns >= outlier.start_ns && o.end_ns() <= outlier.end_ns()
        };
        let within = all.iter().copied().filter(is_within);
        clips(within, from, to).iter().for_each(|clip| breakdown.merge(&clip.accounts));
    }
    Outlier { start_ns: from, duration_ns: to - from, breakdown, ..outlier.clone() }
}

/// The sums of a process that has no other thread are those of its thread.
fn take_sums_of_its_process(whole: &Run, run: &mut Run) {
    let Some(tgid) = run.threads.first().map(|thread| thread.tgid) else { return };
    run.sums = whole.sums.of_process(tgid);
    let seconds = whole.seconds.iter().filter(|s| s.tgid == tgid || s.tgid == 0);
    run.seconds = seconds.cloned().collect();
}
