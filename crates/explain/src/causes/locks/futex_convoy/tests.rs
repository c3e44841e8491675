use std::collections::BTreeMap;

use super::*;
use crate::testing::{RunBuilder, SECOND, USER, wait};
use model::WaitSum;

fn convoy(lock_like: u64, by_waiter: u64) -> RunBuilder {
    RunBuilder::new()
        .thread(10, 10, &[(USER, SECOND), (FUTEX, 3 * SECOND)])
        .thread(11, 10, &[(USER, SECOND), (FUTEX, 3 * SECOND)])
        .wait(WaitSum { lock_like, by_waiter, ..wait(10, FUTEX, 0xbeef, 1000, 4 * SECOND) })
}

#[test]
fn claimed_for_lock_waits_and_only_for_those() {
    let run = convoy(1000, 990).build();
    let claim = examine(&Case::new(&run)).unwrap();
    assert_eq!(claim.lost.get(FUTEX), 4 * SECOND);
    assert!(claim.title.ends_with("lock at 0xbeef"), "{}", claim.title);
    assert!(claim.doubts.is_empty());
}

fn convoy_behind(ends: &[(ChainEnd, u64)]) -> RunBuilder {
    let ends: BTreeMap<_, _> = ends.iter().copied().collect();
    let ns = ends.values().sum();
    RunBuilder::new().thread(10, 10, &[(USER, SECOND), (FUTEX, 6 * SECOND)]).wait(WaitSum {
        lock_like: 100,
        waker_tgid: 10,
        waker_tid: 10,
        longest_end: ends.iter().max_by_key(|(_, ns)| **ns).map(|(end, _)| (10, *end)),
        ends,
        ..wait(10, FUTEX, 0xbeef, 100, ns)
    })
}

#[test]
fn the_fix_follows_what_the_holder_did() {
    let run = convoy_behind(&[(ChainEnd::Timer, 3 * SECOND), (ChainEnd::Cpu, SECOND)]).build();
    let claim = examine(&Case::new(&run)).unwrap();
    assert_eq!(claim.lost.get(FUTEX), 4 * SECOND);
    assert!(claim.title.contains("whose holder slept by a timer"), "{}", claim.title);
    assert!(claim.fix.unwrap().contains("before it sleeps"));
    assert!(claim.ruled_out.iter().any(|r| r.cause == "cpu-runqueue"), "{:?}", claim.ruled_out);
}

/// A pool of connections: each word is known as a lock by who ended the waits alone.
#[test]
fn what_waits_behind_a_holder_that_has_asked_a_process_beyond_the_recording_is_lost() {
    let behind = |end| {
        let mut run = convoy_behind(&[(end, 3 * SECOND)]).build();
        (run.sums.waits[0].lock_like, run.sums.waits[0].by_waiter) = (0, 90);
        run
    };
    let run = behind(ChainEnd::Peer);
    let claim = examine(&Case::new(&run)).unwrap();
    assert_eq!(claim.lost.get(FUTEX), 3 * SECOND);
    assert!(claim.title.contains("waited for the answer of a process"), "{}", claim.title);
    assert!(claim.fix.unwrap().contains("too few for so many threads"));
    // All may have waited for something to do.
    assert!(examine(&Case::new(&behind(ChainEnd::Unwatched))).is_err());
}

