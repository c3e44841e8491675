//! Traces that programs write for whylag to read.

use std::fs;
use std::path::Path;

use model::Run;
use rustix::fs::{CWD, FileType, Mode};

use crate::attacker::{Den, NOBODY, lab, lab_beside_others, record};
use crate::common::Lab;

const MIB: u64 = 1 << 20;

/// Removes the traces of a program that was killed.
struct Traces(String);

impl Drop for Traces {
    fn drop(&mut self) {
        let folder = format!("/dev/shm/whylag-{NOBODY}");
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(&format!("{}-", self.0)) {
                let _ = fs::remove_file(entry.path());
            }
        }
        let _ = fs::remove_dir(folder);
    }
}

/// A recording of nobody's program that does this with its trace.
fn recorded(lab: &Lab, den: &Den, how: &str) -> (Run, String) {
    let (attacker, _) = den.attack(&[how]);
    let _traces = Traces(attacker.pid());
    record(lab, &attacker.pid())
}

/// CPU time of the recorder in parts of the recording's length.
fn cpu(run: &Run) -> f64 {
    run.cost.cpu_ns as f64 / run.length_ns() as f64
}

fn more_memory(run: &Run, than: &Run) -> u64 {
    run.cost.peak_rss_bytes.saturating_sub(than.cost.peak_rss_bytes) / MIB
}

#[test]
fn a_trace_costs_no_more_than_its_budget_whatever_it_says() {
    let Some(lab) = lab() else { return };
    let den = Den::of("hostile_trace");
    let (innocent, _) = recorded(&lab, &den, "nothing");
    for (how, refusal) in [
        ("strides", "has entries of implausible size"),
        ("rings", ""),
        ("histograms", "the histograms need more than 16 MiB"),
    ] {
        let (run, errors) = recorded(&lab, &den, how);
        let (cost, without) = (cpu(&run), cpu(&innocent));
        println!(
            "{how}: {cost:.2} CPUs, {without:.2} without; {} MiB",
            more_memory(&run, &innocent)
        );
        let line = errors.lines().filter(|line| line.contains("is not read")).collect::<Vec<_>>();
        match refusal {
            "" => assert!(line.is_empty(), "{line:?}"),
            _ => assert!(line.len() == 1 && line[0].contains(refusal), "{how}: {errors}"),
        }
        assert!(cost < without + 0.6, "{how}: {cost:.2} CPUs, {without:.2} without");
        let more = more_memory(&run, &innocent);
        assert!(more < 80, "{how}: {more} MiB more than without");
    }
}

#[test]
fn folders_of_other_users_cost_nothing() {
    let Some(lab) = lab() else { return };
    const FOLDERS: u32 = 60_000;
    const FIRST: u32 = 3_000_000_000;
    struct Folders;
    impl Drop for Folders {
        fn drop(&mut self) {
            (0..FOLDERS).for_each(|n| _ = fs::remove_dir(format!("/dev/shm/whylag-{}", FIRST + n)));
        }
    }
    let den = Den::of("hostile_trace");
    let (innocent, _) = recorded(&lab, &den, "nothing");
    let folders = Folders;
    for number in 0..FOLDERS {
        fs::create_dir(format!("/dev/shm/whylag-{}", FIRST + number)).unwrap();
    }
    let (run, _) = recorded(&lab, &den, "nothing");
    drop(folders);
    let (cost, without) = (cpu(&run), cpu(&innocent));
    println!("{cost:.2} CPUs, {without:.2} without the folders");
    assert!(cost < without + 0.6, "{cost:.2} CPUs, {without:.2} without the folders");
}

/// What lies where a trace should be is opened as carefully as any file of a process.
#[test]
fn a_trace_that_is_no_file_is_not_opened() {
    let Some(lab) = lab_beside_others() else { return };
    let den = Den::of("hostile_trace");
    let (attacker, _) = den.attack(&["nothing"]);
    let pid = attacker.pid();
    let _traces = Traces(pid.clone());
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let start = stat.rsplit_once(')').unwrap().1.split_ascii_whitespace().nth(19).unwrap();
    let folder = format!("/dev/shm/whylag-{NOBODY}");
    fs::create_dir_all(&folder).unwrap();
    let path = format!("{folder}/{pid}-{start}.trace");
    rustix::fs::mknodat(CWD, Path::new(&path), FileType::Fifo, Mode::RUSR, 0).unwrap();
    let (_, errors) = record(&lab, &pid);
    assert!(errors.contains("no regular file"), "{errors}");
    fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
    let (_, errors) = record(&lab, &pid);
    assert!(!errors.contains("is not read"), "a link is no trace: {errors}");
    drop(attacker);
}
