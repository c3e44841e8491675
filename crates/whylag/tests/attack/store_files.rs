//! Files that root is led to: stores that others made, outputs that would destroy something, files
//! without an end; and the space that stores take.

use std::fs::{self, File, Permissions};
use std::io::{BufReader, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use model::RunStatus;
use serde_json::Value;

use crate::common::{Helper, Lab, assert_refused, copy_program, wait_for, wait_until, whylag};

/// Any user without privilege.
const NOBODY: u32 = 65534;

fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        println!("skipped: needs root");
    }
    is_root
}

/// A lab whose store has three runs of fixtures.
fn lab_with_runs() -> Lab {
    let lab = Lab::anywhere_beside_others();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    for name in ["healthy-perl", "tcp-rto-faulty", "timer-slack-faulty"] {
        let file = fixtures.join(name).with_extension("whylag");
        lab.answer("import", &[file.to_str().unwrap()]);
    }
    lab
}

fn files_of(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn an_export_that_fails_leaves_the_old_file_and_nothing_else() {
    let lab = lab_with_runs();
    let folder = lab.folder.path().join("out");
    fs::create_dir(&folder).unwrap();
    let old = folder.join("old");
    fs::write(&old, "precious").unwrap();
    // Run 3 is of timers: it has nothing to draw. Run 9 is not there.
    for (run, format) in [("3", "svg"), ("9", "csv"), ("9", "run")] {
        let mut export = lab.verb("export");
        export.args([run, "--format", format, "-o"]).arg(&old);
        assert!(!export.output().unwrap().status.success());
        assert_eq!(fs::read_to_string(&old).unwrap(), "precious", "{run} {format}");
    }
    // In the middle of writing: no file may grow beyond 4 KiB.
    for format in ["json", "run"] {
        let script = format!(
            "trap '' XFSZ; ulimit -f 4; exec {} --store {} export 2 --format {format} -o {}",
            env!("CARGO_BIN_EXE_whylag"),
            lab.store().display(),
            old.display()
        );
        let output = Command::new("sh").args(["-c", &script]).output().unwrap();
        assert!(!output.status.success(), "{format}: {output:?}");
        assert_eq!(fs::read_to_string(&old).unwrap(), "precious", "{format}");
    }
    assert_eq!(files_of(&folder), ["old"]);

    let missing = folder.join("missing/file");
    let mut export = lab.verb("export");
    let output = export.args(["2", "--format", "json", "-o"]).arg(&missing).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("there is no folder") && said.contains("missing"), "{said}");
    assert!(!said.contains(".whylag-"), "a name that nobody gave: {said}");
}

#[test]
fn exports_are_for_their_owner_only_and_replace_what_was_there() {
    let lab = lab_with_runs();
    let file = lab.folder.path().join("x");
    let link = lab.folder.path().join("link");
    fs::write(&file, "old").unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
    symlink("x", &link).unwrap();
    for format in ["run", "json", "csv", "svg", "folded"] {
        lab.answer("export", &["1", "--format", format, "-o", link.to_str().unwrap()]);
        let metadata = fs::symlink_metadata(&file).unwrap();
        assert_eq!(metadata.mode() & 0o777, 0o600, "{format}");
        assert!(metadata.len() > 3 && fs::symlink_metadata(&link).unwrap().is_symlink());
    }
    let expected = lab.answer("export", &["1", "--format", "csv"]);
    assert!(expected.len() > 1000);
    // Outputs that are no files are written to as they are.
    let device = lab.answer("export", &["1", "--format", "csv", "-o", "/dev/stdout"]);
    assert!(device == expected);
    lab.answer("export", &["1", "--format", "csv", "-o", "/dev/null"]);
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
    let appended = File::options().append(true).create(true).open(&file).unwrap();
    let before = fs::metadata(&file).unwrap().len();
    let mut export = lab.verb("export");
    export.args(["1", "--format", "csv", "-o", "/dev/stdout"]).stdout(appended);
    assert!(export.status().unwrap().success());
    assert_eq!(fs::metadata(&file).unwrap().len(), before + expected.len() as u64);
}

