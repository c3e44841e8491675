//! Programs that the engine was not made for: two causes at once, or a cause behind a wait, in the
//! styles of real software; and healthy ones. Each measures its own waits and says what it lost, to
//! whom, and what that one did meanwhile (shape.h).
//!
//! `make test` records a few of them, `make test-shapes` all (it sets `WHYLAG_FIGURES`). A verdict
//! on a recording that something disturbed counts neither for nor against the engine.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../common/mod.rs"]
mod common;

mod table;
mod truth;
mod verdict;

use common::Lab;
use common::disturbance::{figures_are_asked_for, undisturbed};
use common::programs::{Libc, shape};
use model::Finding;
use table::{Floors, Table};
use truth::Truth;
use verdict::Verdict;

const SHAPES: [&str; 90] = [
    "async_turn",
    "barrier_compute",
    "barrier_one_late",
    "barrier_pair",
    "barrier_sleep",
    "chain_of_three",
    "child_compute",
    "child_output",
    "child_sleep",
    "condvar_inversion",
    "condvar_queue",
    "condvar_tickets",
    "coprocess_sleep",
    "counted_lock_disk",
    "crossed_locks",
    "event_loop_blocked",
    "eventfd_handover",
    "fcntl_disk",
    "flock_sleep",
    "full_pipe_retry",
    "full_queue",
    "full_terminal",
    "handed_request",
    "healthy_accept_turn",
    "healthy_all_told",
    "healthy_commands",
    "healthy_consumer",
    "healthy_dropped_lines",
    "healthy_epoll",
    "healthy_fifo",
    "healthy_job_queue",
    "healthy_jobs",
    "healthy_lock",
    "healthy_long_poll",
    "healthy_news_at_a_pace",
    "healthy_pair",
    "healthy_pipeline",
    "healthy_poll_timeout",
    "healthy_pool",
    "healthy_relay",
    "healthy_shared_queue",
    "healthy_stack_words",
    "healthy_starved",
    "healthy_stopped",
    "healthy_timer",
    "healthy_tries",
    "healthy_unix",
    "holder_preempted",
    "interpreter_lock",
    "interpreter_peer",
    "lock_file",
    "lock_in_interpreter",
    "message_queue",
    "mutex_compute",
    "mutex_fsync",
    "mutex_pipe",
    "mutex_sleep",
    "outage",
    "pair_sleep",
    "parked_sleep",
    "pipe_token",
    "pipeline_stage",
    "pool_behind_loop",
    "pool_of_waiters",
    "pool_one",
    "pool_three",
    "refused_connections",
    "rwlock_writer",
    "saturated_one",
    "semaphore_lock",
    "semaphore_pool",
    "semaphore_spin",
    "sender_thread",
    "signal_handover",
    "socket_full",
    "startup_convoy",
    "stopped_helper",
    "sysv_turn",
    "tcp_busy",
    "tcp_chain",
    "tcp_disk",
    "tcp_sleep",
    "try_and_sleep",
    "two_fault_pipe",
    "two_fsync_lock",
    "two_queue_lock",
    "unix_busy",
    "unix_chain",
    "unix_disk",
    "unix_sleep",
];

/// Those of `make test`: of each kind one.
const FEW: [&str; 6] = [
    "chain_of_three",
    "healthy_pipeline",
    "mutex_sleep",
    "pipe_token",
    "two_queue_lock",
    "unix_disk",
];

/// How many verdicts of `SHAPES` are right at least: 62, 62, 60, 61 and 20 were in a pass, of 63 and 20; 50,
/// 52, 49, 52 and 13 before functions said what threads wait for, of 52 and 14; 14, 11, 10, 4 and 6 before
/// chains were followed, of fewer programs. They are there to be raised: whoever makes the engine better writes down
/// what it reaches now.
const FLOORS: Floors = Floors { first: 60, causes: 60, size: 57, chain: 58, healthy: 18 };

/// The same of `FEW`.
const FLOORS_OF_FEW: Floors = Floors { first: 4, causes: 3, size: 3, chain: 3, healthy: 1 };

/// Those of `make test` that are built for musl as well, whose locks, conditions and joins are made of
/// other words than those of glibc.
const FEW_OF_MUSL: [&str; 3] = ["condvar_queue", "healthy_pool", "mutex_sleep"];

/// The floors of `SHAPES` built for musl: 57, 58, 54, 56 and 19 were in a pass. Barriers of musl are not known
/// as such, nor who is told of news by a condition variable of it.
const FLOORS_OF_MUSL: Floors = Floors { first: 55, causes: 56, size: 51, chain: 53, healthy: 16 };

const FLOORS_OF_FEW_OF_MUSL: Floors = Floors { first: 1, causes: 1, size: 1, chain: 1, healthy: 1 };

#[test]
fn causes_behind_waits_are_found() {
    judge(Libc::Glibc, (&SHAPES, &FLOORS), (&FEW, &FLOORS_OF_FEW));
}

#[test]
fn causes_are_found_in_programs_of_musl() {
    judge(Libc::Musl, (&SHAPES, &FLOORS_OF_MUSL), (&FEW_OF_MUSL, &FLOORS_OF_FEW_OF_MUSL));
}

/// Judges `all` where figures are asked for, else `few`; `WHYLAG_SHAPE` chooses one.
fn judge(libc: Libc, all: (&[&str], &Floors), few: (&[&str], &Floors)) {
    let only = std::env::var("WHYLAG_SHAPE").ok();
    let none = Floors::default();
    let one = only.as_deref().map(|name| [name]);
    let (shapes, floors) = match &one {
        Some(one) => (&one[..], &none),
        None if figures_are_asked_for() => all,
        None => few,
    };
    let mut table = Table::default();
    for name in shapes {
        let Some(verdict) = judged(name, libc) else { return };
        println!("{libc:?}: {verdict}");
        table.add(verdict);
    }
    println!("{libc:?}: {table}");
    table.assert_reaches(floors);
}

/// Records the program for a second and compares what is said of it with its truth.
fn judged(name: &str, libc: Libc) -> Option<Verdict> {
    // A turn of its own, so that other tests need not wait for all of them.
    let lab = Lab::new()?;
    let program = shape(name, libc);
    let record = || lab.record(&["--follow"], [program.as_os_str(), "1".as_ref()]);
    let (recorded, figures) = undisturbed(record, |recorded| Some(&recorded.run));
    let truth = Truth::of(recorded.stdout());
    let findings: Vec<Finding> = serde_json::from_value(lab.explain()["findings"].take()).unwrap();
    Some(Verdict::of(name, truth, findings, figures.disturbed()))
}

#[test]
fn every_program_of_the_folder_is_judged() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shapes");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let sources = files.filter(|path| path.extension().is_some_and(|is| is == "c"));
    let mut names: Vec<String> =
        sources.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    names.sort();
    assert_eq!(names, SHAPES);
    assert!(FEW.iter().chain(&FEW_OF_MUSL).all(|name| SHAPES.contains(name)));
}
