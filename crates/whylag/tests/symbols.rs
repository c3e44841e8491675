//! Names of functions in stacks, also of a process that was gone before anybody looked.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::collections::HashSet;
use std::path::Path;

use common::Lab;
use common::programs::program;
use model::{Account, Blocked, Outlier, Run, Space, Stack};

/// The longest sleep of a run, and its stack on one side.
fn longest_sleep(run: &Run, space: Space) -> (&Outlier, &Stack) {
    let sleeps = |outlier: &&Outlier| outlier.blocked == Some(Blocked::TimerSleep);
    let outlier = run.outliers.iter().find(sleeps).expect("no outlier");
    let id = if space == Space::User { outlier.user_stack } else { outlier.kernel_stack };
    (outlier, &run.stacks[&id.expect("no stack")])
}

fn symbols(stack: &Stack) -> Vec<&str> {
    stack.frames.iter().filter_map(|frame| frame.symbol.as_deref()).collect()
}

#[test]
fn a_short_life_is_long_enough_for_names() {
    let Some(lab) = Lab::new() else { return };
    let jit = program("jit");
    let recorded = lab.record(&[], [&jit]);
    std::fs::remove_file(recorded.stdout().trim()).unwrap();
    let (outlier, user) = longest_sleep(&recorded.run, Space::User);
    let slept = outlier.breakdown.get(Account::Blocked(Blocked::TimerSleep));
    assert!((30_000_000..60_000_000).contains(&slept), "{outlier:?}");

    let names = symbols(user);
    assert!(names[0].contains("nanosleep"), "{names:?}");
    // The C library has no frame pointers, and the code made at run time nothing else.
    let made = names.iter().position(|name| *name == "made_at_run_time");
    let made = made.unwrap_or_else(|| panic!("{names:?}"));
    assert_eq!(names[made - 1..made + 2], ["nap", "made_at_run_time", "main"], "{names:?}");
    let main = &user.frames[made + 1];
    assert_eq!(Path::new(&main.module), jit.canonicalize().unwrap());
    assert!(main.offset > main.symbol_offset && main.symbol_offset > 0);
    assert_eq!(user.frames[made].module, "[jit]");

    let (_, kernel) = longest_sleep(&recorded.run, Space::Kernel);
    let names = symbols(kernel);
    assert!(names.iter().any(|name| name.contains("nanosleep")), "{names:?}");
    assert_eq!(names.len(), kernel.frames.len(), "all frames of the kernel have names");
    assert!(names.iter().all(|name| !name.starts_with("bpf_")), "{names:?}");
}

#[test]
fn a_stripped_program_still_shows_module_and_offset() {
    let Some(lab) = Lab::new() else { return };
    let stripped = lab.folder.path().join("stripped");
    let mut strip = std::process::Command::new("strip");
    let done = strip.arg("-o").arg(&stripped).arg(program("jit")).status().unwrap();
    assert!(done.success());
    let recorded = lab.record(&[], [&stripped]);
    std::fs::remove_file(recorded.stdout().trim()).unwrap();
    let (_, user) = longest_sleep(&recorded.run, Space::User);
    let frame = user.frames.iter().find(|frame| Path::new(&frame.module) == stripped).unwrap();
    assert!(frame.symbol.is_none() && frame.offset > 0 && frame.unknown_because.is_some());
    assert!(frame.to_string().starts_with("stripped+0x"), "{frame}");
}

/// The same with its symbols where distributions have them: compressed in itself (Fedora), or in the
/// file that it names, in its folder .debug (as gdb finds it).
#[test]
fn a_stripped_program_has_the_symbols_that_it_has_packed_or_names() {
    let Some(lab) = Lab::new() else { return };
    let folder = lab.folder.path();
    let (debug, packed) = (folder.join("symbols"), folder.join("symbols.xz"));
    let run = |program: &str, arguments: &[&std::ffi::OsStr]| {
        assert!(std::process::Command::new(program).args(arguments).status().unwrap().success());
    };
    let jit = program("jit");
    run("objcopy", &["--only-keep-debug".as_ref(), jit.as_ref(), debug.as_ref()]);
    run("xz", &["-k".as_ref(), debug.as_ref()]);
    let packs = format!(".gnu_debugdata={}", packed.display());
    let names = format!("--add-gnu-debuglink={}", debug.display());
    for (name, options) in [("packs", ["--add-section", &packs]), ("names", ["-p", &names])] {
        let stripped = folder.join(name);
        let [first, second] = options.map(std::ffi::OsStr::new);
        run("objcopy", &["--strip-all".as_ref(), first, second, jit.as_ref(), stripped.as_ref()]);
        if name == "names" {
            std::fs::create_dir(folder.join(".debug")).unwrap();
            std::fs::rename(&debug, folder.join(".debug/symbols")).unwrap();
        }
        let recorded = lab.record(&[], [&stripped]);
        std::fs::remove_file(recorded.stdout().trim()).unwrap();
        let (_, user) = longest_sleep(&recorded.run, Space::User);
        let frames: Vec<_> = user.frames.iter().collect();
        let own = frames.iter().filter(|frame| Path::new(&frame.module) == stripped);
        let own: Vec<_> = own.filter_map(|frame| frame.symbol.as_deref()).collect();
        assert!(own.contains(&"nap") && own.contains(&"main"), "{name}: {frames:?}");
    }
}

