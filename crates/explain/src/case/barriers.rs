//! Futex words at which threads wait for the one that comes last.
//!
//! Whoever comes last has waited there itself, in another step: that is the sign of a barrier. Who comes
//! last in every step never waits there, as one that hands out work. But it does the work that the
//! others do, before they wait: its stacks lead through the same calls, which one that hands out work
//! does not make. Where the function in which they wait is one of barriers, that is enough: of two threads
//! nobody lets several go on.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::{Hash, Hasher};

use model::{Account, Blocked, Context, Frame, Outlier, OutlierKind, Run, Stack, StackId, Waker};

use crate::case::lock_word::LockWord;
use crate::case::lost::words_of;
use crate::case::purposes::Purposes;

const FUTEX: Account = Account::Blocked(Blocked::Futex);

/// Words with one waker that are looked at closely, those with the most time: each takes a look at all
/// intervals.
const LOOKED_AT: usize = 8;

/// Sleeps and samples in the same places, at least.
const SEEN: u64 = 5;

/// In what threads begin, as far as stacks show it.
const BEGINS: [&str; 6] =
    ["clone", "clone3", "__clone3", "__GI___clone3", "start_thread", "thread_start"];

/// A word at which threads wait for the one that comes last.
#[derive(Debug)]
pub(crate) struct Barrier {
    /// Its waits.
    pub(crate) word: LockWord,
    /// The thread that comes last and never waits there, if it is known by what it does.
    pub(crate) late: Option<u32>,
}

/// The barriers of a run, the longest waits first.
pub(crate) fn barriers(run: &Run) -> Vec<Barrier> {
    let mut words = words_of(run);
    words.sort_by_key(|word| std::cmp::Reverse(word.ns));
    let mut looks = 0;
    let named = Purposes::of(run).barriers();
    let barrier = |word: LockWord| {
        if word.is_barrier() || named.contains(&(word.tgid, word.address)) {
            return Some(Barrier { word, late: None });
        }
        if word.account != FUTEX || !word.is_let_go_together() || looks == LOOKED_AT {
            return None;
        }
        looks += 1;
        let late = Round::of(run, &word).late(run)?;
        Some(Barrier { word, late: Some(late) })
    };
    words.into_iter().filter_map(barrier).collect()
}

/// Those who meet at a word.
struct Round {
    tgid: u32,
    waiters: BTreeSet<u32>,
    /// Where they wait there.
    waiting: BTreeSet<StackId>,
    /// Time of the waits by who ended them.
    wakers: BTreeMap<u32, u64>,
}

impl Round {
    fn of(run: &Run, word: &LockWord) -> Round {
        let mut round = Round {
            tgid: word.tgid,
            waiters: BTreeSet::new(),
            waiting: BTreeSet::new(),
            wakers: BTreeMap::new(),
        };
        let is_at = |wait: &&Outlier| {
            wait.blocked == Some(Blocked::Futex)
                && (wait.tgid, wait.object) == (word.tgid, word.address)
        };
        for wait in sleeps(run, word.tgid).filter(is_at) {
            round.waiters.insert(wait.tid);
            round.waiting.extend(wait.user_stack);
            if let Some(tid) = wait.waker.as_ref().and_then(fellow(word.tgid)) {
                *round.wakers.entry(tid).or_default() += wait.duration_ns;
            }
        }
        round
    }

    /// The thread that ended most of the waits, if it never waits there and does the work of those who
    /// do.
    fn late(&self, run: &Run) -> Option<u32> {
        let (late, ns) = self.wakers.iter().max_by_key(|(_, ns)| **ns)?;
        let total: u64 = self.wakers.values().sum();
        // One that waits for another is no barrier, whatever both do in between.
        let is_alone = *ns > total / 2 && !self.waiters.contains(late) && self.waiters.len() > 1;
        (is_alone && self.works_like_waiters(run, *late)).then_some(*late)
    }

    /// In most of the time of which it is known where that thread was, it was where those who wait are
    /// when they do not wait.
    fn works_like_waiters(&self, run: &Run, late: u32) -> bool {
        let waiting = places(run, self.waiting.iter().copied());
        let is_other =
            |at: &&At| self.waiters.contains(&at.tid) && !self.waiting.contains(&at.stack);
        let all: Vec<At> = whereabouts(run, self.tgid).collect();
        let working = all.iter().filter(is_other).filter(|at| at.is_work).map(|at| at.stack);
        let work: HashSet<u64> = places(run, working).difference(&waiting).copied().collect();
        let (mut same, mut total, mut seen) = (0u64, 0u64, 0u64);
        for at in all.iter().filter(|at| at.tid == late) {
            let Some(stack) = whole(run, at.stack) else { continue };
            if stack.copies == 0 && paths(stack).all(|path| waiting.contains(&path)) {
                continue; // in which of the functions that these call is not known
            }
            total = total.saturating_add(at.ns);
            if at.is_work && paths(stack).any(|path| work.contains(&path)) {
                same = same.saturating_add(at.ns);
                seen = seen.saturating_add(at.count);
            }
        }
        seen >= SEEN && same > total / 2
    }
}

