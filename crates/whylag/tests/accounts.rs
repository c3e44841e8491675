//! Where the time went, against what the recorded programs measured themselves and what the kernel
//! and strace count.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::process::Command;
use std::sync::OnceLock;

use common::clocks::{for_cpu, named, on_cpu};
use common::disturbance::{Figures, undisturbed};
use common::programs::program;
use common::values::Values;
use common::{Lab, Recorded, lost};
use model::*;

const MS: u64 = 1_000_000;

/// `ours` and `theirs` differ by at most `percent` of `theirs` and `constant_ns`.
#[track_caller]
fn agree(what: &str, ours: u64, theirs: u64, percent: u64, constant_ns: u64) {
    let margin = theirs * percent / 100 + constant_ns;
    assert!(ours.abs_diff(theirs) <= margin, "{what}: {ours} against {theirs} ns");
}

/// What holds for every run that eBPF recorded.
fn sums_are_exact(run: &Run) {
    for outlier in &run.outliers {
        assert_eq!(outlier.breakdown.total(), outlier.duration_ns, "{outlier:?}");
    }
    let unaccounted = run.accounts().get(Account::Unaccounted);
    assert!(unaccounted * 200 < run.wall_ns(), "{unaccounted} of {} ns", run.wall_ns());
    assert_eq!(lost(run), BTreeMap::new());
}

/// The thread was watched for its life, and its accounts have all of that, by what the program says
/// of when it made the thread, and of when the thread began and ended.
#[track_caller]
fn life_is_accounted_for(run: &Run, name: &str, program: &Values) {
    let thread = named(run, name);
    let [made, began, ended, joined] =
        ["made", "began", "ended", "joined"].map(|key| program.get(&format!("{key}.{name}")));
    assert!((made..=began).contains(&thread.first_ns), "{made} {began}: {thread:?}");
    assert!(thread.last_ns >= ended, "{ended}: {thread:?}");
    let (all, least, most) = (thread.accounts.total(), ended - began, joined - made);
    assert!(all >= least, "{all} of {least} ns: {thread:?}");
    // It is joined a moment before it is gone, and may have to wait for a CPU in between.
    let most = most + for_cpu(&thread.accounts);
    assert!(all * 100 <= most * 105, "{all} of {most} ns: {thread:?}");
}

/// One thread for each kind of wait, recorded once for all tests.
fn waits() -> Option<&'static Recorded> {
    static WAITS: OnceLock<Option<Recorded>> = OnceLock::new();
    WAITS.get_or_init(|| Some(Lab::new()?.record(&[], [program("waits")]))).as_ref()
}

#[test]
fn each_kind_of_wait_has_its_account() {
    let Some(recorded) = waits() else { return };
    each_wait_is_in_its_account(recorded);
}

#[test]
fn without_system_calls_each_kind_of_wait_has_its_account() {
    let Some(lab) = Lab::new() else { return };
    let recorded = lab.record(&["--cheap"], [program("waits")]);
    each_wait_is_in_its_account(&recorded);
    let off: Vec<_> = recorded.run.capabilities.iter().filter(|part| !part.on).collect();
    let left_out = |wanted| off.iter().any(|o| o.part == wanted && o.because.contains("--cheap"));
    assert!(left_out(RecorderPart::SystemCalls) && left_out(RecorderPart::Requests), "{off:?}");
    // What needs them is not judged, and said to be so.
    let answer = lab.explain();
    let not_looked_at = answer["not_looked_at"].as_array().unwrap();
    let is_left_out = |cause: &serde_json::Value| cause.to_string().contains("left out by --cheap");
    assert!(not_looked_at.iter().any(is_left_out), "{answer:#}");
    let accounts = recorded.run.accounts();
    let divided = accounts.sum_of(|a| matches!(a, Account::User | Account::Syscall(_)));
    assert!(divided == 0 && accounts.get(Account::Running) > 0, "{accounts:?}");
}

