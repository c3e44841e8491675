//! What goes into the store comes out again.

#![allow(clippy::unwrap_used, reason = "this is the test")]

mod common;

use std::cmp::Reverse;

use common::*;
use model::*;
use store::{LOADED_EVENTS, LOADED_OUTLIERS, Sqlite, Store, StoreError};
use tempfile::TempDir;

fn new_store() -> (TempDir, Sqlite) {
    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::open(&folder.path().join("w.db")).unwrap();
    (folder, store)
}

fn reopened(folder: &TempDir) -> Sqlite {
    Sqlite::open_read_only(&folder.path().join("w.db")).unwrap()
}

fn begun_with(store: &mut Sqlite, batches: &[Batch]) -> RunId {
    let run = store.begin(&header()).unwrap();
    batches.iter().for_each(|batch| store.append(run, batch).unwrap());
    run
}

#[test]
fn everything_comes_back_as_it_was() {
    let (folder, mut store) = new_store();
    let batch = full_batch();
    let run = begun_with(&mut store, std::slice::from_ref(&batch));
    store.finish(run, &end()).unwrap();
    drop(store);

    let loaded = reopened(&folder).load(run).unwrap();
    assert_eq!(loaded.id, run);
    assert_eq!(loaded.header, header());
    assert_eq!(loaded.status, RunStatus::Complete);
    assert_eq!(loaded.end, Some(end()));
    assert_eq!(loaded.heartbeat_ns, batch.heartbeat_ns);
    assert_eq!(loaded.length_ns(), 2_500_000_000);
    assert_eq!(loaded.facts, batch.facts);
    assert_eq!(loaded.capabilities, batch.capabilities);
    assert_eq!(loaded.processes[..batch.processes.len()], batch.processes);
    assert_eq!(loaded.processes.last().unwrap().tgid, others().tgid, "a group is like a process");
    assert_eq!(loaded.threads, batch.threads);
    assert_eq!(loaded.seconds, batch.seconds);
    assert_eq!(loaded.outliers, batch.outliers);
    assert_eq!(loaded.outlier_count, 2);
    assert_eq!(loaded.events, batch.events);
    assert_eq!(loaded.event_count, 2);
    let mut stacks: Vec<_> = loaded.stacks.values().cloned().collect();
    stacks.sort_by_key(|stack| std::cmp::Reverse(stack.id));
    assert_eq!(stacks, batch.stacks);
    assert_eq!(loaded.sums.stack_sums, batch.sums.stack_sums);
    assert_eq!(loaded.sums.paths, batch.sums.paths);
    assert_eq!(loaded.sums.call_errors, batch.sums.call_errors);
    assert_eq!(loaded.sums.counters, batch.sums.counters);
    assert_eq!(loaded.sums.waits, batch.sums.waits);
    assert_eq!(loaded.sums.holds, batch.sums.holds);
    assert_eq!(loaded.sums.runners, batch.sums.runners);
    assert_eq!(loaded.sums.cpus, batch.sums.cpus);
    assert_eq!(loaded.losses.seen, batch.losses);
    assert_eq!(Some(loaded.cost), batch.cost);
    assert_eq!(loaded.bench, batch.bench);
    assert_eq!(loaded.jitter, batch.jitter);
    assert_eq!(loaded.messages, batch.messages);
    assert_eq!(loaded.sockets, batch.sockets);
    assert_eq!(loaded.sums.concurrent_calls, batch.sums.concurrent_calls);
    assert_eq!(loaded.sums.services, batch.sums.services);
    assert_eq!(loaded.presences, batch.presences);
}

#[test]
fn slow_messages_are_added_and_the_sample_has_one_message_in_each_place() {
    let (_folder, mut store) = new_store();
    let first = Batch { messages: messages(), ..Batch::default() };
    let second = Messages {
        slow: vec![message(11, None, 1_000_000)],
        fast: vec![message(12, Some(0), 30_000), message(13, Some(1), 30_000)],
        ..Messages::default()
    };
    let second = Batch { messages: second, ..Batch::default() };
    let run = begun_with(&mut store, &[first, second]);
    let loaded = store.load(run).unwrap().messages;
    let ids = |messages: &[Message]| messages.iter().map(|m| m.id).collect::<Vec<_>>();
    assert_eq!(ids(&loaded.slow), [9, 11, 10, 8]);
    assert_eq!(loaded.slow_count, 4);
    assert_eq!(ids(&loaded.fast), [12, 13]);
    assert_eq!(loaded.programs, messages().programs);
}

