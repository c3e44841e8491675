//! Files of processes: programs, libraries, perf maps.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rustix::fs::{CWD, FileType, Mode};

use crate::attacker::{
    Den, PATIENCE, Removed, frames, has_symbol, innocent_memory, lab, lab_beside_others,
    nobodys_file, record, record_target, started, unknown_in,
};

use crate::common::nobody::as_nobody;
use crate::common::{Helper, wait_for};

const MIB: u64 = 1 << 20;

#[test]
fn a_fifo_where_a_mapped_file_was_is_not_opened() {
    let Some(lab) = lab_beside_others() else { return };
    let den = Den::of("attacker");
    let (attacker, _) = den.attack(&["fifo", "both"]);
    let (run, _) = record(&lab, &attacker.pid());
    // What is mapped is still there, and its names are.
    assert!(has_symbol(&run, "attacked"), "{:?}", frames(&run));
}

#[test]
fn a_fifo_over_a_program_in_a_namespace_of_its_own_is_not_opened() {
    let Some(lab) = lab_beside_others() else { return };
    let den = Den::of("attacker");
    let (attacker, _) = den.attack(&["namespaces"]);
    let (run, _) = record(&lab, &attacker.pid());
    assert!(has_symbol(&run, "attacked"), "{:?}", frames(&run));
}

/// The process has ended when its stacks are named: only its paths are left.
#[test]
fn a_fifo_where_the_program_of_a_process_was_that_has_ended_is_not_opened() {
    let Some(lab) = lab_beside_others() else { return };
    let den = Den::of("attacker");
    let program = den.program.to_str().unwrap();
    let as_nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    let command = as_nobody.into_iter().chain([program, "fifo", "same", "20"]);
    let recorder = &mut lab.recording(&["--threshold", "5ms"], command);
    let mut recorder = Helper::spawn(recorder.stdout(Stdio::null()).stderr(Stdio::null()));
    assert!(wait_for(&mut recorder.0, PATIENCE).success());
    let run = lab.run();
    let why = unknown_in(&run, "/attacker");
    assert!(!why.is_empty() && !has_symbol(&run, "attacked"), "{:?}", frames(&run));
}

#[test]
fn a_program_that_is_cut_short_while_it_is_read_harms_nobody() {
    let Some(lab) = lab_beside_others() else { return };
    let den = Den::of("attacker");
    let copy = den.copy();
    let (attacker, _) = den.attack(&["truncate", copy.to_str().unwrap()]);
    let (run, _) = record(&lab, &attacker.pid());
    assert!(!unknown_in(&run, "/copy").is_empty(), "{:?}", frames(&run));
}

#[test]
fn thousands_of_mappings_with_long_paths_cost_little() {
    let Some(lab) = lab() else { return };
    let innocent = innocent_memory(&lab);
    let den = Den::of("attacker");
    let (attacker, made) = den.attack(&["mappings", den.folder.path().to_str().unwrap()]);
    assert!(made > 30_000, "{made} mappings");
    let (run, _) = record(&lab, &attacker.pid());
    assert!(!frames(&run).is_empty());
    let more = run.cost.peak_rss_bytes.saturating_sub(innocent);
    println!("{} MiB more than of an innocent process", more / MIB);
    assert!(more < 100 * MIB, "{} MiB more than of an innocent process", more / MIB);
    drop(attacker);
    // The paths are longer than the usual ways of removing a folder take.
    assert!(Command::new("rm").arg("-rf").arg(den.folder.path()).status().unwrap().success());
}

