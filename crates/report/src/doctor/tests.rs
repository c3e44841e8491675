use model::{
    Check, CheckResult, Checkup, CheckupDiff, CheckupDifference, Compared, Subject, Unbound,
};

use super::*;
use crate::sample::{assert_fits, written};

fn check(id: &str, verdict: CheckResult, fact: &str, compared: Compared) -> Check {
    let is_asked = matches!(verdict, CheckResult::Attention | CheckResult::Bad);
    Check {
        id: id.to_owned(),
        subject: Subject::Time,
        verdict,
        fact: fact.to_owned(),
        detail: String::new(),
        why: "It is read by everything that stamps its messages.".to_owned(),
        advice: if is_asked { "Choose another one.".to_owned() } else { String::new() },
        source: "/sys".to_owned(),
        compared,
    }
}

fn checkup(host: &str, checks: Vec<Check>) -> Checkup {
    Checkup {
        version: "1".to_owned(),
        host: host.to_owned(),
        taken_unix_ns: 0,
        pid: None,
        checks,
        facts: Vec::new(),
        unbound: Vec::new(),
    }
}

#[test]
fn a_table_says_why_and_what_to_do_where_it_is_needed() {
    let checks = vec![
        check("clocksource", CheckResult::Bad, "hpet", Compared::Setting),
        check("vdso", CheckResult::Good, "used", Compared::Setting),
        Check {
            subject: Subject::Cpu,
            ..check("smt", CheckResult::Unknown, "no such file", Compared::Setting)
        },
    ];
    let checkup = checkup("left", checks);
    let text = written(|out| write(out, &checkup, false, &Style::default()));
    assert_fits(&text, 80);
    assert_eq!((text.matches("why:").count(), text.matches("do:").count()), (1, 1), "{text}");
    for part in [
        "Time\n",
        "CPU\n",
        "unknown here",
        "left: 3 checks: 1 bad, 0 attention, 1 unknown here, 1 good.",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let text = written(|out| write(out, &checkup, true, &Style::default()));
    assert_eq!(text.matches("why:").count(), 3);
}

#[test]
fn causes_that_stand_alike_share_a_row() {
    let cause = |id: &str, verdict, fact| Check {
        subject: Subject::Recorder,
        ..check(id, verdict, fact, Compared::Setting)
    };
    let checks = vec![
        cause("cause-mmap-lock", CheckResult::Good, "measured"),
        cause("cause-sysv-sem", CheckResult::Attention, "approximated"),
        cause("cause-cpu-runqueue", CheckResult::Good, "measured"),
    ];
    let text = written(|out| write(out, &checkup("left", checks), false, &Style::default()));
    assert!(text.contains("mmap-lock, cpu-runqueue"), "{text}");
    assert_eq!(text.matches("measured").count(), 1, "{text}");
}

#[test]
fn unbound_calls_are_listed_by_library() {
    let unbound = [
        Unbound {
            library: "/opt/librate.so".to_owned(),
            slots: 212,
            symbols: vec!["sched_yield".to_owned(), "evil\x1b[2J".to_owned()],
            unknown_because: String::new(),
        },
        Unbound {
            library: "/opt/old.so".to_owned(),
            slots: 0,
            symbols: Vec::new(),
            unknown_because: "a 32-bit ELF file".to_owned(),
        },
    ];
    let bound_library = Unbound { symbols: Vec::new(), ..unbound[0].clone() };
    let unbound = [&unbound[..], &[bound_library]].concat();
    let text = written(|out| write_unbound(out, &unbound, &Style::default()));
    assert!(
        text.ends_with("  1 with all slots bound; files without slots are not counted\n"),
        "{text}"
    );
    assert!(
        text.contains("/opt/librate.so: 2 of 212 slots\n    sched_yield evil\\x1b[2J\n"),
        "{text}"
    );
    assert!(text.contains("/opt/old.so: unknown here: a 32-bit ELF file"), "{text}");
    assert_eq!(
        bound(
            10_003_014_000_000,
            "/opt/librate.so",
            "sched_yield",
            Some("/lib/libc.so.6"),
            Took::NoFault
        ),
        "02:46:43.014  librate.so  sched_yield -> libc.so.6  no page fault seen"
    );
}

#[test]
fn a_line_for_each_difference_first_those_that_matter() {
    let difference = |name: &str, first: &str, second: &str, matters| CheckupDifference {
        name: name.to_owned(),
        first: first.to_owned(),
        second: second.to_owned(),
        matters,
        is_bad: false,
    };
    let found = CheckupDiff {
        names: ["left (a.json)".to_owned(), "right now".to_owned()],
        differences: vec![
            difference("clocksource", "tsc", "kvm-clock", true),
            difference("env.HOME", "", "/home/me", false),
        ],
        compared: 7,
        left_out: vec!["smt: unknown of left (a.json)".to_owned()],
    };
    let text = written(|out| write_diff(out, &found, &Style::default()));
    assert_eq!(
        text,
        "left (a.json) -> right now\n\nKnown to matter for latency\n  clocksource: tsc -> kvm-clock\n\n\
         Others\n  env.HOME: (empty) -> /home/me\n\n2 of 7 checks or facts differ\nnot compared: smt: \
         unknown of left (a.json)\n"
    );
}