/// As in /tmp, where anybody can make a link to what only root can write.
#[test]
fn a_link_of_somebody_else_in_a_folder_for_everybody_is_not_written_through() {
    if !is_root() {
        return;
    }
    let lab = lab_with_runs();
    let shared = lab.folder.path().join("shared");
    let precious = lab.folder.path().join("precious");
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, Permissions::from_mode(0o1777)).unwrap();
    fs::write(&precious, "precious").unwrap();
    let (link, folder) = (shared.join("link"), shared.join("folder"));
    symlink(&precious, &link).unwrap();
    symlink(lab.folder.path(), &folder).unwrap();
    for made in [&link, &folder] {
        std::os::unix::fs::lchown(made, Some(NOBODY), None).unwrap();
    }
    let flame = ["compare", "1", "2", "--flame"].as_slice();
    let export = ["export", "1", "--format", "csv", "-o"].as_slice();
    for words in [export, flame, ["report", "1", "-o"].as_slice()] {
        for (path, named) in [(link.clone(), "link"), (folder.join("precious"), "folder")] {
            let output = lab.verb(words[0]).args(&words[1..]).arg(&path).output().unwrap();
            assert_refused(&output, &[named, "another user"]);
            assert_eq!(fs::read_to_string(&precious).unwrap(), "precious", "{words:?}");
        }
    }
    // One's own link is, and so is one of whose folder it is.
    std::os::unix::fs::lchown(&link, Some(0), None).unwrap();
    lab.answer("export", &["1", "--format", "csv", "-o", link.to_str().unwrap()]);
    assert!(fs::read_to_string(&precious).unwrap().len() > 1000);
}

#[test]
fn the_store_is_never_written_over() {
    let lab = lab_with_runs();
    let folder = lab.folder.path();
    let store = lab.store();
    let other = folder.join("other.db");
    fs::copy(&store, &other).unwrap();
    fs::hard_link(&store, folder.join("hard")).unwrap();
    symlink(&store, folder.join("soft")).unwrap();
    symlink(folder, folder.join("folder")).unwrap();
    let before = fs::read(&store).unwrap();
    for name in ["whylag.db", "hard", "soft", "folder/whylag.db", "./whylag.db", "other.db"]
        .into_iter()
        .chain(["whylag.db-wal", "whylag.db-shm", "whylag.db-journal", "folder/whylag.db-wal"])
    {
        for format in ["run", "csv"] {
            let mut export = lab.verb("export");
            export.args(["1", "--format", format, "-o"]).arg(folder.join(name));
            assert_refused(&export.output().unwrap(), &[name, "store"]);
        }
    }
    assert!(fs::read(&store).unwrap() == before, "the store was changed");
    assert_eq!(lab.runs().len(), 3);
}

/// The verb with no more memory than this.
fn with_memory(mib: u64, arguments: &str) -> Command {
    let whylag = env!("CARGO_BIN_EXE_whylag");
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -v {}; exec {whylag} {arguments}", mib << 10)]);
    command.env_remove("WHYLAG_STORE").stdin(Stdio::null());
    command
}

