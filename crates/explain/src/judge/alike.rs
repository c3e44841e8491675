//! The title of a claim that hurts several processes of one name alike: which one of them it names is
//! chance, so it says how many others there are.

use super::hurt::{self, Share};
use crate::case::Case;
use crate::cause::Claim;

/// Who loses at least one in so many of what the named one loses is hurt like it.
const ALIKE: u64 = 4;

/// `postgres (pid 4711 and 7 like it) waits ...`
pub(super) fn title(case: &Case, claim: &Claim) -> String {
    let says_how_many = claim.title.starts_with(|first: char| first.is_ascii_digit());
    if says_how_many {
        return claim.title.clone();
    }
    let hurt: Vec<Share> =
        hurt::shares(case, claim).filter(|one| one.tid.is_none() && one.claimed_ns > 0).collect();
    let named = hurt.iter().filter_map(|one| {
        let name = case.process_name(one.tgid);
        claim.title.find(&name).map(|at| (at, name, one))
    });
    let Some((_, name, named)) = named.min_by_key(|(at, ..)| *at) else {
        return claim.title.clone();
    };
    let comm = |tgid| case.run.comm(tgid);
    let is_like_it = |one: &&Share| {
        one.tgid != named.tgid
            && comm(one.tgid) == comm(named.tgid)
            && one.claimed_ns >= named.claimed_ns / ALIKE
    };
    match (hurt.iter().filter(is_like_it).count(), name.strip_suffix(')')) {
        (0, _) | (_, None) => claim.title.clone(),
        (others, Some(open)) => {
            claim.title.replacen(&name, &format!("{open} and {others} like it)"), 1)
        }
    }
}

#[cfg(test)]
mod tests {
    use model::{Account, Run};

    use super::*;
    use crate::testing::{RunBuilder, SECOND, USER};

    const QUEUED: Account = Account::RunnablePreempted;

    /// Processes of one name that wait for a CPU so long.
    fn workers(waits: &[u64]) -> Run {
        let mut run = RunBuilder::new();
        for (tgid, ns) in (10..).zip(waits) {
            run = run.thread(tgid, tgid, &[(USER, SECOND), (QUEUED, *ns)]);
        }
        let mut run = run.build();
        run.processes.iter_mut().for_each(|process| process.comm = "worker".into());
        run
    }

    fn titled(run: &Run, title: &str) -> String {
        let case = Case::new(run);
        let lost = [(QUEUED, case.accounts.get(QUEUED))].into_iter().collect();
        super::title(&case, &Claim::new(title.to_owned(), lost, 100))
    }

    #[test]
    fn of_several_that_lose_alike_the_title_says_how_many() {
        let run = workers(&[SECOND, SECOND / 2, SECOND / 4, SECOND / 5]);
        let title = "worker (pid 10) waits for worker (pid 12)";
        assert_eq!(titled(&run, title), "worker (pid 10 and 2 like it) waits for worker (pid 12)");
        // All of them lose at least a quarter of what this one does.
        assert_eq!(
            titled(&run, "a lock of worker (pid 13)"),
            "a lock of worker (pid 13 and 3 like it)"
        );
    }

    #[test]
    fn one_that_loses_alone_others_of_another_name_and_no_process_are_left_as_they_are() {
        let alone = "worker (pid 10) waits";
        assert_eq!(titled(&workers(&[SECOND, SECOND / 5]), alone), alone);
        let mut run = workers(&[SECOND, SECOND]);
        run.processes[1].comm = "other".into();
        assert_eq!(titled(&run, alone), alone);
        let run = workers(&[SECOND, SECOND]);
        assert_eq!(titled(&run, "too many threads"), "too many threads");
        assert_eq!(titled(&run, "netstat (pid 77) reads"), "netstat (pid 77) reads");
        let counted = "2 processes dumped core: worker (pid 10)";
        assert_eq!(titled(&run, counted), counted);
    }
}
