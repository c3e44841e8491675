//! Builds runs of benchmarks.

use model::{
    Bench, BenchCase, BenchRound, BenchStep, Fact, Histogram, Run, RunId, WorkerKind, bench,
};

use super::RunBuilder;

/// A step of ten rounds with `each_ns` per operation of a worker, off the CPU for what user and
/// system time do not fill.
pub fn bench_step(workers: u32, population: u64, each_ns: f64, cpu_ns: (f64, f64)) -> BenchStep {
    let operations = 1_000_000 * u64::from(workers);
    let round = |n: u64| {
        // 1 % up and down.
        let each_ns = each_ns * (1.0 + (n % 3) as f64 / 100.0);
        BenchRound {
            started_ns: n * 100_000_000,
            ended_ns: (n + 1) * 100_000_000,
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
        single: Histogram::new(bench::PRECISION_BENCH),
        net_ns: each_ns,
        rounds: (0..10).map(round).collect(),
        outliers: Vec::new(),
        ended_early: false,
        warnings: Vec::new(),
        accounts: None,
    }
}

/// A case of these steps.
pub fn bench_case(id: &str, steps: Vec<BenchStep>) -> BenchCase {
    BenchCase {
        id: id.to_owned(),
        measures: "semop() up and down on one semaphore of all".to_owned(),
        population_of: None,
        steps,
        stopped: None,
        shape: None,
    }
}

pub fn fact(name: &str, value: &str) -> Fact {
    Fact { name: name.to_owned(), value: value.to_owned(), source: "/sys".to_owned() }
}

/// Run 12, of two cases on two CPUs: one whose four processes share a lock, and one that costs more
/// with a population.
pub fn bench_run() -> Run {
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
    let sockets = BenchCase {
        population_of: Some("open AF_UNIX sockets".to_owned()),
        ..bench_case("unix-socket", population.to_vec())
    };
    let mut run = RunBuilder::new().build();
    run.id = RunId(12);
    run.facts = vec![fact("kernel.release", "6.18.0"), fact("cpu.count", "2")];
    run.bench = Some(Bench {
        clock: "rdtsc at 2.596 GHz".to_owned(),
        pinned: false,
        empty: bench_step(1, 0, 1.0, (1.0, 0.0)),
        cases: vec![bench_case("sem-sysv", workers.to_vec()), sockets],
    });
    run
}