#[test]
fn files_without_an_end_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let large = folder.path().join("large");
    File::create(&large).unwrap().set_len(1 << 40).unwrap();
    let large = large.to_str().unwrap();
    for name in ["/dev/zero", "/dev/urandom", "/dev/tty", "/proc/self", large] {
        // Refused for what it is, not when the memory is used up.
        let why = if name == large { "over 64 MiB" } else { "neither a file nor a pipe" };
        assert_refused(
            &with_memory(512, &format!("doctor --diff {name}")).output().unwrap(),
            &[name, why],
        );
        for verb in ["explain", "show", "compare 1", "import", "trace harvest"] {
            let store = folder.path().join("none.db");
            let words = format!("--store {} {verb} {name}", store.display());
            let output = with_memory(512, &words).output().unwrap();
            assert_eq!(output.status.code(), Some(2), "{words}: {output:?}");
        }
        let output = with_memory(512, &format!("--store {name} runs")).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{name}: {output:?}");
    }
    // A pipe that ends is read: the shell's <(...).
    let checkup = whylag().args(["doctor", "--json"]).output().unwrap().stdout;
    let good = folder.path().join("good.json");
    fs::write(&good, checkup).unwrap();
    let script =
        format!("{0} doctor --diff <(cat {1}) {1}", env!("CARGO_BIN_EXE_whylag"), good.display());
    let output = Command::new("bash").args(["-c", &script]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn root_uses_no_store_that_others_could_have_made() {
    if !is_root() {
        return;
    }
    let lab = lab_with_runs();
    let folder = lab.folder.path().join("folder");
    fs::create_dir(&folder).unwrap();
    let store = folder.join("whylag.db");
    fs::copy(lab.store(), &store).unwrap();
    let runs = |store: &Path, more: &[&str]| {
        whylag().arg("--store").arg(store).args(more).arg("runs").output().unwrap()
    };
    let is_refused = |store: &Path, named: &str| {
        assert_refused(&runs(store, &[]), &[named, "--trust-store"]);
        let import = lab.folder.path().join("none.whylag");
        let output = whylag().arg("--store").arg(store).arg("import").arg(import).output().unwrap();
        assert_refused(&output, &[named, "--trust-store"]);
        assert!(runs(store, &["--trust-store"]).status.success());
    };
    assert!(runs(&store, &[]).status.success());

    // A folder in which everybody may make files, and one in which a group may.
    for mode in [0o777, 0o1777, 0o775] {
        chown(&folder, None, Some(NOBODY)).unwrap();
        fs::set_permissions(&folder, Permissions::from_mode(mode)).unwrap();
        is_refused(&store, "folder");
    }
    // With the sticky bit a folder of root's within it stays what it is.
    fs::set_permissions(&folder, Permissions::from_mode(0o1777)).unwrap();
    let inner = folder.join("inner");
    fs::create_dir(&inner).unwrap();
    fs::copy(lab.store(), inner.join("whylag.db")).unwrap();
    assert!(runs(&inner.join("whylag.db"), &[]).status.success());
    chown(&inner, Some(NOBODY), None).unwrap();
    is_refused(&inner.join("whylag.db"), "inner");

    // Somebody else's file beside it, somebody else's folder, file, and link to root's.
    fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
    fs::write(folder.join("whylag.db-wal"), "").unwrap();
    chown(folder.join("whylag.db-wal"), Some(NOBODY), None).unwrap();
    is_refused(&store, "whylag.db-wal");
    fs::remove_file(folder.join("whylag.db-wal")).unwrap();
    chown(&folder, Some(NOBODY), None).unwrap();
    is_refused(&store, "folder");
    chown(&folder, Some(0), None).unwrap();
    assert!(runs(&store, &[]).status.success());
    chown(&store, Some(NOBODY), None).unwrap();
    is_refused(&store, "whylag.db");
    let link = folder.join("link.db");
    symlink(lab.store(), &link).unwrap();
    assert!(runs(&link, &[]).status.success());
    std::os::unix::fs::lchown(&link, Some(NOBODY), None).unwrap();
    is_refused(&link, "link.db");
}

#[test]
fn a_store_that_may_not_be_read_is_one_clear_line() {
    if !is_root() {
        return;
    }
    let lab = lab_with_runs();
    let binary = lab.folder.path().join("whylag");
    copy_program(env!("CARGO_BIN_EXE_whylag"), &binary);
    fs::set_permissions(lab.folder.path(), Permissions::from_mode(0o755)).unwrap();
    let output = Command::new("setpriv")
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
        .arg(&binary)
        .arg("--store")
        .arg(lab.store())
        .arg("runs")
        .output()
        .unwrap();
    assert_refused(&output, &[lab.store().to_str().unwrap(), "may not be read"]);
    assert!(!String::from_utf8_lossy(&output.stderr).contains("database"), "{output:?}");
}

fn size(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |file| file.len())
}

#[test]
fn forgotten_runs_give_their_space_back() {
    let lab = lab_with_runs();
    let listed: Vec<Value> = serde_json::from_slice(&lab.answer("runs", &["--json"])).unwrap();
    let bytes: Vec<u64> = listed.iter().map(|run| run["bytes"].as_u64().unwrap()).collect();
    let all = listed[0]["store_bytes"].as_u64().unwrap();
    let sum: u64 = bytes.iter().sum();
    assert!(sum <= all && sum * 2 > all, "{bytes:?} of {all}");
    let text = String::from_utf8(lab.answer("runs", &[])).unwrap();
    assert!(text.contains("The store has "), "{text}");

    let before = size(&lab.store());
    let dry = String::from_utf8(lab.answer("forget", &["1..2", "--dry-run"])).unwrap();
    assert!(dry.contains("run 1: ") && dry.contains("2 runs of about"), "{dry}");
    assert_eq!((lab.runs().len(), size(&lab.store())), (3, before));

    let told = String::from_utf8(lab.answer("forget", &["1..2"])).unwrap();
    assert!(told.contains("came free"), "{told}");
    let numbers: Vec<i64> = lab.runs().iter().map(|run| run.id.0).collect();
    assert_eq!(numbers, [3]);
    let after = size(&lab.store());
    assert!(after + (bytes[0] + bytes[1]) / 2 < before, "{before} to {after}, {bytes:?}");
    // What is left is whole.
    assert!(lab.verb("show").arg("3").output().unwrap().status.success());
    assert_refused(&lab.verb("forget").arg("1").output().unwrap(), &["no run 1", "whylag runs"]);
    lab.answer("forget", &["--keep", "0"]);
    assert!(lab.runs().is_empty());
    assert_eq!(lab.verb("forget").output().unwrap().status.code(), Some(2));
}

#[test]
fn a_run_that_is_being_recorded_stays() {
    let Some(lab) = Lab::beside_others() else { return };
    let mut recording = lab.recording(&[], ["sleep", "60"]);
    let mut recorder = Helper::spawn(recording.stderr(Stdio::null()));
    wait_until("the run to begin", || !lab.runs_so_far().is_empty());
    lab.answer("forget", &["1", "--keep", "0", "--older", "0s"]);
    assert_eq!(lab.runs()[0].status, RunStatus::Recording);
    recorder.signal(rustix::process::Signal::TERM);
    wait_for(&mut recorder.0, std::time::Duration::from_secs(20));
    lab.answer("forget", &["1"]);
    assert!(lab.runs().is_empty());
}