/// 32,768 mounts, whose list is cut at 4 MiB, and none; 200 files are opened at the end.
#[test]
fn thousands_of_mounts_do_not_cost_more_with_each_file_that_is_named() {
    let Some(lab) = lab() else { return };
    let cpu_ns = [0, 15].map(|steps| {
        let den = Den::of("attacker");
        let folder = den.folder.path().to_str().unwrap();
        let (attacker, files) = den.attack(&["mounts", folder, &steps.to_string()]);
        let (run, _) = record(&lab, &attacker.pid());
        let frames = frames(&run);
        let named = frames.iter().filter(|frame| frame.module.contains("/code-"));
        let named: BTreeSet<&str> = named.map(|frame| frame.module.as_str()).collect();
        println!("2^{steps} mounts: {} files, {} ms", named.len(), run.cost.cpu_ns / 1_000_000);
        assert!(named.len() as u64 > files / 3, "{} files", named.len());
        run.cost.cpu_ns
    });
    let [few, many] = cpu_ns;
    assert!(many < 3 * few, "{many} ns of CPU time, {few} ns with few mounts");
}

/// The kernel takes any bytes for a name, and /proc shows them as they are.
#[test]
fn a_name_that_is_not_text_ends_no_recording() {
    let Some(lab) = lab_beside_others() else { return };
    let mut shell = Command::new("sh");
    shell.args(["-c", r"printf '\377' >/proc/$$/comm && echo ready 1 && read line"]);
    let (attacker, _) = started(as_nobody(shell).stdin(Stdio::piped()));
    let pid = attacker.pid();
    assert_eq!(std::fs::read(format!("/proc/{pid}/comm")).unwrap(), b"\xff\n");
    for target in [["-p", &pid], ["-t", &pid]] {
        let (run, errors) = record_target(&lab, &target);
        let reason = run.end.unwrap().reason;
        assert!(!reason.contains("ended"), "{target:?}: {reason}");
        assert!(!errors.contains("ended"), "{target:?}: {errors}");
        let ns = run.threads.iter().map(|thread| thread.wall_ns()).max();
        assert!(ns > Some(500_000_000), "{target:?}: {ns:?} ns");
    }
}

/// Each could be before the host of a URL.
#[test]
fn an_environment_of_megabytes_is_looked_at_for_a_moment_and_kept_in_part() {
    let Some(lab) = lab_beside_others() else { return };
    let mut sleeper = Command::new("sleep");
    sleeper.arg("300").env_clear();
    for n in 0..14 {
        sleeper.env(format!("A{n}"), "@".repeat(130_000));
    }
    let sleeper = Helper::spawn(&mut as_nobody(sleeper));
    let (run, _) = record(&lab, &sleeper.pid());
    let kept = run.fact("env.A13").unwrap();
    assert!(kept.starts_with("@@@@") && kept.ends_with("... (127 KiB in all)"), "{kept}");
    assert!(kept.len() < 5_000, "{} bytes", kept.len());
}

fn map_of(pid: &str) -> PathBuf {
    PathBuf::from(format!("/tmp/perf-{pid}.map"))
}

#[test]
fn large_perf_maps_share_one_budget_and_what_was_cut_is_said() {
    let Some(lab) = lab() else { return };
    let innocent = innocent_memory(&lab);
    let den = Den::of("attacker");
    let attackers: Vec<_> = (0..4).map(|_| den.attack(&["jit"])).collect();
    // The shortest lines that name something.
    let text = "1 1 x\n".repeat(64 * MIB as usize / 6);
    let maps: Vec<Removed> =
        attackers.iter().map(|(one, _)| nobodys_file(&map_of(&one.pid()), &text)).collect();
    let (run, _) = record_target(&lab, &["-a"]);
    let more = run.cost.peak_rss_bytes.saturating_sub(innocent);
    println!("{} MiB more than of an innocent process", more / MIB);
    let why = unknown_in(&run, "[jit]");
    assert!(why.iter().any(|why| why.contains("too many functions")), "{why:?}");
    assert!(more < 200 * MIB, "{} MiB more than of an innocent process", more / MIB);
    drop((maps, attackers));
}

