//! Locks of runtimes that let each thread sleep on a futex word of its own, whatever it waits for:
//! Java's monitors and LockSupport, Rust's parking_lot, absl; and of servers that have a process for
//! each connection (PostgreSQL).
//!
//! No word is the lock's. But whoever is woken has the turn, and wakes the next one when it has
//! done: those that wait are those that wake, and such turns, one after the other, take up most of each
//! wait (the recorder counts no other). Where one thread wakes all others (a pool that is given
//! work), each wakes one that had waited for work from outside, or the next of a [pipeline](super::rings),
//! there is no lock.

use std::collections::{BTreeMap, BTreeSet};

use model::{Account, Blocked, ChainEnd, Context, Run, StackId, WaitSum};

use crate::case::lock_word::LockWord;
use crate::case::rings::outside_of_rings;
use crate::case::safepoints::is_often_stopped;

const FUTEX: Account = Account::Blocked(Blocked::Futex);
/// Two that wake each other may as well ask and answer.
const FEWEST: usize = 3;
/// So large a part of the waits is ended by one that was woken itself. Of a lock nearly all are; of the
/// workers of a pool that is given work, and wake one another to share it, up to 0.6 were.
const MOSTLY: (u64, u64) = (2, 3);
/// Of the waits on a word of the lock one in so many is ended by one that was woken itself, at least: two threads
/// that let each other sleep until the next timer have no part in the lock of the others.
const TAKES_PART: u64 = 3;
/// Where threads of Go sleep. Its scheduler lets one that has found work wake another to look for
/// more, in turn, with no lock in it.
const GO: &str = "runtime.futex";

/// What the words of a run's parked threads are.
#[derive(Debug, Default)]
pub(super) struct Parked {
    /// For each process that has a lock in such words: all of them as one.
    pub together: Vec<LockWord>,
    /// The words, by process and address.
    pub words: BTreeSet<(u32, u64)>,
}

/// The threads of a process that each wait on words of their own.
#[derive(Default)]
struct Crew<'a> {
    waits: Vec<&'a WaitSum>,
    waiters: BTreeSet<u32>,
    wakers: BTreeSet<u32>,
}

pub(super) fn parked(run: &Run) -> Parked {
    let mut crews = BTreeMap::<u32, Crew>::new();
    for wait in own_words(run) {
        crews.entry(wait.tgid).or_default().add(wait);
    }
    crews.values_mut().for_each(|crew| crew.add_wakers(run));
    let mut parked = Parked::default();
    let (several, lone): (Vec<_>, Vec<_>) =
        crews.into_iter().partition(|(_, crew)| crew.waiters.len() > 1);
    for (tgid, crew) in several {
        if !is_go(run, tgid) && !is_often_stopped(run, tgid) {
            parked.note(run, &crew);
        }
    }
    of_processes(run, lone).iter().for_each(|crew| parked.note(run, crew));
    parked
}

/// Processes of one name with one such thread each, as servers have that serve each connection with a
/// process (PostgreSQL): each sleeps on a word of its own in memory that they share. Where several have
/// the same word, that word is the lock.
fn of_processes<'a>(run: &Run, lone: Vec<(u32, Crew<'a>)>) -> Vec<Crew<'a>> {
    let mut by_name = BTreeMap::<&str, Crew>::new();
    for (tgid, crew) in lone {
        let together = by_name.entry(run.comm(tgid)).or_default();
        crew.waits.iter().for_each(|wait| together.add(wait));
    }
    let mut crews: Vec<Crew> = by_name.into_values().collect();
    crews.retain(|crew| {
        let words: BTreeSet<(u32, u64)> =
            crew.waits.iter().map(|wait| (wait.tgid, wait.object)).collect();
        let addresses: BTreeSet<u64> = words.iter().map(|(_, address)| *address).collect();
        addresses.len() == words.len()
    });
    crews
}

impl<'a> Crew<'a> {
    fn add(&mut self, wait: &'a WaitSum) {
        self.waits.push(wait);
        self.waiters.insert(wait.waiter_tid);
        if wait.waker_tid != 0 {
            self.wakers.insert(wait.waker_tid);
        }
    }

