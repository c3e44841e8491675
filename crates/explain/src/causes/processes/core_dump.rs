//! core-dump: a process crashed, and before it is gone the kernel writes its memory to a file.
//!
//! Whoever waits for the end of the process (a supervisor that starts the next one) waits for
//! that, too.
//!
//! # Evidence
//!
//! Kernel stacks of watched processes in the function that writes the core; the time that takes,
//! with the closing of the file at the exit, and the time that other threads of the process were
//! held for it.
//!
//! # Without whylag
//!
//!     coredumpctl list; cat /proc/sys/kernel/core_pattern
//!     grep CoreDumping /proc/PID/status          # 1 while it writes
//!     dmesg | grep -E 'segfault|traps:'
//!
//! # Sources
//!
//! core(5); fs/coredump.c; proc_pid_coredump_filter(5).

use std::collections::BTreeSet;

use model::{Account, PathSum, RecorderPart};

use crate::case::Case;
use crate::cause::{Absent, Cause, Claim, LookAlike, Needs, Verdict};
use crate::causes::ids;
use crate::text::{count, duration, mean};

pub const CAUSE: Cause = Cause {
    id: ids::CORE_DUMP,
    title: "crashed processes write core dumps before they are gone",
    fix: "Find the crash first. Until then: no core (ulimit -c 0, LimitCORE=0), or less of it \
          (/proc/PID/coredump_filter, madvise(MADV_DONTDUMP) for large buffers), on a fast disk.",
    reproduce: "mysteries/bin/core-dump-faulty 5",
    needs: Needs::parts(&[RecorderPart::Threads, RecorderPart::Samples]).and_kernel_symbols(),
    look_alikes: &[
        LookAlike {
            cause: ids::FSYNC_JOURNAL,
            tell_apart: "read CoreDumping in /proc/PID/status while it waits: 1 is a dump, 0 is a \
                         program that makes a file durable",
            mutual: false,
        },
        LookAlike {
            cause: ids::DIRTY_THROTTLE,
            tell_apart: "read CoreDumping in /proc/PID/status while it waits: 1 is a dump, 0 is an \
                         ordinary writer",
            mutual: false,
        },
        LookAlike {
            cause: ids::MEMCG_RECLAIM,
            tell_apart: "read CoreDumping in /proc/PID/status while it waits: 1 is a dump, 0 is a \
                         live process that needs memory",
            mutual: false,
        },
        LookAlike {
            cause: ids::MMAP_FILE_WRITE,
            tell_apart: "read CoreDumping in /proc/PID/status while it waits: 1 is a dump, 0 is a \
                         live process that stores into a file",
            mutual: false,
        },
    ],
    symptom: false,
    examine,
};

const DUMP: [&str; 2] = ["vfs_coredump", "do_coredump"];
/// Other threads of the process, held until the dump is written.
const HELD: [&str; 2] = ["coredump_task_exit", "coredump_wait"];
/// The dead process gives its memory back.
const TEAR_DOWN: [&str; 1] = ["exit_mmap"];

