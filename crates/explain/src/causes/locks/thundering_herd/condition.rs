//! The same of a condition variable: notify_all lets all go on that wait for it, and nearly all of them
//! look, and wait again.

use std::collections::BTreeMap;

use model::{Account, Accounts, Blocked, WaitSum, part_of};

use super::{HERD, busy_queue, is_member, rule_out_runqueue};
use crate::case::Case;
use crate::cause::Claim;
use crate::text::{count, counted, duration, mean, percent};

const FUTEX: Account = Account::Blocked(Blocked::Futex);

const FIX: &str = "Wake one thread (notify_one, pthread_cond_signal) where any of them can take what there is, or \
                   give each thread, or each kind of event, a condition of its own.";

/// The waits for one condition.
#[derive(Default)]
struct Condition {
    waits: u64,
    ns: u64,
    /// Ended together with others.
    together: u64,
    /// Began right after another one had ended.
    again: u64,
}

impl Condition {
    fn add(&mut self, wait: &WaitSum) {
        self.waits = self.waits.saturating_add(wait.count);
        self.ns = self.ns.saturating_add(wait.ns);
        self.together = self.together.saturating_add(wait.many);
        self.again = self.again.saturating_add(wait.again);
    }

    /// Nearly all are woken with others, and for most of them there is nothing.
    fn is_herd(&self) -> bool {
        let useful = self.waits.saturating_sub(self.again);
        self.together >= self.waits / 4 * 3 && self.waits >= useful.saturating_mul(HERD)
    }
}

/// The condition with the most wakeups for nothing.
pub(super) fn examine(case: &Case) -> Option<Claim> {
    let (tgid, herd) = conditions(case)
        .into_iter()
        .filter(|(_, condition)| condition.is_herd())
        .max_by_key(|(_, condition)| condition.again)?;
    let members = || {
        let threads = case.run.threads.iter().filter(|thread| thread.tgid == tgid);
        threads.filter(|thread| is_member(thread, FUTEX))
    };
    let number = members().count() as u64;
    if number < HERD {
        return None;
    }
    let wakeups = members().fold(0u64, |sum, thread| sum.saturating_add(thread.sleeps));
    let (busy, queued) = busy_queue(case, tgid);
    let mut lost = Accounts::new();
    for (account, ns) in members().flat_map(|thread| thread.accounts.iter()) {
        let ns = match account {
            Account::RunnableWakeup | Account::RunnablePreempted => part_of(ns, busy, queued),
            Account::Spin => ns,
            _ => 0,
        };
        lost.add(account, part_of(ns, herd.again.min(wakeups), wakeups));
    }
    let title = format!(
        "threads of {} are woken together by one condition, and {} of them wait for it again at once",
        case.process_name(tgid),
        percent(herd.again, herd.waits)
    );
    let mut claim = Claim::new(title, lost, herd.again);
    claim.fix = Some(FIX);
    claim.mechanism(format!(
        "wakeups for nothing cost {} of waiting for a CPU, behind each other and behind the one that had \
         something to do",
        duration(claim.lost.sum_of(Account::is_waiting_for_cpu))
    ));
    claim.trigger(format!(
        "{} were woken {} times, {} of them together with others; after {} they waited for the same \
         again, without having done anything",
        counted(number, "thread"),
        count(herd.waits),
        count(herd.together),
        count(herd.again)
    ));
    claim.saw(
        format!(
            "{} for the condition, mean {}",
            counted(herd.waits, "wait"),
            mean(herd.ns, herd.waits)
        ),
        "futex arguments at sched_switch, waker at sched_waking",
    );
    rule_out_runqueue(case, tgid, &mut claim);
    Some(claim)
}

/// By process and address: the two words of one of glibc lie side by side.
fn conditions(case: &Case) -> Vec<(u32, Condition)> {
    let mut all = BTreeMap::<(u32, u64), Condition>::new();
    let waits = case.whole().sums.waits.iter().filter(|wait| wait.account == FUTEX);
    for wait in waits.filter(|wait| case.process(wait.tgid).is_some()) {
        all.entry((wait.tgid, wait.object >> 3)).or_default().add(wait);
    }
    all.into_iter().map(|((tgid, _), condition)| (tgid, condition)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RunBuilder, SECOND, USER, runner, wait};

    const WOKEN: Account = Account::RunnableWakeup;

    /// 8 threads that are woken 1,000 times each, `together` of which with others, and wait `again`.
    fn waiters(together: u64, again: u64) -> model::Run {
        let mut run = RunBuilder::new().runner(runner(10, 10, 900, 8 * SECOND));
        for tid in 10..18 {
            let accounts = [(USER, SECOND), (WOKEN, SECOND), (FUTEX, 2 * SECOND)];
            run = run.thread(tid, 10, &accounts).sleeps(1_000);
        }
        // The two words of one condition.
        for object in [0x1000, 0x1004] {
            let sum = wait(10, FUTEX, object, 4_000, 8 * SECOND);
            run = run.wait(WaitSum { many: together / 2, again: again / 2, ..sum });
        }
        run.build()
    }

    #[test]
    fn threads_that_look_and_wait_again_are_a_herd() {
        let run = waiters(8_000, 7_000);
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!((claim.lost.get(WOKEN), claim.waits), (7 * SECOND, 7_000));
        assert!(claim.title.contains("88 % of them wait for it again"), "{}", claim.title);
        assert!(claim.ruled_out.iter().any(|other| other.cause == "cpu-runqueue"));
        assert_eq!(crate::explain(&run).findings[0].cause, "thundering-herd");
    }

    #[test]
    fn threads_that_all_go_on_or_are_woken_one_by_one_are_none() {
        assert!(examine(&Case::new(&waiters(8_000, 5_000))).is_none(), "three in eight have work");
        assert!(examine(&Case::new(&waiters(4_000, 7_000))).is_none(), "a lock that is handed on");
    }
}
