//! What the recorder saw of the workers, put to the steps that they worked for.

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
