//! Recordings of a cgroup: by its path, as a systemd unit and as a container. The cgroups are made
//! here, in version 2 and, where it is mounted, in a hierarchy of version 1.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use common::clocks::Outside;
use common::family::{descendants, family, grown};
use common::{Helper, Lab, assert_refused, wait_for, wait_until};
use model::{Run, Target};

/// A cgroup of the test's own; nothing may be in it any more when it is removed.
struct Group(PathBuf);

impl Group {
    fn below(parent: &Path, name: &str) -> Group {
        let directory = parent.join(name);
        fs::create_dir(&directory).unwrap();
        Group(directory)
    }

    fn take(&self, pid: u32) {
        fs::write(self.0.join("cgroup.procs"), pid.to_string()).unwrap();
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Processes that were killed leave it a little later; one that is removed already is gone.
        for _ in 0..200 {
            if fs::remove_dir(&self.0).is_ok() || !self.0.exists() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Where a kind of cgroups is mounted; in version 1 it is the hierarchy of the memory controller.
fn mount(kind: &str) -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let is_it = |line: &&str| {
        let fields: Vec<_> = line.split(' ').collect();
        fields[2] == kind && (kind == "cgroup2" || fields[3].split(',').any(|o| o == "memory"))
    };
    let found = mounts.lines().find(is_it)?.split(' ').nth(1).map(PathBuf::from);
    found.filter(|_| rustix::process::geteuid().is_root())
}

/// A name that no other test uses.
fn unique(name: &str) -> String {
    format!("whylag-test-{}-{name}", std::process::id())
}

/// An id of a container that begins like that, and that no other test has.
fn container_id(beginning: &str) -> String {
    format!("{beginning}{:08x}{:0<64}", std::process::id(), "").chars().take(64).collect()
}

/// The beginning of it that no other test has.
fn short(id: &str) -> &str {
    &id[..20]
}

fn processes(run: &Run) -> BTreeSet<u32> {
    run.threads.iter().map(|thread| thread.tgid).collect()
}

/// A family in the cgroup and one of it below; while that is recorded one process is moved into it,
/// and one goes into it itself and runs another program.
fn watch_a_cgroup(kind: &str) {
    let Some(lab) = Lab::new() else { return };
    let Some(mount) = mount(kind) else { return println!("skipped: no {kind} is mounted") };
    let group = Group::below(&mount, &unique("watched"));
    let below = Group::below(&group.0, "below");
    let (first, moved) = (family(1, 0), family(0, 0));
    grown(&first, 3);
    let there = descendants(first.0.id());
    there.iter().for_each(|child| below.take(*child));
    group.take(first.0.id());
    let outside = Outside::of(there.iter().copied().chain([first.0.id()]));
    let mut record = lab.verb("record");
    record.args(["--cgroup", group.path(), "--time", "4s"]).stderr(Stdio::null());
    let mut recorder = Helper::spawn(&mut record);
    wait_until("a second stored", || lab.runs_so_far().iter().any(|r| r.threads > 0));
    group.take(moved.0.id());
    let script = "echo $$ > $0/cgroup.procs; exec sleep 0.2";
    let mut late = Command::new("sh").args(["-c", script, group.path()]).spawn().unwrap();
    let expected: BTreeSet<u32> =
        there.into_iter().chain([first.0.id(), moved.0.id(), late.id()]).collect();
    assert!(late.wait().unwrap().success());
    assert!(wait_for(&mut recorder.0, Duration::from_secs(20)).success());
    let run = lab.run();
    assert_eq!(processes(&run), expected, "watched (left) and in the cgroup (right)");
    assert_eq!(run.threads.len(), expected.len(), "each once");
    outside.agrees(&run, Duration::from_millis(3500));
    assert_eq!(run.header.target, Target::Cgroup(group.path().to_owned()));
    drop((first, moved));
    drop(below);
}

#[test]
fn all_of_a_cgroup_and_below_is_watched_later_ones_too() {
    watch_a_cgroup("cgroup2");
}

#[test]
fn so_it_is_in_version_1() {
    watch_a_cgroup("cgroup");
}

#[test]
fn a_unit_and_a_container_are_found_by_their_cgroups() {
    let Some(lab) = Lab::new() else { return };
    let Some(mount) = mount("cgroup2") else { return println!("skipped: no cgroup2 is mounted") };
    let unit = Group::below(&mount, &format!("{}.service", unique("unit")));
    let id = container_id("4f5e6a7b");
    let container = Group::below(&unit.0, &format!("docker-{id}.scope"));
    // Of a user who names a cgroup of his after the container, where it is found first.
    let theirs = Group::below(&mount, &format!("a-{}.service", unique("theirs")));
    let named_alike = Group::below(&theirs.0, &format!("docker-{id}.scope"));
    std::os::unix::fs::chown(&theirs.0, Some(65_534), None).unwrap();
    let (in_unit, in_container) = (family(0, 0), family(0, 0));
    unit.take(in_unit.0.id());
    container.take(in_container.0.id());
    let run = lab.record_target(&["-u", &unique("unit"), "--time", "300ms"]).run;
    assert_eq!(processes(&run), BTreeSet::from([in_unit.0.id(), in_container.0.id()]));
    assert_eq!(run.header.target, Target::Unit(format!("{}.service", unique("unit"))));
    let run = lab.record_target(&["--container", short(&id), "--time", "300ms"]).run;
    assert_eq!(processes(&run), BTreeSet::from([in_container.0.id()]));
    drop((in_unit, in_container));
    drop((container, named_alike));
}

#[test]
fn the_recording_ends_with_the_cgroup() {
    let Some(lab) = Lab::new() else { return };
    let Some(mount) = mount("cgroup2") else { return println!("skipped: no cgroup2 is mounted") };
    let group = Group::below(&mount, &unique("ends"));
    let first = family(0, 0);
    group.take(first.0.id());
    let mut record = lab.verb("record");
    let mut recorder = Helper::spawn(record.args(["--cgroup", group.path()]).stderr(Stdio::null()));
    wait_until("a second stored", || lab.runs_so_far().iter().any(|r| r.threads > 0));
    drop(first);
    drop(group);
    assert!(wait_for(&mut recorder.0, Duration::from_secs(10)).success());
    assert!(lab.run().end.unwrap().reason.contains("was removed"));
}

#[test]
fn a_name_that_fits_none_or_several_is_refused() {
    let lab = Lab::anywhere();
    let Some(mount) = mount("cgroup2") else { return println!("skipped: no cgroup2 is mounted") };
    let record = |options: &[&str]| lab.verb("record").args(options).output().unwrap();
    let unit = format!("{}.service", unique("none"));
    assert_refused(&record(&["-u", &unique("none")]), &["--unit", &unique("none"), "systemctl"]);
    assert_refused(&record(&["-u", &unit]), &[&unit]);
    assert_refused(&record(&["--cgroup", "/no/such"]), &["--cgroup /no/such", "/sys/fs/cgroup"]);
    assert_refused(&record(&["--container", &unit]), &["--container", "docker ps"]);
    let of = |suffix: &str| container_id(&format!("aa11{suffix}"));
    let name = |suffix| format!("libpod-{}.scope", of(suffix));
    let both = ["22", "33"].map(|suffix| Group::below(&mount, &name(suffix)));
    let output = record(&["--container", "aa11"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    let mut lines = said.lines();
    let first = lines.next().unwrap();
    assert!(first.contains("2 cgroups") && first.contains("more of the id"), "{said}");
    assert!(first.contains("--cgroup PATH"), "{said}");
    let listed: BTreeSet<&str> = lines.map(str::trim).collect();
    assert_eq!(listed, BTreeSet::from([both[0].path(), both[1].path()]));
    // A part that is not the beginning.
    let output = record(&["--container", &of("22")[2..]]);
    assert_refused(&output, &["--container", "the beginning of its id"]);
}
