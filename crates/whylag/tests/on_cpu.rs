//! What each thread runs on a CPU, against what it measured itself.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::collections::BTreeMap;
use std::path::Path;

use common::Lab;
use common::programs::program;
use common::values::Values;
use model::{Account, Run};

/// Samples are taken 997 times a second for two seconds, and then 99 times.
const FAST_NS: f64 = 1e9 / 997.0;
const SLOW_NS: f64 = 1e9 / 99.0;

/// Samples, and what they stand for.
#[derive(Clone, Copy, Debug, Default)]
struct Samples {
    n: u64,
    ns: f64,
    /// Of what each stands for.
    squares: f64,
}

impl Samples {
    fn add(self, n: u64, ns: u64) -> Samples {
        let slow = (ns as f64 - n as f64 * FAST_NS) / (SLOW_NS - FAST_NS);
        let slow = slow.clamp(0.0, n as f64);
        let squares = (n as f64 - slow) * FAST_NS.powi(2) + slow * SLOW_NS.powi(2);
        Samples { n: self.n + n, ns: self.ns + ns as f64, squares: self.squares + squares }
    }

    fn and(self, other: Samples) -> Samples {
        let (n, ns) = (self.n + other.n, self.ns + other.ns);
        Samples { n, ns, squares: self.squares + other.squares }
    }
}

/// Samples of a thread in user code, by the innermost function.
fn samples(run: &Run, tid: u32) -> BTreeMap<String, Samples> {
    let mut functions = BTreeMap::<String, Samples>::new();
    let own = run.sums.paths.iter().filter(|path| path.sampled && path.tid == tid);
    for path in own.filter(|path| path.account == Account::User) {
        let stack = &run.stacks[&path.user.expect("a user stack")];
        let function = functions.entry(stack.frames[0].label()).or_default();
        *function = function.add(path.count, path.ns);
    }
    functions
}

/// These samples stand for the share `part` of what `all` stand for, within five standard deviations.
fn assert_fits(one: Samples, all: Samples, part: f64, what: &str) {
    let deviation = (all.squares * part * (1.0 - part)).sqrt() / all.ns;
    let share = one.ns / all.ns;
    let text = format!("{what}: {share}, not {part} with {deviation}; {one:?} of {all:?}");
    println!("{text}");
    assert!((share - part).abs() <= 5.0 * deviation, "{text}");
}

#[test]
fn a_busy_thread_has_the_functions_that_it_spent_its_time_in() {
    let Some(lab) = Lab::new() else { return };
    let recorded = lab.record(&[], [program("busy")]);
    let (run, truth) = (&recorded.run, Values::of(recorded.stdout()));
    let (busy, idle) = (truth.get("busy") as u32, truth.get("idle") as u32);

    let of_busy = samples(run, busy);
    let count = |name: &str| of_busy.get(name).copied().unwrap_or_default();
    let (long, short) = (count("long_part"), count("short_part"));
    let of_both = long.and(short);
    assert!(of_both.n > 200, "{of_busy:?}");
    let (long_ns, short_ns) = (truth.get("long") as f64, truth.get("short") as f64);
    assert_fits(long, of_both, long_ns / (long_ns + short_ns), "long_part");
    assert!(!of_busy.contains_key("seldom"), "that is the other thread: {of_busy:?}");
    let of_idle = samples(run, idle);
    assert!(of_idle.contains_key("seldom") && !of_idle.contains_key("long_part"), "{of_idle:?}");
    // Both together: neither has samples of the other.
    let seldom = of_idle["seldom"];
    let part = truth.get("seldom") as f64 / (truth.get("seldom") as f64 + long_ns + short_ns);
    assert_fits(seldom, seldom.and(of_both), part, "seldom");

    explained(&lab, busy, idle);
    folded(&lab, run, busy);
    let refused = lab.verb("export").args(["--format", "csv", "--on-cpu"]).output().unwrap();
    assert!(!refused.status.success());
}

