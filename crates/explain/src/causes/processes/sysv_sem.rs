//! sysv-sem: processes that share nothing wait for each other to make and remove System V
//! semaphores.
//!
//! All semaphore sets of an IPC namespace are in one table. semget and semctl(IPC_RMID) take its
//! lock for writing and hold it while a set is allocated and cleared. (Unnamed POSIX semaphores are
//! no kernel objects on Linux and cannot have this fault.)
//!
//! # Evidence
//!
//! CPU samples that spin, and sleeps, for a read-write semaphore of the kernel within semget and
//! semctl; the waits for a CPU after these sleeps; how often the calls were made, and by how many
//! processes.
//!
//! # Without whylag
//!
//!     nsenter -t PID -i ipcs -s | wc -l          # sets in its IPC namespace
//!     strace -f -c -e trace=semget,semctl -p PID
//!     perf lock record -a -- sleep 5; perf lock contention   # since Linux 5.19
//!
//! # Sources
//!
//! semget(2); sysvipc(7); ipc/util.c; ipc/sem.c.

use std::collections::BTreeSet;

use model::{Account, Blocked, RecorderPart};

use crate::case::Case;
use crate::case::mmap_holders::is_mmap_lock;
use crate::cause::{Absent, Cause, Claim, LookAlike, Needs, Verdict};
use crate::causes::ids;
use crate::causes::processes::ipc_tables::{
    WAIT, calls_in_words, is_one_of, lock_in_words, waited,
};
use crate::text::{counted, duration, percent};

pub const CAUSE: Cause = Cause {
    id: ids::SYSV_SEM,
    title: "processes wait for the lock of the table of System V semaphores",
    fix: "Make the sets once and keep them, use unnamed POSIX semaphores (sem_init: no kernel \
          object), or give unrelated jobs IPC namespaces of their own (unshare --ipc).",
    reproduce: "mysteries/bin/sysv-sem-faulty 5",
    needs: Needs::parts(&[RecorderPart::Threads, RecorderPart::Samples, RecorderPart::Locks])
        .and_kernel_symbols(),
    look_alikes: &[LookAlike {
        cause: ids::SHM_ATTACH,
        tell_apart: "see the call that waits: semget and semctl against shmat and shmdt",
        mutual: true,
    }],
    symptom: false,
    examine,
};

/// Calls that change the table, or list it.
const CALLS: &[&str] = &["semget", "semctl"];

fn examine(case: &Case) -> Verdict {
    let wait = waited(case, CALLS);
    if wait.time.ns() == 0 {
        let calls = calls_in_words(case, CALLS);
        return Err(Absent(match calls {
            Some(calls) => format!("no waiting for a kernel lock in semget or semctl ({calls})"),
            None => "neither semget nor semctl was called".to_owned(),
        }));
    }

    let users = users(case);
    let title =
        format!("{} wait for the one lock of all System V semaphores", counted(users, "process"));
    let mut claim = Claim::new(title, wait.time.accounts.clone(), wait.time.observations());
    claim.mechanism(format!(
        "semget and semctl: {} (rw-semaphore of the IPC namespace's table)",
        lock_in_words(&wait)
    ));
    if let Some(calls) = calls_in_words(case, CALLS) {
        claim.trigger(format!("sets are made and removed all the time: {calls}"));
        claim.saw(calls, "system call histograms (sys_enter, sys_exit)");
    }
    let here = |path: &model::PathSum| is_one_of(path, CALLS);
    claim.saw_if(
        case.path_in_words(WAIT, here),
        "the most frequent stack in the lock, kernel first (CPU samples, sched_switch)",
    );
    rule_out(case, wait.spun_ns, wait.slept_ns, &mut claim);
    if users < 2 {
        claim.doubt(0.8, "only one process was recorded: who else holds the lock is not known");
    }
    Ok(claim)
}

fn rule_out(case: &Case, spun_ns: u64, slept_ns: u64, claim: &mut Claim) {
    let mapping = case.accounts.sum_of(is_mmap_lock);
    claim.rule_out(
        ids::MMAP_LOCK,
        format!(
            "{} asleep for an mmap_lock; this lock is taken in semget and semctl, which map nothing",
            duration(mapping)
        ),
    );
    let queued = case.accounts.sum_of(|account| account.is_waiting_for_cpu());
    claim.rule_out(
        ids::CPU_RUNQUEUE,
        format!(
            "{} were on a CPU, spinning, or asleep, not ready to run; waiting for a CPU is {} of \
             the wall time",
            duration(spun_ns.saturating_add(slept_ns)),
            percent(queued, case.wall_ns)
        ),
    );
    let futex = case.lost.get(Account::Blocked(Blocked::Futex));
    claim.rule_out(
        ids::FUTEX_CONVOY,
        format!("{} for locks in user space; the stack ends in a kernel table", duration(futex)),
    );
}

/// Watched processes that made such calls.
fn users(case: &Case) -> u64 {
    let paths = case.run.sums.paths.iter().filter(|path| is_one_of(path, CALLS));
    let users: BTreeSet<u32> = paths.map(|path| path.tgid).collect();
    users.into_iter().filter(|tgid| case.process(*tgid).is_some()).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RunBuilder, SECOND, USER};
    use model::Syscall;

    const RWSEM: Account = Account::Blocked(Blocked::Rwsem);
    const LOCK: [&str; 3] = ["rwsem_spin_on_owner", "rwsem_down_write_slowpath", "down_write"];

    fn in_call(name: &str) -> Account {
        Account::Syscall(Syscall::named(name).unwrap())
    }

    fn jobs() -> RunBuilder {
        let mut builder = RunBuilder::new();
        for tgid in [10, 11] {
            builder = builder
                .thread(tgid, tgid, &[(USER, SECOND), (in_call("semget"), SECOND), (RWSEM, SECOND)])
                .sampled_path(tgid, in_call("semget"), &["newary", "ipcget"], 40);
        }
        builder
    }

    #[test]
    fn spinning_and_sleeping_for_the_table_are_claimed() {
        let run = jobs()
            .sampled_path(10, in_call("semget"), &[&LOCK[..], &["ipcget"]].concat(), 60)
            .slept_path(11, RWSEM, "semget", &[&LOCK[1..], &["ipcget"]].concat(), 100, SECOND / 2)
            .build();
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!(claim.lost.get(in_call("semget")), SECOND / 10 * 6);
        assert_eq!(claim.lost.get(RWSEM), SECOND / 2);
        assert!(claim.title.starts_with("2 processes"), "{}", claim.title);
        assert!(claim.ruled_out.iter().any(|r| r.cause == "mmap-lock"));
    }

    #[test]
    fn the_price_of_making_a_set_is_not_this() {
        let run = jobs()
            .values(model::Metric::Syscall(Syscall::named("semget").unwrap()), 5, &[8000])
            .build();
        let Absent(missing) = examine(&Case::new(&run)).unwrap_err();
        assert!(missing.contains("no waiting"), "{missing}");
    }

    #[test]
    fn the_same_lock_function_in_another_call_is_not_this() {
        let run = jobs()
            .slept_path(10, RWSEM, "mmap", &LOCK, 100, SECOND)
            .sampled_path(11, in_call("shmat"), &LOCK, 60)
            .build();
        assert!(examine(&Case::new(&run)).is_err());
    }
}
