//! Processes that keep those waiting who look at them, or that show them what cannot be read.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rustix::process::Signal;
use serde_json::Value;

use crate::attacker::{
    Den, NOBODY, PATIENCE, frames, has_symbol, lab_beside_others, record, started,
};
use crate::common::{Helper, Lab, copy_program, wait_for};

/// A process that is served by another, which has to end first: else those who wait for it cannot.
struct Withholding {
    server: rustix::process::Pid,
    process: Helper,
    folders: [PathBuf; 2],
    _den: Den,
}

impl Drop for Withholding {
    fn drop(&mut self) {
        let _ = rustix::process::kill_process(self.server, Signal::KILL);
    }
}

/// Root's own here, because /dev/fuse is not everybody's everywhere; the namespace makes it as strange
/// to the host's root as nobody's. `None` where there is no FUSE.
fn withholding(how: &[&str]) -> Option<Withholding> {
    if !Path::new("/dev/fuse").exists() {
        println!("skipped: no FUSE here");
        return None;
    }
    let den = Den::of("fuse");
    let folders = ["mount", "overlay"].map(|name| den.folder.path().join(name));
    folders.iter().for_each(|folder| fs::create_dir(folder).unwrap());
    let paths = folders.each_ref().map(|folder| folder.to_str().unwrap());
    let (process, server) = started(&mut den.command(&[&paths[..], how].concat()));
    let server = rustix::process::Pid::from_raw(server as i32).unwrap();
    Some(Withholding { server, process, folders, _den: den })
}

/// Has a verb end by itself.
fn ended(lab: &Lab, mut verb: Command) -> Output {
    let files = ["stdout", "stderr"].map(|name| lab.folder.path().join(name));
    let [out, errors] = files.each_ref().map(|file| fs::File::create(file).unwrap());
    let mut helper = Helper::spawn(verb.stdout(out).stderr(errors));
    let status = wait_for(&mut helper.0, PATIENCE);
    let [stdout, stderr] = files.map(|file| fs::read(file).unwrap());
    Output { status, stdout, stderr }
}

fn doctor(lab: &Lab, pid: &str, options: &[&str]) -> Output {
    let mut doctor = lab.verb("doctor");
    doctor.args(["-p", pid]).args(options);
    ended(lab, doctor)
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A check of `doctor --json`.
fn fact(output: &Output, id: &str) -> String {
    let checkup: Value = serde_json::from_slice(&output.stdout).unwrap();
    let check = checkup["checks"].as_array().unwrap().iter().find(|check| check["id"] == id);
    check.unwrap_or_else(|| panic!("no {id}")).to_string()
}

/// The file is one whose pages and paths are known: only its path looks like no other.
#[test]
fn paths_of_any_bytes_hide_nothing_else_and_end_nothing() {
    let Some(lab) = lab_beside_others() else { return };
    let den = Den::of("attacker");
    let names = [OsStr::new("SYSVx"), OsStr::from_bytes(b"\xff\xfe\x1b]0;x")];
    for name in names {
        copy_program(&den.program, &den.folder.path().join(name));
    }
    let mut command = Command::new(&den.program);
    command.arg("paths").arg(den.folder.path()).args(names);
    let (attacker, _) = started(command.uid(NOBODY).gid(NOBODY));
    let (run, said) = record(&lab, &attacker.pid());
    assert!(has_symbol(&run, "attacked"), "{:?} {said}", frames(&run));
    assert!(!said.contains("a fault in") && !said.contains("panicked"), "{said}");
    let output = doctor(&lab, &attacker.pid(), &["--json"]);
    assert!(output.status.success(), "{}", errors(&output));
    let mapped = fact(&output, "mappings");
    assert!(mapped.contains(" mappings\""), "{mapped}");
    let linked = fact(&output, "lazy-binding");
    assert!(!linked.contains("unknown"), "{linked}");
}

#[test]
fn memory_that_does_not_come_keeps_no_doctor() {
    let Some(lab) = lab_beside_others() else { return };
    let Some(target) = withholding(&["memory"]) else { return };
    let pid = target.process.pid();
    let output = doctor(&lab, &pid, &["--json"]);
    assert!(output.status.success(), "{}", errors(&output));
    assert!(fact(&output, "mappings").contains(" mappings\""));
    for options in [&["--plt"][..], &["--watch", "--time", "2s"]] {
        let output = doctor(&lab, &pid, options);
        assert!(output.status.success(), "{options:?}: {}", errors(&output));
    }
}

/// It is in the mount namespace of the host, and its root is not.
#[test]
fn a_root_on_mounts_of_somebody_else_is_not_walked() {
    let Some(lab) = lab_beside_others() else { return };
    let Some(target) = withholding(&["root", "-Xloggc:/logs/gc.log"]) else { return };
    let pid = target.process.pid();
    let (run, said) = record(&lab, &pid);
    assert!(said.contains("user namespace of its process's own"), "{said}");
    assert!(has_symbol(&run, "attacked"), "{:?}", frames(&run));
    let mut trace = lab.verb("trace");
    trace.args(["-p", &pid]);
    let output = ended(&lab, trace);
    assert!(!output.status.success());
    let said = errors(&output);
    assert!(said.contains("user namespace of its process's own"), "{said}");
    let output = doctor(&lab, &pid, &["--json"]);
    assert!(output.status.success(), "{}", errors(&output));
    assert!(fact(&output, "jvm-gc-log").contains("no JVM"));
}

/// What the link to the program says is a path here, too, which leads to a name that nobody looks up.
#[test]
fn the_path_of_a_program_is_not_walked_in_another_place() {
    let Some(lab) = lab_beside_others() else { return };
    let Some(server) = withholding(&["lookups"]) else { return };
    let den = Den::of("attacker");
    let folder = den.folder.path().join("p");
    fs::create_dir(&folder).unwrap();
    let program = folder.join("x");
    let mut objcopy = Command::new("objcopy");
    objcopy.args(["--remove-section", ".note.gnu.build-id"]).arg(&den.program).arg(&program);
    assert!(objcopy.status().unwrap().success());
    let (target, _) = started(Command::new(&program).arg("jit"));
    fs::remove_file(&program).unwrap();
    fs::remove_dir(&folder).unwrap();
    let there = format!("/proc/{}/root{}", server.process.pid(), server.folders[1].display());
    std::os::unix::fs::symlink(there, &folder).unwrap();
    let (run, _) = record(&lab, &target.pid());
    let tgid: u32 = target.pid().parse().unwrap();
    let seen = run.processes.iter().find(|process| process.tgid == tgid).unwrap();
    assert_eq!(seen.build_id, "");
}
