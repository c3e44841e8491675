//! Scripts that try again: each try is a child process, and so is each sleep between two of them
//! (`until mkdir lock; do sleep 1; done`).

use std::collections::{BTreeMap, HashMap};

use model::{Account, Blocked, CallError, Event, EventKind, Retry, Run, WaitSum};

const EEXIST: i32 = 17;
const ECONNREFUSED: i32 = 111;
/// In which a shell waits for a child.
const CHILD: Account = Account::Blocked(Blocked::ChildWait);

const MAKE_FILES: [&str; 8] =
    ["mkdir", "mkdirat", "open", "openat", "link", "linkat", "symlink", "symlinkat"];

/// What a child process did for its script.
enum Step<'a> {
    /// The command `sleep`: so the script slept.
    Slept(&'a WaitSum),
    /// It was refused something.
    Refused(&'a CallError),
    /// Neither.
    Did,
}

/// Tries that were refused, and the sleeps up to the next try; without names.
#[derive(Default)]
struct Row<'a> {
    /// The last try.
    of: Option<&'a CallError>,
    /// Since that.
    slept: Vec<&'a WaitSum>,
    /// Up to that.
    between: Vec<&'a WaitSum>,
}

/// A command that was refused something, `sleep`, and the same command again, one after the other. Of a
/// file only those count that were made in the end: where it is there already that may do as well (mkdir
/// -p).
pub(super) fn retries(run: &Run) -> Vec<Retry> {
    let slept = |wait: &&WaitSum| wait.account == CHILD && wait.waker_comm == "sleep";
    let sleeps: HashMap<_, _> = run
        .sums
        .waits
        .iter()
        .filter(slept)
        .map(|wait| ((wait.tgid, wait.waker_tgid), wait))
        .collect();
    // Most runs have no script that sleeps.
    if sleeps.is_empty() {
        return Vec::new();
    }
    let mut children = BTreeMap::<u32, Vec<&Event>>::new();
    for fork in run.events.iter().filter(|event| event.kind == EventKind::Fork) {
        children.entry(fork.tgid).or_default().push(fork);
    }
    let refused = run.sums.call_errors.iter().filter(|error| is_refusal(error));
    let refused: HashMap<u32, &CallError> = refused.map(|error| (error.tgid, error)).collect();
    let mut found = Vec::new();
    for (script, mut forks) in children {
        forks.sort_by_key(|fork| fork.time_ns);
        let step = |child: u32| match (sleeps.get(&(script, child)), refused.get(&child)) {
            (Some(wait), _) => Step::Slept(wait),
            (None, Some(error)) => Step::Refused(error),
            (None, None) => Step::Did,
        };
        let steps = forks.iter().map(|fork| fork.value as u32).map(|child| (child, step(child)));
        of_script(run, script, steps, &mut found);
    }
    found
}

fn is_refusal(error: &CallError) -> bool {
    match error.errno {
        EEXIST => error.call.is_one_of(&MAKE_FILES),
        ECONNREFUSED => error.call.is_one_of(&["connect"]),
        _ => false,
    }
}

fn of_script<'a>(
    run: &Run,
    script: u32,
    steps: impl Iterator<Item = (u32, Step<'a>)>,
    found: &mut Vec<Retry>,
) {
    let mut row = Row::default();
    for (child, step) in steps {
        match (step, row.of) {
            (Step::Slept(wait), _) => row.slept.push(wait),
            (Step::Refused(error), Some(of))
                if is_same(run, of, child) && error.call == of.call =>
            {
                row.between.append(&mut row.slept);
            }
            (Step::Refused(error), _) => {
                row.end(script, false, found);
                row.of = Some(error);
            }
            (Step::Did, Some(of)) => {
                let won = is_same(run, of, child);
                if won {
                    row.between.append(&mut row.slept);
                }
                row.end(script, won, found);
            }
            (Step::Did, None) => row.slept.clear(),
        }
    }
    row.end(script, false, found);
}

/// A process of the same name as that of the try.
fn is_same(run: &Run, of: &CallError, child: u32) -> bool {
    run.comm(of.tgid) == run.comm(child)
}

impl Row<'_> {
    fn end(&mut self, script: u32, won: bool, found: &mut Vec<Retry>) {
        let row = std::mem::take(self);
        let Some(of) = row.of.filter(|of| won || of.errno != EEXIST) else { return };
        let ns = row.between.iter().fold(0u64, |sum, wait| sum.saturating_add(wait.ns));
        if ns == 0 {
            return;
        }
        found.push(Retry {
            tgid: script,
            call: of.call,
            errno: of.errno,
            object: 0,
            pipe: false,
            name: None,
            account: CHILD,
            count: row.between.len() as u64,
            ns,
            max_ns: row.between.iter().map(|wait| wait.ns).max().unwrap_or(0),
            won_ns: if won { ns } else { 0 },
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RunBuilder, SECOND, wait};
    use model::EventDetail;

    /// A script whose children have these names; those that end with `!` are refused by `call`.
    fn script(call: &str, errno: i32, children: &[&str]) -> Run {
        let mut run = RunBuilder::new().thread(10, 10, &[(CHILD, 10 * SECOND)]);
        for (child, name) in (20..).zip(children) {
            run = run.thread(child, child, &[]).event(Event {
                time_ns: u64::from(child) * SECOND,
                kind: EventKind::Fork,
                tid: 10,
                tgid: 10,
                value: child.into(),
                detail: EventDetail::Program("sh".into()),
            });
            run = match (*name, name.strip_suffix('!')) {
                ("sleep", _) => run.wait(WaitSum {
                    waker_tgid: child,
                    waker_comm: "sleep".into(),
                    ..wait(10, CHILD, 0, 1, SECOND)
                }),
                (_, Some(_)) => run.call_error(child, call, errno, 1),
                _ => run,
            };
        }
        let mut run = run.build();
        for process in run.processes.iter_mut().filter(|process| process.tgid >= 20) {
            process.comm = children[process.tgid as usize - 20].trim_end_matches('!').into();
        }
        run
    }

    fn ns(run: &Run) -> Vec<(u64, u64)> {
        retries(run).iter().map(|retry| (retry.ns, retry.won_ns)).collect()
    }

    #[test]
    fn sleeps_between_tries_of_a_script_are_waits_for_the_lock() {
        let children = ["mkdir!", "sleep", "mkdir!", "sleep", "mkdir", "rmdir", "sleep"];
        let run = script("mkdir", 17, &children);
        assert_eq!(ns(&run), [(2 * SECOND, 2 * SECOND)]);
        let found = &crate::explain(&run).findings[0];
        assert_eq!((found.cause.as_str(), found.lost_ns), ("file-lock", 2 * SECOND));
    }

    #[test]
    fn who_makes_sure_of_a_folder_each_time_does_not_wait() {
        assert!(
            ns(&script("mkdir", 17, &["mkdir!", "sleep", "mkdir!", "sleep", "mkdir!"])).is_empty()
        );
        assert!(ns(&script("mkdir", 17, &["mkdir!", "cp", "sleep", "mkdir"])).is_empty());
    }

    #[test]
    fn who_connects_waits_though_nobody_listens_in_the_end() {
        let run = script("connect", 111, &["nc!", "sleep", "nc!", "sleep", "nc!"]);
        assert_eq!(ns(&run), [(2 * SECOND, 0)]);
        assert_eq!(ns(&script("connect", 111, &["nc!", "sleep", "nc"])), [(SECOND, SECOND)]);
        assert!(ns(&script("connect", 104, &["nc!", "sleep", "nc"])).is_empty());
    }
}
