//! Facts against what other programs say of the same host and processes.

#![allow(clippy::unwrap_used)]

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use inspect::fingerprint;
use model::Fact;

fn value<'f>(facts: &'f [Fact], name: &str) -> &'f str {
    let fact = facts.iter().find(|fact| fact.name == name);
    &fact.unwrap_or_else(|| panic!("no fact {name}")).value
}

/// What a command prints, without white space around it.
fn printed(command: &str) -> String {
    let output = Command::new("sh").args(["-c", command]).output().unwrap();
    assert!(output.status.success(), "{command}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn variables(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
    pairs.iter().map(|(name, value)| (name.into(), value.into())).collect()
}

/// A child that is ended with the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn the_host_agrees_with_its_own_commands() {
    let facts = fingerprint::host();
    assert_eq!(value(&facts, "kernel.release"), printed("uname -r"));
    assert_eq!(value(&facts, "kernel.version"), printed("uname -v"));
    assert_eq!(value(&facts, "cpu.count"), printed("getconf _NPROCESSORS_CONF"));
    let pages: u64 = printed("getconf _PHYS_PAGES").parse().unwrap();
    let page: u64 = printed("getconf PAGESIZE").parse().unwrap();
    assert_eq!(value(&facts, "memory.total_bytes"), (pages * page).to_string());
    assert_eq!(value(&facts, "sysctl.vm.swappiness"), printed("cat /proc/sys/vm/swappiness"));
    let clocks = value(&facts, "clocksource.available");
    let current = value(&facts, "clocksource.current");
    assert!(clocks.split(' ').any(|clock| clock == current), "{current} in {clocks}");
    let model = printed("sed -n 's/^model name\\t: //p' /proc/cpuinfo | head -n 1");
    if !model.is_empty() {
        assert_eq!(value(&facts, "cpu.model"), model);
    }
}

#[test]
fn a_read_of_the_clock_costs_what_it_costs_this_program() {
    let facts = fingerprint::host();
    let recorded: f64 = value(&facts, "clocksource.read_ns").parse().unwrap();
    // A loop is as long as its reads and no shorter; the fastest of many met no interrupt.
    let fastest = (0..50).map(|_| {
        let began = std::time::Instant::now();
        for _ in 0..1000 {
            std::hint::black_box(std::time::Instant::now());
        }
        began.elapsed().as_nanos() as f64 / 1000.0
    });
    let fastest = fastest.fold(f64::INFINITY, f64::min);
    assert!((0.4..2.5).contains(&(recorded / fastest)), "{recorded} ns, here {fastest} ns");
}

#[test]
fn the_hypervisor_is_lscpus() {
    let vendor = printed("LC_ALL=C lscpu | sed -n 's/^Hypervisor vendor: *//p'");
    let expected = if vendor.is_empty() { "none" } else { &vendor };
    assert_eq!(value(&fingerprint::host(), "cpu.hypervisor"), expected);
}

#[test]
fn preemption_is_one_of_the_kernels_models() {
    let facts = fingerprint::host();
    let model = value(&facts, "kernel.preemption");
    let known = ["none", "voluntary", "lazy", "full", "rt"].contains(&model);
    assert!(known || model.starts_with("unknown: "), "{model}");
    if known && value(&facts, "kernel.version").contains("PREEMPT_RT") {
        assert_eq!(model, "rt");
    }
}

#[test]
fn names_are_unique_and_no_field_is_empty() {
    for facts in
        [fingerprint::host(), fingerprint::command(Path::new("sh"), variables(&[("PATH", "/bin")]))]
    {
        let mut names = HashSet::new();
        for fact in &facts {
            assert!(names.insert(&fact.name), "{} twice", fact.name);
            assert!(!fact.source.is_empty(), "{}", fact.name);
        }
    }
}