/// What is mapped has the name of the file, by whatever links it was called.
#[test]
fn a_program_behind_links_has_its_own_name() {
    let Some(lab) = Lab::new() else { return };
    let [first, second] = ["first", "second"].map(|name| lab.folder.path().join(name));
    let jit = program("jit").canonicalize().unwrap();
    std::os::unix::fs::symlink(&jit, &first).unwrap();
    std::os::unix::fs::symlink(&first, &second).unwrap();
    let recorded = lab.record(&[], [&second]);
    std::fs::remove_file(recorded.stdout().trim()).unwrap();
    let (_, user) = longest_sleep(&recorded.run, Space::User);
    let main = user.frames.iter().find(|frame| frame.symbol.as_deref() == Some("main")).unwrap();
    assert_eq!(Path::new(&main.module), jit);
    let python = Path::new("/usr/bin/python3");
    let Ok(file) = python.canonicalize() else {
        return eprintln!("not judged: there is no {}", python.display());
    };
    let script = "import time; time.sleep(0.1)";
    let run = lab.record(&[], [python.as_os_str(), "-c".as_ref(), script.as_ref()]).run;
    let (_, user) = longest_sleep(&run, Space::User);
    let main = user.frames.iter().find(|f| f.symbol.as_deref() == Some("Py_BytesMain"));
    assert_eq!(main.map(|frame| Path::new(&frame.module)), Some(file.as_path()), "{user:?}");
}

/// Sleeps of 25 ms or more, each with the functions of its user stack, from the innermost on.
fn long_sleeps(run: &Run) -> Vec<Vec<&str>> {
    let long = run.outliers.iter().filter(|outlier| outlier.duration_ns >= 25_000_000);
    let stack = |outlier: &Outlier| outlier.user_stack.and_then(|id| run.stacks.get(&id));
    long.map(|outlier| stack(outlier).map(symbols).unwrap_or_default()).collect()
}

/// Without recorded calls a thread's first step after a long sleep is the next, short one, in another function.
#[test]
fn a_long_sleep_has_its_own_stack_where_calls_are_not_recorded() {
    let Some(lab) = Lab::new() else { return };
    let run = lab.record(&["--cheap"], [program("moves_on")]).run;
    let sleeps = long_sleeps(&run);
    assert!(sleeps.len() >= 20, "{sleeps:?}");
    assert!(!sleeps.iter().any(|names| names.contains(&"sleeps_briefly")), "{sleeps:?}");
    let named = sleeps.iter().filter(|names| names.contains(&"sleeps_long")).count();
    assert!(named * 10 >= sleeps.len() * 9, "{named} of {}", sleeps.len());
}

/// So many brief sleeps come before the next long one that stacks are no longer walked by then.
#[test]
fn a_long_sleep_without_a_walk_has_its_innermost_function_alone() {
    let Some(lab) = Lab::new() else { return };
    let run = lab.record(&["--cheap"], [program("moves_on"), "300".into()]).run;
    let sleeps = long_sleeps(&run);
    assert!(sleeps.len() >= 20, "{sleeps:?}");
    assert!(!sleeps.iter().any(|names| names.contains(&"sleeps_briefly")), "{sleeps:?}");
    let alone = sleeps.iter().filter(|names| matches!(names[..], [one] if one.contains("sleep")));
    assert!(alone.count() * 2 >= sleeps.len(), "{sleeps:?}");
}

/// The kernel is asked for names by a program of ours; its own list has the same.
#[test]
fn functions_of_the_kernel_are_named_as_in_kallsyms() {
    let Some(lab) = Lab::new() else { return };
    let list = std::fs::read_to_string("/proc/kallsyms").unwrap();
    let symbols: HashSet<(u64, &str)> = list.lines().filter_map(symbol_of_kallsyms).collect();
    if !symbols.iter().any(|(address, _)| *address != 0) {
        println!("skipped: /proc/kallsyms shows no addresses");
        return;
    }
    // Waits of three kinds at least: for a child, for a pipe and for a timer.
    let run =
        lab.record(&["--follow"], ["sh", "-c", "sleep 0.1 | cat; find /proc/self >/dev/null"]).run;
    let kernel = run.stacks.values().filter(|stack| stack.space == Space::Kernel);
    let frames: Vec<_> = kernel.flat_map(|stack| &stack.frames).collect();
    assert!(frames.len() > 10, "{frames:?}");
    for frame in frames {
        let name = frame.symbol.as_deref().unwrap_or_else(|| panic!("{frame:?}"));
        // BPF programs, our own among them, are in the list as long as they are loaded.
        if name.starts_with("bpf_prog_") {
            continue;
        }
        let begin = frame.address - frame.symbol_offset;
        assert!(symbols.contains(&(begin, name)), "{begin:#x} {frame:?}");
    }
}

/// The address and the name in a line of the list.
fn symbol_of_kallsyms(line: &str) -> Option<(u64, &str)> {
    let mut words = line.split_ascii_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok()?;
    Some((address, words.nth(1)?))
}