/// How many samples there are, and the CPU time that they stand for, against the accounts, which count
/// every switch.
#[test]
fn a_cheap_recording_takes_few_samples_and_they_stand_for_the_same_time() {
    let Some(lab) = Lab::new() else { return };
    // So long that few samples are enough to divide by.
    let spins = ["bash", "-c", "SECONDS=0; while ((SECONDS < 4)); do :; done"];
    let queues = program("runqueue");
    let queues = [queues.to_str().unwrap()];
    let runs = [(&["--cheap"][..], &spins[..], 15, 90), (&[][..], &queues[..], 500, 1300)];
    for (options, command, least, most) in runs {
        let run = lab.record(options, command).run;
        let on_cpu: u64 = run.threads.iter().map(|thread| on_cpu(&thread.accounts)).sum();
        let sampled = || run.sums.paths.iter().filter(|path| path.sampled);
        let (count, ns) = sampled().fold((0, 0), |(n, ns), path| (n + path.count, ns + path.ns));
        let a_second = count * 1_000_000_000 / on_cpu;
        assert!((least..=most).contains(&a_second), "{options:?}: {count} in {on_cpu} ns");
        assert!(ns > on_cpu / 2 && ns < on_cpu * 2, "{options:?}: {ns} of {on_cpu} ns");
    }
}

/// 997 samples a second for 2 seconds or 3 and 99 from then on, of which each stands for more.
#[test]
fn a_longer_recording_takes_fewer_samples_and_they_stand_for_the_same_time() {
    let Some(lab) = Lab::new() else { return };
    let spins = ["bash", "-c", "SECONDS=0; while ((SECONDS < 6)); do :; done"];
    let run = lab.record(&[], spins).run;
    let on_cpu: u64 = run.threads.iter().map(|thread| on_cpu(&thread.accounts)).sum();
    let sampled = || run.sums.paths.iter().filter(|path| path.sampled);
    let (count, ns) = sampled().fold((0, 0), |(n, ns), path| (n + path.count, ns + path.ns));
    let a_second = count * 1_000_000_000 / on_cpu;
    assert!((150..=800).contains(&a_second), "{count} in {on_cpu} ns");
    assert!(ns > on_cpu / 5 * 4 && ns < on_cpu / 4 * 5, "{ns} of {on_cpu} ns");
    let periods: std::collections::BTreeSet<_> = sampled().map(|path| path.max_ns).collect();
    assert!(periods.iter().all(|ns| [1_003_009, 10_101_011].contains(ns)), "{periods:?}");
}

