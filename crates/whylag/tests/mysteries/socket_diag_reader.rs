//! Story 4: sockets are slow whenever another program lists them.

use std::process::Command;

use model::{Coincidence, TableRead};

use crate::common::disturbance::undisturbed;
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

/// The long calls fall into the reads of the one program that reads, and not into the executions of
/// another one that comes four times a second, whatever happens.
#[test]
fn what_else_ran_when_sockets_were_slow_is_told_with_chance() {
    let Some(lab) = Lab::new() else { return };
    let program = mystery("socket-diag-reader-faulty");
    let unrelated = "while :; do /bin/sleep 0.25; done";
    let record = || {
        let _unrelated = Helper::spawn(Command::new("sh").args(["-c", unrelated]));
        lab.record(&["--threshold", "100us"], [program.as_os_str(), "6".as_ref()])
    };
    let (recorded, figures) = undisturbed(record, |recorded| Some(&recorded.run));
    let answer = lab.explain()["coincidences"].take();
    let found: Vec<Coincidence> = serde_json::from_value(answer).unwrap();

    let is_of_sockets = |one: &&Coincidence| one.events.contains("long bind of");
    let binds: Vec<_> = found.iter().filter(is_of_sockets).collect();
    let agent = binds.iter().find(|one| one.comm == "agent");
    // Another program makes further calls long, and comes when they are.
    let is_quiet = figures.judge("sockets are slow while the agent reads, and then only");
    let Some(agent) = agent else { return assert!(!is_quiet, "{found:#?}") };
    assert!(agent.pids.len() == 1 && agent.n >= 5 && agent.p < 0.01, "{agent:?}");
    if is_quiet {
        assert_eq!(binds.len(), 1, "{binds:#?}");
        assert!(agent.seen >= agent.n - agent.n / 10, "{agent:?}");
        assert!(agent.expected < agent.seen as f64 * 0.75, "{agent:?}");
    }

    let run = recorded.run;
    let sleeps = run.presences.iter().filter(|one| one.comm == "sleep").map(|one| one.tgid);
    let sleeps = sleeps.collect::<std::collections::BTreeSet<_>>().len();
    assert!((10..40).contains(&sleeps), "{sleeps} executions in about 7 s, 4 a second");
    assert!(run.presences.iter().all(|one| one.comm != "swapper/0"), "an idle CPU is no program");
    // Who was on the other CPU is told with what it read.
    let beside = run.sums.beside.iter().max_by_key(|sum| sum.ns).unwrap();
    assert_eq!(beside.other_tgid, agent.pids[0], "{beside:?}");
    assert_eq!(beside.reads, TableRead::Proc("net/udp".to_owned()), "{beside:?}");
    // In words, too.
    let text = String::from_utf8(lab.answer("show", &[])).unwrap();
    assert!(text.contains("What else ran then") && text.contains("agent (pid"), "{text}");
}