#[test]
fn a_name_from_somebody_elses_perf_map_is_not_believed() {
    let Some(lab) = lab_beside_others() else { return };
    let den = Den::of("attacker");
    // Root's own process this time.
    let (jit, address) = started(&mut den.command(&["jit"]));
    let forged = format!("{address:x} 100 forged\n");
    let map = nobodys_file(&map_of(&jit.pid()), &forged);
    let (run, _) = record(&lab, &jit.pid());
    assert!(!has_symbol(&run, "forged"));
    let why = unknown_in(&run, "[jit]");
    assert!(why.iter().any(|why| why.contains("belongs to user 65534")), "{why:?}");
    // Root's own file with another name as well, which nobody may have made.
    std::os::unix::fs::chown(&map.0, Some(0), Some(0)).unwrap();
    let second = Removed(map.0.with_extension("second"));
    std::fs::hard_link(&map.0, &second.0).unwrap();
    let (run, _) = record(&lab, &jit.pid());
    assert!(!has_symbol(&run, "forged"));
    drop(second);
    let (run, _) = record(&lab, &jit.pid());
    assert!(has_symbol(&run, "forged"), "root's own file is read: {:?}", frames(&run));
}

#[test]
fn a_perf_map_that_is_no_file_is_not_opened() {
    let Some(lab) = lab_beside_others() else { return };
    let den = Den::of("attacker");
    let (attacker, _) = den.attack(&["jit"]);
    let map = Removed(map_of(&attacker.pid()));
    rustix::fs::mknodat(CWD, &map.0, FileType::Fifo, Mode::RUSR, 0).unwrap();
    let (run, _) = record(&lab, &attacker.pid());
    assert!(unknown_in(&run, "[jit]").iter().any(|why| why.contains("no regular file")));
    std::fs::remove_file(&map.0).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &map.0).unwrap();
    let (run, _) = record(&lab, &attacker.pid());
    assert!(unknown_in(&run, "[jit]").iter().any(|why| why.contains("no regular file")));
}

/// Ends before the process that has its file open, which else would wait for it.
struct Server(i32);

impl Drop for Server {
    fn drop(&mut self) {
        use rustix::process::{Pid, Signal, kill_process};
        let _ = Pid::from_raw(self.0).map(|server| kill_process(server, Signal::KILL));
    }
}

/// Here root serves the file, and lets everybody have it: of nobody's the kernel keeps root away.
#[test]
fn a_file_on_fuse_whose_server_does_not_answer_is_not_opened() {
    let Some(lab) = lab_beside_others() else { return };
    if !std::path::Path::new("/dev/fuse").exists() {
        println!("skipped: no FUSE here");
        return;
    }
    let den = Den::of("fuse");
    let mount = den.folder.path().join("mount");
    std::fs::create_dir(&mount).unwrap();
    let (attacker, server) = started(&mut den.command(&[mount.to_str().unwrap()]));
    let _first = Server(server as i32);
    let (run, _) = record(&lab, &attacker.pid());
    let why = unknown_in(&run, "/mount/file");
    assert!(why.iter().any(|why| why.contains("on a FUSE file system")), "{why:?}");
}

/// What an overlay shows is of its own kind, and can be opened. Only reading gets no answer, and who
/// reads cannot be killed until it has one.
#[test]
fn a_file_of_an_overlay_that_anybody_can_have_mounted_is_not_read() {
    let Some(lab) = lab_beside_others() else { return };
    if !std::path::Path::new("/dev/fuse").exists() {
        println!("skipped: no FUSE here");
        return;
    }
    let den = Den::of("fuse");
    let folders = ["mount", "overlay"].map(|name| den.folder.path().join(name));
    folders.iter().for_each(|folder| std::fs::create_dir(folder).unwrap());
    let paths = folders.each_ref().map(|folder| folder.to_str().unwrap());
    let (attacker, server) = started(&mut den.command(&paths));
    let _first = Server(server as i32);
    let (run, _) = record(&lab, &attacker.pid());
    let why = unknown_in(&run, "/overlay/file");
    assert!(why.iter().any(|why| why.contains("user namespace of its process's own")), "{why:?}");
}
