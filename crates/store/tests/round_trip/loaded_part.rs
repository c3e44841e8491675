//! Of what a run has too much of, which part is loaded: the longest, the first, or those of a window.

use std::cmp::Reverse;

use model::*;
use store::{LOADED_EVENTS, LOADED_OUTLIERS, Store};

use crate::common::*;
use crate::{begun_with, new_store};

#[test]
fn a_part_is_loaded_with_its_own_outliers_and_events_beside_the_longest() {
    let (_folder, mut store) = new_store();
    let mut batch = Batch::default();
    // Longest last; the short ones are beyond what is loaded of the whole run.
    for n in 0..(LOADED_OUTLIERS as u64 + 10) {
        batch.outliers.push(Outlier { start_ns: 10_000 * n, ..bare_outlier(10 + n) });
    }
    batch.events.extend((0..LOADED_EVENTS as u64 + 3).map(|at| event(EventKind::BlockIo, at)));
    let run = begun_with(&mut store, &[batch]);
    let whole = store.load(run).unwrap();
    assert!(whole.outliers.iter().all(|outlier| outlier.duration_ns >= 20));

    let first_five = Window { from_ns: 0, to_ns: 50_000, tid: None };
    let (loaded, stored) = store.load_part(run, &first_five).unwrap();
    assert_eq!((loaded.outliers.len(), stored), (LOADED_OUTLIERS + 5, 5));
    assert_eq!(loaded.outliers[..LOADED_OUTLIERS], whole.outliers, "numbers stay the same");
    let window = Window { from_ns: 10_011, to_ns: 30_000, tid: None };
    let (loaded, stored) = store.load_part(run, &window).unwrap();
    assert_eq!(stored, 1, "one ends where the window begins, one begins where it ends");
    assert_eq!(loaded.outliers.last().unwrap().start_ns, 20_000);

    let last = event(EventKind::BlockIo, LOADED_EVENTS as u64 + 2).time_ns;
    let end = Window { from_ns: last, to_ns: last + 1, tid: None };
    let (loaded, _) = store.load_part(run, &end).unwrap();
    assert_eq!(loaded.events.len(), 1);
}

#[test]
fn long_sleeps_of_many_threads_do_not_push_a_shorter_wait_out() {
    let (_folder, mut store) = new_store();
    let sleep = |tid, second: u64| Outlier {
        tid,
        kind: OutlierKind::OffCpu,
        blocked: Some(Blocked::TimerSleep),
        start_ns: second * 1_000_000_000,
        ..bare_outlier(1_000_000_000 - u64::from(tid))
    };
    let sleeps = (100..300).flat_map(|tid| (0..60).map(move |second| sleep(tid, second)));
    let wait = Outlier { tid: 7, blocked: Some(Blocked::FileLock), ..sleep(7, 30) };
    let wait = Outlier { duration_ns: 40_000_000, ..wait };
    let mut batch = Batch { outliers: sleeps.collect(), ..Batch::default() };
    batch.outliers.insert(5_000, wait.clone());
    let run = begun_with(&mut store, &[batch]);
    let loaded = store.load(run).unwrap().outliers;
    assert_eq!((loaded.len(), loaded.last()), (LOADED_OUTLIERS, Some(&wait)));
    assert!(loaded.is_sorted_by_key(|outlier| Reverse(outlier.duration_ns)));
}

#[test]
fn intervals_below_the_threshold_are_there_for_parts_only() {
    let (_folder, mut store) = new_store();
    let run = store.begin(&RunHeader { threshold_ns: 1000, ..header() }).unwrap();
    let at = |start_ns, ns| Outlier { tid: 7, start_ns, ..bare_outlier(ns) };
    let outliers = vec![at(100, 1000), at(5000, 999), at(5000, 10), at(7000, 20)];
    store.append(run, &Batch { outliers: outliers.clone(), ..Batch::default() }).unwrap();
    let whole = store.load(run).unwrap();
    assert_eq!((whole.outliers.len(), whole.outlier_count), (1, 1));
    let part = |from_ns, to_ns, tid| Window { from_ns, to_ns, tid };
    let parts = [part(5005, 5500, Some(7)), part(6999, 7001, None), part(0, 9000, Some(8))];
    let found = parts.map(|part| store.load_part(run, &part).unwrap());
    let in_parts = found.map(|(run, in_part)| (run.outliers[1..].to_vec(), in_part));
    let [one, other, none] = in_parts;
    assert_eq!(one, (vec![outliers[1].clone(), outliers[2].clone()], 2));
    assert_eq!((other, none), ((vec![outliers[3].clone()], 1), (vec![], 0)));
}