#[test]
fn a_command_is_found_in_its_own_path() {
    let environment = variables(&[("PATH", "/nowhere:/bin"), ("B", "2"), ("A", "1")]);
    let facts = fingerprint::command(Path::new("sh"), environment);
    assert_eq!(value(&facts, "binary.path"), printed("readlink -f /bin/sh"));
    let id = inspect::elf::build_id("/bin/sh").unwrap();
    assert_eq!(value(&facts, "binary.build_id"), id);
    assert_eq!(value(&facts, "env.A"), "1");
    let hard = printed("ulimit -H -n");
    assert_eq!(
        value(&facts, "rlimit.nofile"),
        format!("{} soft, {hard} hard", printed("ulimit -n"))
    );

    let facts = fingerprint::command(Path::new("no-such-program"), variables(&[("PATH", "/bin")]));
    assert_eq!(value(&facts, "binary.path"), "unknown: no executable file 'no-such-program'");
}

#[test]
fn a_process_is_described_from_outside() {
    let mut child = Command::new("/bin/sh");
    child.args(["-c", "ulimit -S -n 77; echo; read wait"]).env_clear();
    child.env("LATENCY_MODE", "low").env("LD_BIND_NOW", "1").env("API_TOKEN", "hunter2");
    child.env("DB", "postgres://me:hunter2@db/x");
    let child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut child = Ended(child);
    let mut line = [0];
    std::io::Read::read_exact(child.0.stdout.as_mut().unwrap(), &mut line).unwrap();

    let facts = fingerprint::process(child.0.id());
    assert_eq!(value(&facts, "binary.path"), printed("readlink -f /bin/sh"));
    assert_eq!(value(&facts, "binary.build_id"), inspect::elf::build_id("/bin/sh").unwrap());
    assert!(value(&facts, "rlimit.nofile").starts_with("77 soft, "));
    assert_eq!(value(&facts, "env.LATENCY_MODE"), "low");
    assert_eq!(value(&facts, "env.LD_BIND_NOW"), "1");
    assert_eq!(value(&facts, "env.API_TOKEN"), "***");
    assert_eq!(value(&facts, "env.DB"), "***");
    assert!(facts.iter().all(|fact| !fact.value.contains("hunter2")));
    for line in fs::read_to_string("/proc/self/cgroup").unwrap().lines() {
        let fields: Vec<_> = line.splitn(3, ':').collect();
        let name = if fields[1].is_empty() { "v2" } else { fields[1] };
        for name in name.split(',') {
            assert_eq!(value(&facts, &format!("cgroup.{name}")), fields[2]);
        }
    }
}

/// What the linker was asked for: the same of the command and of the process that it becomes.
#[test]
fn a_program_says_when_its_calls_are_bound() {
    let directory = tempfile::tempdir().unwrap();
    let (source, program) = (directory.path().join("wait.c"), directory.path().join("wait"));
    fs::write(&source, "#include <unistd.h>\nint main(void) { return pause(); }\n").unwrap();
    for (option, expected) in
        [("-Wl,-z,lazy", "at first calls"), ("-Wl,-z,now", "at load time (DF_BIND_NOW)")]
    {
        let mut cc = Command::new("cc");
        let built = cc.arg(option).arg("-o").arg(&program).arg(&source).status().unwrap();
        assert!(built.success());
        let facts = fingerprint::command(&program, variables(&[]));
        assert_eq!(value(&facts, "binary.binding"), expected);
        assert_eq!(value(&facts, "binary.plt_slots"), "1");
        let child = Ended(Command::new(&program).spawn().unwrap());
        let facts = fingerprint::process(child.0.id());
        assert_eq!(value(&facts, "binary.binding"), expected);
    }
}

#[test]
fn a_program_deleted_while_it_runs_keeps_its_build_id() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("copy");
    // By another process: a file that a test forked meanwhile still has open for writing is busy.
    assert!(Command::new("cp").arg("/bin/sleep").arg(&program).status().unwrap().success());
    let child = Ended(Command::new(&program).arg("60").spawn().unwrap());
    fs::remove_file(&program).unwrap();
    let facts = fingerprint::process(child.0.id());
    assert_eq!(value(&facts, "binary.build_id"), inspect::elf::build_id("/bin/sleep").unwrap());
}

#[test]
fn a_process_that_is_gone_is_unknown_throughout() {
    let mut child = Command::new("true").spawn().unwrap();
    let pid = child.id();
    child.wait().unwrap();
    let facts = fingerprint::process(pid);
    assert!(facts.iter().all(|fact| fact.value.starts_with("unknown: ")), "{facts:?}");
}