fn each_wait_is_in_its_account(recorded: &Recorded) {
    let (run, measured) = (&recorded.run, Values::of(recorded.stdout()));
    sums_are_exact(run);
    let expected = [
        ("timer", Blocked::TimerSleep),
        ("usleep", Blocked::TimerSleep),
        ("timerfd", Blocked::TimerSleep),
        ("poll", Blocked::Poll),
        ("select", Blocked::Poll),
        ("bare_poll", Blocked::TimerSleep),
        ("bare_select", Blocked::TimerSleep),
        ("epoll", Blocked::Poll),
        ("mutex", Blocked::Futex),
        ("pi_mutex", Blocked::Futex),
        ("cond", Blocked::Futex),
        ("pipe_read", Blocked::PipeRead),
        ("pipe_write", Blocked::PipeWrite),
        ("recv", Blocked::SocketReceive),
        ("send", Blocked::SocketSend),
        ("accept", Blocked::SocketAccept),
        ("connect", Blocked::SocketConnect),
        ("timed_connect", Blocked::SocketConnect),
        ("child", Blocked::ChildWait),
        ("flock", Blocked::FileLock),
        ("message", Blocked::Other),
    ];
    // A wake-up that the host hides ends no sleep: the thread is met at its next event, at the latest
    // at a tick (10 ms), and the recorder counts that.
    let hidden = run.losses.by_kind().contains_key("wakeups and switches (hidden by the host)");
    let missed = if hidden { 10 * MS } else { 0 };
    let mut wrong = Vec::new();
    for (name, kind) in expected {
        let accounts = &named(run, name).accounts;
        let (ours, theirs) = (accounts.get(Account::Blocked(kind)), measured.get(name));
        // The sleep is a part of the call; the rest of it is getting a CPU. Waits for a futex were 77 and
        // 161 us longer than their calls in one run on a busy machine, for a reason that is not known.
        let beyond = missed + if kind == Blocked::Futex { MS } else { 0 };
        if ours > theirs + beyond
            || ours * 2 < theirs
            || (ours + for_cpu(accounts)) * 10 < theirs * 8
        {
            wrong.push(format!("{name}: {ours} of {theirs} ns as {}: {accounts:?}", kind.name()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    expected.iter().for_each(|(name, _)| life_is_accounted_for(run, name, &measured));
}

#[test]
fn a_sleep_is_an_outlier_as_long_as_the_program_says() {
    let Some(recorded) = waits() else { return };
    let (run, measured) = (&recorded.run, Values::of(recorded.stdout()));
    let tid = named(run, "timer").tid;
    let of_kind = |kind| {
        let mut found = run.outliers.iter().filter(|o| o.tid == tid && o.kind == kind);
        found.next().unwrap_or_else(|| panic!("no {kind:?}: {:?}", run.outliers))
    };
    let (call, sleep) = (of_kind(OutlierKind::Syscall), of_kind(OutlierKind::OffCpu));
    let name = call.syscall.as_ref().unwrap().call.to_string();
    assert_eq!(name, "clock_nanosleep");
    assert_eq!(call.syscall.as_ref().unwrap().result, Some(0));
    assert!(call.duration_ns <= measured.get("timer"), "{call:?}");
    agree("the call", call.duration_ns, measured.get("timer"), 10, MS);
    assert_eq!(sleep.blocked, Some(Blocked::TimerSleep));
    assert!(sleep.start_ns >= call.start_ns && sleep.duration_ns <= call.duration_ns);
    // It asked for 150 ms: a sleep is never shorter.
    assert!(sleep.breakdown.total() >= 149 * MS, "{sleep:?}");
}

/// Three threads and a hog on one CPU, recorded once for all tests.
fn queued() -> Option<&'static (Recorded, Figures)> {
    static QUEUED: OnceLock<Option<(Recorded, Figures)>> = OnceLock::new();
    let record = || {
        let lab = Lab::new()?;
        Some(undisturbed(|| lab.record(&[], [program("runqueue")]), |recorded| Some(&recorded.run)))
    };
    QUEUED.get_or_init(record).as_ref()
}

#[test]
fn cpu_time_and_run_queue_time_are_those_of_the_kernel() {
    let Some((recorded, figures)) = queued() else { return };
    let (run, kernel) = (&recorded.run, Values::of(recorded.stdout()));
    sums_are_exact(run);
    let is_quiet = figures.judge("a thread waits for a CPU no longer than the kernel says");
    for name in ["compute", "wake", "call"] {
        life_is_accounted_for(run, name, &kernel);
        let accounts = &named(run, name).accounts;
        agree(name, on_cpu(accounts), kernel.get(&format!("cpu.{name}")), 10, 3 * MS);
        // It reads the kernel's count before it ends, and may have to wait once more after that.
        let (waited, counted) = (for_cpu(accounts), kernel.get(&format!("runq.{name}")));
        assert!(waited + counted / 20 + 5 * MS >= counted, "{name}: {waited} of {counted} ns");
        if is_quiet {
            agree(name, waited, counted, 5, 5 * MS);
        }
    }
    let process: u64 = run.threads.iter().map(|thread| on_cpu(&thread.accounts)).sum();
    agree("the process", process, kernel.get("cpu.process"), 5, 5 * MS);

    let most_of = |name: &str, account: Account, whole: u64| {
        let accounts = &named(run, name).accounts;
        assert!(accounts.get(account) * 2 > whole, "{name}: {account}: {accounts:?}");
    };
    most_of("call", Account::Syscall(Syscall::named("readlink").unwrap()), 80 * MS);
    if figures.judge("a thread that computes is preempted, one that sleeps is late to wake") {
        most_of("compute", Account::User, kernel.get("cpu.compute"));
        most_of("compute", Account::RunnablePreempted, kernel.get("runq.compute"));
        most_of("wake", Account::RunnableWakeup, kernel.get("runq.wake"));
    }
}

#[test]
fn whoever_ran_instead_is_named() {
    let Some((recorded, figures)) = queued() else { return };
    let run = &recorded.run;
    // The longest sums come first; its own threads are in each other's way, too.
    let mut others = run.sums.runners.iter().filter(|r| r.runner_tgid != r.tgid);
    if figures.judge("the hog ran longer than any other") {
        assert_eq!(others.clone().next().unwrap().runner_comm, "hog", "{:?}", run.sums.runners);
    }
    let by_hog = others.find(|r| r.runner_comm == "hog").unwrap();
    let hog = run.processes.iter().find(|process| process.tgid == by_hog.runner_tgid).unwrap();
    assert!(!hog.watched);
    assert_eq!(hog.comm, "hog");
    let delays = run.outliers.iter().filter(|outlier| outlier.kind == OutlierKind::RunQueue);
    let by_hog = delays.filter(|delay| delay.ran_instead.iter().any(|r| r.tgid == hog.tgid));
    assert!(by_hog.count() > 10);
}

/// One waits while two others run, and both have what the kernel says they had, not the one that ran
/// longest all of it.
#[test]
fn a_wait_for_a_cpu_is_divided_among_those_who_ran_in_it() {
    let Some(lab) = Lab::new() else { return };
    let recorded = lab.record(&[], [program("shared_cpu")]);
    let (run, kernel) = (&recorded.run, Values::of(recorded.stdout()));
    sums_are_exact(run);
    for name in ["hog", "guest"] {
        let ran = run.sums.runners.iter().filter(|r| r.runner_comm == name).map(|r| r.ns).sum();
        // Who ran at the begin of a long wait may be forgotten by its end.
        agree(name, ran, kernel.get(&format!("cpu.{name}")), 25, 5 * MS);
    }
    let ran: u64 = run.sums.runners.iter().map(|runner| runner.ns).sum();
    assert!(ran <= run.accounts().sum_of(Account::is_waiting_for_cpu), "{:?}", run.sums.runners);
    is_bound_to(run, kernel.get("bound.cpu") as u32);
}

/// Where system calls are not recorded not every wait is looked at.
#[test]
fn who_ran_in_short_waits_is_estimated_with_cheap() {
    let Some(lab) = Lab::new() else { return };
    let words = [program("shared_cpu").into_os_string(), "in turns".into()];
    let recorded = lab.record(&["--cheap"], words);
    let (run, kernel) = (&recorded.run, Values::of(recorded.stdout()));
    // On a busy machine others make many of them longer; all of those are looked at.
    let delays = run.seconds.iter().filter(|second| second.metric == Metric::RunQueueDelay);
    let short = delays.filter_map(|second| second.histogram.quantile(0.1)).min().unwrap();
    assert!(short < RunnerSum::SAMPLED_EVERY_NS, "{short} ns");
    for name in ["hog", "guest"] {
        let ran = run.sums.runners.iter().filter(|r| r.runner_comm == name).map(|r| r.ns).sum();
        let truth = kernel.get(&format!("cpu.{name}"));
        agree(name, ran, truth, 10, 2 * RunnerSum::error_if_sampled_ns(truth));
    }
    // It gives way itself: where a sample shows that it is no want of a CPU, which says who ran.
    let text = String::from_utf8(lab.answer("explain", &[])).unwrap();
    assert!(text.contains(", sampled)") || text.contains("(yield-spin)"), "{text}");
}

/// The program's only process may run on this CPU alone, and all that it waited for a CPU was there.
fn is_bound_to(run: &Run, cpu: u32) {
    if run.sums.cpus.len() < 2 {
        assert!(run.sums.bound.is_empty(), "there is no other CPU: {:?}", run.sums.bound);
        return;
    }
    let [bound] = &run.sums.bound[..] else { panic!("{:?}", run.sums.bound) };
    assert_eq!((&bound.cpus[..], bound.threads), (&[cpu][..], 1));
    assert_eq!(bound.waited_ns, run.accounts().sum_of(Account::is_runnable));
    assert_eq!(bound.ran_ns, run.accounts().sum_of(Account::is_running));
}

#[test]
fn a_request_of_the_disk_is_told_from_one_of_a_pipe() {
    let Some(lab) = Lab::new() else { return };
    let folder = lab.folder.path().as_os_str().to_owned();
    let recorded = lab.record(&[], [program("completions").into_os_string(), folder]);
    let (run, measured) = (&recorded.run, Values::of(recorded.stdout()));
    sums_are_exact(run);
    for name in ["uring_idle", "aio_idle"] {
        let accounts = &named(run, name).accounts;
        agree(name, accounts.get(Account::Blocked(Blocked::Poll)), measured.get(name), 10, 5 * MS);
    }
    for name in ["uring_read", "aio_read"] {
        let accounts = &named(run, name).accounts;
        let (disk, idle) = (Blocked::Disk, Blocked::Poll);
        let (disk, idle) =
            (accounts.get(Account::Blocked(disk)), accounts.get(Account::Blocked(idle)));
        let in_call = measured.get(name);
        // The rest of the call is work, more than a quick disk takes on a busy CPU, and getting one.
        assert!(
            disk <= in_call && (disk + for_cpu(accounts)) * 4 > in_call,
            "{name}: {accounts:?}"
        );
        // A worker of the kernel may have to wait for a CPU before it asks the disk.
        assert!(idle * 4 < disk, "{name}: {accounts:?}");
    }
}

/// What a thread sleeps between a refusal and the next try is waiting for the lock; its other sleeps
/// are its own.
#[test]
fn sleeps_between_tries_are_told_from_others() {
    let Some(lab) = Lab::new() else { return };
    let program = program("lock_tries");
    for (call, words) in [("flock", vec![]), ("fcntl", vec!["fcntl".as_ref()])] {
        let command: Vec<&OsStr> = [program.as_os_str()].into_iter().chain(words).collect();
        tries_of(&lab.record(&[], command), call);
    }
}

fn tries_of(recorded: &Recorded, call: &str) {
    let (run, measured) = (&recorded.run, Values::of(recorded.stdout()));
    sums_are_exact(run);
    let [retry] = &run.sums.retries[..] else { panic!("{:?}", run.sums.retries) };
    assert_eq!(Some(retry.call), Syscall::named(call));
    assert_eq!((retry.errno, retry.count), (11, measured.get("tries")));
    let slept = measured.get("slept");
    // The program's figure includes getting a CPU.
    let queued: u64 = run.threads.iter().map(|thread| for_cpu(&thread.accounts)).sum();
    let least = (slept * 7 / 10).saturating_sub(queued);
    assert!(retry.ns <= slept && retry.ns > least.max(slept / 4), "{retry:?} of {slept} ns");
    let sleeps = run.accounts().get(Account::Blocked(Blocked::TimerSleep));
    assert!(retry.ns + 50 * MS < sleeps, "{retry:?} of {sleeps} ns asleep");
    let found = explain::explain(run);
    assert_eq!(found.findings[0].cause, "file-lock", "{found:?}");
}

#[test]
fn major_faults_are_counted_and_timed() {
    let Some(lab) = Lab::new() else { return };
    let recorded = lab.record(&[], [program("faults")]);
    let (run, measured) = (&recorded.run, Values::of(recorded.stdout()));
    sums_are_exact(run);
    assert!(measured.get("major") > 100, "the pages were in memory: {}", recorded.stdout());
    let thread = &run.threads[0];
    assert_eq!(thread.major_faults, measured.get("total.major"));
    assert!(thread.minor_faults <= measured.get("total.minor"), "{thread:?}");
    let asleep = thread.accounts.get(Account::Blocked(Blocked::FaultMajor));
    // How long a fault sleeps is the disk's: from most of it to nearly nothing. What the kernel's CPU time leaves
    // of it is the most: that has no interrupts and no stolen time in it, which are neither sleep nor ours.
    let touching = measured.get("touch");
    let most = touching.saturating_sub(measured.get("ran") + measured.get("queued"));
    assert!(asleep <= most + most / 10 + 2 * MS, "{asleep} of {most} ns at most");
    let stolen = thread.accounts.get(Account::Stolen);
    let rest = on_cpu(&thread.accounts) + for_cpu(&thread.accounts) + stolen;
    assert!(asleep + rest >= touching, "{asleep} and {rest} of {touching} ns: {thread:?}");
    // Two switches of a context take more than that.
    let least = measured.get("slept") * 1_000;
    assert!(asleep >= least, "{asleep} of {least} ns at least: {}", recorded.stdout());
}

#[test]
fn a_stopped_process_is_stopped() {
    let Some(lab) = Lab::new() else { return };
    let recorded = lab.record(&[], [program("stopped")]);
    sums_are_exact(&recorded.run);
    let stopped = recorded.run.accounts().get(Account::Blocked(Blocked::Stopped));
    agree("stopped", stopped, Values::of(recorded.stdout()).get("stopped"), 10, 5 * MS);
}

#[test]
fn every_call_is_counted_once() {
    let Some(lab) = Lab::new() else { return };
    let table = lab.folder.path().join("strace");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-c", "-U", "calls,name", "-o"]).arg(&table).arg(program("calls"));
    if !strace.status().is_ok_and(|status| status.success()) {
        println!("skipped: strace does not work here");
        return;
    }
    let table = std::fs::read_to_string(&table).unwrap();
    let lines = table.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let count = words.next()?.parse().ok()?;
        Some((words.next()?.to_owned(), count))
    });
    let mut expected: BTreeMap<String, u64> = lines.collect();
    expected.remove("total");
    // Recording begins with the program, not with the execve that becomes it.
    assert_eq!(expected.remove("execve"), Some(1));
    assert_eq!(expected["getuid"], 4321, "{table}");

    let recorded = lab.record(&["--follow"], [program("calls")]);
    sums_are_exact(&recorded.run);
    let mut seen = BTreeMap::<String, u64>::new();
    let csv = String::from_utf8(lab.answer("export", &["--format", "csv"])).unwrap();
    for line in csv.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        if let Some(call) = fields[3].strip_prefix("syscall:") {
            *seen.entry(call.to_owned()).or_default() += fields[4].parse::<u64>().unwrap();
        }
    }
    assert_eq!(seen, expected);
}

