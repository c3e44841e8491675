//! What the recorder saw of the workers, added to the steps that they worked for.

use model::{Accounts, BenchCase, ThreadAccounts};

use crate::round::WORKER_NAME;

/// Adds to each step where the time of its workers went. In each round the workers are threads of
/// their own.
pub fn add_accounts(cases: &mut [BenchCase], threads: &[ThreadAccounts]) {
    let workers: Vec<_> = threads.iter().filter(|thread| thread.comm == WORKER_NAME).collect();
    for step in cases.iter_mut().flat_map(|case| &mut case.steps) {
        let mut sum = Accounts::new();
        for round in &step.rounds {
            let there = |thread: &&&ThreadAccounts| {
                thread.first_ns <= round.started_ns && thread.last_ns >= round.started_ns
            };
            workers.iter().filter(there).for_each(|thread| sum.merge(&thread.accounts));
        }
        step.accounts = (sum.total() > 0).then_some(sum);
    }
}

#[cfg(test)]
mod tests {
    use model::{Account, BenchRound, BenchStep, Histogram, WorkerKind};

    use super::*;

    fn thread(comm: &str, first_ns: u64, last_ns: u64) -> ThreadAccounts {
        ThreadAccounts {
            tid: 1,
            tgid: 1,
            comm: comm.to_owned(),
            first_ns,
            last_ns,
            alive: false,
            open: Account::User,
            accounts: [(Account::User, last_ns - first_ns)].into_iter().collect(),
            realtime: 0,
            minor_faults: 0,
            major_faults: 0,
            sleeps: 0,
            preemptions: 0,
            migrations: 0,
        }
    }

    fn step(starts: &[u64]) -> BenchStep {
        let round = |start: &u64| BenchRound {
            started_ns: *start,
            ended_ns: start + 10,
            median_ns: 1.0,
            rate: 1.0,
            reference_ns: 1.0,
        };
        BenchStep {
            workers: 1,
            kind: WorkerKind::Threads,
            population: 0,
            operations: 1,
            wall_ns: 1,
            user_ns: 0,
            system_ns: 0,
            queued_ns: None,
            single: Histogram::new(7),
            net_ns: 1.0,
            rounds: starts.iter().map(round).collect(),
            outliers: Vec::new(),
            ended_early: false,
            warnings: Vec::new(),
            accounts: None,
        }
    }

    #[test]
    fn a_step_has_the_time_of_the_workers_of_its_rounds_alone() {
        let mut cases = [BenchCase {
            id: "t".to_owned(),
            measures: "t".to_owned(),
            population_of: None,
            steps: vec![step(&[100, 300]), step(&[200]), step(&[900])],
            stopped: None,
            shape: None,
        }];
        let threads = [
            thread(WORKER_NAME, 95, 115),
            thread(WORKER_NAME, 198, 230),
            thread(WORKER_NAME, 299, 306),
            thread("whylag", 0, 1_000),
        ];
        add_accounts(&mut cases, &threads);
        let time = |step: &BenchStep| step.accounts.as_ref().map(Accounts::total);
        let times: Vec<Option<u64>> = cases[0].steps.iter().map(time).collect();
        assert_eq!(times, [Some(20 + 7), Some(32), None]);
    }
}
