//! Processes that end meanwhile, have no program or have lost its file, or live in other name spaces.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use inspect::live::{LiveError, Process, bindings};

use crate::common::Running;
use crate::{functions, look, of, ten, unbound};

#[test]
fn a_process_that_exits_in_the_middle_gives_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let mut running = Running::start(Command::new(ten(folder.path(), &["-Wl,-z,lazy"])).arg("2"));
    let pid = running.pid();
    let process = Process::open(pid).unwrap();
    running.0.kill().unwrap();
    let status = format!("/proc/{pid}/status");
    while !fs::read_to_string(&status).unwrap().contains("State:\tZ") {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(matches!(bindings(&process), Err(LiveError::Gone(_))));
    let zombie = Process::open(pid).map(|_| ()).unwrap_err().to_string();
    assert!(zombie.contains("has exited already"), "{zombie}");
    running.0.wait().unwrap();
    let none = Process::open(pid).map(|_| ()).unwrap_err().to_string();
    assert_eq!(none, format!("there is no process {pid}"));
}

#[test]
fn what_is_no_program_is_said_so() {
    let kernel = Process::open(2).map(|_| ()).unwrap_err().to_string();
    // In a container pid 2 is an ordinary process, or another user's.
    let comm = fs::read_to_string("/proc/2/comm").unwrap_or_default();
    if comm.trim() == "kthreadd" {
        assert_eq!(kernel, "process 2 is a thread of the kernel: it has no program");
    }
    assert!(matches!(Process::open(u32::MAX), Err(LiveError::NoProcess(_))));
}

/// A library that is replaced on disk, and one that is deleted, are read as they were loaded.
#[test]
fn deleted_and_replaced_files_are_those_that_were_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let program = ten(folder.path(), &["-Wl,-z,lazy"]);
    let running = Running::start(Command::new(&program).arg("4"));
    fs::remove_file(&program).unwrap();
    fs::copy("/bin/true", &program).unwrap();
    fs::remove_file(folder.path().join("libten.so")).unwrap();
    let process = Process::open(running.pid()).unwrap();
    let libraries = match fs::metadata(format!("/proc/{}/map_files", running.pid())) {
        Ok(_) => bindings(&process).unwrap(),
        Err(error) => {
            println!("skipped: map_files: {error}");
            return;
        }
    };
    assert_eq!(unbound(&libraries), functions(4..10));
    assert!(of(&libraries, "calls").is_deleted && of(&libraries, "libten.so").is_deleted);
    assert!(!libraries.iter().any(|library| library.name() == "true"));
}

/// The same path is another file outside.
#[test]
fn a_process_in_other_name_spaces_is_read_where_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("inner");
    fs::create_dir(&inner).unwrap();
    let program = ten(folder.path(), &["-Wl,-z,lazy"]);
    fs::copy("/bin/true", inner.join("calls")).unwrap();
    let script = format!(
        "mount -t tmpfs none {0} && cp {1} {0}/calls && exec {0}/calls 6",
        inner.display(),
        program.display()
    );
    let mut command = Command::new("unshare");
    command.args(["--mount", "--pid", "--fork", "--kill-child", "sh", "-c", &script]);
    let mut can = Command::new("unshare");
    can.args(["--mount", "--pid", "--fork", "true"]).stderr(Stdio::null());
    if !can.status().is_ok_and(|status| status.success()) {
        println!("skipped: no privilege for namespaces");
        return;
    }
    let running = Running::start(&mut command);
    let children = format!("/proc/{0}/task/{0}/children", running.pid());
    let pid: u32 = fs::read_to_string(children).unwrap().trim().parse().unwrap();
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    assert!(status.lines().any(|line| line == format!("NSpid:\t{pid}\t1")), "{status}");
    let libraries = look(pid);
    assert_eq!(unbound(&libraries), functions(6..10));
    assert_eq!(of(&libraries, "calls").path, inner.join("calls").to_str().unwrap());
}
