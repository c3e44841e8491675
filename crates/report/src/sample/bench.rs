//! A run of benchmarks.

use model::*;

use super::{MS, START, run};

/// A step of ten rounds with `each_ns` per operation of a worker, off the CPU for what `user_ns` and
/// `system_ns` do not fill.
pub fn bench_step(workers: u32, population: u64, each_ns: f64, cpu_ns: (f64, f64)) -> BenchStep {
    let mut single = Histogram::new(bench::PRECISION_BENCH);
    (0..4_000).for_each(|n| single.record(each_ns as u64 + 12 + n % 20));
    single.record(each_ns as u64 * 1_000);
    let operations = 1_000_000 * u64::from(workers);
    let round = |n: u64| {
        // 1 % up and down.
        let each_ns = each_ns * (1.0 + (n % 3) as f64 / 100.0);
        BenchRound {
            started_ns: START + n * 100 * MS,
            ended_ns: START + (n + 1) * 100 * MS,
            median_ns: each_ns + 12.0,
            rate: f64::from(workers) * 1e9 / each_ns,
            reference_ns: 500_000.0 + n as f64,
        }
    };
    BenchStep {
        workers,
        kind: WorkerKind::Processes,
        population,
        operations,
        wall_ns: (1e6 * each_ns) as u64,
        user_ns: (operations as f64 * cpu_ns.0) as u64,
        system_ns: (operations as f64 * cpu_ns.1) as u64,
        queued_ns: None,
        single,
        net_ns: each_ns,
        rounds: (0..10).map(round).collect(),
        outliers: vec![BenchOutlier {
            worker: 0,
            start_ns: START + 250 * MS,
            ns: each_ns as u64 * 1_000,
        }],
        ended_early: false,
        warnings: Vec::new(),
        accounts: None,
    }
}

/// A run of two cases: one that four processes on two CPUs share a lock in, and one that becomes
/// slower with a population.
pub fn bench_run() -> Run {
    let case = |id: &str, steps: Vec<BenchStep>| BenchCase {
        id: id.to_owned(),
        measures: "semop() up and down on one semaphore of all".to_owned(),
        population_of: None,
        steps,
        stopped: None,
        shape: None,
    };
    let workers = [
        bench_step(1, 0, 1_000.0, (100.0, 900.0)),
        bench_step(2, 0, 1_500.0, (100.0, 1_000.0)),
        bench_step(4, 0, 4_000.0, (100.0, 900.0)),
    ];
    let population = [
        bench_step(1, 0, 5_000.0, (500.0, 4_500.0)),
        bench_step(1, 10_000, 5_100.0, (500.0, 4_600.0)),
        bench_step(1, 50_000, 12_000.0, (500.0, 11_500.0)),
    ];
    let mut run = run();
    run.header.target = Target::Bench(vec!["sem-sysv".to_owned(), "unix-socket".to_owned()]);
    run.threads.clear();
    run.facts.push(Fact {
        name: "cpu.count".into(),
        value: "2".into(),
        source: "/sys/devices/system/cpu/present".into(),
    });
    run.bench = Some(Bench {
        clock: "rdtsc at 2.596 GHz".to_owned(),
        pinned: false,
        empty: bench_step(1, 0, 1.0, (1.0, 0.0)),
        cases: vec![
            case("sem-sysv", workers.to_vec()),
            BenchCase {
                population_of: Some("open AF_UNIX sockets".to_owned()),
                stopped: Some("no more than 60000 open AF_UNIX sockets: descriptors".to_owned()),
                shape: Some(StoryShape {
                    present: true,
                    text: "2.4 times the cost beside 50000 as beside 0".to_owned(),
                }),
                ..case("unix-socket", population.to_vec())
            },
        ],
    });
    run
}
