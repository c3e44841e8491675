//! What a benchmark leaves in its run.

use model::*;

pub fn bench() -> Bench {
    let mut single = Histogram::new(model::bench::PRECISION_BENCH);
    single.record(812);
    let empty = BenchStep {
        workers: 1,
        kind: WorkerKind::Threads,
        population: 0,
        operations: 3,
        wall_ns: 1000,
        user_ns: 900,
        system_ns: 50,
        queued_ns: Some(3),
        single,
        net_ns: 12.5,
        rounds: vec![BenchRound {
            started_ns: 5,
            ended_ns: 1005,
            median_ns: 812.0,
            rate: 3e6,
            reference_ns: 1e5,
        }],
        outliers: vec![BenchOutlier { worker: 0, start_ns: 7, ns: 812 }],
        ended_early: true,
        warnings: vec!["noise".into()],
        accounts: None,
    };
    let case = BenchCase {
        id: "getppid".into(),
        measures: "a call".into(),
        population_of: None,
        steps: vec![empty.clone()],
        stopped: None,
        shape: Some(StoryShape { present: false, text: "flat".into() }),
    };
    Bench { clock: "rdtsc".into(), pinned: true, empty, cases: vec![case] }
}