    /// A sum has the last waker alone.
    fn add_wakers(&mut self, run: &Run) {
        let words: BTreeSet<(u32, u64)> =
            self.waits.iter().map(|wait| (wait.tgid, wait.object)).collect();
        let kept = run
            .outliers
            .iter()
            .filter(|o| o.blocked == Some(Blocked::Futex) && words.contains(&(o.tgid, o.object)));
        let wakers = kept.filter_map(|o| o.waker.as_ref());
        let threads = wakers.filter(|waker| waker.context == Context::Task);
        self.wakers.extend(threads.map(|waker| waker.tid));
    }
}

impl Parked {
    /// Takes the crew's words for a lock, if those that wait are those that wake.
    fn note(&mut self, run: &Run, crew: &Crew) {
        let taking_turns = crew.wakers.intersection(&crew.waiters).count();
        if taking_turns < FEWEST.max(crew.waiters.len().div_ceil(2)) {
            return;
        }
        let mut all = LockWord::new(0, FUTEX, 0);
        all.parked = crew.waiters.len() as u64;
        crew.waits.iter().for_each(|wait| all.add(wait));
        // Asked of all words: those that are chosen below for their turns would always say so.
        let is_mostly = all.by_parked >= all.by_thread.saturating_mul(MOSTLY.0) / MOSTLY.1;
        if !all.is_lock() || !is_mostly {
            return;
        }
        let takes_part = |wait: &&WaitSum| wait.by_parked.saturating_mul(TAKES_PART) >= wait.count;
        let mut turns: Vec<&WaitSum> = crew.waits.iter().copied().filter(takes_part).collect();
        let outside = outside_of_rings(run, &turns);
        turns.retain(|wait| !outside.contains(&wait.waiter_tid));
        let waiters: BTreeSet<u32> = turns.iter().map(|wait| wait.waiter_tid).collect();
        if waiters.len() < FEWEST {
            return;
        }
        let parked = waiters.len() as u64;
        let mut by_process = BTreeMap::<u32, LockWord>::new();
        for wait in turns {
            let new = || LockWord { parked, ..LockWord::new(wait.tgid, FUTEX, 0) };
            by_process.entry(wait.tgid).or_insert_with(new).add(wait);
            self.words.insert((wait.tgid, wait.object));
        }
        self.together.extend(by_process.into_values());
    }
}

/// Waits on futex words on which one thread alone has waited, more than once.
fn own_words(run: &Run) -> Vec<&WaitSum> {
    let futexes = || run.sums.waits.iter().filter(|wait| wait.account == FUTEX);
    let mut words = BTreeMap::<(u32, u64), (BTreeSet<u32>, u64)>::new();
    for wait in futexes() {
        let (waiters, count) = words.entry((wait.tgid, wait.object)).or_default();
        waiters.insert(wait.waiter_tid);
        *count = count.saturating_add(wait.count);
    }
    let is_own = |wait: &&WaitSum| {
        let word = words.get(&(wait.tgid, wait.object));
        wait.waiter_tid != 0
            && wait.lock_like < wait.count.div_ceil(2)
            && word.is_some_and(|(waiters, count)| waiters.len() == 1 && *count > 1)
            && may_be_turn(wait)
    };
    futexes().filter(is_own).collect()
}

/// A thread ended these waits, and it is known for most of the time what that one did meanwhile. A
/// timeout ends what the thread sleeps by its own choice (Thread.sleep); and what nobody ends for so long
/// that the history of whoever does so in the end is shorter is a wait for work.
fn may_be_turn(wait: &WaitSum) -> bool {
    let unknown = wait.ends_in(|end| end == ChainEnd::Unknown);
    wait.ends.is_empty() || (wait.waker_tgid != 0 && unknown <= wait.ns / 2)
}