#[test]
fn a_run_comes_with_the_intervals_of_its_slow_messages() {
    let (_folder, mut store) = new_store();
    let run = store.begin(&RunHeader { threshold_ns: 1000, ..header() }).unwrap();
    let at = |tid, start_ns| Outlier { tid, start_ns, ..bare_outlier(500) };
    let slow = message(8, None, 200_000);
    let (journaller, logic) = (at(102, slow.t0_ns), at(101, slow.t0_ns + 1_000));
    let outliers = vec![journaller.clone(), logic.clone(), at(103, slow.t0_ns), at(101, 7)];
    let messages = Messages { slow: vec![slow], ..messages() };
    store.append(run, &Batch { outliers, messages, ..Batch::default() }).unwrap();
    let loaded = store.load(run).unwrap();
    assert_eq!(loaded.outliers, [], "they are below the threshold");
    assert_eq!(loaded.in_messages, [journaller, logic]);
    let part = Window { from_ns: 0, to_ns: u64::MAX >> 8, tid: None };
    assert!(store.load_part(run, &part).unwrap().0.in_messages.is_empty(), "it has its own");
}

#[test]
fn a_kind_with_many_slow_messages_leaves_those_of_others_loaded() {
    let (_folder, mut store) = new_store();
    let of = |flow: u32, n: u64, ns: u64| {
        (0..n).map(move |id| Message { flow, ..message(id, None, ns + id) })
    };
    let longer = LOADED_OUTLIERS as u64 + 50;
    let slow = of(2, 120, 1_000).chain(of(1, longer, 1_000_000)).collect();
    let messages = Messages { slow, ..messages() };
    let run = begun_with(&mut store, &[Batch { messages, ..Batch::default() }]);
    let loaded = store.load(run).unwrap().messages;
    let is_kept = |message: &&Message| message.flow == 2;
    let kept: Vec<u64> = loaded.slow.iter().filter(is_kept).map(|message| message.id).collect();
    assert_eq!(kept, (20..120).rev().collect::<Vec<u64>>(), "the slowest of them");
    assert_eq!(loaded.slow.len(), LOADED_OUTLIERS + Messages::SLOWEST_OF_EACH);
    assert!(loaded.slow.is_sorted_by_key(|message| std::cmp::Reverse(message.total_ns())));
    assert_eq!(loaded.slow_count, longer + 120);
}

#[test]
fn the_longest_outliers_and_the_first_events_are_loaded_with_their_stacks_only() {
    let (_folder, mut store) = new_store();
    let extra = 700;
    let all = LOADED_OUTLIERS + extra;
    let mut batch = Batch::default();
    for n in 0..all as u64 {
        // In no order: 1009 is prime to the number of outliers.
        let length = n * 1009 % all as u64;
        batch.outliers.push(Outlier { user_stack: Some(StackId(length)), ..bare_outlier(length) });
        batch.stacks.push(stack(length, Space::User));
    }
    batch.stacks.push(stack(1 << 40, Space::Kernel));
    batch.sums.stack_sums.push(stack_sum(1, Some(1 << 40), Some(1 << 41)));
    let requests = (0..LOADED_EVENTS as u64 + 3).rev();
    batch.events.extend(requests.map(|at| event(EventKind::BlockIo, at)));
    let exec = event(EventKind::Exec, LOADED_EVENTS as u64 + 1);
    batch.events.push(exec.clone());
    let run = begun_with(&mut store, &[batch]);
    let loaded = store.load(run).unwrap();

    let lengths: Vec<_> = loaded.outliers.iter().map(|outlier| outlier.duration_ns).collect();
    assert_eq!(lengths, (extra as u64..all as u64).rev().collect::<Vec<_>>());
    assert_eq!(loaded.outlier_count, all as u64);
    assert_eq!(
        loaded.stacks.len(),
        LOADED_OUTLIERS + 1,
        "one of the sum's stacks was never stored"
    );
    assert!(loaded.stacks.contains_key(&StackId(1 << 40)));
    let (last, first) = loaded.events.split_last().unwrap();
    let times: Vec<_> = first.iter().map(|event| event.time_ns).collect();
    assert_eq!(times, (0..LOADED_EVENTS as u64).collect::<Vec<_>>());
    assert_eq!(*last, exec, "of each kind the first");
    assert_eq!(loaded.event_count, LOADED_EVENTS as u64 + 4);
}
