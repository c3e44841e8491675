use model::{Check, Checkup, Compared, Fact, Subject, Unbound, Verdict};

use super::*;
use crate::sample::{assert_fits, run, written};

fn check(id: &str, verdict: Verdict, fact: &str, compared: Compared) -> Check {
    let is_asked = matches!(verdict, Verdict::Attention | Verdict::Bad);
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

fn checkup(host: &str, checks: Vec<Check>, facts: &[(&str, &str)]) -> Checkup {
    let fact = |(name, value): &(&str, &str)| Fact {
        name: (*name).to_owned(),
        value: (*value).to_owned(),
        source: "/proc".to_owned(),
    };
    Checkup {
        version: "1".to_owned(),
        host: host.to_owned(),
        taken_unix_ns: 0,
        pid: None,
        checks,
        facts: facts.iter().map(fact).collect(),
        unbound: Vec::new(),
    }
}

#[test]
fn a_table_says_why_and_what_to_do_where_it_is_needed() {
    let checks = vec![
        check("clocksource", Verdict::Bad, "hpet", Compared::Setting),
        check("vdso", Verdict::Good, "used", Compared::Setting),
        Check {
            subject: Subject::Cpu,
            ..check("smt", Verdict::Unknown, "no such file", Compared::Setting)
        },
    ];
    let checkup = checkup("left", checks, &[]);
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
        cause("cause-mmap-lock", Verdict::Good, "measured"),
        cause("cause-sysv-sem", Verdict::Attention, "approximated"),
        cause("cause-cpu-runqueue", Verdict::Good, "measured"),
    ];
    let text = written(|out| write(out, &checkup("left", checks, &[]), false, &Style::default()));
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
    assert!(text.contains("/opt/librate.so: 2 of 212 slots\n    sched_yield evil?[2J\n"), "{text}");
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
fn only_what_differs_is_told_and_the_clock_comes_first() {
    let measure =
        |ns: f64| check("clock-read", Verdict::Good, &format!("{ns} ns"), Compared::Measure(ns));
    let steal = |verdict, fact| check("steal", verdict, fact, Compared::Passing);
    let left = vec![
        check("thp", Verdict::Good, "madvise", Compared::Setting),
        check("clocksource", Verdict::Good, "tsc", Compared::Setting),
        measure(25.0),
        steal(Verdict::Good, "0.01 %"),
        check("smt", Verdict::Unknown, "no such file", Compared::Setting),
    ];
    let right = vec![
        check("clocksource", Verdict::Attention, "kvm-clock", Compared::Setting),
        measure(33.0),
        steal(Verdict::Good, "0.03 %"),
        check("smt", Verdict::Attention, "in use", Compared::Setting),
        check("thp", Verdict::Attention, "always", Compared::Setting),
    ];
    let long = |word: &str| {
        format!("root=/dev/vda console=ttyS0 quiet loglevel=3 panic=1 reboot=k {word}")
    };
    let facts = |clock: &'static str, line: &str, home: &'static str| {
        checkup(
            "x",
            Vec::new(),
            &[
                ("clocksource.current", clock),
                ("kernel.command_line", line),
                ("env.HOME", home),
                ("kernel.release", "6.18"),
            ],
        )
        .facts
    };
    let left = Checkup {
        facts: facts("tsc", &long("nohz_full=1"), "/root"),
        ..checkup("left", left, &[])
    };
    let right = Checkup {
        facts: facts("kvm-clock", &long(""), "/home/me"),
        ..checkup("right", right, &[])
    };
    let (left, right) = (Side::of_checkup(left, "a.json"), Side::of_checkup(right, ""));
    let found = diff(&left, &right);
    let lines: Vec<String> = found
        .differences
        .iter()
        .map(|d| format!("{}: {} -> {}", d.name, d.first, d.second))
        .collect();
    assert_eq!(
        lines,
        [
            "clocksource: tsc -> kvm-clock",
            "kernel.command_line: nohz_full=1 -> (the same without)",
            "thp: madvise -> always",
            "env.HOME: /root -> /home/me",
        ]
    );
    assert_eq!(found.left_out, ["smt: unknown of left (a.json)"]);
    let text = written(|out| write_diff(out, &found, &Style::default()));
    assert!(text.starts_with("left (a.json) -> right now\n"), "{text}");
    assert!(text.contains("4 of 7 checks or facts differ"), "{text}");
    assert_eq!(diff(&left, &left).differences, []);
}

#[test]
fn a_slow_clock_is_told_by_what_a_read_costs() {
    let side = |ns: f64, verdict| {
        let checks = vec![check("clock-read", verdict, &format!("{ns} ns"), Compared::Measure(ns))];
        Side::of_checkup(checkup("x", checks, &[]), "")
    };
    let found = diff(&side(25.0, Verdict::Good), &side(612.0, Verdict::Bad));
    assert_eq!(found.differences[0].first, "25 ns");
    assert_eq!(diff(&side(25.0, Verdict::Good), &side(30.0, Verdict::Good)).differences, []);
}

#[test]
fn a_run_is_compared_by_its_facts() {
    let mut a = run();
    let fact = |name: &str, value: &str| Fact {
        name: name.into(),
        value: value.into(),
        source: "x".into(),
    };
    a.facts = vec![fact("clocksource.current", "tsc"), fact("binary.path", "/bin/x")];
    let mut b = a.clone();
    a.facts.extend([fact("env.HOME", "/root"), fact("clocksource.read_ns", "25")]);
    b.facts.push(fact("clocksource.read_ns", "29"));
    b.facts.extend([fact("env.HOME", "/root"), fact("env.LD_BIND_NOW", "1")]);
    let found = diff(&Side::of_run(&a), &Side::of_run(&b)).differences;
    assert_eq!(
        (found.len(), found[0].first.as_str(), found[0].second.as_str()),
        (1, "(not set)", "1")
    );
    assert!(found[0].matters);
    b.facts.retain(|fact| fact.name != "clocksource.read_ns");
    b.facts.push(fact("clocksource.read_ns", "612"));
    let found = diff(&Side::of_run(&a), &Side::of_run(&b)).differences;
    assert_eq!((found[0].name.as_str(), found[0].second.as_str()), ("clock-read", "612"));
    let now = checkup("host", Vec::new(), &[("clocksource.current", "hpet")]);
    let found = diff(&Side::of_run(&a), &Side::of_checkup(now, ""));
    assert_eq!(found.differences.len(), 1);
    assert_eq!(found.differences[0].name, "clocksource");
    assert_eq!(found.left_out, ["facts of a process: host now has none"]);
}