/// 32-bit programs count their calls by another table, and any program can make a call by it.
#[test]
fn calls_by_the_table_of_32_bit_programs_are_not_taken_for_others() {
    let Some(lab) = Lab::beside_others() else { return };
    let caller = program("calls_of_32_bit");
    if !Command::new(&caller).status().unwrap().success() {
        println!("skipped: this kernel has no calls of 32-bit programs");
        return;
    }
    let run = lab.record(&["--threshold", "5ms"], [&caller]).run;
    let sync = Syscall::named("sync").unwrap();
    assert_eq!(run.accounts().get(Account::Syscall(sync)), 0, "it calls no sync");
    let calls = run.outliers.iter().filter(|outlier| outlier.kind == OutlierKind::Syscall);
    let calls: Vec<_> = calls.filter_map(|outlier| Some(outlier.syscall.as_ref()?.call)).collect();
    // The last number of the table, which is no call's.
    let of_32_bit = calls.iter().filter(|call| call.0 == 511).count();
    assert_eq!(of_32_bit, 20, "{calls:?}");
    // 20 sleeps of 10 ms, whatever they are for.
    let accounts = run.accounts();
    let asleep = accounts.iter().filter(|(account, _)| matches!(account, Account::Blocked(_)));
    assert!(asleep.map(|(_, ns)| ns).sum::<u64>() >= 200 * MS, "{accounts:?}");
}