/// A thread was somewhere in its program.
struct At {
    tid: u32,
    stack: StackId,
    count: u64,
    ns: u64,
    /// It did not wait for something to do.
    is_work: bool,
}

/// Where the threads of a process ran and slept, as far as that is known.
fn whereabouts(run: &Run, tgid: u32) -> impl Iterator<Item = At> {
    let slept = sleeps(run, tgid).filter_map(|sleep| {
        let (tid, ns) = (sleep.tid, sleep.duration_ns);
        let is_work = sleep.blocked.is_some_and(|kind| !is_for_others(kind));
        Some(At { tid, stack: sleep.user_stack?, count: 1, ns, is_work })
    });
    let samples = run.sums.paths.iter().filter(move |path| path.sampled && path.tgid == tgid);
    let ran = samples.filter(|path| path.tid != 0).filter_map(|path| {
        let (tid, count, ns) = (path.tid, path.count, path.ns);
        Some(At { tid, stack: path.user?, count, ns, is_work: true })
    });
    slept.chain(ran)
}

/// What others bring: where threads wait so, they may be of one kind and have nothing to do.
fn is_for_others(kind: Blocked) -> bool {
    matches!(
        kind,
        Blocked::Futex
            | Blocked::SocketReceive
            | Blocked::SocketAccept
            | Blocked::Poll
            | Blocked::PipeRead
            | Blocked::ChildWait
            | Blocked::Stopped
            | Blocked::Other
    )
}

fn sleeps(run: &Run, tgid: u32) -> impl Iterator<Item = &Outlier> {
    let is_sleep = move |o: &&Outlier| o.tgid == tgid && o.kind == OutlierKind::OffCpu;
    run.outliers.iter().filter(is_sleep).filter(|sleep| sleep.blocked.is_some())
}

/// The thread of this process that has woken one.
fn fellow(tgid: u32) -> impl Fn(&Waker) -> Option<u32> {
    move |waker| (waker.context == Context::Task && waker.tgid == tgid).then_some(waker.tid)
}

/// The stack, if it goes out to where the thread began.
fn whole(run: &Run, id: StackId) -> Option<&Stack> {
    run.stacks.get(&id).filter(|stack| !stack.truncated)
}

fn places(run: &Run, stacks: impl Iterator<Item = StackId>) -> HashSet<u64> {
    let stacks: BTreeSet<StackId> = stacks.collect();
    stacks.into_iter().filter_map(|id| whole(run, id)).flat_map(paths).collect()
}

