//! Child processes that compute for the one that waits for them. That is work, and no time is lost by it; but who
//! starts an interpreter for each step wants to know that this is where the time goes.

use model::{ChainEnd, WorkingChildren};

use super::finding::share;
use crate::case::Case;

/// The part of the recording in which they are waited for, one in so many.
const WORTH: u64 = 2;

/// Those that are waited for longest, if they run on a CPU for most of that.
pub(super) fn working_children(case: &Case) -> Option<WorkingChildren> {
    let length = case.run.length_ns();
    let of_children = case.answers.iter().filter(|answers| answers.is_of_children());
    let most = of_children.filter(|_| case.scope().is_none()).max_by_key(|answers| answers.ns)?;
    let on_cpu = most.ends.part_of(most.ns, |end| end == ChainEnd::Cpu);
    (most.ns >= length / WORTH && on_cpu > most.ns / 2).then(|| WorkingChildren {
        tgid: most.tgid,
        comm: case.run.comm(most.tgid).to_owned(),
        child: most.peer.clone(),
        children: most.children,
        ns: most.ns,
        share: share(most.ns, length),
    })
}

#[cfg(test)]
mod tests {
    use crate::testing::{RunBuilder, SECOND, USER, wait};
    use model::{Account, Blocked, ChainEnd, WaitSum};

    const CHILD: Account = Account::Blocked(Blocked::ChildWait);

    /// Process 10 waits for `ns` for each of ten children, which do that meanwhile.
    fn found(ns: u64, end: ChainEnd) -> Option<model::WorkingChildren> {
        let mut run = RunBuilder::new().length(10 * SECOND);
        run = run.thread(10, 10, &[(CHILD, 10 * ns), (USER, SECOND)]);
        for child in 20..30 {
            run = run.wait(WaitSum {
                waiter_tid: 10,
                waker_tgid: child,
                waker_tid: child,
                waker_comm: "python3".into(),
                ends: [(end, ns)].into(),
                ..wait(10, CHILD, 0, 2, ns)
            });
        }
        crate::explain(&run.build()).working_children
    }

    #[test]
    fn children_that_compute_one_after_the_other_are_told() {
        let children = found(SECOND * 9 / 10, ChainEnd::Cpu).unwrap();
        assert_eq!(
            (children.tgid, children.child.as_str(), children.children),
            (10, "python3", 10)
        );
        assert!((children.share - 0.9).abs() < 0.01, "{children:?}");
    }

    #[test]
    fn few_of_them_or_such_that_wait_themselves_are_not() {
        assert_eq!(found(SECOND / 10, ChainEnd::Cpu), None);
        assert_eq!(found(SECOND * 9 / 10, ChainEnd::Disk), None);
    }
}