fn examine(case: &Case) -> Verdict {
    let dumped: BTreeSet<u32> = case
        .run
        .sums
        .paths
        .iter()
        .filter(|path| case.passes(path, &DUMP))
        .map(|path| path.tgid)
        .collect();
    if dumped.is_empty() {
        return Err(Absent("no process was seen writing a core".to_owned()));
    }
    // The core is closed when the process exits: that is when the file system writes it out.
    let closing = |path: &PathSum| {
        dumped.contains(&path.tgid)
            && case.passes(path, &["__fput", "____fput"])
            && case.passes(path, &["do_exit"])
    };
    let writing = case.time_through(&DUMP, |_| true);
    let held = case.time_through(&HELD, |path| !case.passes(path, &DUMP));
    let closed = case.time_through(&[], closing);
    let mut lost = writing.accounts.clone();
    lost.merge(&held.accounts);
    lost.merge(&closed.accounts);
    let total = lost.total();

    let first = dumped.iter().next().copied().unwrap_or(0);
    let n = dumped.len() as u64;
    let who = if n == 1 { "1 process".to_owned() } else { format!("{} processes", count(n)) };
    let title = format!("{who} dumped core: {}", case.process_name(first));
    let mut claim = Claim::new(title, lost, n);
    claim.mechanism(format!(
        "the kernel writes a dead process's memory to a file before anyone is told that it is \
         gone: {} each, {} on the way through its memory, {} closing the file, {} other threads \
         held meanwhile",
        mean(total, n),
        duration(writing.ns()),
        duration(closed.ns()),
        duration(held.ns())
    ));
    claim.trigger("they crashed, and the limit of core files (RLIMIT_CORE) let them".to_owned());
    let names: Vec<_> = dumped.iter().take(3).map(|tgid| case.process_name(*tgid)).collect();
    claim.saw(format!("seen dumping: {}", names.join(", ")), "kernel stacks");
    let ran = case.path_in_words(&DUMP, |path| path.sampled);
    claim.saw_if(ran.map(|p| format!("on a CPU in {p}")), "samples of what ran");
    let slept = case.path_in_words(&[], |path| !path.sampled && closing(path));
    claim.saw_if(slept.map(|p| format!("closing the core in {p}")), "kernel stack of the sleeps");

    rule_out(case, total, &mut claim);
    Ok(claim)
}

fn rule_out(case: &Case, total: u64, claim: &mut Claim) {
    let tear_down = case.time_through(&TEAR_DOWN, |_| true).ns();
    if tear_down < total {
        claim.rule_out(
            ids::HUGE_EXIT,
            format!("giving the memory back took {} of CPU time", duration(tear_down)),
        );
    }
    let in_work = case.accounts.sum_of(|account| matches!(account, Account::Syscall(_)));
    claim.exclude_by(
        Needs::parts(&[RecorderPart::SystemCalls]),
        "system calls that use the disk",
        format!(
            "not in system calls ({} on a CPU in them), but after the crash",
            duration(in_work)
        ),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RunBuilder, SECOND, USER};
    use model::Blocked;

    const DISK: Account = Account::Blocked(Blocked::Disk);

    fn crash(tgid: u32) -> RunBuilder {
        let closing = ["wbt_wait", "ext4_release_file", "__fput", "task_work_run", "do_exit"];
        RunBuilder::new()
            .thread(tgid, tgid, &[(USER, 2 * SECOND), (DISK, SECOND)])
            .sampled_path(tgid, USER, &["elf_core_dump", "vfs_coredump", "get_signal"], 500)
            .sampled_path(tgid, USER, &["exit_mmap", "do_exit"], 100)
            .sampled_path(tgid, USER, &[], 400)
            .slept_path(tgid, DISK, "", &closing, 10, SECOND)
    }

    #[test]
    fn claimed_with_the_closing_of_the_core() {
        let run = crash(10).build();
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!((claim.lost.get(USER), claim.lost.get(DISK)), (SECOND, SECOND));
        assert!(claim.title.starts_with("1 process dumped core"), "{}", claim.title);
        assert!(claim.ruled_out.iter().any(|r| r.cause == "huge-exit"));
    }

    #[test]
    fn a_process_that_exits_without_a_core_is_not_claimed() {
        let closing = ["wbt_wait", "ext4_release_file", "__fput", "task_work_run", "do_exit"];
        let run = RunBuilder::new()
            .thread(10, 10, &[(USER, SECOND), (DISK, SECOND)])
            .slept_path(10, DISK, "", &closing, 10, SECOND)
            .sampled_path(10, USER, &["exit_mmap", "do_exit"], 1000)
            .build();
        assert!(examine(&Case::new(&run)).unwrap_err().0.contains("no process"));
    }
}