#[test]
fn every_kind_comes_back() {
    let (_folder, mut store) = new_store();
    let mut batch = Batch::default();
    for (n, kind) in [
        OutlierKind::Syscall,
        OutlierKind::OffCpu,
        OutlierKind::RunQueue,
        OutlierKind::LockHold,
        OutlierKind::FirstCall,
    ]
    .into_iter()
    .enumerate()
    {
        batch.outliers.push(Outlier { kind, ..outlier(100 - n as u64) });
    }
    for (n, kind) in [
        EventKind::Exec,
        EventKind::Fork,
        EventKind::Exit,
        EventKind::Signal,
        EventKind::DirectReclaim,
        EventKind::Compaction,
        EventKind::DirtyThrottle,
        EventKind::JournalCommit,
        EventKind::BlockIo,
        EventKind::HeldSend,
    ]
    .into_iter()
    .enumerate()
    {
        batch.events.push(event(kind, n as u64));
    }
    let run = begun_with(&mut store, std::slice::from_ref(&batch));
    let loaded = store.load(run).unwrap();
    assert_eq!(loaded.outliers, batch.outliers);
    assert_eq!(loaded.events, batch.events);
}

#[test]
fn every_target_comes_back() {
    let (_folder, mut store) = new_store();
    for target in [
        Target::Command(vec![]),
        Target::Process(7),
        Target::Thread(8),
        Target::Host,
        Target::Unit("web.service".into()),
        Target::Container("4f5e6a".into()),
        Target::Cgroup("/system.slice".into()),
        Target::Bench(vec!["sem".into()]),
        Target::Jitter(vec![]),
        Target::Trace("/dev/shm/whylag-0/1-2.trace".into()),
    ] {
        let begun = RunHeader { target, ..header() };
        let run = store.begin(&begun).unwrap();
        assert_eq!(store.load(run).unwrap().header, begun);
    }
}

#[test]
fn a_second_batch_adds_to_some_parts_and_replaces_others() {
    let (_folder, mut store) = new_store();
    let first = full_batch();
    let mut second = full_batch();
    second.heartbeat_ns += 1;
    second.capabilities =
        vec![Capability { part: RecorderPart::Threads, on: false, because: "it died".into() }];
    second.processes[0].comm = "renamed".into();
    second.threads[0] = ThreadAccounts {
        accounts: [(Account::Stolen, 400)].into_iter().collect(),
        last_ns: STARTED_NS + 400,
        alive: false,
        ..thread(101)
    };
    // The same tid, but another thread.
    second.threads[1] = ThreadAccounts { first_ns: STARTED_NS + 900, alive: false, ..thread(102) };
    second.threads[1].last_ns = second.threads[1].first_ns + second.threads[1].accounts.total();
    second.stacks[0].frames.pop();
    second.sums.stack_sums = vec![stack_sum(51, Some(u64::MAX - 1), None)];
    second.sums.waits = vec![wait(61)];
    second.sums.holds = vec![hold(21, Some(syscall("mmap"))), hold(11, None)];
    second.sums.runners[0].ns = 78;
    second.sums.cpus = vec![CpuTime { cpu: 1, idle_ns: 7, busy_ns: 8, stolen_ns: 9 }];
    second.cost = Some(Cost { cpu_ns: 99, ..Cost::default() });
    let run = begun_with(&mut store, &[first.clone(), second.clone()]);
    store.finish(run, &end()).unwrap();
    let loaded = store.load(run).unwrap();

    assert_eq!(loaded.heartbeat_ns, second.heartbeat_ns);
    assert_eq!(loaded.facts, [first.facts, second.facts].concat());
    assert_eq!(
        loaded.capabilities,
        [second.capabilities[0].clone(), first.capabilities[1].clone()]
    );
    // And a group of processes that are not there one by one.
    let (groups, processes): (Vec<_>, Vec<_>) =
        loaded.processes.iter().cloned().partition(|p| model::OtherThreads::is_group(p.tgid));
    assert_eq!(processes, second.processes);
    assert_eq!(groups.iter().map(|group| group.comm.as_str()).collect::<Vec<_>>(), ["sh"]);
    let expected = [second.threads[0].clone(), first.threads[1].clone(), second.threads[1].clone()];
    assert_eq!(loaded.threads, expected);
    assert_eq!(loaded.seconds.len(), 6);
    assert_eq!(loaded.outliers.len(), 4);
    assert_eq!(loaded.outlier_count, 4);
    assert_eq!(loaded.event_count, 4);
    assert_eq!(loaded.stacks.len(), 2);
    assert_eq!(loaded.stacks[&StackId(u64::MAX - 1)], second.stacks[0]);
    assert_eq!(
        loaded.sums.stack_sums,
        [second.sums.stack_sums[0].clone(), first.sums.stack_sums[1].clone()]
    );
    assert_eq!(loaded.sums.waits, [second.sums.waits[0].clone(), first.sums.waits[1].clone()]);
    assert_eq!(loaded.sums.holds, second.sums.holds);
    assert_eq!(loaded.sums.runners, second.sums.runners);
    assert_eq!(loaded.sums.cpus, [first.sums.cpus[0].clone(), second.sums.cpus[0].clone()]);
    assert_eq!(loaded.losses.total(), 88);
    assert_eq!(Some(loaded.cost), second.cost);
}

