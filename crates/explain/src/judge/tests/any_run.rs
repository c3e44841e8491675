//! What holds of every run, whatever is in it.

use model::{Account, Blocked, Metric, ObjectName, Run, WaitSum};
use proptest::prelude::*;

use crate::catalogue::ALL;
use crate::judge::worth::FLOOR_NS;
use crate::judge::{explain, explain_part};
use crate::part::question::Question;
use crate::part::run::PartialRun;
use crate::testing::{RunBuilder, USER, hold, runner, wait};

const PREEMPTED: Account = Account::RunnablePreempted;

fn any_account() -> impl Strategy<Value = Account> {
    prop_oneof![
        prop::sample::select(Blocked::ALL.to_vec()).prop_map(Account::Blocked),
        prop::sample::select(vec![
            USER,
            PREEMPTED,
            Account::RunnableWakeup,
            Account::Unaccounted,
            Account::Stolen
        ]),
    ]
}

fn any_run(ns: std::ops::RangeInclusive<u64>) -> impl Strategy<Value = Run> {
    let ns = move || ns.clone();
    let pid = || prop::sample::select(vec![0u32, 10, 11, 99]);
    let threads = (pid(), prop::collection::vec((any_account(), ns()), 0..6));
    let waits = (pid(), any_account(), pid(), (ns(), ns(), ns(), ns()), any::<bool>());
    let holds = (pid(), pid(), any::<bool>(), any::<bool>(), ns());
    let outliers = (any_account(), ns());
    (
        prop::collection::vec(threads, 0..6),
        prop::collection::vec(waits, 0..12),
        prop::collection::vec(holds, 0..8),
        prop::collection::vec((pid(), pid(), ns(), ns()), 0..6),
        prop::collection::vec(outliers, 0..6),
        (ns(), ns(), ns(), 0u32..4, any::<bool>()),
    )
        .prop_map(|(threads, waits, holds, runners, outliers, host)| {
            let (length, lost, received, cpus, sampled) = host;
            let mut builder = RunBuilder::new().length(length).lost("ring", lost, received);
            builder = builder.cpus(cpus, length, received);
            for (tid, (tgid, accounts)) in threads.into_iter().enumerate() {
                builder = builder.thread(tid as u32, tgid, &accounts);
            }
            for (tgid, account, object, (count, ns, by_waiter, lock_like), named) in waits {
                let name = named.then(|| ObjectName::File("/file".to_owned()));
                let object = u64::from(object);
                let sum = wait(tgid, account, object, count, ns);
                builder = builder.wait(WaitSum { by_waiter, lock_like, name, ..sum });
            }
            for (tgid, holder, write, waiter_write, ns) in holds {
                let held = hold(tgid, holder, write, ns);
                builder = builder.hold(model::HoldSum { waiter_write, count: ns, ..held });
            }
            for (tgid, other, count, ns) in runners {
                builder = builder.runner(runner(tgid, other, count, ns));
            }
            for (account, ns) in outliers {
                builder = builder.outlier(account, ns, &[]);
                builder = builder.user_outlier(account, ns, "/ld-linux.so");
            }
            builder = builder.values(Metric::RunQueueDelay, 5, &[lost, received]);
            builder = builder.values(Metric::RunQueueDelay, 7, &[length]);
            if sampled { builder.sampled().build() } else { builder.build() }
        })
}

proptest! {
    /// Below 2^50 ns (13 days) no sum saturates, and every nanosecond must add up.
    #[test]
    fn nothing_is_explained_twice(run in any_run(0..=1 << 50)) {
        let explanation = explain(&run);
        let claimed: u64 = explanation.findings.iter().map(|f| f.lost_ns).sum();
        let unexplained: u64 = explanation.unexplained.iter().map(|(_, ns)| ns).sum();
        prop_assert_eq!(claimed + unexplained, explanation.lost_ns);
        prop_assert!(explanation.lost_ns + explanation.idle_ns <= explanation.wall_ns);
        let shares: f64 = explanation.findings.iter().map(|f| f.share).sum();
        prop_assert!(shares <= 1.0 + 1e-9);
        let accounts: u64 = explanation.accounts.iter().map(|(_, ns, _)| ns).sum();
        prop_assert_eq!(accounts, explanation.wall_ns);
        // Only the first may have been put there for a thread that is always busy.
        for pair in explanation.findings.windows(2).skip(1) {
            let is_last = pair[1].minor || pair[1].when.is_some();
            prop_assert!(pair[0].lost_ns >= pair[1].lost_ns || is_last);
        }
        for finding in &explanation.findings {
            prop_assert!(finding.confidence > 0.0 && finding.confidence <= 1.0);
            prop_assert!(finding.lost_ns >= FLOOR_NS);
        }
    }

    #[test]
    fn no_run_makes_it_panic(run in any_run(0..=u64::MAX)) {
        explain(&run);
    }

    /// Nor does a part of it, and the accounts of each part sum to its wall time.
    #[test]
    fn a_part_of_a_run_adds_up(
        run in any_run(0..=1 << 50),
        number in 0usize..8,
        from in 0u64..1 << 51,
        length in 0u64..1 << 51,
        tid in 0u32..8,
    ) {
        for question in
            [Question::Outlier(number), Question::Window(from, from + length), Question::Thread(tid)]
        {
            let Ok(partial) = PartialRun::new(&run, &question) else { continue };
            let answer = explain_part(&partial);
            let accounts: u64 = answer.accounts.iter().map(|(_, ns, _)| ns).sum();
            prop_assert_eq!(accounts, answer.wall_ns);
            let claimed: u64 = answer.findings.iter().map(|f| f.lost_ns).sum();
            let unexplained: u64 = answer.unexplained.iter().map(|(_, ns)| ns).sum();
            prop_assert_eq!(claimed + unexplained, answer.lost_ns);
            prop_assert!(answer.findings.iter().all(|f| f.confidence > 0.0 && f.confidence <= 1.0));
            for thread in &partial.run.threads {
                prop_assert_eq!(thread.accounts.total(), thread.wall_ns());
            }
        }
    }

    #[test]
    fn no_part_of_a_run_makes_it_panic(
        run in any_run(0..=u64::MAX),
        number in 0usize..8,
        from: u64,
        to: u64,
        tid in 0u32..8,
    ) {
        for question in [Question::Outlier(number), Question::Window(from, to), Question::Thread(tid)] {
            if let Ok(partial) = PartialRun::new(&run, &question) {
                explain_part(&partial);
                for cause in ALL {
                    prop_assert!(crate::why_not_part(&partial, cause.id.as_str()).is_ok());
                }
            }
        }
    }
}
