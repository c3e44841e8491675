//! The harness against known answers.

use std::time::Duration;

use model::{BenchStep, WorkerKind};

use crate::cases::{self, ALL, Benchmark};
use crate::clock::Clock;
use crate::ladder::{Bench, ROUNDS, Settings};
use crate::tidy::Traces;

/// So much CPU time is a sample of user and system time.
const ENOUGH_NS: u64 = 200_000_000;

fn measure(case: &'static Benchmark, workers: &[u32], kind: WorkerKind) -> Vec<BenchStep> {
    let settings = Settings {
        cases: Vec::new(),
        tour: false,
        workers: Some((kind, workers.to_vec())),
        population: None,
        time: Duration::from_millis(400),
        pin: false,
    };
    let traces = Traces::begin().unwrap();
    let clock = Clock::choose();
    let bench = Bench {
        clock,
        clock_step_ns: clock.step_ns(),
        traces: &traces,
        empty_ns: 20.0,
        most_rounds: ROUNDS,
    };
    bench.measure(case, &settings, &mut |_| {}).unwrap().steps
}

#[test]
fn a_system_call_costs_more_than_nothing_and_all_workers_count() {
    let getppid = cases::named("getppid").unwrap();
    let empty = measure(cases::EMPTY, &[1], WorkerKind::Threads).remove(0);
    for kind in [WorkerKind::Threads, WorkerKind::Processes] {
        let steps = measure(getppid, &[1, 3], kind);
        assert!(steps[0].net_ns > 5.0 * empty.net_ns.max(1.0), "{steps:?}");
        // The kernel's ticks tell one from the other: a busy machine leaves too few of them.
        let (user, system) = (steps[0].user_ns, steps[0].system_ns);
        assert!(system > user / 10 || user + system < ENOUGH_NS, "{:?}", steps[0]);
        assert_eq!((steps[1].workers, steps[1].kind), (3, kind));
        // A busy machine ends the time after fewer rounds.
        assert!(steps[1].rounds.len() >= 2 && steps[1].operations > 1000, "{:?}", steps[1]);
        let longest = steps[1].outliers.first().unwrap();
        assert_eq!(Some(longest.ns), steps[1].single.max());
        let busy = (steps[1].user_ns + steps[1].system_ns) as f64 / steps[1].wall_ns as f64;
        let cpus = std::thread::available_parallelism().unwrap().get() as f64;
        assert!(busy <= cpus * 1.1, "{busy} CPUs busy of {cpus}");
    }
    assert!(empty.operations > 10_000);
}

#[test]
fn ids_are_unique_and_each_case_has_the_file_of_its_name() {
    let mut ids: Vec<_> = ALL.iter().map(|case| case.id).collect();
    ids.sort_unstable();
    let count = ids.len();
    ids.dedup();
    assert_eq!(ids.len(), count);
    for id in ids {
        let file = format!("src/cases/{}.rs", id.replace('-', "_"));
        assert!(std::path::Path::new(&file).exists(), "{file}");
    }
}

#[test]
fn a_name_that_is_nearly_right_is_met_with_the_right_one() {
    assert_eq!(cases::named("sem_sysv").unwrap_err().first(), Some(&"sem-sysv"));
}

/// Each case runs here with one worker and with two, threads and processes; `CASES=a,b` names some.
#[test]
fn every_case_measures_something() {
    let chosen = std::env::var("CASES").ok();
    let is_chosen = |id: &str| chosen.as_ref().is_none_or(|list| list.split(',').any(|c| c == id));
    let traces = Traces::begin().unwrap();
    let clock = Clock::choose();
    let bench = Bench {
        clock,
        clock_step_ns: clock.step_ns(),
        traces: &traces,
        empty_ns: 20.0,
        most_rounds: ROUNDS,
    };
    for case in ALL.iter().filter(|case| is_chosen(case.id)) {
        let settings = Settings {
            cases: Vec::new(),
            tour: false,
            workers: Some((case.ladder.kind, vec![1, 2])),
            population: Some(vec![0, 100]),
            time: Duration::from_millis(20),
            pin: false,
        };
        let measured = bench.measure(case, &settings, &mut |_| {}).unwrap();
        if let Some(why) = &measured.stopped {
            println!("skipped: {}: {why}", case.id);
        }
        for step in &measured.steps {
            assert!(step.operations >= u64::from(step.workers), "{}: {step:?}", case.id);
            let (median, p99) = (step.single.quantile(0.5), step.single.quantile(0.99));
            println!(
                "{:24} {:?} x{} pop {:6}: {:9.0} ns net, median {median:?}, p99 {p99:?}, n {}",
                case.id, step.kind, step.workers, step.population, step.net_ns, step.operations
            );
        }
        assert!(!measured.steps.is_empty() || measured.stopped.is_some(), "{}", case.id);
    }
}
