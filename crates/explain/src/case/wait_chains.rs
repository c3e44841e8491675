//! WaitChains: what the one that a thread waited for was doing meanwhile.
//!
//! A thread that waits for a lock is woken by whoever let go of it. If that thread was itself off
//! the CPU meanwhile, for a reason of its own, then that reason made both wait, and it may have
//! waited for a third. The walk goes from the victim through wakers and holders, as far as their
//! intervals were kept whole, and divides the victim's wait among what it meets: so a nanosecond
//! of a victim has one end of a chain only.

use std::collections::HashMap;

use model::{Account, Blocked, Context, Outlier, OutlierKind, Run};

/// Threads followed from one victim, at most.
const DEPTH: usize = 8;

/// A part of a victim's wait and what stands at the end of the chain.
pub(crate) struct End<'a> {
    pub ns: u64,
    /// From the one the victim waited for to the last.
    pub holders: Vec<&'a Outlier>,
}

/// Intervals off the CPU by thread, in time order.
pub(crate) struct WaitChains<'a>(HashMap<u32, Vec<&'a Outlier>>);

impl<'a> WaitChains<'a> {
    pub(crate) fn new(run: &'a Run) -> Self {
        let mut threads = HashMap::<u32, Vec<&Outlier>>::new();
        let off_cpu = |o: &&Outlier| matches!(o.kind, OutlierKind::OffCpu | OutlierKind::RunQueue);
        for outlier in run.outliers.iter().filter(off_cpu) {
            threads.entry(outlier.tid).or_default().push(outlier);
        }
        for intervals in threads.values_mut() {
            intervals.sort_by_key(|outlier| outlier.start_ns);
        }
        WaitChains(threads)
    }

    /// Intervals of `tid` that overlap `from..until`.
    pub(crate) fn during(
        &self,
        tid: u32,
        from: u64,
        until: u64,
    ) -> impl Iterator<Item = &'a Outlier> + '_ {
        let all = self.0.get(&tid).map_or(&[][..], Vec::as_slice);
        // Intervals of one thread do not overlap each other.
        let first = all.partition_point(|o| o.end_ns() <= from);
        all[first..].iter().copied().take_while(move |o| o.start_ns < until)
    }

    /// Divides what `outlier` waited within `from..until` among the ends of its wait chains.
    pub(crate) fn ends(&self, outlier: &'a Outlier, from: u64, until: u64) -> Vec<End<'a>> {
        let mut ends = Vec::new();
        self.walk(outlier, from, until, &mut Vec::new(), &mut ends);
        ends
    }

    fn walk(
        &self,
        waiting: &'a Outlier,
        from: u64,
        until: u64,
        path: &mut Vec<&'a Outlier>,
        ends: &mut Vec<End<'a>>,
    ) {
        let Some(tid) = waited_for(waiting).filter(|_| path.len() < DEPTH) else { return };
        if tid == waiting.tid || path.iter().any(|passed| passed.tid == tid) {
            return;
        }
        // The waiter is asleep only until it is woken; what comes then is its own run-queue delay.
        let until = until.min(waiting.start_ns.saturating_add(asleep(waiting)));
        for holder in self.during(tid, from, until) {
            let begin = holder.start_ns.max(from);
            let end = holder.end_ns().min(until);
            path.push(holder);
            let before = ends.len();
            self.walk(holder, begin, end, path, ends);
            let further = ends[before..].iter().fold(0u64, |sum, end| sum.saturating_add(end.ns));
            let own = end.saturating_sub(begin).saturating_sub(further);
            if own > 0 {
                ends.push(End { ns: own, holders: path.clone() });
            }
            path.pop();
        }
    }
}

/// The thread whose step ended the wait.
pub(crate) fn waited_for(outlier: &Outlier) -> Option<u32> {
    if !outlier.blocked.is_some_and(is_handed_over) {
        return None;
    }
    if let Some(holder) = &outlier.holder {
        return Some(holder.tid);
    }
    let waker = outlier.waker.as_ref().filter(|waker| waker.context == Context::Task)?;
    Some(waker.tid)
}

/// Waits that end because another thread gave something up.
fn is_handed_over(kind: Blocked) -> bool {
    kind.is_kernel_lock()
        || matches!(
            kind,
            Blocked::Futex | Blocked::FileLock | Blocked::PipeWrite | Blocked::SocketSend
        )
}

/// How much of an interval off the CPU was sleep: all but the run queue at its end.
fn asleep(outlier: &Outlier) -> u64 {
    outlier.breakdown.sum_of(|account| matches!(account, Account::Blocked(_)))
}
