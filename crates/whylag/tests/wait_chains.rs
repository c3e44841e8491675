//! Chains of waits on a real kernel: a lock whose holders do one thing each. Whoever waits for the
//! lock waits for that thing in the end, however many locks and processes are in between. What the
//! threads waited in all is measured by the program itself.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use common::clocks::for_cpu;
use common::disturbance::undisturbed;
use common::programs::{Libc, program, shape};
use common::values::Values;
use common::{Helper, Lab, wait_until};
use model::{Account, Blocked, ChainEnd, Run, WaitSum};

const FUTEX: Account = Account::Blocked(Blocked::Futex);
const RECEIVE: Account = Account::Blocked(Blocked::SocketReceive);

struct Recorded {
    waits: Vec<WaitSum>,
    /// What the program measured of its waits for its first lock, in ns.
    waited: u64,
    /// What all its threads waited for a CPU, in ns.
    queued: u64,
}

fn recorded(what: &str) -> Option<Recorded> {
    let lab = Lab::new()?;
    let held = program("held");
    let recorded = lab.record(&["--follow"], [held.as_os_str(), what.as_ref()]);
    let waited = Values::of(recorded.stdout().lines().last().unwrap()).get("waited_ns");
    let Run { sums, threads, .. } = recorded.run;
    let waits = sums.waits;
    for wait in &waits {
        assert_eq!(wait.ends.values().sum::<u64>(), wait.ns, "{wait:?}");
    }
    let queued = threads.iter().map(|thread| for_cpu(&thread.accounts)).sum();
    println!("{what}: {waited} ns, {queued} ns for a CPU, {waits:#?}");
    Some(Recorded { waits, waited, queued })
}

/// What the program's clock has more of for each wait than the sleep: the call, and the switches.
const CALL_NS: u64 = 30_000;

const MOSTLY: f64 = 0.5;

/// The largest sum of waits for a lock, which threads that contend mark with the value 2, is as long
/// as the program says: who has the lock may wait for a CPU before its clock is read. What the holder did is known
/// for most of it, and `least` of it was this, but for waiting for a CPU: neighbours on this machine
/// add that.
fn assert_ends(what: &str, ends: &[ChainEnd], least: f64) {
    let Some(Recorded { waits, waited, queued }) = recorded(what) else { return };
    let locks = waits.iter().filter(|wait| wait.account == FUTEX && wait.lock_like > 0);
    let lock = locks.max_by_key(|wait| wait.ns).unwrap();
    let ratio = |ns: u64| ns as f64 / waited as f64;
    let (from, to) = (ratio(lock.ns), ratio(lock.ns + lock.count * CALL_NS + queued));
    assert!(from < 1.15 && to > 0.85, "{from} to {to} of what the program measured");
    let unknown = lock.ends_in(|end| end == ChainEnd::Unknown) as f64 / lock.ns as f64;
    assert!(unknown < 0.3, "{unknown} is not known: {lock:#?}");
    let did = lock.ends_in(|end| !matches!(end, ChainEnd::RunQueue | ChainEnd::Unknown)) as f64;
    let part = lock.ends_in(|end| ends.contains(&end)) as f64 / did;
    assert!(part > least, "{part}: {lock:#?}");
}

#[test]
fn a_holder_that_sleeps() {
    assert_ends("sleep", &[ChainEnd::Timer], MOSTLY);
}

#[test]
fn a_holder_that_sleeps_by_a_wait_that_times_out() {
    assert_ends("timed", &[ChainEnd::Timeout], MOSTLY);
    assert_ends("select", &[ChainEnd::Timer], MOSTLY);
    assert_ends("unanswered", &[ChainEnd::Timeout], MOSTLY);
}

#[test]
fn a_holder_that_computes() {
    assert_ends("cpu", &[ChainEnd::Cpu], MOSTLY);
}

#[test]
fn a_holder_that_waits_for_the_disk() {
    // The way of 64 KiB to a quick disk takes the CPU longer than the disk where the CPU is busy.
    assert_ends("disk", &[ChainEnd::Disk], 0.25);
}

#[test]
fn a_holder_that_waits_for_another_lock_whose_holder_sleeps() {
    assert_ends("chain", &[ChainEnd::Timer], MOSTLY);
}

