//! Locks with which threads take work out of a pipe, or wait for it.
//!
//! Workers that share a pipe with jobs (Python's multiprocessing) read it in turn, each with a lock in
//! hand. Whoever has it waits for a job, and so do those that wait for it. The recorder counts such idle
//! turns where it has seen the turn begin; a worker that found the lock free began its own unseen. The
//! intervals that were kept show them as well: whoever let go had been in read() for as long as the other
//! one waited, until just before. So does a client that reads an answer with its lock in hand, so the
//! functions in which threads wait for the lock have to say that they want work (`get`, `recv`).
//!
//! The queue of Python's executors has a lock at which idle workers sleep, and whoever takes a job wakes the
//! next one, which finds none. They are known by the function that they sleep in, alone.

use std::collections::{BTreeMap, BTreeSet};

use model::{Account, Blocked, Outlier, OutlierKind, Run};

use crate::case::purposes::{Purpose, Purposes};
use crate::case::wait_chains::{WaitChains, waited_for};

const FUTEX: Account = Account::Blocked(Blocked::Futex);
const PIPE: Account = Account::Blocked(Blocked::PipeRead);
/// A lock is let go of so soon after what was read has come.
const AT_ONCE_NS: u64 = 1_000_000;

/// Of the waits for one word that were kept.
#[derive(Default)]
struct Kept {
    ns: u64,
    /// Of those in a function that says what they are for, and of those for work.
    named_ns: u64,
    for_work_ns: u64,
    /// Of those in a function that waits for the next job and nothing else.
    idle_ns: u64,
    /// While whoever let go of it then was reading.
    reading_ns: u64,
}

/// The words of such locks, by process and address.
pub(super) fn locks_to_fetch_work(run: &Run, purposes: &Purposes) -> BTreeSet<(u32, u64)> {
    let chains = WaitChains::new(run);
    let mut words = BTreeMap::<(u32, u64), Kept>::new();
    let waits = run.outliers.iter().filter(|outlier| {
        outlier.kind == OutlierKind::OffCpu && outlier.blocked == Some(Blocked::Futex)
    });
    for wait in waits {
        words.entry((wait.tgid, wait.object)).or_default().add(purposes, &chains, wait);
    }
    words.into_iter().filter(|(_, kept)| kept.is_to_fetch_work()).map(|(word, _)| word).collect()
}

impl Kept {
    fn add(&mut self, purposes: &Purposes, chains: &WaitChains, wait: &Outlier) {
        let asleep = wait.breakdown.get(FUTEX);
        let until = wait.start_ns.saturating_add(asleep);
        self.ns = self.ns.saturating_add(asleep);
        if let Some(purpose) = purposes.of_wait(wait) {
            let of = |wanted: &[Purpose]| if wanted.contains(&purpose) { asleep } else { 0 };
            let for_work = of(&[Purpose::Work, Purpose::NextJob]);
            self.named_ns = self.named_ns.saturating_add(asleep);
            self.for_work_ns = self.for_work_ns.saturating_add(for_work);
            self.idle_ns = self.idle_ns.saturating_add(of(&[Purpose::NextJob]));
        }
        let Some(waker) = waited_for(wait) else { return };
        let last = chains.during(waker, wait.start_ns, until).last();
        let read = last.filter(|last| last.blocked == Some(Blocked::PipeRead));
        let Some(read) = read else { return };
        let ended = read.start_ns.saturating_add(read.breakdown.get(PIPE)).min(until);
        if until - ended < AT_ONCE_NS {
            let reading = ended.saturating_sub(read.start_ns.max(wait.start_ns));
            self.reading_ns = self.reading_ns.saturating_add(reading);
        }
    }

    /// Nearly all of the time whoever had it was reading, and those that wait want work, too; or they were
    /// idle.
    fn is_to_fetch_work(&self) -> bool {
        (self.idle_ns > 0 && self.idle_ns >= self.ns - self.ns / 10) || self.is_read_in_turn()
    }

    fn is_read_in_turn(&self) -> bool {
        self.reading_ns > 0
            && self.reading_ns >= self.ns - self.ns / 10
            && self.for_work_ns > 0
            && self.for_work_ns >= self.named_ns - self.named_ns / 10
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::lost::lock_words;
    use crate::testing::{RunBuilder, interval, user_stack, wait};
    use model::WaitSum;

    const MS: u64 = 1_000_000;

    /// Two workers wait for each other's turns of 10 ms, of which whoever has the lock reads for `reads`.
    fn workers(reads: u64, function: &str) -> Run {
        let mut run = RunBuilder::new();
        for turn in 0..10 {
            let (waiter, holder) = if turn % 2 == 0 { (10, 11) } else { (11, 10) };
            let begin = 20 * turn * MS;
            let mut wait = interval(waiter, FUTEX, begin, 10 * MS, Some(holder));
            wait.user_stack = Some(user_stack(function).id);
            let read = interval(holder, PIPE, begin + (10 - reads) * MS, reads * MS, Some(12));
            run = run.kept(wait).kept(read);
        }
        let sum = WaitSum { by_waiter: 10, waker_tgid: 10, ..wait(10, FUTEX, 0x10, 10, 100 * MS) };
        let mut run = run.wait(sum).build();
        let stack = user_stack(function);
        run.stacks.insert(stack.id, stack);
        run
    }

    fn locks(reads: u64, function: &str) -> usize {
        let run = workers(reads, function);
        lock_words(&run, &Purposes::of(&run)).len()
    }

    #[test]
    fn idle_workers_of_an_executor_have_no_lock() {
        let locks_in = |module: &str, native: Option<&str>| {
            let mut run = workers(0, "_worker");
            for stack in run.stacks.values_mut() {
                let called = native.map(|native| user_stack(native).frames).unwrap_or_default();
                for frame in &mut stack.frames {
                    frame.module = module.to_owned();
                    frame.source = Some(model::SourceLine { line: None, first: 69 });
                }
                stack.frames.splice(0..0, called);
            }
            lock_words(&run, &Purposes::of(&run)).len()
        };
        let library = "/usr/lib/python3.11/concurrent/futures/thread.py";
        assert_eq!(locks_in(library, None), 0);
        // Where the interpreter's own functions have names, too.
        assert_eq!(locks_in(library, Some("_queue_SimpleQueue_get")), 0);
        for native in [None, Some("_queue_SimpleQueue_get")] {
            assert_eq!(locks_in("/srv/app/jobs.py", native), 1, "that one may wait for anything");
        }
    }

    #[test]
    fn a_lock_to_read_jobs_with_is_none_where_nothing_else_is_done_with_it() {
        assert_eq!(locks(10, "SimpleQueue.get"), 0);
        assert_eq!(locks(5, "SimpleQueue.get"), 1);
        // A client that asks by a pipe, with a lock in hand.
        assert_eq!(locks(10, "Client.ask"), 1);
    }
}
