//! Story 4: sockets are slow whenever another program lists them.

use std::collections::BTreeSet;
use std::ops::Range;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::time::Instant;

use model::{Account, Coincidence, ConcurrentCall, Run, TableRead};
use tempfile::TempDir;

use crate::common::disturbance::{disturbance, figures_are_asked_for};
use crate::common::programs::mystery;
use crate::common::{Helper, Lab};
use crate::{EXACT, Mystery, solve};

#[test]
fn socket_diag_reader() {
    solve(&Mystery {
        cause: "socket-diag-reader",
        follow: false,
        part: EXACT,
        ruled_out: &["cpu-runqueue", "softirq-interference"],
    });
}

/// Some 7 reads: enough to see who ran, too few to tell it from chance.
#[test]
fn what_else_ran_when_sockets_were_slow_is_recorded() {
    let Some(lab) = Lab::new() else { return };
    let began = Instant::now();
    let run = recorded(&lab, "5");
    let agent = run.presences.iter().find(|one| one.comm == "agent").expect("the agent ran").tgid;
    // 4 a second at most, of which some come before whylag has begun; the sockets are made first.
    let most = began.elapsed().as_secs() as usize * 4 + 4;
    others_are_recorded(&run, agent, 9..most + 1);
}

/// The long calls fall into the reads of the one program that reads. Chance is in each recording
/// (another program makes further calls long), so three are made at most, and each result is printed.
/// The agent reads some 30 times in 20 s: of 10 reads, every second recording says that it
/// may well be chance (p of 0.01 to 0.02).
#[test]
fn what_else_ran_when_sockets_were_slow_is_named_with_chance() {
    if !figures_are_asked_for() {
        return;
    }
    let Some(lab) = Lab::new() else { return };
    let recorded = (0..3).find_map(|_| {
        let run = recorded(&lab, "20");
        let answer = lab.explain()["coincidences"].take();
        let found: Vec<Coincidence> = serde_json::from_value(answer).unwrap();
        // Where there are too many calls to record them all, long waits for the lock tell the same.
        let of_bind = |kind: &str| {
            let events = format!("{kind} bind of socket-diag");
            let is_agent = |one: &&Coincidence| one.comm == "agent" && one.events.contains(&events);
            found.iter().find(is_agent).cloned()
        };
        let agent = of_bind("spinning in").or_else(|| of_bind("long"));
        let seen = |one: &Coincidence| format!("{} of {} {}", one.seen, one.n, one.events);
        println!("agent: {:?}, {:?}", agent.as_ref().map(seen), disturbance(&run));
        Some((run, agent?))
    });
    let (run, agent) = recorded.expect("the agent is named in one of three recordings");
    assert!(agent.pids.len() == 1 && agent.n >= 5 && agent.p < 0.01, "{agent:?}");
    // Others that take the CPUs make calls long, too.
    match disturbance(&run) {
        None => assert!(agent.seen * 4 >= agent.n * 3, "{agent:?}"),
        Some(by) => println!("not judged: the agent is there at most calls: disturbed by {by}"),
    }
    assert!(agent.expected < agent.seen as f64, "{agent:?}");
    others_are_recorded(&run, agent.pids[0], 35..110);
    // In words, too.
    let text = String::from_utf8(lab.answer("show", &[])).unwrap();
    assert!(
        text.contains("Other programs that ran at these times") && text.contains("agent (pid"),
        "{text}"
    );
}

/// The name of a program that has nothing to do with sockets.
const UNRELATED: &str = "unrelated-nap";

/// The faulty program, beside one that has nothing to do with it.
fn recorded(lab: &Lab, seconds: &str) -> Run {
    // Others of this host may run `sleep`.
    let folder = TempDir::new().unwrap();
    symlink("/bin/sleep", folder.path().join(UNRELATED)).unwrap();
    let unrelated = format!("while :; do ./{UNRELATED} 0.25; done");
    let _unrelated =
        Helper::spawn(Command::new("sh").args(["-c", &unrelated]).current_dir(folder.path()));
    let program = mystery("socket-diag-reader-faulty");
    lab.record(&["--threshold", "100us"], [program.as_os_str(), seconds.as_ref()]).run
}

/// Every execution of an unrelated program was seen, and who was on the other CPU in the longest
/// calls is recorded with what it read.
fn others_are_recorded(run: &Run, agent: u32, expected_naps: Range<usize>) {
    let naps = run.presences.iter().filter(|one| one.comm == UNRELATED).map(|one| one.tgid);
    let naps = naps.collect::<BTreeSet<_>>().len();
    assert!(expected_naps.contains(&naps), "{naps} executions, 4 a second");
    assert!(run.presences.iter().all(|one| one.comm != "swapper/0"), "an idle CPU is no program");
    let call = run.sums.concurrent_calls.iter().max_by_key(|sum| sum.ns).unwrap();
    assert_eq!(call.other_tgid, agent, "{call:?}");
    assert_eq!(call.reads, TableRead::Proc("net/udp".to_owned()), "{call:?}");
    // The sample stands for the waits, which are an account of their own; a few are too short to be looked at.
    let looked_at = run.sums.concurrent_calls.iter().filter(|sum| sum.other_tgid == agent);
    let of_agent = looked_at.clone().map(|sum| sum.ns).sum::<u64>();
    let error = looked_at.map(ConcurrentCall::error_ns).sum::<u64>();
    let spun = run.threads.iter().map(|thread| thread.accounts.get(Account::Spin)).sum::<u64>();
    assert!(of_agent <= spun + 2 * error, "{of_agent} (±{error}) of {spun} ns");
    assert!(of_agent >= spun / 4, "{of_agent} (±{error}) of {spun} ns");
}
