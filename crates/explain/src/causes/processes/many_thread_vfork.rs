//! many-thread-vfork: a child of vfork exits in the memory of a process with very many mappings.
//!
//! When a process exits, the kernel adds up its mappings for an accounting record (`acct_collect`).
//! A child that was made by vfork or posix_spawn and finds no program to execute exits in its
//! parent's address space: it walks all of the parent's mappings, two for each thread's stack,
//! while the parent sleeps in vfork.
//!
//! # Evidence
//!
//! CPU samples in acct_collect at the exit of processes whose parent has 256 threads or more; the
//! parent's sleep in vfork; calls of execve that failed in the children; that the children freed no
//! memory of their own.
//!
//! # Without whylag
//!
//!     # with CONFIG_KPROBES:
//!     bpftrace -e 'kprobe:acct_collect { @t[tid] = nsecs; }
//!         kretprobe:acct_collect /@t[tid]/ { @us[comm] = hist((nsecs - @t[tid]) / 1000); delete(@t[tid]); }'
//!     strace -f -T -e trace=vfork,clone,clone3,execve -p PID
//!     wc -l /proc/PID/maps; grep Threads /proc/PID/status
//!
//! # Sources
//!
//! vfork(2); posix_spawn(3); kernel/acct.c (acct_collect); kernel/exit.c.

use std::collections::BTreeSet;

use model::{Account, Blocked, RecorderPart, Syscall};

use crate::case::Case;
use crate::cause::{Absent, Cause, Claim, Needs, Verdict};
use crate::causes::ids;
use crate::text::{count, counted, duration, mean, percent};

pub const CAUSE: Cause = Cause {
    id: ids::MANY_THREAD_VFORK,
    title: "children of vfork exit in the address space of a process of many threads",
    fix: "Start programs from a helper process that is made before the threads, look first \
          whether the program is there (access), or run fewer threads.",
    reproduce: "mysteries/bin/many-thread-vfork-faulty 5",
    needs: Needs::parts(&[RecorderPart::Threads, RecorderPart::SystemCalls, RecorderPart::Samples])
        .and_kernel_symbols(),
    look_alikes: &[],
    symptom: false,
    examine,
};

/// Adds up the mappings at the end of a process.
const WALK: &[&str] = &["acct_collect"];
/// Freeing an address space, which a child of vfork does not do.
const TEARDOWN: &[&str] = &["exit_mmap", "unmap_vmas", "free_pgtables"];
/// With fewer threads than this the walk takes no longer than the rest of an exit.
const MANY_THREADS: u64 = 256;

const CHILD_WAIT: Account = Account::Blocked(Blocked::ChildWait);

fn examine(case: &Case) -> Verdict {
    let (parent, threads) = case.largest_process();
    // The parent itself walks its mappings once, when it ends.
    let is_child = |path: &model::PathSum| path.tgid != parent;
    let walked = case.time_through(WALK, is_child);
    if walked.ns() == 0 {
        return Err(Absent(
            "no CPU time was seen in the walk over the mappings of a process that ends \
             (acct_collect)"
                .to_owned(),
        ));
    }
    if threads < MANY_THREADS {
        return Err(Absent(format!(
            "{} in the walk over the mappings of processes that end, but none has more than {}",
            duration(walked.ns()),
            counted(threads, "thread")
        )));
    }

    let all = walked.ns();
    let teardown = case.time_through(TEARDOWN, is_child).ns();
    if teardown > all {
        return Err(Absent(format!(
            "processes that end spent more time freeing memory of their own ({}) than walking \
             mappings ({}): they are not children of vfork",
            duration(teardown),
            duration(all)
        )));
    }
    let children = children(case, parent);
    let asleep = case.process(parent).map_or(0, |accounts| accounts.get(CHILD_WAIT));
    let title = format!(
        "children of {} exit in its address space, which has the stacks of {} threads",
        case.process_name(parent),
        count(threads)
    );
    let mut claim = Claim::new(title, walked.accounts.clone(), walked.observations());
    claim.mechanism(format!(
        "{} added up the mappings of their parent when they exited, {} in all, {} each",
        counted(children, "child process"),
        duration(all),
        mean(all, children)
    ));
    claim.trigger(format!(
        "{} made them by vfork or posix_spawn and slept {} for them; it has {}",
        case.process_name(parent),
        duration(asleep),
        counted(threads, "thread")
    ));
    evidence(case, parent, walked.samples, &mut claim);
    rule_out(case, all, teardown, children, &mut claim);
    Ok(claim)
}

