//! What batches bring comes out again, and a later one adds to it or replaces it.

use model::*;
use store::Store;

use crate::common::*;
use crate::{begun_with, new_store, reopened};

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
        EventKind::Spin,
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