/// Each frame with all calls that led to it, from the function that the thread was made for. Of what
/// frame pointers gave the innermost one is left out: a function of a library that keeps none hides
/// its caller, and functions that several threads call would look like one place.
fn paths(stack: &Stack) -> impl Iterator<Item = u64> {
    let begins = |frame: &&Frame| frame.symbol.as_deref().is_some_and(|it| BEGINS.contains(&it));
    let known = &stack.frames[usize::from(stack.copies == 0 && !stack.frames.is_empty())..];
    known.iter().rev().skip_while(begins).scan(DefaultHasher::new(), |path, frame| {
        (frame.address, frame.source.map(|source| source.line)).hash(path);
        Some(path.finish())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::lost::lock_words;
    use crate::testing::{RunBuilder, SECOND, interval, user_stack, wait};
    use model::{ChainEnd, WaitSum};

    const TIMER: Account = Account::Blocked(Blocked::TimerSleep);
    const POLL: Account = Account::Blocked(Blocked::Poll);
    const MS: u64 = 1_000_000;

    /// Threads 2 to 4 wait at 0x10 in the function 81, and thread 1 wakes them; it sleeps in `late`, and
    /// they in `work`. Frames are innermost first; all threads begin in 1 and 2.
    fn told(many: u64, account: Account, late: &[u64], work: &[u64]) -> Option<u32> {
        late_of(many, account, 2..5, (late, 1), (work, 1))
    }

    /// The same with stacks from so many copies.
    fn late_of(
        many: u64,
        account: Account,
        waiters: std::ops::Range<u32>,
        (late, late_copies): (&[u64], u64),
        (work, work_copies): (&[u64], u64),
    ) -> Option<u32> {
        let mut run = RunBuilder::new().wait(WaitSum {
            waker_tgid: 10,
            many,
            ends: [(ChainEnd::Timer, SECOND)].into(),
            ..wait(10, FUTEX, 0x10, 100, SECOND)
        });
        for step in 0..6 {
            let at = step * 22 * MS;
            for tid in waiters.clone() {
                let wait = interval(tid, FUTEX, at, 20 * MS, Some(1));
                run = run.placed(wait, &[9, 81, 2, 1], 1);
                let rest = interval(tid, TIMER, at + 20 * MS, 2 * MS, None);
                run = run.placed(rest, work, work_copies);
            }
            run = run.placed(interval(1, account, at, 20 * MS, None), late, late_copies);
        }
        barriers(&run.build()).first().and_then(|barrier| barrier.late)
    }

    /// Of two, one waits all the time, and the other lets it go on.
    #[test]
    fn two_threads_that_wait_in_a_function_of_barriers_have_one() {
        let met_in = |function| {
            let mut run = RunBuilder::new();
            for n in 0..6 {
                let mut kept = interval(2, FUTEX, 22 * n * MS, 20 * MS, Some(1));
                (kept.user_stack, kept.object) = (Some(user_stack(function).id), 0x10);
                run = run.kept(kept);
            }
            let ends = [(ChainEnd::Cpu, SECOND)].into();
            let sum = WaitSum {
                waker_tgid: 10,
                waker_tid: 1,
                by_waiter: 90,
                ends,
                ..wait(10, FUTEX, 0x10, 100, SECOND)
            };
            let mut run = run.wait(sum).build();
            let stack = user_stack(function);
            run.stacks.insert(stack.id, stack);
            run.outliers.iter_mut().for_each(|wait| {
                wait.tgid = 10;
                wait.waker.as_mut().unwrap().tgid = 10;
            });
            let locks = lock_words(&run, &Purposes::of(&run)).len();
            (barriers(&run).len(), locks)
        };
        assert_eq!(met_in("__pthread_barrier_wait"), (1, 0));
        assert_eq!(met_in("take_turns"), (0, 1));
    }

    #[test]
    fn who_always_comes_last_is_known_by_the_work_that_all_do() {
        assert_eq!(told(66, TIMER, &[7, 82, 2, 1], &[7, 82, 2, 1]), Some(1));
        // The work of the late one is another part of the same.
        assert_eq!(told(66, TIMER, &[6, 5, 82, 2, 1], &[7, 82, 2, 1]), Some(1));
    }

    /// One decodes what the other shows: both call the same functions.
    #[test]
    fn one_that_waits_for_another_is_at_no_barrier() {
        let same: (&[u64], u64) = (&[7, 82, 2, 1], 1);
        assert_eq!(late_of(66, TIMER, 2..4, same, same), Some(1));
        assert_eq!(late_of(66, TIMER, 2..3, same, same), None);
    }

    #[test]
    fn who_hands_out_work_has_other_work() {
        // They sleep in the same function, which other functions have called.
        assert_eq!(told(66, TIMER, &[7, 30, 2, 1], &[7, 82, 2, 1]), None);
        assert_eq!(told(66, TIMER, &[7, 30, 29, 1], &[7, 82, 2, 1]), None);
        // It goes its own way in the function in which the others wait.
        assert_eq!(told(66, TIMER, &[7, 83, 2, 1], &[7, 82, 2, 1]), None);
    }

    #[test]
    fn a_function_without_a_frame_pointer_hides_its_caller() {
        let hidden: (&[u64], u64) = (&[7, 2, 1], 0);
        assert_eq!(late_of(66, TIMER, 2..5, hidden, hidden), None, "in which function both slept?");
        assert_eq!(late_of(66, TIMER, 2..5, (&[7, 82, 2, 1], 0), (&[7, 82, 2, 1], 1)), Some(1));
    }

    #[test]
    fn who_waits_for_work_as_the_others_do_is_not_late() {
        assert_eq!(told(66, POLL, &[7, 82, 2, 1], &[7, 82, 2, 1]), None);
    }

    #[test]
    fn who_wakes_one_at_a_time_is_at_no_barrier() {
        assert_eq!(told(5, TIMER, &[7, 82, 2, 1], &[7, 82, 2, 1]), None);
    }
}
