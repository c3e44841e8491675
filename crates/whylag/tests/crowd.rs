//! A host on which somebody starts processes by the hundred thousand: what is kept of them has a
//! bound, what is added up has none missing.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use model::{
    Account, Accounts, Batch, Blocked, CallError, ObjectName, OtherThreads, Process, Run, RunEnd,
    RunHeader, RunId, RunnerSum, StackSum, Syscall, Target, ThreadAccounts, WaitSum,
};
use store::{LOADED_THREADS, Sqlite, Store};

const STARTED_NS: u64 = 1_000_000_000;
/// Processes of a storm, each with one thread.
const PROCESSES: u32 = 90_000;
/// Threads of one process that lives all the time.
const POOL: u32 = 55_000;
const POOL_TGID: u32 = 4_000_000;
const FIRST: u32 = 1_000;
const END_NS: u64 = STARTED_NS + 600_000_000_000;

fn thread(tid: u32, tgid: u32, comm: String, wall_ns: u64) -> ThreadAccounts {
    // Odd numbers, so that a sum that is rounded or cut shows.
    let user = wall_ns / 3 + u64::from(tid % 7);
    let accounts: Accounts = [
        (Account::User, user),
        (Account::Syscall(Syscall::named("execve").unwrap()), 11),
        (Account::Blocked(Blocked::Futex), wall_ns - user - 11),
    ]
    .into_iter()
    .collect();
    let first_ns = STARTED_NS + u64::from(tid);
    ThreadAccounts {
        tid,
        tgid,
        comm,
        first_ns,
        last_ns: first_ns + wall_ns,
        alive: false,
        open: Account::Kernel,
        accounts,
        realtime: 0,
        minor_faults: 3,
        major_faults: 0,
        sleeps: 1,
        preemptions: 0,
        migrations: 2,
    }
}

/// What a recorder of an earlier version stored of a process of the storm.
fn of_process(tgid: u32, batch: &mut Batch) {
    let name = if tgid.is_multiple_of(3) { format!("n{tgid}") } else { "sh\u{1b}".to_owned() };
    // The longer ones come last: which ones stay cannot be told from the order.
    batch.threads.push(thread(tgid, tgid, name.clone(), 1_000 + u64::from(tgid)));
    let (exe, build_id) = ("/bin/sh".to_owned(), "0123456789abcdef".to_owned());
    batch.processes.push(Process { tgid, comm: name.clone(), exe, build_id, watched: true });
    let sums = &mut batch.sums;
    sums.call_errors.push(CallError { tgid, call: Syscall(2), errno: 2, count: 5 });
    let (waker_comm, runner_comm) = (name.clone(), name);
    sums.runners.push(RunnerSum {
        tgid,
        runner_tgid: tgid - 1,
        runner_comm,
        realtime: 0,
        count: 1,
        ns: 9,
    });
    sums.stack_sums.push(StackSum {
        tgid,
        account: Account::User,
        kernel: None,
        user: Some(model::StackId(u64::from(tgid))),
        count: 1,
        ns: 7,
    });
    // One that lives waits for each of them, and each at an address of its own.
    for (tgid, waker_tgid, object) in [(POOL_TGID, tgid, 0), (tgid, POOL_TGID, u64::from(tgid))] {
        sums.waits.push(WaitSum {
            tgid,
            account: Account::Blocked(Blocked::Futex),
            object,
            name: None::<ObjectName>,
            waker_tgid,
            waker_comm: waker_comm.clone(),
            count: 2,
            asked: false,
            ns: 13,
            max_ns: u64::from(tgid),
            by_waiter: 0,
            lock_like: 1,
            many: 0,
            again: 0,
            by_parked: 0,
            waiter_tid: tgid,
            waker_tid: waker_tgid,
            open: 0,
            turns: 0,
            turn_ns: 0,
            idle_turn_ns: 0,
            began: None,
            ends: Default::default(),
            longest_end: None,
            usual_end: None,
            open_at: None,
        });
    }
}

/// The run, and the accounts of all threads that were stored.
fn storm() -> (Sqlite, RunId, Accounts) {
    let path = std::env::temp_dir().join("crowd");
    let mut store = Sqlite::temporary(&path, store::Temporary::InFile).unwrap();
    let header = RunHeader {
        started_ns: STARTED_NS,
        target: Target::Host,
        threshold_ns: 1_000_000,
        recorder_pid: std::process::id(),
        ..RunHeader::default()
    };
    let run = store.begin(&header).unwrap();
    let mut all = Accounts::new();
    let mut put = |batch: &Batch| {
        batch.threads.iter().for_each(|thread| all.merge(&thread.accounts));
        store.append(run, batch).unwrap();
    };
    let pool = (0..POOL)
        .map(|n| thread(POOL_TGID + n, POOL_TGID, "pool".into(), 500_000_000 - u64::from(n)));
    put(&Batch { threads: pool.collect(), heartbeat_ns: STARTED_NS, ..Batch::default() });
    let tgids: Vec<u32> = (FIRST..FIRST + PROCESSES).collect();
    for some in tgids.chunks(2_000) {
        let mut batch = Batch { heartbeat_ns: END_NS, ..Batch::default() };
        some.iter().for_each(|tgid| of_process(*tgid, &mut batch));
        put(&batch);
    }
    let end = RunEnd { ended_ns: END_NS, exit_status: None, reason: "the end".into() };
    store.finish(run, &end).unwrap();
    (store, run, all)
}

