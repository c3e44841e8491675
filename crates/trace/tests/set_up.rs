//! Whatever the surroundings are like: a clear error at set-up, or a counted drop, never a crash.

#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use std::io::Read;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use common::{Place, expect_success, in_role, memory_folder, open, place, role};
use trace::reader::{Standing, TraceFile, list_in};
use trace::{Error, Point, Trace, Tracer, now};

fn files_in(folder: &Path) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

#[test]
fn names_and_numbers_that_do_not_fit_are_refused() {
    let place = place();
    for builder in [
        place.builder().threads(0),
        place.builder().threads(257),
        place.builder().recent(3),
        place.builder().slow(0),
        place.builder().names(5000),
        place.builder().histograms(2000),
    ] {
        assert!(matches!(builder.build(), Err(Error::Limit { .. })));
    }
    assert_eq!(files_in(place.folder.path()), 0);
    let tracer = place.builder().names(40).build().unwrap();
    let long = "x".repeat(57);
    for name in ["", long.as_str(), "a\nb", "a\u{85}b"] {
        assert!(matches!(tracer.flow(name).build(), Err(Error::Name(_))), "{name:?}");
    }
    let many: Vec<String> = (0..9).map(|point| format!("point {point}")).collect();
    let refused = tracer.flow("many").infra(many.iter().map(String::as_str)).build();
    assert!(matches!(refused, Err(Error::Full { most: 8, .. })));

    let flow = tracer.flow(&"y".repeat(56)).build().unwrap();
    for publish in 0..16 {
        flow.publish(&format!("publish {publish}")).unwrap();
    }
    assert!(matches!(flow.publish("one more"), Err(Error::Full { most: 16, .. })));
    for number in 1..16 {
        tracer.flow(&format!("flow {number}")).build().unwrap();
    }
    assert!(matches!(tracer.flow("flow 16").build(), Err(Error::Full { most: 16, .. })));
    assert!(matches!(tracer.flow("flow 3").build(), Err(Error::FlowExists(_))));
    let names = |reader: &mut TraceFile| reader.reader.dropped().unwrap().others;
    assert_eq!(names(&mut open(&tracer)), 3);
    let mut error = None;
    while error.is_none() {
        error = flow.publish(&format!("{:?}", now())).err();
    }
    assert_eq!(open(&tracer).reader.flows().unwrap().len(), 16);
}

#[test]
fn names_run_out() {
    let place = place();
    let tracer = place.builder().names(2).build().unwrap();
    let flow = tracer.flow("a").infra(["b"]).build().unwrap();
    let Err(error) = flow.publish("c") else { panic!() };
    assert_eq!(
        error.to_string(),
        "no room for more than 2 names; ask for more when the tracer is built"
    );
    // Without its name the flow is not there, half or whole.
    assert!(tracer.flow("d").build().is_err());
    assert_eq!(open(&tracer).reader.flows().unwrap().len(), 1);
}

#[test]
fn threads_run_out_and_are_counted() {
    let place = place();
    let tracer = place.builder().threads(2).build().unwrap();
    let mine = tracer.thread().unwrap();
    assert!(matches!(tracer.thread(), Err(Error::ThreadExists)));
    drop(mine);
    let _again = tracer.thread().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| drop(tracer.thread().unwrap()));
    });
    std::thread::scope(|scope| {
        scope.spawn(|| assert!(matches!(tracer.thread(), Err(Error::Full { most: 2, .. }))));
    });
    let mut file = open(&tracer);
    assert_eq!(file.reader.dropped().unwrap().threads, 1);
    assert_eq!(file.reader.threads().unwrap().len(), 2, "the same entry for the same thread");
}

#[test]
fn one_tracer_per_process() {
    let place = place();
    let tracer = place.builder().build().unwrap();
    assert!(matches!(place.builder().build(), Err(Error::Second)));
    let path = tracer.path().unwrap().to_owned();
    drop(tracer);
    assert!(!path.exists());
    let next = place.builder().keep(true).build().unwrap();
    drop(next);
    assert_eq!(TraceFile::open(&path).unwrap().standing().unwrap(), Standing::Closed);
    TraceFile::open(&path).unwrap().remove().unwrap();
}

