//! Python functions in stacks, against what the interpreter itself says which run.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use common::programs::program_built;
use common::{Lab, lost};
use model::{Account, Blocked, Frame, Run, Stack};

/// Name, file and line.
type Call = (String, String, u32);

fn program() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/python_calls.py")
}

/// What the program printed of its own calls, each kind once.
fn truth(output: &str) -> BTreeMap<String, BTreeSet<Vec<Call>>> {
    let mut truth: BTreeMap<String, BTreeSet<Vec<Call>>> = BTreeMap::new();
    for line in output.lines() {
        let (kind, calls): (String, Vec<Call>) = serde_json::from_str(line).unwrap();
        truth.entry(kind).or_default().insert(calls);
    }
    truth
}

fn call(frame: &Frame) -> Option<Call> {
    let line = frame.source?.line.unwrap_or(0);
    Some((frame.symbol.clone()?, frame.module.clone(), line))
}

/// The Python functions of a stack, innermost first.
fn calls(stack: &Stack) -> Vec<Call> {
    stack.frames.iter().filter_map(call).collect()
}

/// The stacks of sleeps.
fn of_sleeps(run: &Run) -> Vec<&Stack> {
    let asleep = Account::Blocked(Blocked::TimerSleep);
    let sleeps = run.outliers.iter().filter(|outlier| outlier.breakdown.get(asleep) > 0);
    sleeps.filter_map(|outlier| run.stacks.get(&outlier.user_stack?)).collect()
}

/// Records the program, run by this interpreter, and compares.
fn compare(lab: &Lab, python: &str) {
    let recorded = lab.record(&["--threshold", "1ms", "--follow"], [Path::new(python), &program()]);
    let (run, truth) = (&recorded.run, truth(recorded.stdout()));
    let sleeps = of_sleeps(run);
    let with: Vec<(Vec<Call>, &Stack)> =
        sleeps.iter().map(|stack| (calls(stack), *stack)).collect();
    for (kind, all) in truth.iter().filter(|(kind, _)| *kind != "spin") {
        for expected in all {
            // What is deeper than is kept has its innermost functions.
            let kept = expected.len().min(128);
            let same = with.iter().filter(|(calls, _)| *calls == expected[..kept]);
            let same: Vec<_> = same.map(|(_, stack)| *stack).collect();
            let first = with.iter().find(|(calls, _)| calls.first() == expected.first());
            let first = first.map(|(calls, _)| calls);
            assert!(same.len() >= 8, "{python}, {kind}: {}, {expected:?}\n{first:?}", same.len());
            if kept < expected.len() {
                assert!(same.iter().all(|stack| stack.truncated), "{kind}");
            }
        }
    }
    // No stack has a call that the program never made.
    let innermost: BTreeSet<&Call> = truth.values().flatten().map(|calls| &calls[0]).collect();
    let others = with.iter().filter(|(calls, _)| !calls.is_empty());
    let others = others.filter(|(calls, _)| !innermost.contains(&calls[0]) && calls[0].0 != "main");
    assert_eq!(others.count(), 0);
    the_loop_is_replaced(&with);
    samples_of_the_loop_are_in(run, &truth["spin"]);
}

/// Where a stack was unwound to its end, Python functions are in the place of the interpreter's
/// loop, and what C called is between them.
fn the_loop_is_replaced(with: &[(Vec<Call>, &Stack)]) {
    let whole: Vec<_> =
        with.iter().filter(|(calls, stack)| !calls.is_empty() && !stack.truncated).collect();
    assert!(whole.len() > 50, "{} of {}", whole.len(), with.len());
    for (_, stack) in &whole {
        let names: Vec<String> = stack.frames.iter().map(Frame::label).collect();
        assert!(!names.iter().any(|name| name.contains("EvalFrameDefault")), "{names:#?}");
        let place = stack.frames.iter().position(|frame| frame.source.is_some()).unwrap();
        assert!(place > 0, "C that sleeps is inside of Python: {names:#?}");
        assert!(stack.frames.last().unwrap().source.is_none(), "{names:#?}");
    }
    let back = whole.iter().filter(|(calls, _)| calls[0].0 == "sleepy_key");
    let mut seen = 0;
    for (_, stack) in back {
        let at = |name: &str| {
            stack.frames.iter().position(|frame| frame.symbol.as_deref() == Some(name)).unwrap()
        };
        let between = &stack.frames[at("sleepy_key") + 1..at("calls_back")];
        assert!(!between.is_empty() && between.iter().all(|frame| frame.source.is_none()));
        seen += 1;
    }
    assert!(seen >= 8, "{seen}");
}

