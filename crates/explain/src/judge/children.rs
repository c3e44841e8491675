//! Waits for child processes that are not recorded: what they did is not known, whatever else is found.

use model::{Account, Blocked, Run};

use crate::case::Case;

const CHILD: Account = Account::Blocked(Blocked::ChildWait);

/// How long the threads waited for child processes that are not recorded themselves: those that ended
/// the waits, and those of which the only recorded process still waits.
pub fn unrecorded_ns(case: &Case) -> u64 {
    let run = case.run;
    let is_recorded = |tgid: u32| run.threads.iter().any(|thread| thread.tgid == tgid);
    let waits = run.sums.waits.iter().filter(|wait| wait.account == CHILD);
    let unrecorded = waits.filter(|wait| match wait.waker_tgid {
        0 => wait.open > 0 && is_alone(run, wait.tgid),
        child => !is_recorded(child),
    });
    unrecorded.fold(0, |sum, wait| sum.saturating_add(wait.ns))
}

/// No other process is recorded.
fn is_alone(run: &Run, tgid: u32) -> bool {
    run.threads.iter().all(|thread| thread.tgid == tgid)
}

#[cfg(test)]
mod tests {
    use model::WaitSum;

    use super::*;
    use crate::testing::{RunBuilder, SECOND, USER, wait};

    fn for_child(child: u32) -> WaitSum {
        WaitSum { waker_tgid: child, ..wait(10, CHILD, 0, 1, SECOND) }
    }

    #[test]
    fn what_recorded_children_are_waited_for_is_known() {
        let shell = || RunBuilder::new().thread(10, 10, &[(USER, SECOND), (CHILD, 2 * SECOND)]);
        let run = shell().wait(for_child(11)).wait(wait(10, CHILD, 0, 1, SECOND));
        assert_eq!(crate::explain(&run.build()).unrecorded_children_ns, SECOND);
        let recorded = shell().wait(for_child(11)).thread(11, 11, &[(USER, SECOND)]);
        assert_eq!(crate::explain(&recorded.build()).unrecorded_children_ns, 0);
    }

    #[test]
    fn a_child_that_has_not_ended_is_none_that_is_recorded_if_nothing_else_is() {
        let open = || WaitSum { open: 1, ..wait(10, CHILD, 0, 1, SECOND) };
        let alone = RunBuilder::new().thread(10, 10, &[(CHILD, SECOND)]).wait(open());
        assert_eq!(crate::explain(&alone.build()).unrecorded_children_ns, SECOND);
        let two = RunBuilder::new().thread(10, 10, &[(CHILD, SECOND)]).wait(open());
        let two = two.thread(12, 12, &[(USER, SECOND)]);
        assert_eq!(crate::explain(&two.build()).unrecorded_children_ns, 0);
    }
}
