//! How fast a million outliers and many sums are stored, and a run that has them is loaded.
//!
//! `cargo bench -p whylag-store`; prints figures, and passes or fails nothing.

#![allow(clippy::unwrap_used, reason = "nobody to report to")]

use std::time::Instant;

#[path = "../tests/common/mod.rs"]
mod common;

use common::{STARTED_NS, bare_outlier, full_batch, header, outlier, second, stack, thread};
use model::{Batch, Metric, Outlier, PathSum, Space, StackId, StackSum, Sums, WaitSum};
use store::{Sqlite, Store};

const OUTLIERS: u64 = 1_000_000;
const BATCHES: u64 = 20;
const STACKS: u64 = 2_000;

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.db");
    let mut store = Sqlite::open(&path).unwrap();
    let run = store.begin(&header()).unwrap();
    let stacks = (0..STACKS).map(|id| stack(id, Space::User)).collect();
    store.append(run, &Batch { stacks, ..Batch::default() }).unwrap();

    let batches: Vec<Batch> = (0..BATCHES).map(outliers_of).collect();
    let start = Instant::now();
    batches.iter().for_each(|batch| store.append(run, batch).unwrap());
    let seconds = start.elapsed().as_secs_f64();
    println!("outliers stored: {:.0} per second", OUTLIERS as f64 / seconds);

    let threads = (0..10_000).map(thread).collect();
    let start = Instant::now();
    store.append(run, &Batch { threads, ..Batch::default() }).unwrap();
    println!("10,000 threads stored: {:?}", start.elapsed());

    let histograms = 10_000;
    let values: Vec<u64> = (1..4000).map(|n| 200 * n + n * n * n).collect();
    let one = second(Metric::OffCpu, STARTED_NS, &values);
    let seconds = vec![one; histograms];
    let start = Instant::now();
    store.append(run, &Batch { seconds, ..Batch::default() }).unwrap();
    println!("{histograms} histograms stored: {:?}", start.elapsed());

    let sums = sums_of(10_000);
    let batch = Batch { sums, ..Batch::default() };
    for what in ["stored", "replaced"] {
        let start = Instant::now();
        store.append(run, &batch).unwrap();
        println!("30,000 sums {what}: {:?}", start.elapsed());
    }
    drop(store);

    let bytes = path.metadata().unwrap().len();
    println!("file: {:.0} bytes per outlier", bytes as f64 / OUTLIERS as f64);
    for _ in 0..3 {
        let start = Instant::now();
        let loaded = Sqlite::open_read_only(&path).unwrap().load(run).unwrap();
        println!(
            "opened and loaded: {:?} ({} of {} outliers, {} stacks, {} threads, {} histograms)",
            start.elapsed(),
            loaded.outliers.len(),
            loaded.outlier_count,
            loaded.stacks.len(),
            loaded.threads.len(),
            loaded.seconds.len(),
        );
    }
    let start = Instant::now();
    let runs = Sqlite::open_read_only(&path).unwrap().runs().unwrap();
    println!("opened and listed: {:?} ({} outliers)", start.elapsed(), runs[0].outliers);
}

/// So many of three kinds: a wait, a code path and a stack each.
fn sums_of(number: u64) -> Sums {
    let Sums { waits, paths, stack_sums, .. } = full_batch().sums;
    let (wait, path, stack) = (&waits[0], &paths[0], &stack_sums[0]);
    let id = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let path_of = |n| PathSum { kernel: Some(StackId(id(n))), ns: n, ..path.clone() };
    let stack_of = |n| StackSum { user: Some(StackId(id(n))), ns: n, ..stack.clone() };
    Sums {
        waits: (0..number).map(|n| WaitSum { object: id(n), ns: n, ..wait.clone() }).collect(),
        paths: (0..number).map(path_of).collect(),
        stack_sums: (0..number).map(stack_of).collect(),
        ..Sums::default()
    }
}

/// Half of them with all there is to an outlier, half with little; lengths in no order.
fn outliers_of(batch: u64) -> Batch {
    let count = OUTLIERS / BATCHES;
    let outliers = (0..count).map(|n| {
        let length = (batch * count + n).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 30;
        let outlier = if n % 2 == 0 { outlier(length) } else { bare_outlier(length) };
        Outlier { user_stack: Some(StackId(length % STACKS)), ..outlier }
    });
    Batch { heartbeat_ns: STARTED_NS + batch, outliers: outliers.collect(), ..Batch::default() }
}