/// So many rows are a bound that no number of processes moves.
fn is_bounded(run: &Run) {
    assert!(run.threads.len() <= LOADED_THREADS, "{} threads", run.threads.len());
    assert!(run.processes.len() <= LOADED_THREADS + 100, "{} processes", run.processes.len());
    let sums = &run.sums;
    let tables = [
        ("waits", sums.waits.len()),
        ("runners", sums.runners.len()),
        ("stack sums", sums.stack_sums.len()),
        ("failed calls", sums.call_errors.len()),
        ("others", sums.others.len()),
    ];
    for (table, rows) in tables {
        assert!(rows <= 2 * LOADED_THREADS, "{rows} {table}");
    }
}

#[test]
fn of_90_000_processes_some_thousands_are_kept_and_all_are_counted() {
    let (store, id, all) = storm();
    let run = store.load(id).unwrap();
    is_bounded(&run);
    assert_eq!(run.accounts(), all, "every nanosecond in its account");
    assert_eq!(run.wall_ns(), all.total());
    assert_eq!(run.thread_count(), u64::from(PROCESSES + POOL));
    assert_eq!(store.runs().unwrap()[0].threads, u64::from(PROCESSES + POOL));

    let total = |sum: fn(&Run) -> u64| sum(&run);
    let others = &run.sums.others;
    assert_eq!(total(|run| run.sums.waits.iter().map(|w| w.ns).sum()), 26 * u64::from(PROCESSES));
    assert_eq!(total(|run| run.sums.waits.iter().map(|w| w.count).sum()), 4 * u64::from(PROCESSES));
    assert_eq!(
        total(|run| run.sums.call_errors.iter().map(|e| e.count).sum()),
        5 * u64::from(PROCESSES)
    );
    assert_eq!(total(|run| run.sums.runners.iter().map(|r| r.ns).sum()), 9 * u64::from(PROCESSES));
    assert_eq!(
        total(|run| run.sums.stack_sums.iter().map(|s| s.ns).sum()),
        7 * u64::from(PROCESSES)
    );

    // The pool's threads have the longest lives: they stay, and what does not fit is summed as its.
    assert!(run.threads.iter().all(|thread| thread.tgid == POOL_TGID));
    let of_pool = others.iter().find(|others| others.tgid == POOL_TGID).unwrap();
    assert_eq!((of_pool.threads, of_pool.processes), (u64::from(POOL) - LOADED_THREADS as u64, 0));
    let shells = others.iter().find(|others| others.comm == "sh\\x1b").unwrap();
    assert_eq!(shells.threads, shells.processes);
    assert_eq!(shells.threads, u64::from(PROCESSES) * 2 / 3);
    assert!(others.iter().any(|others| others.comm == "other programs"));
    let known = |tgid: u32| run.processes.iter().any(|process| process.tgid == tgid);
    assert!(others.iter().filter(|o| OtherThreads::is_group(o.tgid)).all(|o| known(o.tgid)));

    explained_and_told(&run, &all);
}

fn explained_and_told(run: &Run, all: &Accounts) {
    let explanation = explain::explain(run);
    assert_eq!(explanation.wall_ns, all.total());
    let explained: u64 = explanation.accounts.iter().map(|(_, ns, _)| ns).sum();
    assert_eq!(explained, all.total());
    let mut text = Vec::new();
    report::accounts::write_summary(&mut text, run, &report::Style::default()).unwrap();
    report::accounts::write_threads(&mut text, run, &report::Style::default()).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("145,000 threads in"), "{text}");
    assert!(text.contains("95,000 threads of 90,001"), "{text}");
    assert!(text.contains("60,000 x sh"), "{text}");
    assert!(text.contains("5,000 x pool"), "{text}");
}

#[test]
fn a_thread_that_is_asked_about_is_there_by_itself() {
    let (store, id, _) = storm();
    let question = explain::Question::Thread(FIRST + 1);
    let part = question.part(&store.load(id).unwrap()).unwrap();
    let (run, _) = store.load_part(id, &part).unwrap();
    let partial = explain::PartialRun::new(&run, &question).unwrap();
    let [only] = partial.run.threads.as_slice() else { panic!("{:?}", partial.run.threads) };
    assert_eq!((only.tid, only.wall_ns()), (FIRST + 1, 1_000 + u64::from(FIRST + 1)));

    let question = explain::Question::Thread(7);
    let refused = explain::PartialRun::new(&run, &question).err().unwrap().to_string();
    assert!(refused.contains("has no thread 7") && refused.contains("summed"), "{refused}");
}