#[test]
fn handles_outlive_their_tracer() {
    let place = place();
    let tracer = place.builder().build().unwrap();
    let flow = tracer.flow("order").infra(["a"]).build().unwrap();
    let mut thread = tracer.thread().unwrap();
    let mut trace = Trace::new();
    trace.begin(&flow, 1, now());
    drop(tracer);
    let next = place.builder().build().unwrap();
    trace.mark(Point::new(0));
    thread.logic_start(&mut trace, None).end();
    let mut other = next.thread().unwrap();
    trace.begin(&flow, 2, now());
    // Of another tracer: not traced.
    other.logic_start(&mut trace, None).end();
    assert_eq!(open(&next).reader.messages().unwrap(), Default::default());
}

#[test]
fn a_folder_that_is_not_safe_is_refused() {
    let place = place();
    let folder = |name: &str, mode| {
        let path = place.folder.path().join(name);
        std::fs::create_dir(&path).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        path
    };
    let refused = |path: &Path| {
        let error = Tracer::builder().folder(path).build().err().unwrap();
        assert_eq!(files_in(path), 0);
        error.to_string()
    };
    assert!(refused(&folder("open", 0o777)).contains("others may write there"));
    let foreign = folder("foreign", 0o700);
    if chown(&foreign, Some(1), None).is_ok() {
        assert!(refused(&foreign).contains("belongs to another user"));
    }
    let link = place.folder.path().join("link");
    std::os::unix::fs::symlink(folder("target", 0o700), &link).unwrap();
    assert!(refused(&link).contains("no link is followed"));
    let disk = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    assert!(refused(disk.path()).contains("not on a tmpfs"));
    let error = Tracer::builder().folder("/proc/none").build().err().unwrap();
    assert!(error.to_string().starts_with("/proc/none: making the folder"), "{error}");
    // And the process may still make one that is good.
    place.builder().build().unwrap();
}

/// Runs a role in new namespaces. None if this user may not make any.
fn unshared(how: &[&str], script: &str, test: &str, role: &str) -> Option<Command> {
    let allowed = Command::new("unshare").args(how).arg("true").stderr(Stdio::null()).status();
    if !allowed.is_ok_and(|status| status.success()) {
        println!("skipped: unshare {how:?} is not allowed here");
        return None;
    }
    let inner = in_role(test, role);
    let mut command = Command::new("unshare");
    command.args(how).args(["sh", "-c", script, "sh"]).arg(inner.get_program());
    command.args(inner.get_args()).env("TRACE_TEST_ROLE", role);
    Some(command)
}

#[test]
fn a_full_file_system_is_told_and_never_a_signal() {
    if role().is_some() {
        let place = Place::given(std::env::var("FOLDER").unwrap());
        let error = place.builder().build().err().unwrap();
        assert!(matches!(error, Error::NoRoom { .. }), "{error}");
        assert!(error.to_string().contains("--shm-size"), "{error}");
        assert_eq!(files_in(place.folder.path()), 0, "nothing is left");
        // A smaller one fits, and every byte of it is there.
        let small = place.builder().threads(1).recent(8).slow(8).names(8).histograms(1);
        let tracer = small.build().unwrap();
        let flow = tracer.flow("order").build().unwrap();
        std::fs::write(place.folder.path().join("fill"), vec![1; 1 << 20]).unwrap_err();
        let mut thread = tracer.thread().unwrap();
        let mut trace = Trace::new();
        for id in 0..100_000 {
            trace.begin(&flow, id, now().saturating_sub(1 << (id % 40)));
            thread.logic_start(&mut trace, None).end();
        }
        return;
    }
    let folder = memory_folder();
    let mount = "mount -t tmpfs -o size=512k,mode=700 tmpfs \"$FOLDER\" && exec \"$@\"";
    let test = "a_full_file_system_is_told_and_never_a_signal";
    if let Some(mut command) = unshared(&["-m"], mount, test, "full") {
        expect_success(command.env("FOLDER", folder.path()).output().unwrap());
    }
}

#[test]
fn another_pid_namespace_is_foreign() {
    if role().is_some() {
        let place = Place::given(std::env::var("FOLDER").unwrap());
        let tracer = place.builder().keep(true).build().unwrap();
        tracer.flow("order").build().unwrap();
        std::mem::forget(tracer);
        return;
    }
    let folder = memory_folder();
    let test = "another_pid_namespace_is_foreign";
    let how = ["-p", "--fork", "--mount-proc"];
    if let Some(mut command) = unshared(&how, "exec \"$@\"", test, "inside") {
        expect_success(command.env("FOLDER", folder.path()).output().unwrap());
        let listed = list_in(folder.path()).unwrap();
        let (identity, standing) = listed[0].what.as_ref().unwrap();
        assert_eq!((*standing, identity.pid < 10), (Standing::Foreign, true));
        let file = TraceFile::open(&listed[0].path).unwrap();
        assert!(file.remove().is_err(), "whether it is in use cannot be known here");
    }
}