#[test]
fn a_run_stops_growing_at_its_size_and_counts_what_it_leaves_out() {
    let Some(lab) = Lab::beside_others() else { return };
    let script = "end=$(($(date +%s)+4)); while [ $(date +%s) -lt $end ]; do /bin/true; done";
    let options = ["--follow", "--threshold", "1us", "--max-size", "200kB"];
    let recorded = lab.record(&options, ["sh", "-c", script]);
    let said = String::from_utf8(recorded.output.stderr).unwrap();
    assert_eq!(said.matches("--max-size sets another limit").count(), 1, "{said}");
    let run = recorded.run;
    let lost = run.losses.by_kind();
    let (_, left_out) = lost.iter().find(|(kind, _)| kind.contains("--max-size")).unwrap();
    // It is reached in the first of four seconds.
    assert!(*left_out > run.outlier_count && *left_out > 1000, "{lost:?} {}", run.outlier_count);
    // The sums are whole.
    for thread in &run.threads {
        assert_eq!(thread.accounts.total(), thread.wall_ns());
    }
}

#[test]
fn secrets_and_long_command_lines_are_not_stored() {
    let Some(lab) = Lab::beside_others() else { return };
    let words =
        ["true", "--password", "hunter2", "https://me:hunter2@h/", "sk_live_hunter2hunter2"];
    let recorded = lab.record(&[], words);
    let said = String::from_utf8_lossy(&recorded.output.stderr).into_owned();
    assert!(said.contains("true --password *** https://***@h/ ***"), "{said}");
    for (verb, options) in [
        ("runs", &["--json"][..]),
        ("show", &[]),
        ("export", &["--format", "json"]),
        ("explain", &[]),
    ] {
        let text = String::from_utf8(lab.answer(verb, options)).unwrap();
        assert!(!text.contains("hunter2"), "{verb}: {text}");
    }
    assert!(!fs::read(lab.store()).unwrap().windows(7).any(|bytes| bytes == b"hunter2"));
    let kept = lab.record(&["--keep-command-line"], words);
    assert_eq!(kept.run.header.target, model::Target::Command(words.map(str::to_owned).into()));

    // 1.6 MB of arguments, each of which may have 128 KiB.
    let long = "x".repeat(100_000);
    let words = std::iter::once("true").chain(std::iter::repeat_n(long.as_str(), 16));
    let recorded = lab.record(&[], words);
    assert!(recorded.output.stderr.len() < 20_000, "{}", recorded.output.stderr.len());
    let target = recorded.run.header.target.to_string();
    assert!(target.len() < 4200 && target.ends_with("... (1.53 MiB in all)"), "{}", target.len());
    assert!(lab.answer("runs", &[]).len() < 3000);
    let first = recorded.output.stderr.split(|byte| *byte == b'\n').next().unwrap();
    assert!(first.len() < 400, "{}", first.len());
}

/// Output of a verb on a terminal of this width.
fn on_terminal(columns: u16, arguments: &[&str]) -> String {
    let whylag = env!("CARGO_BIN_EXE_whylag");
    let words = arguments.join(" ");
    let script = format!("stty cols {columns} rows 40 -opost; exec {whylag} {words}");
    let mut terminal = Command::new("script");
    terminal.args(["-qec", &format!("sh -c '{script}'"), "/dev/null"]);
    terminal.env_remove("COLUMNS").env("NO_COLOR", "1").stdin(Stdio::null());
    let mut child = Helper::spawn(terminal.stdout(Stdio::piped()));
    let mut text = String::new();
    BufReader::new(child.0.stdout.take().unwrap()).read_to_string(&mut text).unwrap();
    text
}

#[test]
fn the_width_of_the_terminal_is_used() {
    if !Command::new("script").arg("-V").stdout(Stdio::null()).status().is_ok_and(|s| s.success()) {
        println!("skipped: no script (util-linux)");
        return;
    }
    let fixture =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/mmap-lock-faulty.whylag");
    let longest = |columns| {
        let text = on_terminal(columns, &["explain", fixture.to_str().unwrap()]);
        let is_evidence = |line: &&str| line.starts_with("              ");
        let lines = text.lines().filter(is_evidence);
        lines.map(|line| line.trim_end().chars().count()).max().unwrap()
    };
    let (narrow, usual, wide) = (longest(62), longest(80), longest(150));
    assert!(
        narrow <= 62 && narrow < usual && usual <= 80 && usual < wide && wide <= 150,
        "{narrow} {usual} {wide}"
    );
}
