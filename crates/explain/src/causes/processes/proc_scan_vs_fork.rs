//! proc-scan-vs-fork: threads and processes begin and end slowly while somebody reads /proc.
//!
//! /proc/PID/stat adds up the CPU times of all threads of a process, under a lock if one of them
//! came or went meanwhile. A thread that exits takes that lock while it holds tasklist_lock, which every
//! fork and exit on the host needs. Threads that only compete with the scanner for CPUs are
//! cpu-runqueue; here they have a CPU, and spin.
//!
//! # Evidence
//!
//! Waits of 10 us or more for a spinlock where threads begin or end (copy_process, release_task,
//! exit_notify), that ended while another process was in a read of /proc/PID/stat or of a list of
//! tasks; which file, how often, how long. The holder of a spinlock is not known for certain on
//! more than two CPUs.
//!
//! # Without whylag
//!
//!     perf lock record -a -- sleep 5; perf lock contention   # since Linux 5.19
//!     perf trace -a -s -e openat,read            # who reads much
//!     perf record -a -g -- sleep 5               # spinning below release_task, copy_process
//!
//! # Sources
//!
//! fs/proc/array.c (do_task_stat); kernel/sched/cputime.c; kernel/exit.c (__exit_signal).

use model::{Account, RecorderPart, TableRead};

use crate::case::Case;
use crate::case::spinning::{doubt_holder, in_words, named_holder, readers};
use crate::cause::{Absent, Cause, Claim, LookAlike, Needs, Verdict};
use crate::causes::ids;
use crate::text::{duration, percent};

pub const CAUSE: Cause = Cause {
    id: ids::PROC_SCAN_VS_FORK,
    title: "threads and processes begin and end slowly while somebody reads /proc",
    fix: "Look less often (top, ps, agents of monitoring), or at what is not added up over all \
          threads: /proc/PID/status, the cgroup's cpu.stat. Keep threads in a pool instead of \
          starting one for each request.",
    reproduce: "mysteries/bin/proc-scan-vs-fork-faulty 5",
    needs: Needs::parts(&[RecorderPart::Threads, RecorderPart::Locks]).and_kernel_symbols(),
    look_alikes: &[
        LookAlike {
            cause: ids::MANY_THREAD_VFORK,
            tell_apart: "stop whatever reads /proc (top, ps, agents) and record again: a walk over \
                         the mappings of a process that ends stays",
            mutual: true,
        },
        LookAlike {
            cause: ids::SOCKET_DIAG_READER,
            tell_apart: "see which files the reader reads ('strace -e trace=openat -p READER'): \
                         /proc/net/udp, tcp or unix lists sockets, /proc/PID/stat adds up threads",
            mutual: true,
        },
    ],
    symptom: false,
    examine,
};

/// Where tasks begin and end.
const LIFE: &[&str] = &[
    "copy_process",
    "release_task",
    "__exit_signal",
    "exit_notify",
    "do_exit",
    "wait_task_zombie",
];

/// Processes or threads are listed, or one is looked at.
fn looks_at_tasks(read: &TableRead) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match read {
        TableRead::Proc(file) if file == "/proc" => true,
        TableRead::Proc(file) => match file.split_once('/') {
            Some((folder, name)) => is_number(folder) || (folder == "task" && is_number(name)),
            None => false,
        },
        _ => false,
    }
}

