//! Waits for child processes that are started one after the other: each is asked for something, and
//! its end or what it writes is the answer. One child alone is what its parent is there for: the command
//! of a wrapper; so are those that go on until the end, the workers of a server. What children compute is
//! their parent's own work, done by others, unless somebody waits for the parent.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use model::{Account, Blocked, EventKind, Run, ServiceRole, WaitSum};

use super::answers::Answers;
use super::lock_word::LockWord;

const CHILD: Account = Account::Blocked(Blocked::ChildWait);
const PIPE: Account = Account::Blocked(Blocked::PipeRead);
/// In what an event loop waits for whatever comes, or a shell for SIGCHLD.
const EVENTS: [Account; 2] = [Account::Blocked(Blocked::Poll), Account::Blocked(Blocked::Other)];
/// Fewer child processes of one name are not one after the other.
const FEWEST: usize = 3;
/// An event loop waits for its children if one in so many waits at most ended otherwise. A server that
/// starts a process for each connection waits for connections, too.
const OTHERWISE: u64 = 10;
/// Generations between who waits and who writes: a shell between them is one.
const GENERATIONS: usize = 8;

/// By process, account and name of the child.
pub(super) fn of_children(run: &Run, locks: &[LockWord]) -> impl Iterator<Item = Answers> {
    let family = Family::of(run);
    let loops = loops_of_children(run, &family);
    let is_lock = |wait: &WaitSum| locks.iter().any(|word| word.is_of(wait));
    let is_for_child = |wait: &&WaitSum| match wait.account {
        CHILD => is_by_another(wait),
        PIPE => family.ended(wait) && !is_lock(wait),
        account => family.ended(wait) && loops.contains(&(wait.tgid, account)),
    };
    let mut sums = BTreeMap::<(u32, Account, &str), (BTreeSet<u32>, Answers)>::new();
    // The command `sleep` is the timer of the script that calls it. Answers on sockets are known as such.
    let others = run.sums.waits.iter().filter(|wait| wait.waker_comm != "sleep" && !wait.asked);
    for wait in others.filter(is_for_child) {
        let works_for_one = !is_waited_for(run, wait.tgid);
        let none = || (BTreeSet::new(), Answers::of_children(wait, works_for_one));
        let key = (wait.tgid, wait.account, wait.waker_comm.as_str());
        let (children, sum) = sums.entry(key).or_insert_with(none);
        children.insert(wait.waker_tgid);
        sum.add(wait);
    }
    // Half of the time in one wait is that for something that goes on until the end.
    let again = |(children, sum): &(BTreeSet<u32>, Answers)| {
        children.len() >= FEWEST && sum.max_ns <= sum.ns / 2
    };
    let with_number = |(children, mut sum): (BTreeSet<u32>, Answers)| {
        sum.children = children.len() as u64;
        sum
    };
    sums.into_values().filter(again).map(with_number)
}

/// The processes whose event loops wait for children and for little else, with the account.
fn loops_of_children(run: &Run, family: &Family) -> BTreeSet<(u32, Account)> {
    let mut waits = BTreeMap::<(u32, Account), (u64, u64)>::new();
    for wait in run.sums.waits.iter().filter(|wait| EVENTS.contains(&wait.account)) {
        let (all, by_children) = waits.entry((wait.tgid, wait.account)).or_default();
        *all = all.saturating_add(wait.count);
        if family.ended(wait) {
            *by_children = by_children.saturating_add(wait.count);
        }
    }
    let is_loop = |(all, by_children): &(u64, u64)| all - by_children <= all / OTHERWISE;
    waits.into_iter().filter(|(_, counts)| is_loop(counts)).map(|(key, _)| key).collect()
}

/// It, or another process of its name, answers requests, or a recorded thread has waited for an answer of it.
fn is_waited_for(run: &Run, tgid: u32) -> bool {
    let is_it = |other: u32| other == tgid || (other != 0 && run.comm(other) == run.comm(tgid));
    let mut services = run.sums.services.iter();
    let mut asked = run.sums.waits.iter().filter(|wait| wait.asked);
    services.any(|service| service.role == ServiceRole::Server && is_it(service.tgid))
        || asked.any(|wait| wait.waker_tgid != wait.tgid && is_it(wait.waker_tgid))
}

fn is_by_another(wait: &WaitSum) -> bool {
    wait.waker_tgid != 0 && wait.waker_tgid != wait.tgid
}

/// The parent of each process that was seen to begin.
struct Family(HashMap<u32, u32>);