/// Without being asked, explain names the functions of the thread that is always busy, and of no
/// other; show does so, too.
fn explained(lab: &Lab, busy: u32, idle: u32) {
    let on_cpu = &lab.explain()["on_cpu"];
    assert_eq!(on_cpu.as_array().unwrap().len(), 1, "{on_cpu}");
    assert_eq!(on_cpu[0]["tid"], busy);
    assert_eq!(on_cpu[0]["comm"], "all-the-time");
    let path: Vec<&str> = on_cpu[0]["functions"][0]["path"]
        .as_array()
        .unwrap()
        .iter()
        .map(|name| name.as_str().unwrap())
        .collect();
    assert_eq!(path[..3], ["long_part", "measured", "all_the_time"]);
    let text = |verb: &str, options: &[&str]| String::from_utf8(lab.answer(verb, options)).unwrap();
    for (verb, options) in [("explain", vec![]), ("show", vec![])] {
        let text = text(verb, &options);
        assert!(text.contains("all-the-time (tid ") && text.contains("long_part <- "), "{text}");
    }
    let of_idle = text("explain", &["--thread", &idle.to_string()]);
    assert!(of_idle.contains("seldom <- ") && !of_idle.contains("long_part"), "{of_idle}");
}

fn folded(lab: &Lab, run: &Run, busy: u32) {
    let tid = busy.to_string();
    let options = ["--format", "folded", "--on-cpu", "--thread", &tid];
    let folded = String::from_utf8(lab.answer("export", &options)).unwrap();
    let lines = folded.lines().filter_map(|line| line.rsplit_once(' '));
    let us: u64 = lines.map(|(_, us)| us.parse::<u64>().unwrap()).sum();
    let own = run.sums.paths.iter().filter(|path| path.sampled && path.tid == busy);
    let ns: u64 = own.filter(|path| path.account.is_running()).map(|path| path.ns).sum();
    assert!(us.abs_diff(ns / 1_000) <= folded.lines().count() as u64, "{us} us, {ns} ns");
    assert!(folded.contains(";all_the_time;measured;long_part "), "{folded}");
    assert!(folded.lines().all(|line| line.contains(&format!(";all-the-time (tid {tid});"))));
    let options = ["--format", "svg", "--on-cpu", "--thread", &tid];
    let svg = String::from_utf8(lab.answer("export", &options)).unwrap();
    assert!(svg.contains("long_part") && svg.contains("On-CPU time of run"), "{svg}");
}

/// Python as Debian builds it has no frame pointers; /usr/bin/python3 is a link to it. Its stacks
/// have the functions that lead to `main`, by the name of the file itself.
#[test]
fn a_busy_program_without_frame_pointers_has_its_callers() {
    let Some(lab) = Lab::new() else { return };
    let python = Path::new("/usr/bin/python3");
    let Ok(file) = python.canonicalize() else {
        return eprintln!("not judged: there is no {}", python.display());
    };
    let script = "sum(hash((n, n)) for n in range(4000000))";
    let run = lab.record(&[], [python.as_os_str(), "-c".as_ref(), script.as_ref()]).run;
    let user = run.sums.paths.iter().filter(|path| path.sampled && path.account == Account::User);
    let (mut all, mut whole) = (0, 0);
    for path in user {
        let stack = &run.stacks[&path.user.expect("a user stack")];
        let innermost = Path::new(&stack.frames[0].module);
        all += path.count;
        let begins = stack.frames.iter().any(|f| f.symbol.as_deref() == Some("Py_BytesMain"));
        if begins && innermost == file {
            assert!(stack.copies > 0, "{stack:?}");
            whole += path.count;
        }
    }
    println!("{whole} of {all} samples have all that called");
    // At most 128 of the 997 samples a second are copied, fewer where intervals are; how many others
    // share their stacks is chance: each line of Python that runs has one of its own.
    assert!(all > 200 && whole >= 10, "{whole} of {all}");
}
