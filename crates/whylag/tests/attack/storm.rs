//! Threads and processes that begin and end by the thousand.

use std::process::Command;

use model::{Account, Blocked, Metric, OtherThreads, RecorderPart};
use rusqlite::Connection;

use crate::attacker::{Den, lab, lab_beside_others};
use crate::common::lost;

/// More than are kept one by one.
const THREADS: u64 = 55_000;
const PROCESSES: u64 = 6_000;

#[test]
fn a_storm_is_summed_while_it_is_recorded_and_every_thread_of_it_counts() {
    let Some(lab) = lab() else { return };
    let den = Den::of("attacker");
    let program = den.program.to_str().unwrap();
    let (threads, processes) = (THREADS.to_string(), PROCESSES.to_string());
    let as_nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    lab.record(
        &["--follow"],
        as_nobody.into_iter().chain([program, "storm", &threads, &processes]),
    );
    let run = lab.run();
    let lost: u64 = run.losses.seen.iter().map(|(_, _, count)| count).sum();

    // The main thread, and what the kernel side could not hand over is counted.
    let all = THREADS + PROCESSES + 1;
    let seen = run.thread_count();
    assert!(seen <= all && seen + lost >= all, "{seen} of {all} threads, {lost} lost");
    let others = &run.sums.others;
    println!("{seen} of {all} threads, {lost} lost, {others:?}");
    let summed: u64 = others.iter().map(|others| others.threads).sum();
    let of_program = others.iter().find(|others| !OtherThreads::is_group(others.tgid)).unwrap();
    assert!(of_program.threads > 0 && of_program.accounts.total() > 0, "{others:?}");
    // Sums of programs that are not known may have a group, too, without a thread.
    let is_children =
        |others: &&OtherThreads| OtherThreads::is_group(others.tgid) && others.comm == "attacker";
    let children = others.iter().find(is_children).unwrap();
    assert!(children.processes + lost >= PROCESSES, "{others:?}");

    let store = Connection::open(lab.store()).unwrap();
    let stored: u32 =
        store.query_row("SELECT count(*) FROM threads", [], |row| row.get(0)).unwrap();
    // A few of those that are stored are summed when the run is read.
    assert!(seen - summed <= u64::from(stored), "{stored} threads stored, {summed} summed");
    // The main thread, and those few that each batch, one a second and more in a storm, found alive.
    let batches = run.length_ns() / 1_000_000_000 + 10;
    let most = OtherThreads::ONE_BY_ONE as u64 + 4 * batches;
    assert!(u64::from(stored) <= most, "{stored} threads in {batches} batches");

    // Each child ended a wait of its parent. By child these are 6,000 sums; those of a child whose end
    // was lost stay, and those that were handed over before its end was known.
    let child = Account::Blocked(Blocked::ChildWait);
    let waits: Vec<_> = run.sums.waits.iter().filter(|wait| wait.account == child).collect();
    let count: u64 = waits.iter().map(|wait| wait.count).sum();
    println!("{} sums of {count} waits for children", waits.len());
    let ends_lost = PROCESSES.saturating_sub(children.processes);
    let most = ends_lost + children.processes / 3;
    assert!((waits.len() as u64) < most, "{} sums of {count} waits, not {most}", waits.len());
    assert!(count > PROCESSES / 2, "{count} waits for children");
}

/// Who ran while who waited: 300 processes are 90,000 pairs, and the kernel side has 65,536 at a time.
#[test]
fn who_ran_instead_is_summed_however_many_they_are() {
    let Some(lab) = lab() else { return };
    let den = Den::of("attacker");
    let program = den.program.to_str().unwrap();
    lab.record(&["--follow", "--threshold", "1s"], [program, "jostle", "300", "6"]);
    let run = lab.run();
    let lost = lost(&run);
    assert!(!lost.keys().any(|kind| kind.contains("runner")), "{lost:?}");

    // By far the most pairs are by themselves, and what found no room has its sum.
    let pairs = run.sums.runners.len();
    let all_ns: u64 = run.sums.runners.iter().map(|runner| runner.ns).sum();
    let in_groups = run.sums.runners.iter().filter(|runner| OtherThreads::is_group(runner.tgid));
    let crowded_ns: u64 = in_groups.map(|runner| runner.ns).sum();
    println!("{pairs} pairs of {all_ns} ns, {crowded_ns} ns of them without a pair");
    assert!(pairs > 32_768, "{pairs} pairs of {all_ns} ns: too few to crowd anything");
    assert!(crowded_ns < all_ns / 2, "{crowded_ns} of {all_ns} ns");
}

/// Each of these programs has some ten histograms, and there are a thousand.
#[test]
fn a_program_that_comes_after_hundreds_of_others_has_histograms_of_its_own() {
    let Some(lab) = lab_beside_others() else { return };
    let latecomer = lab.folder.path().join("latecomer");
    assert!(Command::new("cp").arg("/bin/sleep").arg(&latecomer).status().unwrap().success());
    let script = format!(
        "i=0; while [ $i -lt 300 ]; do /bin/true; i=$((i + 1)); done; sleep 4; {} 0.5; true",
        latecomer.display()
    );
    lab.record(&["--follow"], ["sh", "-c", &script]);
    let run = lab.run();
    let is_it = |tgid: u32| run.processes.iter().any(|p| p.tgid == tgid && p.comm == "latecomer");
    let own = run.seconds.iter().filter(|second| second.tgid != 0 && is_it(second.tgid));
    let own: Vec<_> = own.map(|second| &second.metric).collect();
    assert!(own.contains(&&Metric::OffCpu), "{own:?}");
    // Beside other tests there may be too many calls on a CPU to record all.
    let calls = RecorderPart::SystemCalls;
    if run.capabilities.iter().any(|one| one.part == calls && one.on) {
        assert!(own.iter().any(|metric| matches!(metric, Metric::Syscall(_))), "{own:?}");
    }
    // What the histograms of ended processes had counted is not lost with their slots, which others got.
    let sleeps: u64 = run.threads.iter().map(|thread| thread.sleeps).sum();
    let off_cpu = run.seconds.iter().filter(|second| second.metric == Metric::OffCpu);
    let counted: u64 = off_cpu.map(|second| second.histogram.count()).sum();
    // Programs of other tests, which run instead, can be more than there are pairs for.
    let summed: u64 = run.sums.others.iter().map(|sum| sum.threads).sum();
    assert_eq!(summed, 0, "every thread is in the run by itself");
    assert!(sleeps > 300, "{sleeps} sleeps of 302 processes");
    // The host hides some switches; the slots that were given back have had hundreds of sleeps.
    assert!(
        sleeps.abs_diff(counted) <= sleeps / 50,
        "{counted} of {sleeps} sleeps are in histograms; losses: {:?}",
        run.losses
    );
}