#[test]
fn a_holder_that_waits_for_an_answer_of_a_process_that_sleeps() {
    assert_ends("answer", &[ChainEnd::Timer], MOSTLY);
    let Some(Recorded { waits, .. }) = recorded("answer") else { return };
    // Only the side that has connected asks.
    let asked: Vec<_> = waits.iter().filter(|wait| wait.asked).collect();
    assert!(!asked.is_empty(), "{waits:#?}");
    assert!(asked.iter().all(|wait| wait.waker_comm == "answering"), "{asked:#?}");
}

#[test]
fn of_a_pair_of_sockets_who_sends_first_asks() {
    for kind in ["bytes", "datagrams", "udp"] {
        let Some(lab) = Lab::new() else { return };
        let pairs = program("pairs");
        let recorded = lab.record(&["--follow"], [pairs.as_os_str(), kind.as_ref()]);
        let waits = recorded.run.sums.waits;
        let by = |name: &str| -> Vec<&WaitSum> {
            let received = waits.iter().filter(|wait| wait.account == RECEIVE);
            received.filter(|wait| wait.waker_comm == name).collect()
        };
        let count = |waits: &[&WaitSum]| waits.iter().map(|wait| wait.count).sum::<u64>();
        let (answers, requests) = (by("answering"), by("asking"));
        assert!(count(&answers) > 100 && count(&requests) > 100, "{kind}: {waits:#?}");
        assert!(answers.iter().all(|wait| wait.asked), "{kind}: {answers:#?}");
        assert!(!requests.iter().any(|wait| wait.asked), "{kind}: {requests:#?}");
    }
}

/// What is said of the lock; what its holders did is left out where their waiting for a CPU was longer.
/// `None` if something disturbed the recording: who is at the end is taken from the longest waits.
fn said_of_lock(what: &str) -> Option<String> {
    let lab = Lab::new()?;
    let record = || lab.record(&["--follow"], [program("held").as_os_str(), what.as_ref()]);
    let (_, figures) = undisturbed(record, |recorded| Some(&recorded.run));
    if !figures.judge("whose timer it is") {
        return None;
    }
    let findings = lab.explain()["findings"].take();
    let of_lock = findings.as_array().unwrap().iter().find(|f| f["cause"] == "futex-convoy");
    let title = of_lock.unwrap()["title"].as_str().unwrap().to_owned();
    println!("{what}: {title}");
    Some(title)
}

#[test]
fn a_timer_is_said_to_be_the_holders_own_only_where_it_is() {
    let Some(own) = said_of_lock("sleep") else { return };
    assert!(!own.contains("waited for"), "{own}");
    let Some(beyond) = said_of_lock("answer") else { return };
    assert!(!beyond.contains("whose holder slept"), "{beyond}");
    let is_said = beyond.contains("slept by a timer");
    assert_eq!(is_said, beyond.contains("whose holder waited for answering (tid "), "{beyond}");
}

/// Six threads sleep for 5 ms each with a mutex in hand.
#[test]
fn turns_are_as_long_as_the_holders_sleep_and_do_not_overlap() {
    let Some(lab) = Lab::new() else { return };
    let run = lab.record(&[], [shape("mutex_sleep", Libc::Glibc).as_os_str(), "1".as_ref()]).run;
    let locks = run.sums.waits.iter().filter(|wait| wait.account == FUTEX && wait.lock_like > 0);
    let lock = locks.max_by_key(|wait| wait.ns).unwrap();
    assert!(lock.turns > 10 && lock.turns <= lock.count, "{lock:#?}");
    assert!(lock.turn_ns >= lock.turns * 5_000_000, "{lock:#?}");
    assert!(lock.turn_ns <= run.length_ns(), "{lock:#?}");
    let findings = lab.explain()["findings"].take();
    let turns = findings.as_array().unwrap().iter().find_map(|finding| {
        let turns = finding["turns"].as_object()?;
        Some((turns["seen_whole"].as_u64()?, turns["half_as_long_per_second"].as_f64()?))
    });
    let (seen_whole, per_second) = turns.unwrap();
    assert_eq!(seen_whole, lock.turns, "{findings:#}");
    assert!(per_second <= 2.0 * 200.0 * 1.01, "turns of 2.5 ms: {per_second}");
}