fn evidence(case: &Case, parent: u32, samples: u64, claim: &mut Claim) {
    claim.saw_if(
        case.path_in_words(WALK, |path| path.tgid != parent)
            .map(|path| format!("{} samples under {path}", count(samples))),
        "CPU samples with kernel stacks",
    );
    if let Some(text) = failed_execs(case, parent) {
        claim.saw(text, "sys_exit");
    }
    for name in ["process.threads", "process.vm_size_kb"] {
        if let Some(counter) = case.run.counter(name) {
            let text = format!("{name}: {} at first, {} at the end", counter.first, counter.last);
            claim.saw(text, &counter.source);
        }
    }
}

fn rule_out(case: &Case, walked: u64, teardown: u64, children: u64, claim: &mut Claim) {
    claim.rule_out(
        ids::HUGE_EXIT,
        format!(
            "the children freed no memory of their own: {} in freeing it, {} in the walk",
            duration(teardown),
            duration(walked)
        ),
    );
    let copied = case.time_through(&["copy_page_range", "dup_mmap"], |_| true).ns();
    claim.rule_out(
        ids::FORK_COW,
        format!("{} in copying page tables: they were not made by fork", duration(copied)),
    );
    let waited = case.accounts.sum_of(|account| account.is_waiting_for_cpu());
    claim.rule_out(
        ids::CPU_RUNQUEUE,
        format!(
            "this is time on a CPU; all waiting for one together is {} of the wall time",
            percent(waited, case.wall_ns)
        ),
    );
    if children < 10 {
        claim.doubt(0.7, "fewer than 10 child processes");
    }
}

/// Other watched processes that were seen to exit.
fn children(case: &Case, parent: u32) -> u64 {
    let exit = Syscall::named("exit_group").map(Account::Syscall);
    let exits = |accounts: &model::Accounts| exit.is_some_and(|exit| accounts.get(exit) > 0);
    let all: BTreeSet<u32> = case
        .processes()
        .filter(|(tgid, accounts)| *tgid != parent && exits(accounts))
        .map(|(tgid, _)| tgid)
        .collect();
    all.len() as u64
}

/// Programs that children could not execute.
fn failed_execs(case: &Case, parent: u32) -> Option<String> {
    let execve = Syscall::named("execve")?;
    let failed = case.run.sums.call_errors.iter().filter(|e| e.call == execve && e.tgid != parent);
    let failed = failed.fold(0u64, |sum, error| sum.saturating_add(error.count));
    (failed > 0).then(|| format!("{} of execve failed in child processes", counted(failed, "call")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RunBuilder, SECOND, USER};

    fn exit() -> Account {
        Account::Syscall(Syscall::named("exit_group").unwrap())
    }

    /// A process of `threads` threads with 100 children, 5 ms of exiting each.
    fn server(threads: u32) -> RunBuilder {
        let mut builder = RunBuilder::new().thread(10, 10, &[(USER, SECOND), (CHILD_WAIT, SECOND)]);
        for tid in 11..10 + threads {
            builder = builder.thread(tid, 10, &[(USER, 1000)]);
        }
        for tgid in 50_000..50_100 {
            builder = builder.thread(tgid, tgid, &[(exit(), SECOND / 200)]);
        }
        builder
    }

    #[test]
    fn the_walk_of_the_children_is_claimed() {
        let run = server(5000)
            .sampled_path(50_000, exit(), &["acct_collect", "do_exit"], 3)
            .sampled_path(50_001, exit(), &["mas_find", "acct_collect", "do_exit"], 5)
            .sampled_path(50_002, exit(), &["do_exit"], 2)
            .call_error(50_001, "execve", 2, 100)
            .build();
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!(claim.lost.get(exit()), SECOND / 200 * 80);
        assert!(claim.chain[0].text.starts_with("100 child processes"), "{}", claim.chain[0].text);
        assert!(claim.ruled_out.iter().any(|r| r.cause == "huge-exit"));
    }

    #[test]
    fn a_process_of_few_threads_is_not_this() {
        let run = server(8).sampled_path(50_000, exit(), &["acct_collect"], 10).build();
        let Absent(missing) = examine(&Case::new(&run)).unwrap_err();
        assert!(missing.contains("8 threads"), "{missing}");
    }

    #[test]
    fn freeing_own_memory_is_not_this() {
        let run = server(5000)
            .sampled_path(50_000, exit(), &["acct_collect"], 1)
            .sampled_path(50_000, exit(), &["unmap_vmas", "exit_mmap"], 9)
            .build();
        let Absent(missing) = examine(&Case::new(&run)).unwrap_err();
        assert!(missing.contains("freeing memory"), "{missing}");
    }

    #[test]
    fn the_end_of_the_parent_itself_is_not_this() {
        let run = server(5000).sampled_path(10, exit(), &["acct_collect"], 10).build();
        assert!(examine(&Case::new(&run)).is_err());
    }
}
