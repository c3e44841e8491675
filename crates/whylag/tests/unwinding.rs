//! Stacks of code without frame pointers: all that called, in order.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use common::programs::{program, program_of_musl};
use common::{Helper, Lab};
use model::{Account, Blocked, Frame, Run, Stack};

/// User stacks of the intervals that waited so.
fn stacks(run: &Run, blocked: Blocked) -> Vec<&Stack> {
    let waits = run.outliers.iter().filter(|o| o.breakdown.get(Account::Blocked(blocked)) > 0);
    waits.filter_map(|outlier| run.stacks.get(&outlier.user_stack?)).collect()
}

fn names(stack: &Stack) -> Vec<&str> {
    stack.frames.iter().filter_map(|frame| frame.symbol.as_deref()).collect()
}

#[test]
fn twelve_functions_without_frame_pointers_are_all_there_in_order() {
    twelve_functions_are_there_in(&program("deep_calls"), true);
}

/// musl is built without tables to unwind by, for Alpine as for Debian, and what Debian's musl-gcc links
/// has none that can be searched.
#[test]
#[cfg(target_arch = "x86_64")]
fn so_are_those_of_a_program_and_a_library_without_tables() {
    // What calls main() never returns, so where it would return to is not known.
    twelve_functions_are_there_in(&program_of_musl("deep_calls"), false);
}

fn twelve_functions_are_there_in(program: &Path, to_the_end: bool) {
    let Some(lab) = Lab::new() else { return };
    let run = lab.record(&["--threshold", "1ms"], [program]).run;
    let expected: Vec<String> =
        (1..=12).rev().map(|n| format!("f{n}")).chain(["main".to_owned()]).collect();
    for blocked in [Blocked::Futex, Blocked::PipeRead, Blocked::TimerSleep] {
        let stacks = stacks(&run, blocked);
        // The thread that writes, and the end of the program, wait, too.
        let deep = stacks.iter().filter(|stack| names(stack).contains(&"f1"));
        let deep: Vec<_> = deep.collect();
        // Each waits ten times; a byte may be there already when a read comes late.
        assert!(deep.len() >= 8, "{blocked:?}: {} of {}", deep.len(), stacks.len());
        for stack in deep {
            let names = names(stack);
            let from = names.iter().position(|name| *name == "f12").unwrap();
            assert_eq!(names[from..from + 13], expected, "{blocked:?}");
            assert!(names[..from].contains(&"wait_here"), "{names:?}");
            assert!(stack.truncated != to_the_end && stack.copies >= 1, "{stack:?}");
        }
    }
    let cost = &run.cost;
    assert!(cost.stack_copies >= 24, "{}", cost.stack_copies);
    assert_eq!(cost.stacks_not_copied, 0);
    let different: BTreeSet<_> = run.outliers.iter().filter_map(|o| o.user_stack).collect();
    assert!(different.len() < 30, "each stack is kept once: {}", different.len());
}

/// Nobody has called what the handler returns to, nor what the signal interrupted: here the first
/// instruction of a function, behind another one.
#[test]
#[cfg(target_arch = "x86_64")]
fn what_a_signal_interrupted_is_the_instruction_itself() {
    let Some(lab) = Lab::beside_others() else { return };
    let run = lab.record(&["--threshold", "1ms"], [program("interrupted")]).run;
    let stacks = stacks(&run, Blocked::TimerSleep);
    assert!(stacks.len() > 10, "{}", stacks.len());
    for stack in stacks {
        let frames = &stack.frames;
        let name = |frame: &Frame| frame.symbol.clone().unwrap_or_default();
        let names: Vec<String> = frames.iter().map(name).collect();
        let handler = names.iter().position(|name| name == "handler").expect("a handler");
        let [back, interrupted, caller, main] = &frames[handler + 1..handler + 5] else {
            panic!("{names:?}")
        };
        // The C library's own, which has a name if the library has its symbols.
        let back = (back.symbol.as_deref().unwrap_or("__restore_rt"), back.symbol_offset);
        assert_eq!(back, ("__restore_rt", 0), "{names:?}");
        assert_eq!((name(interrupted).as_str(), interrupted.symbol_offset), ("interrupted", 0));
        assert!(interrupted.after.is_none());
        assert_eq!((name(caller).as_str(), name(main).as_str()), ("caller", "main"));
        assert!(caller.symbol_offset > 0);
    }
}

/// A program of the distribution, in the background; nothing if it is not installed.
fn started(program: &str, arguments: &[&str], lab: &Lab) -> Option<Helper> {
    if !Path::new(program).exists() {
        eprintln!("not judged: there is no {program}");
        return None;
    }
    let mut command = Command::new(program);
    command.args(arguments).current_dir(lab.folder.path()).stdout(Stdio::null());
    Some(Helper::spawn(&mut command))
}

