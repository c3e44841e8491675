//! Files that were left behind, or that lie.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use model::TraceState;

use crate::common::{Lab, whylag};
use crate::{list, slow_by_id, started, trace_in, traced, traces, truths};

#[test]
fn what_a_killed_program_left_is_harvested_and_only_then_removed() {
    let lab = Lab::anywhere();
    let traces = traces();
    let killed = traced(&lab, &traces, 1000, Some(149)).output().unwrap();
    assert!(!killed.status.success());
    let file = trace_in(&traces);
    let listed = list(&traces);
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0]["standing"], "crashed");

    // A store that cannot be written: nothing is lost.
    let harvest = |store: &Path| {
        let mut command = whylag();
        command.arg("--store").arg(store).args(["trace", "harvest"]).arg(&file);
        command.output().unwrap()
    };
    assert!(!harvest(Path::new("/proc/whylag.db")).status.success());
    assert!(file.exists());

    let output = harvest(&lab.store());
    assert!(output.status.success(), "{output:?}");
    assert!(!file.exists());
    let run = lab.run();
    assert_eq!(run.header.target, model::Target::Trace(file.display().to_string()));
    let program = &run.messages.programs[0];
    assert_eq!(program.state, TraceState::Crashed);
    assert_eq!((program.flows[0].ended, program.flows[0].begun >= 150), (149, true));
    assert_eq!(program.unfinished[0].id, 149);
    // By the program: slow ones before the crash are printed.
    for truth in truths(&killed.stdout).iter().filter(|truth| truth.part >= 1_000_000) {
        let (_, message) = slow_by_id(&run)[&truth.id];
        assert!((truth.part..=truth.total).contains(&message.total_ns()));
    }
    let shown = String::from_utf8(lab.answer("show", &[])).unwrap();
    assert!(shown.contains("crashed, or made an exec"), "{shown}");
    let refused = lab.verb("explain").output().unwrap();
    assert_eq!(refused.status.code(), Some(2), "nothing was recorded: {refused:?}");
}

#[test]
fn files_that_lie_are_refused_with_the_reason_and_left_alone() {
    let lab = Lab::anywhere();
    let traces = traces();
    let mut command = traced(&lab, &traces, 5000, None);
    let mut child = started(&mut command);
    let live = trace_in(&traces);
    let pid = child.id().to_string();
    let copy = fs::read(&live).unwrap();
    let place = |name: &str, bytes: &[u8]| fs::write(traces.path().join(name), bytes).unwrap();
    place("11-1.trace", b"no trace at all");
    place("12-1.trace", &copy[..copy.len() / 2]);
    let mut version = copy.clone();
    version[8] = 7;
    place("13-1.trace", &version);
    let fifo = Command::new("mkfifo").arg(traces.path().join("14-1.trace")).status().unwrap();
    assert!(fifo.success());
    std::os::unix::fs::symlink(&live, traces.path().join("15-1.trace")).unwrap();
    let reasons: HashMap<String, String> = list(&traces)
        .iter()
        .map(|file| {
            let name = Path::new(file["path"].as_str().unwrap()).file_name().unwrap();
            let text = |key: &str| file[key].as_str().unwrap().to_owned();
            (name.to_str().unwrap().to_owned(), format!("{} {}", text("standing"), text("refused")))
        })
        .collect();
    for (name, reason) in [
        ("11-1.trace", "too few for a header"),
        ("12-1.trace", "the length is not the file's"),
        ("13-1.trace", "has version 7"),
        ("14-1.trace", "no regular file"),
        ("15-1.trace", "no link is followed"),
    ] {
        let told = &reasons[name];
        assert!(told.starts_with("refused ") && told.contains(reason), "{name}: {told}");
        let mut harvest = whylag();
        harvest.arg("--store").arg(lab.store()).args(["trace", "harvest"]);
        let output = harvest.arg(traces.path().join(name)).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(traces.path().join(name).symlink_metadata().is_ok(), "{name} is left alone");
    }
    // A running program's is not harvested, and one that is not its user's is not read.
    let follow = || -> Output { whylag().args(["trace", "-p", &pid]).output().unwrap() };
    let mut harvest = whylag();
    harvest.arg("--store").arg(lab.store()).args(["trace", "harvest"]).arg(&live);
    let output = harvest.output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("its program runs"), "{output:?}");
    std::os::unix::fs::chown(&live, Some(54321), None).unwrap();
    let output = follow();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("the file belongs to user 54321"), "{told}");
    child.kill().unwrap();
    child.wait().unwrap();
}
