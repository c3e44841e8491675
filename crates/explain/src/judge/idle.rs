//! What counts as waiting for work, and what of it whylag cannot see into: where nothing is found, the
//! answer may be there.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use model::{Account, Finding, LostStack, StackId, UnseenTasks};

use super::unexplained;
use crate::case::Case;
use crate::case::lost::{Class, class};

/// Accounts that are looked into, the largest.
const ACCOUNTS: usize = 2;

/// Stacks that are shown.
const STACKS: usize = 3;
/// A stack is worth a line from this part of the waits for work on.
const WORTH: u64 = 20;

/// A runtime that lets tasks wait inside of a program, where no thread sleeps for them.
struct Runtime {
    name: &'static str,
    /// A function that every program of it runs, or the start of its name.
    function: &'static str,
    waits: &'static str,
    shown_by: &'static str,
}

const RUNTIMES: [Runtime; 5] = [
    Runtime {
        name: "Go",
        function: "runtime.findRunnable",
        waits: "goroutines that wait for one another (mutexes, channels)",
        shown_by: "the block and mutex profiles of runtime/pprof",
    },
    Runtime {
        name: "the Erlang virtual machine",
        function: "erts_",
        waits: "processes with messages in their mailboxes",
        shown_by: "process_info(Pid, message_queue_len), and msacc",
    },
    Runtime {
        name: "tokio",
        function: "tokio::runtime",
        waits: "tasks that wait for one another, or for their turn on a worker",
        shown_by: "tokio-console",
    },
    Runtime {
        name: "libuv (Node.js)",
        function: "uv__io_poll",
        waits: "callbacks that wait for their turn, and jobs queued for the thread pool",
        shown_by: "perf_hooks (monitorEventLoopDelay), and a larger UV_THREADPOOL_SIZE",
    },
    Runtime {
        name: "asyncio",
        function: "BaseEventLoop",
        waits: "tasks that wait for one another (locks, queues), or for their turn",
        shown_by: "PYTHONASYNCIODEBUG=1",
    },
];

/// The largest stacks of the waits for work, where these are most of the time and there is no finding
/// above the bar.
pub fn stacks(case: &Case, idle_ns: u64, findings: &[Finding]) -> Vec<LostStack> {
    if idle_ns < case.wall_ns / 2 || findings.iter().any(|finding| !finding.minor) {
        return Vec::new();
    }
    let idle = |account: Account| {
        (account, case.accounts.get(account).saturating_sub(case.lost.get(account)))
    };
    let accounts = case.accounts.iter().filter(|(account, _)| class(*account) == Class::Idle);
    let mut accounts: Vec<(Account, u64)> = accounts.map(|(account, _)| idle(account)).collect();
    accounts.sort_by_key(|(_, ns)| Reverse(*ns));
    accounts.truncate(ACCOUNTS);
    let mut stacks = unexplained::stacks(case, &accounts);
    stacks.retain(|stack| stack.ns >= idle_ns / WORTH);
    stacks.truncate(STACKS);
    stacks
}

/// The runtimes whose functions are in the stacks of the recorded threads' waits.
pub fn unseen_tasks(case: &Case) -> Vec<UnseenTasks> {
    let run = case.run;
    let paths = run.sums.paths.iter().filter_map(|path| path.user);
    let kept = run.sums.stack_sums.iter().filter_map(|sum| sum.user);
    let stacks: BTreeSet<StackId> = paths.chain(kept).collect();
    let is_of = |id: &StackId, runtime: &Runtime| {
        let frames = run.stacks.get(id).into_iter().flat_map(|stack| &stack.frames);
        let mut symbols = frames.filter_map(|frame| frame.symbol.as_deref());
        symbols.any(|symbol| symbol.trim_start_matches('<').starts_with(runtime.function))
    };
    RUNTIMES
        .iter()
        .filter(|runtime| stacks.iter().any(|id| is_of(id, runtime)))
        .map(|runtime| UnseenTasks {
            runtime: runtime.name.to_owned(),
            waits: runtime.waits.to_owned(),
            shown_by: runtime.shown_by.to_owned(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RunBuilder, SECOND, USER, user_stack};
    use model::{Blocked, StackSum};

    const POLL: Account = Account::Blocked(Blocked::Poll);

    /// A thread that waits for so long in this function, and runs for a second.
    fn waiting(function: &str, ns: u64) -> model::Explanation {
        let stack = user_stack(function);
        let mut run = RunBuilder::new().thread(10, 10, &[(USER, SECOND), (POLL, ns)]).build();
        run.sums.stack_sums.push(StackSum {
            tgid: 10,
            account: POLL,
            kernel: None,
            user: Some(stack.id),
            count: 7,
            ns,
        });
        run.stacks.insert(stack.id, stack);
        crate::explain(&run)
    }

    #[test]
    fn where_nothing_is_found_the_waits_for_work_are_shown() {
        let answer = waiting("serve", 9 * SECOND);
        let [stack] = &answer.idle_stacks[..] else { panic!("{:?}", answer.idle_stacks) };
        assert_eq!((stack.account, stack.ns, stack.count), (POLL, 9 * SECOND, 7));
        assert_eq!(stack.user, ["serve"]);
        assert_eq!(answer.unseen_tasks, []);
        assert_eq!(waiting("serve", SECOND / 2).idle_stacks, [], "it works most of the time");
    }

    #[test]
    fn runtimes_whose_tasks_wait_inside_of_them_are_named() {
        let answer = waiting("runtime.findRunnable", 9 * SECOND);
        let names: Vec<&str> = answer.unseen_tasks.iter().map(|of| of.runtime.as_str()).collect();
        assert_eq!(names, ["Go"]);
        let answer = waiting("tokio::runtime::park::CachedParkThread::park", 9 * SECOND);
        assert_eq!(answer.unseen_tasks[0].shown_by, "tokio-console");
    }
}