/// Addresses of the frames of a process's first thread, as gdb unwinds them.
fn by_gdb(pid: &str) -> Vec<u64> {
    let mut gdb = Command::new("gdb");
    // With symbols of another file it would show inlined functions, too.
    gdb.args(["-nx", "-batch", "-iex", "set debug-file-directory /nonexistent"]);
    gdb.args(["-iex", "set backtrace past-main on"]);
    gdb.args(["-p", pid, "-ex", "thread 1", "-ex", "bt -200"]);
    let output = gdb.env("DEBUGINFOD_URLS", "").stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let after = text.split_once("[Switching to thread 1").expect(&text).1;
    let frames = after.lines().filter(|line| line.starts_with('#'));
    let mut addresses: Vec<(u64, u64)> = frames
        .map(|line| {
            let mut words = line.trim_start_matches('#').split_whitespace();
            let number = words.next().unwrap().parse().unwrap();
            let address = words.next().and_then(|word| word.strip_prefix("0x")).expect(line);
            (number, u64::from_str_radix(address, 16).unwrap())
        })
        .collect();
    // Frame 0 is shown when the thread is chosen, too.
    addresses.sort_unstable();
    addresses.dedup();
    addresses.into_iter().map(|(_, address)| address).collect()
}

/// Addresses of a stack; `None` where Python functions are in the place of the loop that runs them.
fn native(stack: &Stack) -> Vec<Option<u64>> {
    let mut all: Vec<_> =
        stack.frames.iter().map(|frame| frame.source.is_none().then_some(frame.address)).collect();
    all.dedup_by(|one, other| one.is_none() && other.is_none());
    all
}

/// The stacks of programs as the distribution builds them are those that gdb finds, frame by frame.
#[test]
fn stacks_of_the_distributions_programs_are_those_of_gdb() {
    let Some(lab) = Lab::new() else { return };
    if !Path::new("/usr/bin/gdb").exists() {
        return eprintln!("not judged: there is no gdb");
    }
    let script = "import time\ndef a(n):\n  if n: a(n - 1)\n  while True: time.sleep(0.02)\na(3)";
    let programs: [(&str, &[&str], Blocked); 2] = [
        ("/usr/bin/python3", &["-c", script], Blocked::TimerSleep),
        (
            "/usr/bin/redis-server",
            &["--port", "0", "--unixsocket", "redis", "--save", ""],
            Blocked::Poll,
        ),
    ];
    for (program, arguments, blocked) in programs {
        let Some(running) = started(program, arguments, &lab) else { continue };
        std::thread::sleep(Duration::from_millis(500));
        let pid = running.pid();
        let run = lab.record_target(&["-p", &pid, "--time", "2s", "--threshold", "5ms"]).run;
        let expected = by_gdb(&pid);
        assert!(expected.len() > 3, "{program}: {expected:x?}");
        let main: u32 = pid.parse().unwrap();
        let waits = run.outliers.iter().filter(|outlier| outlier.tid == main);
        let waits = waits.filter(|o| o.breakdown.get(Account::Blocked(blocked)) > 0);
        let stacks: Vec<_> = waits.map(|o| &run.stacks[&o.user_stack.unwrap()]).collect();
        assert!(stacks.len() > 5, "{program}: {} stacks", stacks.len());
        let mut with_python = 0;
        for stack in &stacks {
            let found = native(stack);
            let is_same =
                |(found, by_gdb): (&Option<u64>, &u64)| found.is_none_or(|f| f == *by_gdb);
            let are_same =
                found.len() == expected.len() && found.iter().zip(&expected).all(is_same);
            assert!(are_same, "{program}: {found:x?}\n{expected:x?}");
            with_python += usize::from(found.contains(&None));
            assert!(!stack.truncated && stack.copies > 0, "{program}");
        }
        // The first stacks may come before the interpreter is found in the process.
        match program.contains("python") {
            true => assert!(with_python * 2 > stacks.len(), "{with_python} of {}", stacks.len()),
            false => assert_eq!(with_python, 0, "{program}"),
        }
        println!("{program}: {} frames as gdb has them", expected.len());
    }
}

/// What is more than that is counted, and has no frames that only some copies have.
#[test]
fn no_more_than_256_copies_are_made_in_a_second() {
    let Some(lab) = Lab::new() else { return };
    let run = lab.record(&["--threshold", "50us"], [program("many_waits")]).run;
    let seconds = run.length_ns() as f64 / 1e9;
    let (made, not) = (run.cost.stack_copies as f64, run.cost.stacks_not_copied);
    assert!(made <= 256.0 * (seconds + 0.2), "{made} copies in {seconds} s");
    assert!(made >= 16.0 && made as u64 + not >= 2_000, "{made} made, {not} not");
    let whole = run.stacks.values().filter(|stack| !stack.truncated && stack.copies > 0);
    let whole: Vec<_> = whole.map(names).collect();
    for function in ["often", "seldom"] {
        assert!(whole.iter().any(|names| names.contains(&function)), "{function}: {whole:?}");
    }
    // What was not copied has what all copies of it share.
    let waits = run.sums.stack_sums.iter().filter_map(|sum| run.stacks.get(&sum.user?));
    let short: Vec<_> = waits.filter(|stack| stack.copies > 8 && stack.truncated).collect();
    assert!(!short.is_empty());
    for stack in short {
        assert_eq!(names(stack).last(), Some(&"moment"), "{stack:?}");
    }
}