fn is_go(run: &Run, tgid: u32) -> bool {
    let is_go = |id: StackId| {
        let stack = run.stacks.get(&id);
        stack.is_some_and(|stack| {
            let mut symbols = stack.frames.iter().filter_map(|frame| frame.symbol.as_deref());
            symbols.any(|symbol| symbol.starts_with(GO))
        })
    };
    let paths = run.sums.paths.iter().map(|path| (path.tgid, path.account, path.user));
    let kept = run.sums.stack_sums.iter().map(|sum| (sum.tgid, sum.account, sum.user));
    paths
        .chain(kept)
        .any(|(of, account, user)| of == tgid && account == FUTEX && user.is_some_and(is_go))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::lost::lock_words;
    use crate::case::purposes::Purposes;
    use crate::case::safepoints::VM_THREAD;
    use crate::testing::{RunBuilder, SECOND, interval, wait};

    /// Thread `waiter` on its own word, always woken by `waker`.
    fn own(waiter: u32, waker: u32) -> WaitSum {
        WaitSum {
            waiter_tid: waiter,
            waker_tid: waker,
            waker_tgid: 1,
            by_parked: 10,
            ends: [(ChainEnd::Timer, 900), (ChainEnd::Outside, 100)].into(),
            ..wait(1, FUTEX, u64::from(waiter) * 8, 10, 1000)
        }
    }

    fn locks(waits: impl IntoIterator<Item = WaitSum>) -> Vec<LockWord> {
        let run = waits.into_iter().fold(RunBuilder::new(), RunBuilder::wait);
        lock_words(&run.build(), &Purposes::default())
    }

    #[test]
    fn threads_that_wake_each_other_in_turn_have_a_lock() {
        let found = locks([own(1, 2), own(2, 3), own(3, 1)]);
        let [lock] = &found[..] else { panic!("{found:#?}") };
        assert_eq!((lock.parked, lock.count, lock.lost_ns()), (3, 30, 2700));
    }

    /// Each sum has the last waker alone: here 2 of all.
    #[test]
    fn who_wakes_whom_is_known_by_the_waits_that_were_kept_as_well() {
        let sums = || [own(1, 2), own(2, 1), own(3, 2)].into_iter();
        assert!(locks(sums()).is_empty());
        let mut kept = interval(1, FUTEX, 0, SECOND, Some(3));
        (kept.tgid, kept.object) = (1, 8);
        let run = sums().fold(RunBuilder::new().kept(kept), RunBuilder::wait);
        assert_eq!(lock_words(&run.build(), &Purposes::default()).len(), 1);
    }

    #[test]
    fn what_they_sleep_by_choice_and_wait_for_work_is_none_of_it() {
        let slept = |tid| WaitSum {
            waker_tgid: 0,
            waker_tid: 0,
            by_parked: 0,
            object: 0x1000 + u64::from(tid) * 8,
            ends: [(ChainEnd::Timer, 5000)].into(),
            ..own(tid, 0)
        };
        let idle = WaitSum {
            ns: 9000,
            ends: [(ChainEnd::Timer, 1000), (ChainEnd::Unknown, 8000)].into(),
            ..own(4, 3)
        };
        let found = locks([own(1, 2), own(2, 3), own(3, 1), slept(1), slept(2), idle]);
        let [lock] = &found[..] else { panic!("{found:#?}") };
        assert_eq!((lock.parked, lock.count, lock.lost_ns()), (3, 30, 2700));
    }

    /// Process `tgid`, with one thread, on its own word, always woken by the thread of `waker`.
    fn process(tgid: u32, object: u64, waker: u32) -> WaitSum {
        let ends = [(ChainEnd::Disk, 900), (ChainEnd::Outside, 100)].into();
        WaitSum { tgid, object, waker_tgid: waker, ends, ..own(tgid, waker) }
    }

    #[test]
    fn processes_that_wake_each_other_in_turn_have_a_lock_unless_they_share_its_word() {
        let turns = |object: fn(u32) -> u64| {
            let turn = |tgid, waker| process(tgid, object(tgid), waker);
            locks([turn(1, 2), turn(2, 3), turn(3, 1)])
        };
        let found = turns(|tgid| u64::from(tgid) * 128);
        let [lock, ..] = &found[..] else { panic!("{found:#?}") };
        assert_eq!((found.len(), lock.parked, lock.lost_ns()), (3, 3, 900));
        assert!(turns(|_| 128).iter().all(|word| word.parked == 0));
    }

    /// Whoever a stop has kept from waking the next one looks like one that had the turn.
    #[test]
    fn where_a_runtime_often_stops_its_threads_no_turns_are_seen() {
        let mut stop = interval(1, FUTEX, SECOND, SECOND / 4, Some(9));
        stop.breakdown = [(FUTEX, SECOND / 4)].into_iter().collect();
        (stop.tgid, stop.waker.as_mut().unwrap().tgid) = (1, 1);
        stop.waker.as_mut().unwrap().comm = VM_THREAD.into();
        let turns = [own(1, 2), own(2, 3), own(3, 1)];
        let run = turns.into_iter().fold(RunBuilder::new().kept(stop), RunBuilder::wait);
        assert!(lock_words(&run.build(), &Purposes::default()).is_empty());
    }

    #[test]
    fn threads_that_one_gives_work_have_none() {
        assert!(locks([own(1, 9), own(2, 9), own(3, 9), own(9, 1)]).is_empty());
    }

    /// Threads 1 to 3 are let go on by `wakers`, 10 times each, and that was kept.
    fn kept_turns(wakers: [u32; 3]) -> Vec<LockWord> {
        let mut run = RunBuilder::new();
        for (tid, waker) in (1..4).zip(wakers) {
            for n in 0..10 {
                let mut kept = interval(tid, FUTEX, n * SECOND / 10, SECOND / 20, Some(waker));
                (kept.tgid, kept.object) = (1, u64::from(tid) * 8);
                run = run.kept(kept);
            }
        }
        let sums = [own(1, 3), own(2, 1), own(3, 2)];
        let run = sums.into_iter().fold(run, RunBuilder::wait);
        lock_words(&run.build(), &Purposes::default())
    }

    /// A queue that is full: its threads wait for the one that empties it, which finds it empty now and then. Or
    /// a pipeline.
    #[test]
    fn threads_that_are_in_no_ring_have_none() {
        assert_eq!(kept_turns([3, 1, 2]).len(), 1);
        assert!(kept_turns([9, 9, 9]).is_empty());
        assert!(kept_turns([9, 1, 2]).is_empty());
    }

    #[test]
    fn a_word_on_which_others_wait_too_is_not_its_own() {
        let shared = WaitSum { waiter_tid: 0, ..own(3, 1) };
        assert!(locks([own(1, 2), own(2, 3), shared]).is_empty());
    }

    #[test]
    fn workers_that_pass_on_what_they_are_given_have_none() {
        let work = |waiter, waker| WaitSum { by_parked: 6, ..own(waiter, waker) };
        assert!(locks([work(1, 2), work(2, 3), work(3, 1)]).is_empty());
        let turns = |waiter, waker| WaitSum { by_parked: 7, ..own(waiter, waker) };
        assert_eq!(locks([turns(1, 2), turns(2, 3), turns(3, 1)]).len(), 1);
    }

    /// gRPC's timer threads: one sleeps until the next timer, and then lets the other do so.
    #[test]
    fn who_wakes_another_at_a_timer_has_no_part_in_the_lock_of_others() {
        let timer = |waiter, waker| WaitSum {
            ns: 90_000,
            count: 2,
            by_parked: 0,
            ends: [(ChainEnd::Timeout, 90_000)].into(),
            ..own(waiter, waker)
        };
        let turns = |by_parked| {
            let turn = |waiter, waker| WaitSum { by_parked, ..own(waiter, waker) };
            locks([turn(1, 2), turn(2, 3), turn(3, 1), timer(4, 5), timer(5, 4)])
        };
        let found = turns(10);
        let [lock] = &found[..] else { panic!("{found:#?}") };
        assert_eq!((lock.parked, lock.count, lock.lost_ns()), (3, 30, 2700));
        assert!(turns(7).is_empty(), "21 of 34 ends are no turns mostly, though 21 of 30 would be");
    }

    #[test]
    fn a_turn_that_came_with_work_from_outside_is_none() {
        let work = |waiter, waker| WaitSum { by_parked: 1, ..own(waiter, waker) };
        assert!(locks([work(1, 2), work(2, 3), work(3, 1)]).is_empty());
    }
}