/// The function that computes has nearly all samples, in its own lines.
fn samples_of_the_loop_are_in(run: &Run, spin: &BTreeSet<Vec<Call>>) {
    let (name, file, last) = &spin.first().unwrap()[0];
    let (mut all, mut own) = (0, 0);
    for path in run.sums.paths.iter().filter(|path| path.sampled) {
        let Some(stack) = path.user.and_then(|user| run.stacks.get(&user)) else { continue };
        let calls = calls(stack);
        if !calls.iter().any(|call| call.0 == *name) {
            continue;
        }
        all += path.count;
        let (innermost, of, line) = &calls[0];
        own +=
            u64::from(innermost == name && of == file && (1..=*last).contains(line)) * path.count;
        let outermost = &calls.last().unwrap().0;
        assert!(stack.truncated || outermost == "<module>", "{calls:?}");
    }
    assert!(all > 30 && own * 10 >= all * 9, "{own} of {all}");
}

/// The interpreter by a name (which can be that of a script), if it is here and of a version that is
/// known.
fn known(name: &str) -> Option<String> {
    let mut command = Command::new(name);
    let print = "import os, sys; print(sys.version_info[1], os.path.realpath(sys.executable))";
    let Ok(Output { status, stdout, .. }) = command.args(["-c", print]).output() else {
        eprintln!("not judged: there is no {name}");
        return None;
    };
    let text = String::from_utf8_lossy(&stdout).into_owned();
    let (minor, path) = text.trim().split_once(' ').filter(|_| status.success())?;
    let is_known = ["11", "12", "13", "14", "15"].contains(&minor);
    if !is_known {
        eprintln!("not judged: {name} is 3.{minor}");
    }
    is_known.then(|| path.to_owned())
}

#[test]
fn functions_are_those_that_the_interpreter_says() {
    let Some(lab) = Lab::new() else { return };
    if let Some(python) = known("/usr/bin/python3") {
        compare(&lab, &python);
    }
}

#[test]
fn functions_of_other_versions_are_too() {
    let Some(lab) = Lab::new() else { return };
    for name in ["python3.11", "python3.12", "python3.13", "python3.14", "python3.15"] {
        if let Some(python) = known(name) {
            compare(&lab, &python);
        }
    }
}

#[test]
fn a_version_that_is_not_known_is_said_once() {
    let Some(lab) = Lab::beside_others() else { return };
    let program = program_built("newer_python", &["-rdynamic"]);
    let twice = format!("{0} & {0}; wait", program.display());
    let run = lab.record(&["--follow"], ["sh", "-c", &twice]).run;
    let facts = run.facts.iter().filter(|fact| fact.name == "python.not_read");
    let facts: Vec<&str> = facts.map(|fact| fact.value.as_str()).collect();
    assert!(facts.len() == 1 && facts[0].starts_with("CPython 3.99: "), "{facts:?}");
}

/// A process whose interpreter is none: what it says rightly is shown, the rest costs and names
/// nothing.
#[test]
fn an_interpreter_that_lies_is_harmless() {
    let Some(lab) = Lab::beside_others() else { return };
    let program = program_built("fake_python", &["-rdynamic"]);
    let recorded = lab.record(&["--threshold", "1ms"], [program]);
    let run = &recorded.run;
    assert!(recorded.stdout().contains("done"), "{}", recorded.stdout());
    let stacks: Vec<Vec<Call>> = of_sleeps(run).into_iter().map(calls).collect();
    let named =
        |name: &str| stacks.iter().filter(|calls| calls.iter().any(|c| c.0 == name)).count();
    let honest = [("Outer.call", "/srv/app.py", 21)];
    let honest = honest.map(|(name, file, line)| (name.to_owned(), file.to_owned(), line));
    assert!(stacks.iter().filter(|calls| calls.ends_with(&honest)).count() >= 4);
    assert_eq!(named("never_shown"), 0);
    assert!(named("odd_number") >= 30 && named("even_numbr") >= 30);
    for calls in &stacks {
        for (name, file, _) in calls {
            assert_eq!(name == "odd_number", file == "/oddly.py", "{calls:?}");
            assert!(!name.contains('\u{1b}') && !file.contains('\u{7}'), "{calls:?}");
        }
    }
    let lost = lost(run);
    let circles = lost.get("Python stacks (frames in a circle)").copied().unwrap_or_default();
    assert!(circles >= 12, "{lost:?}");
    let names = lost.get("names of Python functions (too many new ones)").copied();
    assert!(names.is_some_and(|names| names > 10_000), "{lost:?}");
    let functions: BTreeSet<&str> = run
        .stacks
        .values()
        .flat_map(|stack| &stack.frames)
        .filter_map(|frame| frame.symbol.as_deref().filter(|name| name.starts_with("flood")))
        .collect();
    assert!(functions.len() < 3_000, "{}", functions.len());
}