fn examine(case: &Case) -> Verdict {
    let spun = case.accounts.get(Account::Spin);
    let process = case.main_process(|account| account == Account::Spin);
    let readers = process.map_or(Vec::new(), |tgid| readers(case, tgid, LIFE, looks_at_tasks));
    let (Some(tgid), Some(reader)) = (process, readers.first()) else {
        return Err(Absent(format!(
            "nobody was seen reading processes of /proc when a wait of 10 us or more for a \
             spinlock ended where threads begin or end ({} spinning in all)",
            duration(spun)
        )));
    };
    // Several may have read at once, each during the same waits.
    let ns = readers.iter().map(|reader| reader.ns).max().unwrap_or(0).min(spun);
    let lost = [(Account::Spin, ns)].into_iter().collect();
    let title = format!(
        "threads of {} spin where they end while {} (pid {}) reads {}",
        case.process_name(tgid),
        reader.other_comm,
        reader.other_tgid,
        reader.reads
    );
    let mut claim = Claim::new(title, lost, reader.count);
    claim.mechanism(format!(
        "{} on a CPU, spinning for a lock where threads begin and end: {} of all spinning",
        duration(ns),
        percent(ns, spun)
    ));
    claim.trigger(format!(
        "{} makes the kernel walk through threads under it: it reads {}",
        named_holder(case, reader),
        reader.reads
    ));
    for reader in readers.iter().take(3) {
        claim.saw(
            format!("waits of 10 us or more that ended while this ran: {}", in_words(reader)),
            "contention_begin, contention_end; the tasks of the other CPUs",
        );
    }
    let stack = case.labels(reader.kernel).into_iter().take(6).collect::<Vec<_>>().join(" <- ");
    claim.saw_if((!stack.is_empty()).then_some(stack), "where the longest wait ended");
    let queued = case.accounts.sum_of(|account| account.is_waiting_for_cpu());
    claim.rule_out(
        ids::CPU_RUNQUEUE,
        format!(
            "this was spent on a CPU; what the scanner takes from the CPUs is an account of its \
             own: {} waiting for one",
            duration(queued)
        ),
    );
    claim.rule_out(
        ids::MANY_THREAD_VFORK,
        "that is work of the one who ends, with no other CPU involved; this is waiting for another CPU"
            .to_owned(),
    );
    doubt_holder(case, &mut claim);
    Ok(claim)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RunBuilder, SECOND, USER, concurrent_call};

    const EXIT: [&str; 4] =
        ["__pv_queued_spin_lock_slowpath", "_raw_spin_lock", "release_task", "do_exit"];

    fn server() -> RunBuilder {
        RunBuilder::new().thread(10, 10, &[(USER, SECOND), (Account::Spin, SECOND)])
    }

    fn stat() -> TableRead {
        TableRead::Proc("10/stat".to_owned())
    }

    #[test]
    fn exits_that_spin_beside_a_reader_of_proc_are_claimed() {
        let run = server()
            .concurrent_call(concurrent_call(77, "top", stat(), SECOND / 2), &EXIT)
            .concurrent_call(concurrent_call(77, "top", TableRead::Unknown, SECOND / 10), &EXIT)
            .build();
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!(claim.lost.get(Account::Spin), SECOND / 10 * 6, "close after read counts");
        assert!(claim.title.contains("top (pid 77) reads /proc/10/stat"), "{}", claim.title);
        assert!(claim.evidence.iter().any(|e| e.text.contains("release_task")));
    }

    #[test]
    fn among_several_cpus_the_holder_is_one_of_those_that_ran() {
        let run = |cpus| {
            server()
                .cpus(cpus, SECOND, SECOND)
                .concurrent_call(concurrent_call(77, "top", stat(), SECOND), &EXIT)
        };
        let trigger = |cpus| {
            let run = run(cpus).build();
            let claim = examine(&Case::new(&run)).unwrap();
            (claim.chain[1].text.clone(), claim.doubts.len())
        };
        let (two, doubts) = trigger(2);
        assert!(two.starts_with("top (pid 77) makes the kernel walk") && doubts == 0, "{two}");
        let (eight, doubts) = trigger(8);
        assert!(eight.starts_with("one of those in the kernel on the other CPUs"), "{eight}");
        assert_eq!(doubts, 1);
    }

    #[test]
    fn what_several_read_at_once_counts_once_and_at_most_all_spinning() {
        let run = server()
            .concurrent_call(concurrent_call(77, "top", stat(), SECOND / 2), &EXIT)
            .concurrent_call(
                concurrent_call(78, "ps", TableRead::Proc("/proc".to_owned()), SECOND / 2),
                &EXIT,
            )
            .build();
        assert_eq!(examine(&Case::new(&run)).unwrap().lost.total(), SECOND / 2);
        let more =
            server().concurrent_call(concurrent_call(77, "top", stat(), 3 * SECOND), &EXIT).build();
        assert_eq!(examine(&Case::new(&more)).unwrap().lost.total(), SECOND);
    }

    #[test]
    fn other_spinning_and_other_neighbours_are_not_this() {
        let others = server()
            .concurrent_call(
                concurrent_call(77, "top", stat(), SECOND),
                &["_raw_spin_lock", "futex_wake"],
            )
            .concurrent_call(
                concurrent_call(78, "netstat", TableRead::Proc("net/udp".to_owned()), SECOND),
                &EXIT,
            )
            .concurrent_call(concurrent_call(79, "server", TableRead::Unknown, SECOND), &EXIT)
            .build();
        assert!(examine(&Case::new(&others)).unwrap_err().0.contains("nobody was seen"));
    }
}
