use super::*;
use crate::testing::RunBuilder;
use crate::testing::benchmarks::fact;

fn check(id: &str, verdict: CheckResult, fact: &str, compared: Compared) -> Check {
    Check {
        id: id.to_owned(),
        subject: Subject::Time,
        verdict,
        fact: fact.to_owned(),
        detail: String::new(),
        why: String::new(),
        advice: String::new(),
        source: "/sys".to_owned(),
        compared,
    }
}

fn checkup(host: &str, checks: Vec<Check>, facts: &[(&str, &str)]) -> Checkup {
    Checkup {
        version: "1".to_owned(),
        host: host.to_owned(),
        taken_unix_ns: 0,
        pid: None,
        checks,
        facts: facts.iter().map(|(name, value)| fact(name, value)).collect(),
        unbound: Vec::new(),
    }
}

#[test]
fn only_what_differs_is_there_and_the_clock_comes_first() {
    let measure = |ns: f64| {
        check("clock-read", CheckResult::Good, &format!("{ns} ns"), Compared::Measure(ns))
    };
    let steal = |verdict, fact| check("steal", verdict, fact, Compared::Passing);
    let left = vec![
        check("thp", CheckResult::Good, "madvise", Compared::Setting),
        check("clocksource", CheckResult::Good, "tsc", Compared::Setting),
        measure(25.0),
        steal(CheckResult::Good, "0.01 %"),
        check("smt", CheckResult::Unknown, "no such file", Compared::Setting),
    ];
    let right = vec![
        check("clocksource", CheckResult::Attention, "kvm-clock", Compared::Setting),
        measure(33.0),
        steal(CheckResult::Good, "0.03 %"),
        check("smt", CheckResult::Attention, "in use", Compared::Setting),
        check("thp", CheckResult::Attention, "always", Compared::Setting),
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
    let found = compare_checkups(&left, &right);
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
    assert_eq!(found.names, ["left (a.json)", "right now"]);
    assert_eq!(found.compared, 7);
    assert_eq!(compare_checkups(&left, &left).differences, []);
}

#[test]
fn a_slow_clock_is_seen_in_what_a_read_costs() {
    let side = |ns: f64, verdict| {
        let checks = vec![check("clock-read", verdict, &format!("{ns} ns"), Compared::Measure(ns))];
        Side::of_checkup(checkup("x", checks, &[]), "")
    };
    let found = compare_checkups(&side(25.0, CheckResult::Good), &side(612.0, CheckResult::Bad));
    assert_eq!(found.differences[0].first, "25 ns");
    assert_eq!(
        compare_checkups(&side(25.0, CheckResult::Good), &side(30.0, CheckResult::Good))
            .differences,
        []
    );
}

#[test]
fn a_run_is_compared_by_its_facts() {
    let mut a = RunBuilder::new().build();
    a.facts = vec![fact("clocksource.current", "tsc"), fact("binary.path", "/bin/x")];
    let mut b = a.clone();
    a.facts.extend([fact("env.HOME", "/root"), fact("clocksource.read_ns", "25")]);
    b.facts.push(fact("clocksource.read_ns", "29"));
    b.facts.extend([fact("env.HOME", "/root"), fact("env.LD_BIND_NOW", "1")]);
    let found = compare_checkups(&Side::of_run(&a), &Side::of_run(&b)).differences;
    assert_eq!(
        (found.len(), found[0].first.as_str(), found[0].second.as_str()),
        (1, "(not set)", "1")
    );
    assert!(found[0].matters);
    b.facts.retain(|fact| fact.name != "clocksource.read_ns");
    b.facts.push(fact("clocksource.read_ns", "612"));
    let found = compare_checkups(&Side::of_run(&a), &Side::of_run(&b)).differences;
    assert_eq!((found[0].name.as_str(), found[0].second.as_str()), ("clock-read", "612"));
    let now = checkup("host", Vec::new(), &[("clocksource.current", "hpet")]);
    let found = compare_checkups(&Side::of_run(&a), &Side::of_checkup(now, ""));
    assert_eq!(found.differences.len(), 1);
    assert_eq!(found.differences[0].name, "clocksource");
    assert_eq!(found.left_out, ["facts of a process: host now has none"]);
}