#[test]
fn runs_do_not_mix() {
    let (_folder, mut store) = new_store();
    let one = begun_with(&mut store, &[full_batch()]);
    let two = begun_with(&mut store, &[]);
    assert!(store.load(two).unwrap().threads.is_empty());
    assert!(store.load(two).unwrap().stacks.is_empty());
    let mut third = full_batch();
    third.stacks[0].frames.clear();
    third.threads[0].accounts.add(Account::User, 1);
    begun_with(&mut store, &[third]);
    let loaded = store.load(one).unwrap();
    assert_eq!(loaded.stacks[&StackId(u64::MAX - 1)], full_batch().stacks[0]);
    assert_eq!(loaded.threads.len(), 2);
    assert_eq!(loaded.threads[0].accounts.get(Account::User), 300);
}

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

#[test]
fn the_open_account_of_a_living_thread_reaches_the_heartbeat_until_the_run_ends() {
    let (_folder, mut store) = new_store();
    let mut batch = full_batch();
    batch.threads[1].alive = false;
    let run = begun_with(&mut store, std::slice::from_ref(&batch));
    let later = Batch { heartbeat_ns: batch.heartbeat_ns + 500, ..Batch::default() };
    store.append(run, &later).unwrap();

    let loaded = store.load(run).unwrap();
    assert_eq!(loaded.status, RunStatus::Recording);
    let living = &loaded.threads[0];
    assert_eq!(living.last_ns, later.heartbeat_ns);
    assert_eq!(living.accounts.total(), living.wall_ns());
    assert_eq!(
        living.accounts.get(Account::Blocked(Blocked::Poll)),
        later.heartbeat_ns - batch.threads[0].last_ns
    );
    assert_eq!(loaded.threads[1], batch.threads[1], "a dead thread stays as it is");

    store.finish(run, &end()).unwrap();
    assert_eq!(store.load(run).unwrap().threads, batch.threads);
}

#[test]
fn runs_are_listed_oldest_first() {
    let (folder, mut store) = new_store();
    assert_eq!(store.newest().unwrap(), None);
    assert_eq!(store.runs().unwrap(), []);
    let one = begun_with(&mut store, &[full_batch()]);
    store.finish(one, &end()).unwrap();
    let gone = RunHeader { recorder_pid: u32::MAX, ..header() };
    let two = store.begin(&gone).unwrap();
    let three = begun_with(&mut store, &[full_batch()]);
    store.put_findings(one, &[finding("lazy_binding", 0.7), finding("steal", 0.2)]).unwrap();

    let mut listed = reopened(&folder).runs().unwrap();
    let sizes = listed.iter_mut().map(|run| std::mem::take(&mut run.bytes));
    let sizes: Vec<u64> = sizes.collect();
    assert!(sizes[0] >= 4096 && sizes[0] < 1 << 20, "{sizes:?}");
    // One of the threads is not there one by one.
    let expected = |id, status, length_ns, outliers: u64, leading: Option<&str>| RunSummary {
        id,
        header: header(),
        status,
        length_ns,
        threads: if outliers > 0 { outliers + 1 } else { 0 },
        outliers,
        bytes: 0,
        leading_cause: leading.map(str::to_owned),
        origin: None,
    };
    assert_eq!(
        listed,
        [
            expected(one, RunStatus::Complete, 2_500_000_000, 2, Some("lazy_binding")),
            RunSummary { header: gone, ..expected(two, RunStatus::Interrupted, 0, 0, None) },
            expected(three, RunStatus::Recording, 2_000_000_000, 2, None),
        ]
    );
    assert_eq!(store.newest().unwrap(), Some(three));
}