#[test]
fn a_writer_that_never_got_the_lock_is_told_of_its_readers() {
    let stack = crate::testing::user_stack("pthread_rwlock_wrlock");
    let open = WaitSum {
        open: 1,
        open_at: Some(stack.id),
        waiter_tid: 11,
        ..wait(10, FUTEX, 0xbeef, 1, 4 * SECOND)
    };
    let threads = [(10, SECOND), (11, 4 * SECOND)];
    let run = threads.into_iter().fold(RunBuilder::new(), |run, (tid, ns)| {
        run.thread(tid, 10, &[(USER, SECOND), (FUTEX, ns)])
    });
    let mut run = run.wait(open).build();
    run.stacks.insert(stack.id, stack);
    let claim = examine(&Case::new(&run)).unwrap();
    assert!(claim.title.ends_with("the lock at 0xbeef, which none of them got"), "{}", claim.title);
    assert!(claim.fix.unwrap().contains("prefer writers"));
    let trigger =
        &claim.chain.iter().find(|link| link.text.contains("had not ended")).unwrap().text;
    assert!(trigger.ends_with("longest in such a wait: thread-11 (tid 11)"), "{trigger}");
}

#[test]
fn where_nobody_is_known_at_the_end_it_is_not_called_the_holders_own() {
    let mut run = convoy_behind(&[(ChainEnd::Timer, 3 * SECOND)]).build();
    run.sums.waits[0].longest_end = Some((10, ChainEnd::Cpu));
    let claim = examine(&Case::new(&run)).unwrap();
    let title = "whose holder, or whoever that one waited for, slept by a timer of its own";
    assert!(claim.title.ends_with(title), "{}", claim.title);
    assert!(claim.fix.unwrap().contains("or a thread that it waits for"));
}

/// Thread 11 has the lock, and waits with it for process 70, which sleeps.
#[test]
fn a_timer_of_somebody_beyond_the_holder_is_not_called_the_holders_own() {
    let title_with = |end: u32| {
        let mut run = convoy_behind(&[(ChainEnd::Timer, 3 * SECOND)]).thread(77, 70, &[]).build();
        run.sums.waits[0].waker_tid = 11;
        run.sums.waits[0].usual_end = Some((end, ChainEnd::Timer));
        // One wait may have ended otherwise.
        run.sums.waits[0].longest_end = Some((11, ChainEnd::Cpu));
        let claim = examine(&Case::new(&run)).unwrap();
        let is_of_all = |link: &model::Link| link.text.contains("whoever that one waited for");
        (claim.title, claim.fix.unwrap(), claim.chain.iter().any(is_of_all))
    };
    let (title, fix, is_of_all) = title_with(77);
    assert!(
        title.ends_with(
            "whose holder waited for thread-77 (tid 77), which slept by a timer of its own"
        ),
        "{title}"
    );
    assert!(fix.contains("waits for another thread") && is_of_all);
    let (title, fix, is_of_all) = title_with(11);
    assert!(title.ends_with("whose holder slept by a timer of its own"), "{title}");
    assert!(fix.contains("before it sleeps") && !is_of_all);
}

#[test]
fn a_lock_that_nobody_lets_go_of_is_an_outage() {
    let open = WaitSum {
        lock_like: 3,
        open: 3,
        ends: [(ChainEnd::Unknown, 6 * SECOND)].into(),
        ..wait(10, FUTEX, 0xbeef, 3, 6 * SECOND)
    };
    let run = RunBuilder::new().thread(10, 10, &[(FUTEX, 6 * SECOND)]).wait(open).build();
    let claim = examine(&Case::new(&run)).unwrap();
    assert!(claim.title.ends_with("which nobody let go of"), "{}", claim.title);
    assert!(claim.chain.iter().any(|link| link.text.contains("a deadlock")));
    assert_eq!(claim.lost.get(FUTEX), 6 * SECOND);
    // Nobody saw what the holder did.
    assert!(claim.ruled_out.is_empty(), "{:?}", claim.ruled_out);
}

#[test]
fn what_waits_behind_a_holder_without_a_cpu_is_left_to_cpu_runqueue() {
    let run = convoy_behind(&[(ChainEnd::RunQueue, 3 * SECOND), (ChainEnd::Cpu, SECOND)]).build();
    let case = Case::new(&run);
    assert_eq!(examine(&case).unwrap().lost.get(FUTEX), SECOND);
    assert_eq!(case.behind(|end| end == ChainEnd::RunQueue).get(FUTEX), 3 * SECOND);
    let run = convoy_behind(&[(ChainEnd::Throttled, 3 * SECOND)]).build();
    assert!(examine(&Case::new(&run)).unwrap_err().0.contains("throttled by its cgroup"));
}