impl Family {
    fn of(run: &Run) -> Family {
        let forks = run.events.iter().filter(|event| event.kind == EventKind::Fork);
        Family(forks.map(|fork| (fork.value as u32, fork.tgid)).collect())
    }

    /// True of a wait that a child ended, or a child of a child.
    fn ended(&self, wait: &WaitSum) -> bool {
        let parent = |process: &u32| self.0.get(process).copied();
        let ancestors = std::iter::successors(parent(&wait.waker_tgid), parent).take(GENERATIONS);
        is_by_another(wait) && ancestors.into_iter().any(|ancestor| ancestor == wait.tgid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RunBuilder, wait};
    use model::{ChainEnd, Event, EventDetail};

    const POLL: Account = EVENTS[0];

    /// Process 10 starts one process for each wait, which ends that.
    fn run(account: Account, comm: &str, waits: &[u64]) -> RunBuilder {
        let mut run = others(account, comm, waits);
        for child in (20..).take(waits.len()) {
            run = run.event(Event {
                time_ns: 5,
                kind: EventKind::Fork,
                tid: 10,
                tgid: 10,
                value: child,
                detail: EventDetail::Program("sh".into()),
            });
        }
        run
    }

    /// Somebody else has started these processes.
    fn others(account: Account, comm: &str, waits: &[u64]) -> RunBuilder {
        let run = RunBuilder::new().thread(10, 10, &[(account, 10_000)]);
        (20..).zip(waits).fold(run, |run, (child, ns)| {
            run.wait(WaitSum {
                waker_tgid: child,
                waker_comm: comm.into(),
                ends: [(ChainEnd::Timer, *ns)].into(),
                ..wait(10, account, 0, 1, *ns)
            })
        })
    }

    fn lost(run: RunBuilder) -> Vec<(String, u64)> {
        let answers = of_children(&run.build(), &[]).collect::<Vec<_>>();
        answers.iter().map(|answers| (answers.peer_name(), answers.lost_ns())).collect()
    }

    #[test]
    fn children_that_are_started_one_after_the_other_are_asked_however_they_are_waited_for() {
        for account in [CHILD, PIPE, POLL] {
            let name = "child processes named gzip".to_owned();
            assert_eq!(lost(run(account, "gzip", &[100, 200, 150])), [(name, 450)]);
        }
    }

    #[test]
    fn what_a_wrapper_or_a_server_starts_is_not_and_sleep_is_the_scripts_own_timer() {
        assert_eq!(lost(run(CHILD, "server", &[1000])), []);
        let workers_that_end_together = [1000, 2, 3, 2];
        assert_eq!(lost(run(CHILD, "worker", &workers_that_end_together)), []);
        assert_eq!(lost(run(CHILD, "sleep", &[100, 100, 100])), []);
    }

    #[test]
    fn what_children_compute_is_lost_only_if_somebody_waits_for_their_parent() {
        let run = |asked| {
            let mut run = run(CHILD, "gzip", &[100, 200, 150]).build();
            for wait in &mut run.sums.waits {
                wait.ends = [(ChainEnd::Cpu, wait.ns)].into();
            }
            run.sums.waits.push(WaitSum { asked, waker_tgid: 10, ..wait(30, POLL, 0, 3, 500) });
            of_children(&run, &[]).map(|answers| answers.lost_ns()).sum::<u64>()
        };
        assert_eq!((run(false), run(true)), (0, 450));
    }

    #[test]
    fn what_processes_send_that_others_have_started_is_work() {
        for account in [PIPE, POLL] {
            assert_eq!(lost(others(account, "logger", &[100, 200, 150])), []);
        }
    }

    #[test]
    fn a_server_that_starts_a_process_for_each_connection_waits_for_connections() {
        let server = run(POLL, "backend", &[100, 100, 100]);
        let client = WaitSum { waker_tgid: 30, ..wait(10, POLL, 0, 3, 50) };
        assert_eq!(lost(server.wait(client)), []);
    }

    #[test]
    fn a_shell_may_stand_between_who_waits_and_who_writes() {
        let mut run = run(PIPE, "gzip", &[100, 200, 150]).build();
        for event in &mut run.events {
            event.tgid = 15;
        }
        assert_eq!(of_children(&run, &[]).count(), 0, "the shell is not known");
        let shell = Event { tgid: 10, value: 15, ..run.events[0].clone() };
        run.events.push(shell);
        assert_eq!(of_children(&run, &[]).count(), 1);
    }
}