fn finding(cause: &str, share: f64) -> Finding {
    let text = |name: &str| format!("{name} of {cause}");
    Finding {
        cause: cause.into(),
        title: text("title"),
        share,
        lost_ns: u64::MAX,
        confidence: 0.1 + 0.2,
        doubts: vec![text("doubt")],
        chain: vec![Link { role: Role::Symptom, cause: Some("c".into()), text: text("link") }],
        evidence: vec![Evidence { text: text("evidence"), source: "sched_switch".into() }],
        ruled_out: vec![RuledOut { cause: "other".into(), because: text("because") }],
        not_looked_at: vec![Excluded { what: "sight".into(), because: text("off") }],
        excluded: vec![Excluded { what: "luck".into(), because: text("because") }],
        not_ruled_out: vec![],
        fix: text("fix"),
        reproduce: text("reproduce"),
        verify: text("verify"),
        ..Finding::default()
    }
}

#[test]
fn findings_replace_the_earlier_ones_and_keep_their_order() {
    let (_folder, mut store) = new_store();
    let run = begun_with(&mut store, &[]);
    let first = [finding("a", 0.1), finding("b", 0.5), finding("c", 1.0 / 3.0)];
    store.put_findings(run, &first).unwrap();
    assert_eq!(store.findings(run).unwrap(), first);
    store.put_findings(run, &[finding("d", 0.9)]).unwrap();
    assert_eq!(store.findings(run).unwrap(), [finding("d", 0.9)]);
    store.put_findings(run, &[]).unwrap();
    assert_eq!(store.findings(run).unwrap(), []);
}

#[test]
fn a_run_that_is_not_there_is_named() {
    let (folder, mut store) = new_store();
    let nine = RunId(9);
    let expected = format!(
        "{}: there is no run 9; `whylag runs` lists what there is",
        folder.path().join("w.db").display()
    );
    let errors: [StoreError; 5] = [
        store.load(nine).unwrap_err(),
        store.append(nine, &full_batch()).unwrap_err(),
        store.finish(nine, &end()).unwrap_err(),
        store.put_findings(nine, &[]).unwrap_err(),
        store.findings(nine).unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn a_batch_that_cannot_be_stored_leaves_nothing_behind() {
    let (folder, mut store) = new_store();
    let run = begun_with(&mut store, &[full_batch()]);
    // The last table that a batch writes to refuses; what was written before it has to go too.
    let other = rusqlite::Connection::open(folder.path().join("w.db")).unwrap();
    other
        .execute_batch(
            "CREATE TRIGGER no_cost BEFORE INSERT ON cost WHEN new.cpu_ns = 666
             BEGIN SELECT raise(ABORT, 'refused'); END",
        )
        .unwrap();
    let before = serde_json::to_value(store.load(run).unwrap()).unwrap();
    let mut batch = full_batch();
    batch.heartbeat_ns += 1;
    batch.cost = Some(Cost { cpu_ns: 666, ..Cost::default() });
    assert!(store.append(run, &batch).unwrap_err().to_string().contains("refused"));
    assert_eq!(serde_json::to_value(store.load(run).unwrap()).unwrap(), before);
}

#[test]
fn odd_names_are_only_names() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a b?mode=ro#x%41.db", "file:x.db", ":memory:"] {
        let path = folder.path().join(name);
        let mut store = Sqlite::open(&path).unwrap();
        begun_with(&mut store, &[]);
        drop(store);
        assert!(path.metadata().unwrap().len() > 0, "{name}");
        assert_eq!(Sqlite::open(&path).unwrap().runs().unwrap().len(), 1);
    }
}