/// Both ends of a coprocess write to one pipe and wait for another. Who passes on what a child says to another
/// child does so, too.
#[test]
fn over_two_pipes_the_parent_asks_and_its_child_does_not() {
    let Some(lab) = Lab::new() else { return };
    let recorded = |name| {
        let program = shape(name, Libc::Glibc);
        lab.record(&["--follow"], [program.as_os_str(), "1".as_ref()])
    };
    let common::Recorded { run, output } = recorded("coprocess_sleep");
    let asked: Vec<_> = run.sums.waits.iter().filter(|wait| wait.asked).collect();
    assert!(asked.iter().all(|wait| wait.waker_comm.starts_with("filter-")), "{asked:#?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let lost = text.split_whitespace().find_map(|word| word.strip_prefix("lost_ns.0=")).unwrap();
    let (ns, lost): (u64, u64) = (asked.iter().map(|wait| wait.ns).sum(), lost.parse().unwrap());
    // Of the first wait for each child it is not known that the child had waited.
    assert!(ns > lost / 10 * 8 && ns < lost / 10 * 11, "{ns} of {lost} ns: {asked:#?}");
    let run = recorded("healthy_relay").run;
    assert!(run.sums.waits.iter().all(|wait| !wait.asked), "{:#?}", run.sums.waits);
}

/// The names of those that began their life with a wait for work, and of those that brought it.
fn begins(lab: &Lab, name: &str) -> Vec<(String, String)> {
    let run = lab.record(&["--follow"], [shape(name, Libc::Glibc).as_os_str(), "1".as_ref()]).run;
    let crew = |tid: u32| {
        let thread = run.threads.iter().find(|thread| thread.tid == tid).unwrap();
        thread.comm.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned()
    };
    let begins = run.sums.waits.iter().filter_map(|wait| wait.began);
    begins.map(|(worker, asker)| (crew(worker), crew(asker))).collect()
}

/// A worker that starts late finds work at once, and is none that is known.
#[test]
fn a_worker_is_known_by_how_its_life_begins_and_who_asks_never_is_one() {
    let Some(lab) = Lab::new() else { return };
    let mut known = 0;
    for (name, worker, asker) in [
        ("eventfd_handover", "back-", "front-"),
        ("message_queue", "tax-server", "invoice-"),
        ("saturated_one", "renderer-", "caller-"),
        ("healthy_consumer", "consumer-", "sensor-"),
    ] {
        let begins = begins(&lab, name);
        let of_workers = begins.iter().filter(|begin| begin.0 == worker);
        assert!(of_workers.clone().all(|begin| begin.1 == asker), "{name}: {begins:?}");
        assert!(begins.iter().all(|begin| begin.0 != asker), "{name}: {begins:?}");
        known += of_workers.count();
    }
    assert!(known > 0, "all workers of all programs have found work at once");
}

#[test]
fn waits_that_began_before_the_recording_and_go_on_after_it() {
    let Some(lab) = Lab::new() else { return };
    let mut deadlock = Command::new(program("deadlock"));
    let mut deadlock = deadlock.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(deadlock.stdout.take().unwrap()).read_line(&mut line).unwrap();
    sleep(Duration::from_millis(200));
    let run = lab.record_target(&["-p", &deadlock.id().to_string(), "--time", "1s"]).run;
    deadlock.kill().unwrap();
    deadlock.wait().unwrap();
    let waits: Vec<_> = locks_of(&run).map(|wait| (wait.count, wait.open)).collect();
    assert_eq!(waits, [(1, 1), (1, 1)], "{:#?}", run.sums.waits);
    let answer = String::from_utf8(lab.answer("explain", &[])).unwrap();
    assert!(answer.contains("which nobody let go of"), "{answer}");
    // Which of the two has which lock, both mutexes say themselves.
    let owners: HashSet<u32> =
        locks_of(&run).filter_map(|wait| Some(wait.longest_end?.0)).collect();
    let waiters: HashSet<u32> = locks_of(&run).map(|wait| wait.waiter_tid).collect();
    assert_eq!((owners.len(), &owners), (2, &waiters), "{:#?}", run.sums.waits);
    assert!(answer.contains("wait for each other"), "{answer}");
}

/// The kernel takes the stack of a wait when it ends; of this one the recorder reads it at the end.
#[test]
fn a_wait_that_does_not_end_has_its_stack() {
    let Some(lab) = Lab::new() else { return };
    let mut command = Command::new(program("starved"));
    let mut starved = Helper::spawn(command.stdout(Stdio::piped()));
    let mut line = String::new();
    BufReader::new(starved.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    sleep(Duration::from_millis(200));
    let run = lab.record_target(&["-p", &starved.pid(), "--time", "1s"]).run;
    let open = run.sums.waits.iter().find(|wait| wait.account == FUTEX && wait.open > 0).unwrap();
    let functions = |id| -> Vec<&str> {
        let frames = run.stacks[id].frames.iter();
        frames.filter_map(|frame| frame.symbol.as_deref()).collect()
    };
    let open_at = functions(open.open_at.as_ref().unwrap());
    assert!(open_at.iter().any(|name| name.contains("rwlock_wrlock")), "{open_at:?}");
    assert!(open_at.contains(&"wait_to_write"), "{open_at:?}");
    // Beside the thread that sleeps in sleep().
    let sums = run.sums.stack_sums.iter().filter_map(|sum| sum.user.as_ref());
    assert!(sums.map(functions).any(|of_sum| of_sum.contains(&"main")), "{run:#?}");
    let answer = String::from_utf8(lab.answer("explain", &[])).unwrap();
    assert!(answer.contains("which none of them got"), "{answer}");
}

/// Nine threads share three connections to processes that are not recorded.
#[test]
fn who_has_a_connection_of_a_pool_waits_for_an_answer_whoever_gives_it() {
    let Some(lab) = Lab::new() else { return };
    let mut command = Command::new(shape("pool_three", Libc::Glibc));
    let pool = Helper::spawn(command.arg("8").stdout(Stdio::null()));
    sleep(Duration::from_millis(500));
    let run = lab.record_target(&["-p", &pool.pid(), "--time", "2s"]).run;
    let waits = || run.sums.waits.iter().filter(|wait| wait.account == FUTEX);
    let all: u64 = waits().map(|wait| wait.ns).sum();
    let ended = |end| -> u64 { waits().map(|wait| wait.ends_in(|other| other == end)).sum() };
    assert!(ended(ChainEnd::Peer) > all / 2, "{all} {:#?}", run.sums.waits);
    assert!(ended(ChainEnd::Unwatched) < all / 10, "{:#?}", run.sums.waits);
    let answer = String::from_utf8(lab.answer("explain", &[])).unwrap();
    assert!(answer.contains("answer of a process that was not"), "{answer}");
}

fn locks_of(run: &Run) -> impl Iterator<Item = &WaitSum> {
    run.sums.waits.iter().filter(|wait| wait.account == FUTEX && wait.lock_like > 0)
}

/// What their descriptors are is looked up among the files of the sleeping process, not of the recorder.
#[test]
fn threads_asleep_since_before_the_recording_wait_for_what_they_have_open() {
    let Some(lab) = Lab::beside_others() else { return };
    let mut command = Command::new(program("asleep"));
    let mut asleep = Helper::spawn(command.stdout(Stdio::piped()));
    let lines = BufReader::new(asleep.0.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut text = String::new();
    for line in lines {
        text += &(line + "\n");
        if text.contains("ready=") {
            break;
        }
    }
    let task = format!("/proc/{}/task", asleep.pid());
    let is_asleep = |tid: std::fs::DirEntry| {
        std::fs::read_to_string(tid.path().join("stat")).unwrap().contains(") S ")
    };
    wait_until("all threads to be asleep", || {
        std::fs::read_dir(&task).unwrap().all(|tid| is_asleep(tid.unwrap()))
    });
    let run = lab.record_target(&["-p", &asleep.pid(), "--time", "500ms"]).run;
    let inodes = Values::of(&text);
    // Sums of waits at sockets are not kept by socket.
    for (kind, object) in [
        (Blocked::PipeRead, inodes.get("pipe")),
        (Blocked::SocketReceive, 0),
        (Blocked::SocketAccept, 0),
        (Blocked::FileLock, inodes.get("flock")),
    ] {
        let waits = run.sums.waits.iter().filter(|wait| wait.account == Account::Blocked(kind));
        let waits: Vec<_> = waits.map(|wait| (wait.object, wait.count, wait.open)).collect();
        assert_eq!(waits, [(object, 1, 1)], "{kind:?}: {:#?}", run.sums.waits);
    }
}
