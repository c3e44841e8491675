//! Whom a claim hurts: threads and processes, by the part that it takes of the time in which they
//! worked or were wanted.
//!
//! A claim is a sum over all threads. Where it has most of an account, it takes of each thread in
//! proportion to what the thread has there; of other accounts nothing is said of one thread. So a
//! part is rather too small than put under the wrong name.

use model::{Account, Accounts, Hurt, part_of};

use crate::case::Case;
use crate::case::lost::{Class, class};
use crate::cause::Claim;

/// Whoever was wanted for less than this part of the recording is judged with the others alone.
const SHORTEST: u64 = 10;

/// What a claim takes of one thread or process.
pub(super) struct Share {
    pub tgid: u32,
    /// `None`: all of the process.
    pub tid: Option<u32>,
    pub claimed_ns: u64,
    /// All that was not waiting for work.
    pub wanted_ns: u64,
    pub wall_ns: u64,
}

/// The parts of each account that a claim takes, and that were not idle: (part, whole).
pub(super) struct Parts {
    pub taken: Vec<(Account, u64, u64)>,
    wanted: Vec<(Account, u64, u64)>,
}

impl Parts {
    pub(super) fn new(case: &Case, claim: &Claim) -> Parts {
        let mut parts = Parts { taken: Vec::new(), wanted: Vec::new() };
        for (account, all) in case.accounts.iter() {
            let claimed = claim.lost.get(account);
            let lost = match class(account) {
                Class::Work => all,
                _ => case.lost.get(account).max(claimed),
            };
            // Of an account that is idle in part, one thread may have nothing but the idle part.
            let least = if lost < all { all - all / 10 } else { all.div_ceil(2) };
            if claimed > 0 && claimed >= least {
                parts.taken.push((account, claimed, all));
            }
            parts.wanted.push((account, lost, all));
        }
        parts
    }

    fn of(&self, accounts: &Accounts, tgid: u32, tid: Option<u32>) -> Share {
        let sum = |parts: &[(Account, u64, u64)]| {
            let of_account = |(account, part, all): &(Account, u64, u64)| {
                part_of(accounts.get(*account), *part, *all)
            };
            parts.iter().map(of_account).fold(0, u64::saturating_add)
        };
        let (claimed_ns, wanted_ns) = (sum(&self.taken), sum(&self.wanted));
        Share { tgid, tid, claimed_ns, wanted_ns, wall_ns: accounts.total() }
    }
}

/// Of each thread, then of each process, that was wanted for a tenth of the recording.
pub(super) fn shares(case: &Case, claim: &Claim) -> impl Iterator<Item = Share> {
    let parts = Parts::new(case, claim);
    let threads = case.run.threads.iter();
    let threads = threads.map(|thread| (&thread.accounts, thread.tgid, Some(thread.tid)));
    let processes = case.processes().map(|(tgid, accounts)| (accounts, tgid, None));
    let shares: Vec<Share> = threads
        .chain(processes)
        .filter(|_| !parts.taken.is_empty())
        .map(|(accounts, tgid, tid)| parts.of(accounts, tgid, tid))
        .filter(|share| share.wanted_ns > 0)
        .filter(|share| share.wanted_ns >= case.run.length_ns() / SHORTEST)
        .collect();
    shares.into_iter()
}

/// The thread that is hurt most; the process, if none of its threads was wanted for long enough.
/// `None` if all together are hurt more: it hurts those that live for a moment.
pub(super) fn worst(case: &Case, claim: &Claim) -> Option<Hurt> {
    let of_all = claim.lost.total() as f64 / case.active_ns().max(1) as f64;
    let hurt = shares(case, claim).filter(|share| share.claimed_ns > 0 && share.part() >= of_all);
    let worst = hurt.max_by(|a, b| {
        let by_thread = a.tid.is_some().cmp(&b.tid.is_some());
        by_thread.then(a.part().total_cmp(&b.part()))
    })?;
    let who = match worst.tid {
        Some(tid) => format!("thread {} (tid {tid})", thread_name(case, tid)),
        None => format!("process {}", case.process_name(worst.tgid)),
    };
    Some(Hurt { who, lost_ns: worst.claimed_ns, wanted_ns: worst.wanted_ns })
}

impl Share {
    /// The part of what it wanted.
    fn part(&self) -> f64 {
        self.claimed_ns as f64 / self.wanted_ns.max(1) as f64
    }
}

fn thread_name<'a>(case: &Case<'a>, tid: u32) -> &'a str {
    case.run.threads.iter().find(|thread| thread.tid == tid).map_or("?", |t| t.comm.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{FUTEX, RunBuilder, SECOND, USER};

    const QUEUED: Account = Account::RunnablePreempted;

    fn claim(account: Account, ns: u64) -> Claim {
        Claim::new(String::new(), [(account, ns)].into_iter().collect(), 100)
    }

    #[test]
    fn the_thread_that_lost_most_of_what_it_wanted_is_hurt_most() {
        let run = RunBuilder::new()
            .thread(10, 10, &[(USER, 3 * SECOND), (QUEUED, SECOND / 2)])
            .thread(11, 10, &[(USER, SECOND), (QUEUED, SECOND)])
            .build();
        let case = Case::new(&run);
        let worst = worst(&case, &claim(QUEUED, 3 * SECOND / 2)).unwrap();
        assert_eq!(worst.who, "thread thread-11 (tid 11)");
        assert_eq!((worst.lost_ns, worst.wanted_ns), (SECOND, 2 * SECOND));
    }

    #[test]
    fn nobody_is_named_where_the_claim_has_little_of_an_account() {
        let run = RunBuilder::new()
            .thread(10, 10, &[(USER, 3 * SECOND), (QUEUED, SECOND)])
            .thread(11, 10, &[(USER, 3 * SECOND), (FUTEX, SECOND)])
            .build();
        let case = Case::new(&run);
        assert_eq!(worst(&case, &claim(QUEUED, SECOND / 3)), None);
        // Most of that account may be waiting for work.
        assert_eq!(worst(&case, &claim(FUTEX, SECOND / 2)), None);
    }

    #[test]
    fn threads_that_live_for_a_moment_are_one_process() {
        let mut builder = RunBuilder::new();
        for tid in 10..110 {
            builder = builder.thread(tid, 10, &[(USER, SECOND / 100), (QUEUED, SECOND / 100)]);
        }
        let run = builder.build();
        let worst = worst(&Case::new(&run), &claim(QUEUED, SECOND)).unwrap();
        assert_eq!((worst.who.as_str(), worst.lost_ns), ("process main-10 (pid 10)", SECOND));
    }
}
