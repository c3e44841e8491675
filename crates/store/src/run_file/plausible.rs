//! Refuses numbers that no recorder gives, because the readers of runs add them up.
//!
//! What gets through need not be true, but all lengths, and all counts, can be added up without an
//! overflow.

use model::{
    Accounts, Batch, Histogram, Jitter, Outlier, RunHeader, Sockets, Sum, SumVisitor,
    ThreadAccounts,
};

use super::Ending;

/// The latest time, in ns since the host's start: nine years.
const MAX_NS: u64 = 1 << 58;

/// All lengths of a run together, in ns: 146 years of all threads.
const MAX_LENGTHS: u64 = 1 << 62;

/// All counts together.
const MAX_COUNTS: u64 = 1 << 56;

/// Looks at a queue within a second, which are 50, and bytes in it: they are multiplied.
const MAX_LOOKS: u64 = 1 << 16;
const MAX_BYTES: u64 = 1 << 44;

type Checked = Result<(), String>;

pub(super) fn header(header: &RunHeader) -> Checked {
    time("the start of the run", header.started_ns)
}

pub(super) fn ending(ending: &Ending, header: &RunHeader) -> Checked {
    match &ending.end {
        Some(end) if end.ended_ns < header.started_ns => {
            Err("the run ends before its start".to_owned())
        }
        Some(end) => time("the end of the run", end.ended_ns),
        None => Ok(()),
    }
}

/// What was added up so far.
#[derive(Default)]
pub(super) struct Totals {
    lengths: u64,
    counts: u64,
    ticks: u64,
}

impl Totals {
    /// Adds a batch, if it can be one.
    pub fn add(&mut self, batch: &Batch) -> Checked {
        time("the last moment", batch.heartbeat_ns)?;
        batch.threads.iter().try_for_each(|thread| self.thread(thread))?;
        batch.outliers.iter().try_for_each(|outlier| self.outlier(outlier))?;
        for second in &batch.seconds {
            self.histogram(second.start_ns, &second.histogram)?;
        }
        for second in &batch.messages.seconds {
            self.histogram(second.start_ns, &second.histogram)?;
        }
        for message in batch.messages.slow.iter().chain(&batch.messages.fast) {
            time("a message", message.t0_ns.max(message.end_ns))?;
        }
        batch.events.iter().try_for_each(|event| time("an event", event.time_ns))?;
        self.ticks(batch)?;
        batch.sums.visit(self)?;
        self.sockets(&batch.sockets)
    }

    fn thread(&mut self, thread: &ThreadAccounts) -> Checked {
        if thread.first_ns > thread.last_ns {
            return Err(format!("thread {} ends before it begins", thread.tid));
        }
        time("the end of a thread", thread.last_ns)?;
        self.accounts(&thread.accounts)?;
        self.count(thread.minor_faults)?;
        self.count(thread.major_faults)?;
        self.count(thread.sleeps)?;
        self.count(thread.preemptions)?;
        self.count(thread.migrations)
    }

    fn outlier(&mut self, outlier: &Outlier) -> Checked {
        time("the start of an outlier", outlier.start_ns)?;
        self.length(outlier.duration_ns)?;
        self.accounts(&outlier.breakdown)?;
        outlier.ran_instead.iter().try_for_each(|runner| self.length(runner.ns))?;
        self.length(outlier.holder.as_ref().map_or(0, |holder| holder.overlap_ns))?;
        self.length(outlier.interrupts.as_ref().map_or(0, |interrupts| interrupts.ns))
    }

    fn accounts(&mut self, accounts: &Accounts) -> Checked {
        accounts.iter().try_for_each(|(_, ns)| self.length(ns))
    }

    fn histogram(&mut self, start_ns: u64, histogram: &Histogram) -> Checked {
        time("the second of a histogram", start_ns)?;
        self.count(histogram.count())
    }

    fn sockets(&mut self, sockets: &Sockets) -> Checked {
        for second in &sockets.queues {
            let sends = &second.blocked_sends;
            time("a second of a queue", second.start_ns)?;
            at_most("looks at a queue", second.looks, MAX_LOOKS)?;
            at_most("looks at a queue held back", second.nagle_looks, second.looks)?;
            at_most("bytes in a queue", second.receive.mean, MAX_BYTES)?;
            self.length(sends.waited_ns)?;
            self.count(second.drops)?;
            self.count(second.resent.segments)?;
            self.count(sends.refused)?;
            self.count(sends.waited)?;
            if let Some(seen) = second.connecting {
                time("a connect", seen.since_ns.max(seen.last_ns))?;
            }
            if let Some(last) = second.sent_last {
                time("what was sent last", last.sent_ns.max(last.heard_ns.unwrap_or(0)))?;
            }
        }
        for drops in &sockets.drops {
            time("a drop", drops.first_ns.max(drops.last_ns))?;
            self.count(drops.count)?;
        }
        Ok(())
    }

    /// All are loaded at once.
    fn ticks(&mut self, batch: &Batch) -> Checked {
        let whole = batch.jitter.iter().flat_map(|jitter| &jitter.series);
        let whole = whole.map(|series| series.ticks.len() as u64);
        let pieces = batch.ticks.iter().map(|piece| piece.ticks.len() as u64);
        self.ticks = whole.chain(pieces).fold(self.ticks, u64::saturating_add);
        let most = Jitter::MOST_TICKS as u64;
        if self.ticks <= most { Ok(()) } else { Err(format!("it has more than {most} ticks")) }
    }

    fn length(&mut self, ns: u64) -> Checked {
        self.lengths = self.lengths.saturating_add(ns);
        at_most("all times together, in ns", self.lengths, MAX_LENGTHS)
    }

    fn count(&mut self, n: u64) -> Checked {
        self.counts = self.counts.saturating_add(n);
        at_most("all counts together", self.counts, MAX_COUNTS)
    }
}

impl SumVisitor for Totals {
    type Error = String;

    fn visit(&mut self, _table: &'static str, sum: &impl Sum) -> Checked {
        self.count(sum.count())?;
        self.length(sum.ns())
    }
}

fn time(what: &str, ns: u64) -> Checked {
    at_most(what, ns, MAX_NS)
}

fn at_most(what: &str, n: u64, most: u64) -> Checked {
    if n <= most { Ok(()) } else { Err(format!("{what}: {n} is beyond what any host gives")) }
}
