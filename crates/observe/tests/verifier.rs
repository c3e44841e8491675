//! What the kernel has to look through before a recording begins, by its own count.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::HashSet;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Instant;

use libbpf_rs::query::ProgInfoIter;
use observe::{Detail, Recorder, SlowRequests, Timers, Watch, WatchTarget};

/// Most of the time until a recording begins is the verifier's, about 1 us an instruction that it walks,
/// and a branch in the wrong place doubles them. There were 150,000 on 6.18 when this was written, those that
/// sample calls among them, and 235,000 before functions were checked by themselves; there are 159,700 now.
const MOST: u64 = 170_000;

#[test]
fn the_verifier_is_soon_done() {
    let before: HashSet<u32> = ProgInfoIter::default().map(|program| program.id).collect();
    let watch = Watch {
        target: WatchTarget::Process(std::process::id()),
        follow: false,
        threshold_ns: 1_000_000,
        budget_percent: None,
        detail: Detail::Affordable,
        timers: Timers::Off,
        keep_secrets: false,
        requests: SlowRequests::Slowest,
        pipe_stdout: false,
    };
    // The thread that starts the recorder gives up what it takes to list programs.
    let (started, has_started) = channel();
    let (done, is_done) = channel::<()>();
    let recording = thread::spawn(move || {
        let _recorder = Recorder::start(&watch, Instant::now()).unwrap();
        started.send(()).unwrap();
        is_done.recv().unwrap();
    });
    has_started.recv().unwrap();
    let new: Vec<_> =
        ProgInfoIter::default().filter(|program| !before.contains(&program.id)).collect();
    done.send(()).unwrap();
    recording.join().unwrap();
    // Another recorder may have begun meanwhile: programs of one have their types in common.
    let switch = new.iter().find(|program| program.name == "on_switch").unwrap();
    let ours = new.iter().filter(|program| program.btf_id == switch.btf_id);
    let walked: Vec<(String, u64)> = ours
        .map(|program| {
            (program.name.to_string_lossy().into_owned(), u64::from(program.verified_insns))
        })
        .collect();
    // Kernels before 5.16 do not say the number.
    assert!(switch.verified_insns > 1_000, "{walked:?}");
    assert!(walked.len() > 30, "{walked:?}");
    let all: u64 = walked.iter().map(|(_, walked)| walked).sum();
    assert!(all < MOST, "{all} instructions: {walked:?}");
}