#[test]
fn not_claimed_for_waiting_for_work() {
    let run = convoy(0, 10).build();
    let case = Case::new(&run);
    assert!(examine(&case).is_err());
    assert_eq!(case.idle_ns, 6 * SECOND);
}

#[test]
fn a_barrier_could_look_the_same_without_lock_values() {
    let run = convoy(0, 1000).build();
    assert_eq!(examine(&Case::new(&run)).unwrap().doubts.len(), 1);
}

#[test]
fn owners_that_wait_for_a_cpu_are_a_doubt_not_a_ruled_out() {
    let run = convoy(1000, 990).thread(12, 10, &[(Account::RunnablePreempted, 4 * SECOND)]).build();
    let claim = examine(&Case::new(&run)).unwrap();
    assert_eq!(claim.doubts.len(), 1);
    assert!(claim.ruled_out.iter().all(|r| r.cause != "cpu-runqueue"));
}

/// Two threads with short turns: 40,000 of their 50,000 sleeps are for a lock, and each time they are ready
/// for `wait_us` before they have a CPU.
fn short_turns(wait_us: u64, idle_ns: u64) -> Claim {
    short_turns_beside(wait_us, idle_ns, 0)
}

/// The same beside so many threads that wait for work.
fn short_turns_beside(wait_us: u64, idle_ns: u64, others: u32) -> Claim {
    let queued_ns = 50_000 * wait_us * 1_000;
    let accounts = [
        (USER, 2 * SECOND),
        (FUTEX, 3 * SECOND),
        (Account::Blocked(Blocked::TimerSleep), SECOND),
        (Account::RunnableWakeup, queued_ns),
    ];
    let timer = Account::Blocked(Blocked::TimerSleep);
    let lock = WaitSum {
        lock_like: 40_000,
        waker_tgid: 10,
        ends: [(ChainEnd::Cpu, 2 * SECOND), (ChainEnd::RunQueue, SECOND)].into(),
        ..wait(10, FUTEX, 0xbeef, 40_000, 3 * SECOND)
    };
    let mut run = RunBuilder::new().length(8 * SECOND).thread(10, 10, &accounts);
    for tid in 11..11 + others {
        run = run.thread(tid, 10, &[(Account::Blocked(Blocked::Poll), 8 * SECOND)]);
    }
    let run = run
        .wait(lock)
        .wait(wait(10, timer, 0, 10_000, SECOND))
        .runner(crate::testing::runner(10, 10, 50_000, queued_ns))
        .cpus(2, idle_ns, 8 * SECOND - idle_ns)
        .build();
    examine(&Case::new(&run)).unwrap()
}

#[test]
fn waits_for_a_cpu_that_is_free_are_what_handing_the_lock_on_costs() {
    let claim = short_turns(40, 2 * SECOND);
    assert_eq!(claim.lost.get(FUTEX), 3 * SECOND);
    assert_eq!(claim.lost.get(Account::RunnableWakeup), 2 * SECOND * 4 / 5);
    let said = claim.chain.iter().any(|link| link.text.starts_with("1.60 s more ready to run"));
    assert!(said, "{:?}", claim.chain);
    // It makes no finding of a lock that takes little: 2 of 48 s.
    assert_eq!(short_turns_beside(40, 2 * SECOND, 5).lost.total(), 2 * SECOND);
    // CPUs that are short, or waited for as long as by threads that compete for one.
    for claim in [short_turns(40, SECOND / 10), short_turns(400, 2 * SECOND)] {
        assert_eq!((claim.lost.get(FUTEX), claim.lost.total()), (2 * SECOND, 2 * SECOND));
    }
}
