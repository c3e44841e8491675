//! After the set-up there is no system call, in the thread that receives nor in that of the logic.

#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use common::{expect_success, in_role, place, role};
use trace::{Point, Trace, now};

/// A system call that nothing else makes here, so that it is found in the log.
fn mark_the_log() {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::syscall(libc::SYS_getpgrp) };
}

fn traced() {
    let place = place();
    let tracer = place.builder().build().unwrap();
    let flow = tracer.flow("order").infra(["a", "b"]).build().unwrap();
    let fill = flow.publish("fill").unwrap();
    let mut traces: Vec<Trace> = (0..20_000).map(|_| Trace::new()).collect();
    let at = AtomicU32::new(0);
    // Both threads take part before the log is marked, so that both are there.
    let together = |step: u32| {
        at.fetch_add(1, Ordering::AcqRel);
        while at.load(Ordering::Acquire) < step * 2 {
            std::hint::spin_loop();
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _thread = tracer.thread().unwrap();
            let mut other = Trace::new();
            together(1);
            mark_the_log();
            for id in 0..20_000 {
                other.begin(&flow, id, now());
                other.mark(Point::new(0));
            }
            mark_the_log();
            together(2);
        });
        let mut thread = tracer.thread().unwrap();
        together(1);
        mark_the_log();
        for (id, trace) in traces.iter_mut().enumerate() {
            // Slow ones too, and lost ones.
            trace.begin(&flow, id as u64, now() - 1000 * id as u64);
            trace.mark(Point::new(1));
            let mut logic = thread.logic_start(trace, Some(1));
            logic.published(fill);
            logic.end();
        }
        mark_the_log();
        together(2);
    });
}

#[test]
fn none_after_the_set_up() {
    if role().is_some() {
        return traced();
    }
    if Command::new("strace").arg("-V").output().is_err() {
        println!("skipped: there is no strace here");
        return;
    }
    let place = common::memory_folder();
    let log = place.path().join("log");
    let inner = in_role("none_after_the_set_up", "traced");
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-o"]).arg(&log).arg(inner.get_program()).args(inner.get_args());
    expect_success(command.env("TRACE_TEST_ROLE", "traced").output().unwrap());

    // By thread: system calls since its first mark, None once it has made the second.
    let mut since: BTreeMap<String, Option<u32>> = BTreeMap::new();
    let log = std::fs::read_to_string(log).unwrap();
    for line in log.lines() {
        let (thread, call) = line.split_once(' ').unwrap();
        // The second half of a call that strace printed in two parts.
        if call.contains("resumed>") {
            continue;
        }
        match (call.trim_start().starts_with("getpgrp("), since.get(thread)) {
            (true, None) => _ = since.insert(thread.to_owned(), Some(0)),
            (true, Some(Some(calls))) => {
                assert_eq!(*calls, 0, "system calls of thread {thread}:\n{log}");
                since.insert(thread.to_owned(), None);
            }
            (false, Some(Some(calls))) => _ = since.insert(thread.to_owned(), Some(calls + 1)),
            _ => {}
        }
    }
    assert_eq!(since.into_values().collect::<Vec<_>>(), [None, None], "two threads, marked twice");
}
