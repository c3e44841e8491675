//! Real traces, written by the Rust tracer: followed while they are written, and harvested whole
//! or damaged.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use messages::{Follower, guarded, harvest};
use model::{MessageMetric, TraceState};
use tempfile::TempDir;
use trace::reader::TraceFile;
use trace::{Point, Trace, Tracer};

/// One tracer per process.
static TURN: Mutex<()> = Mutex::new(());

const POINT: Point = Point::new(0);

fn memory_folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap()
}

fn tracer(folder: &Path) -> Tracer {
    Tracer::builder().folder(folder).threads(2).recent(16).slow(16).histograms(2).build().unwrap()
}

/// Every tenth message is slow, by its receipt.
fn write(tracer: &Tracer, flow: &trace::Flow, ids: std::ops::Range<u64>) {
    let mut thread = tracer.thread().unwrap();
    let fill = flow.publish("fill").unwrap();
    let mut trace = Trace::new();
    for id in ids {
        let received = trace::now() - if id % 10 == 0 { 5_000_000 } else { 1_000 };
        trace.begin(flow, id, received);
        trace.mark(POINT);
        let mut logic = thread.logic_start(&mut trace, Some(2));
        logic.published(fill);
        logic.end();
    }
}

fn flow(tracer: &Tracer) -> trace::Flow {
    let flow = tracer.flow("order").infra(["in"]).threshold(Duration::from_millis(4));
    flow.build().unwrap()
}

#[test]
fn a_follower_shows_what_comes_after_it_began_and_counts_what_it_missed() {
    let _turn = TURN.lock().unwrap();
    let folder = memory_folder();
    let tracer = tracer(folder.path());
    let flow = flow(&tracer);
    write(&tracer, &flow, 0..100);
    let began = trace::now();
    let file = guarded::of_process(std::process::id(), true).unwrap().unwrap().unwrap();
    assert_eq!(file.path(), tracer.path().unwrap());
    let every = 1_000_000_000;
    let mut follower = Follower::new(file, 1, 3, began, every).unwrap();
    let first = follower.look(began).unwrap();
    assert!(first.slow.is_empty() && first.fast.is_empty(), "what ended before: {first:?}");

    write(&tracer, &flow, 100..150);
    let look = follower.look(began + every).unwrap();
    let slow: Vec<u64> = look.slow.iter().map(|message| message.id).collect();
    assert_eq!(slow, [100, 110, 120, 130, 140]);
    assert!(look.slow.iter().all(|m| m.program == 3 && m.depth == Some(2) && m.is_slow()));
    // Of the 45 others the ring still has those that ended last.
    assert_eq!(look.fast.len(), 15, "of the last 16 one was slow");
    let total = look.seconds.iter().find(|s| s.metric == MessageMetric::Total).unwrap();
    assert_eq!(total.histogram.count(), 50);
    assert_eq!(follower.program().missed, 0);

    // Twenty slow ones, of which the ring has sixteen.
    write(&tracer, &flow, 150..350);
    let look = follower.look(began + 2 * every).unwrap();
    assert_eq!((look.slow.len(), follower.program().missed), (16, 4));
    drop(tracer);
    assert!(!follower.is_writing());
    follower.last_look().unwrap();
    let program = follower.program();
    assert_eq!(program.state, TraceState::Closed);
    assert_eq!((program.flows[0].begun, program.flows[0].ended), (250, 250));
}

/// A trace that its program left, as a crashed one: nobody has it mapped.
fn left(folder: &Path) -> PathBuf {
    let tracer = tracer(folder);
    let flow = flow(&tracer);
    write(&tracer, &flow, 0..40);
    let copy = folder.join("1-1.trace");
    fs::copy(tracer.path().unwrap(), &copy).unwrap();
    copy
}

#[test]
fn what_was_left_is_harvested() {
    let _turn = TURN.lock().unwrap();
    let folder = memory_folder();
    let (messages, file) = harvest(TraceFile::open(left(folder.path())).unwrap()).unwrap();
    assert_eq!(messages.programs[0].state, TraceState::Crashed);
    assert_eq!((messages.programs[0].flows[0].ended, messages.slow.len()), (40, 4));
    let all = messages.histogram(0, 1, MessageMetric::ToPublish(0));
    assert_eq!(all.count(), 40);
    let path = file.path().to_owned();
    file.remove().unwrap();
    assert!(!path.exists());
}

#[test]
fn damage_is_refused_or_harmless() {
    let _turn = TURN.lock().unwrap();
    let folder = memory_folder();
    let path = left(folder.path());
    let whole = fs::read(&path).unwrap();
    let mut random = fastrand::Rng::with_seed(5);
    let used: Vec<usize> = (0..whole.len() / 8)
        .filter(|word| whole[word * 8..][..8].iter().any(|b| *b != 0))
        .collect();
    let (mut read, mut refused) = (0, 0);
    for _ in 0..600 {
        let mut bytes = whole.clone();
        for _ in 0..random.usize(1..6) {
            let at = used[random.usize(..used.len())] * 8;
            let value = match random.u8(..4) {
                0 => u64::MAX - random.u64(..3),
                1 => 1 << random.u32(..64),
                2 => random.u64(..300),
                _ => random.u64(..),
            };
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        fs::write(&path, &bytes).unwrap();
        match TraceFile::open(&path).and_then(harvest) {
            Ok((messages, _)) => {
                read += 1;
                for message in messages.slow.iter().chain(&messages.fast) {
                    let parts = message.segments();
                    let sum: u128 = parts.iter().map(|part| u128::from(part.ns())).sum();
                    assert_eq!(sum, u128::from(message.total_ns()));
                }
            }
            Err(_) => refused += 1,
        }
    }
    assert!(read > 50 && refused > 50, "{read} read, {refused} refused");
}
