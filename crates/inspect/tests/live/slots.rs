//! What was called, and what was not yet.

use std::process::Command;
use std::time::{Duration, Instant};

use inspect::live::{LiveError, Process, Watch};

use crate::common::Running;
use crate::{functions, look, of, ten, unbound};

#[test]
fn exactly_what_was_not_called_is_unbound() {
    let folder = tempfile::tempdir().unwrap();
    for (options, form) in [
        (&["-Wl,-z,lazy"][..], "plain"),
        (&["-Wl,-z,lazy", "-no-pie", "-fno-pie"], "at a fixed address"),
        (&["-Wl,-z,lazy", "-Wl,-z,ibtplt", "-fcf-protection=full"], "with landing pads"),
    ] {
        let program = ten(folder.path(), options);
        for called in [0, 3, 10] {
            let running = Running::start(Command::new(&program).arg(called.to_string()));
            let libraries = look(running.pid());
            assert_eq!(unbound(&libraries), functions(called..10), "{form}, {called} called");
            // atoi, write, read and the ten; execl was not called.
            let (slots, unbound) = of(&libraries, "calls").counts().unwrap();
            assert_eq!((slots, unbound), (14, 11 - usize::from(called)), "{form}");
        }
    }
}

#[test]
fn what_is_bound_at_load_time_is_bound() {
    let folder = tempfile::tempdir().unwrap();
    let lazy = ten(folder.path(), &["-Wl,-z,lazy"]);
    let eager = Running::start(Command::new(&lazy).arg("0"));
    assert_eq!(unbound(&look(eager.pid())).len(), 10);
    // LD_BIND_NOW is taken away by start(), so it goes through env(1).
    let mut command = Command::new("env");
    let bound = Running::start(command.arg("LD_BIND_NOW=1").arg(&lazy).arg("0"));
    for library in look(bound.pid()) {
        assert!(library.counts().is_some_and(|(_, unbound)| unbound == 0), "{}", library.path);
    }
    let now = ten(folder.path(), &["-Wl,-z,now"]);
    let now = Running::start(Command::new(&now).arg("0"));
    assert_eq!(of(&look(now.pid()), "calls").counts(), Some((14, 0)));
}

#[test]
fn each_call_is_seen_as_it_becomes_bound() {
    let folder = tempfile::tempdir().unwrap();
    let mut running = Running::start(Command::new(ten(folder.path(), &["-Wl,-z,lazy"])).arg("2"));
    let mut watch = Watch::new(Process::open(running.pid()).unwrap()).unwrap();
    assert_eq!(watch.look().unwrap(), []);
    for n in 2..6 {
        running.send(b'.');
        running.ready();
        if n == 4 {
            watch.refresh().unwrap();
        }
        let bound = watch.look().unwrap();
        assert_eq!(bound.len(), 1, "{bound:?}");
        assert_eq!(bound[0].symbol, format!("f{n}"));
        assert!(bound[0].library.ends_with("/calls"));
        assert!(bound[0].provider.as_ref().unwrap().ends_with("/libten.so"), "{bound:?}");
    }
    assert_eq!(unbound(watch.libraries()), functions(6..10));
    // It is asked to execute another program: an end with a reason, not slots of two programs.
    running.send(b'x');
    let began = Instant::now();
    let end = loop {
        match watch.look() {
            Ok(bound) => assert!(bound.iter().all(|one| one.symbol == "execl"), "{bound:?}"),
            Err(error) => break error,
        }
        assert!(began.elapsed() < Duration::from_secs(10));
    };
    assert!(matches!(end, LiveError::Gone(_)), "{end}");
    assert!(end.to_string().contains("exited or executed another program"), "{end}");
    // It can be looked at again.
    assert!(look(running.pid()).iter().any(|library| library.name() == "sleep"));
}