#[test]
fn a_fork_in_mid_message() {
    let place = place();
    let tracer = place.builder().build().unwrap();
    let flow = tracer.flow("order").infra(["a"]).build().unwrap();
    let mut thread = tracer.thread().unwrap();
    let mut trace = Trace::new();
    trace.begin(&flow, 1, now());
    let logic = thread.logic_start(&mut trace, None);
    // SAFETY: the child only traces, checks and leaves.
    let child = unsafe { libc::fork() };
    if child == 0 {
        logic.end();
        for id in 100..200 {
            trace.begin(&flow, id, now());
            trace.mark(Point::new(0));
            thread.logic_start(&mut trace, None).end();
        }
        // Dropping the parent's tracer removes nothing; one of its own may be made.
        drop(tracer);
        let is_own = place.builder().build().is_ok_and(|own| {
            let _flow = own.flow("own").build();
            own.thread().is_ok() && open(&own).reader.threads().is_ok_and(|all| all.len() == 1)
        });
        // SAFETY: ends this process without the test harness.
        unsafe { libc::_exit(if is_own { 0 } else { 1 }) };
    }
    let mut status = 0;
    // SAFETY: a child of ours, and a place for its status.
    unsafe { libc::waitpid(child, &mut status, 0) };
    assert_eq!(status, 0);
    logic.end();
    let mut file = open(&tracer);
    let messages = file.reader.messages().unwrap();
    assert_eq!(messages.recent.iter().map(|record| record.id).collect::<Vec<_>>(), [1]);
    assert_eq!(file.reader.flows().unwrap()[0].begun, 1);
    assert_eq!(file.standing().unwrap(), Standing::Live);
}

#[test]
fn an_exec_leaves_a_crashed_file() {
    if role().is_some() {
        let place = Place::given(std::env::var("FOLDER").unwrap());
        let tracer = place.builder().build().unwrap();
        tracer.flow("order").build().unwrap();
        println!("ready");
        panic!("{}", Command::new("sleep").arg("60").exec());
    }
    let folder = memory_folder();
    let mut command = in_role("an_exec_leaves_a_crashed_file", "exec");
    let mut child = command.env("FOLDER", folder.path()).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = child.stdout.take().unwrap();
    let mut text = [0; 512];
    let mut said = String::new();
    while !said.contains("ready") {
        let length = output.read(&mut text).unwrap();
        assert!(length > 0, "{said}");
        said.push_str(&String::from_utf8_lossy(&text[..length]));
    }
    let comm = format!("/proc/{}/comm", child.id());
    while std::fs::read_to_string(&comm).unwrap().trim() != "sleep" {
        std::thread::sleep(Duration::from_millis(1));
    }
    // Same pid, same start, and yet nobody writes there.
    let listed = list_in(folder.path()).unwrap();
    let file = TraceFile::open(&listed[0].path).unwrap();
    assert_eq!(file.reader.identity().pid, child.id());
    assert_eq!(file.standing().unwrap(), Standing::Crashed);
    file.remove().unwrap();
    assert_eq!(files_in(folder.path()), 0);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn switched_off_by_the_environment() {
    if role().is_some() {
        let tracer = Tracer::builder().build().unwrap();
        assert!(!tracer.is_on());
        return;
    }
    let mut command = in_role("switched_off_by_the_environment", "off");
    let folder = memory_folder();
    command.env("WHYLAG_TRACE", "off").env("WHYLAG_TRACE_DIR", folder.path());
    expect_success(command.output().unwrap());
    assert_eq!(files_in(folder.path()), 0);
}

#[test]
fn a_live_file_is_listed_and_not_removed() {
    let place = place();
    let tracer = place.builder().build().unwrap();
    std::fs::write(place.folder.path().join("1-2.trace"), "no trace").unwrap();
    std::fs::write(place.folder.path().join("other"), "").unwrap();
    let listed = list_in(place.folder.path()).unwrap();
    assert_eq!(listed.len(), 2);
    for listed in listed {
        if Some(listed.path.as_path()) == tracer.path() {
            assert_eq!(listed.what.unwrap().1, Standing::Live);
            assert!(TraceFile::open(&listed.path).unwrap().remove().is_err());
        } else {
            let error = listed.what.unwrap_err().to_string();
            assert!(error.contains("8 bytes are too few"), "{error}");
        }
    }
    assert!(tracer.path().unwrap().exists());
}
