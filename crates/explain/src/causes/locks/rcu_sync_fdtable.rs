//! rcu-sync-fdtable: a descriptor table that threads share grows while they use it.
//!
//! The kernel keeps a process's open files in a table that doubles when it is full. If more than
//! one thread uses the table, the one that finds it full waits for an RCU grace period before it
//! puts the larger table in place; a process with one thread does not.
//!
//! # Evidence
//!
//! Uninterruptible sleeps for an RCU grace period whose kernel stack passes expand_files, by system
//! call; the sizes at which that happened, where the slow calls returned a descriptor that is a
//! power of two.
//!
//! # Without whylag
//!
//!     strace -f -T -e trace=%desc -p PID            # calls that take milliseconds
//!     # with CONFIG_KPROBES:
//!     bpftrace -e 'kprobe:expand_files { @t[tid] = nsecs; }
//!         kretprobe:expand_files /@t[tid]/ { @us = hist((nsecs - @t[tid]) / 1000); delete(@t[tid]); }'
//!     ls /proc/PID/fd | wc -l; grep FDSize /proc/PID/status
//!
//! # Sources
//!
//! fs/file.c (expand_fdtable); Documentation/filesystems/files.rst.

use std::collections::{BTreeMap, BTreeSet};

use model::{OutlierKind, PathSum, RecorderPart, Syscall};

use crate::case::Case;
use crate::case::in_words::in_words;
use crate::cause::{Absent, Cause, Claim, Needs, Verdict};
use crate::causes::ids;
use crate::causes::locks::grace_period::{ASLEEP, main_process, others, path, waited};
use crate::text::{counted, duration, mean, percent};

pub const CAUSE: Cause = Cause {
    id: ids::RCU_SYNC_FDTABLE,
    title: "threads that share a table of descriptors wait while it grows",
    fix: "Make the table large before there are threads: open the highest descriptor once with \
          dup2() or fcntl(F_DUPFD) right after the start and close it again, the table stays \
          large. Or keep descriptors and processes instead of making new ones.",
    reproduce: "mysteries/bin/rcu-sync-fdtable-faulty 5",
    needs: Needs::parts(&[RecorderPart::Threads]).and_kernel_symbols(),
    look_alikes: &[],
    symptom: false,
    examine,
};

/// Functions of the kernel that replace the table by a larger one.
const GROWS: [&str; 2] = ["expand_files", "expand_fdtable"];
/// Sizes worth a mention.
const SIZES_SHOWN: usize = 8;

fn examine(case: &Case) -> Verdict {
    let grows = |path: &PathSum| case.passes(path, &GROWS);
    let time = waited(case, grows);
    let Some(tgid) = main_process(case, grows) else {
        return Err(Absent(format!(
            "no thread waited for an RCU grace period to enlarge its table of descriptors \
             (asleep uninterruptibly for anything: {})",
            duration(case.accounts.get(ASLEEP))
        )));
    };
    let name = case.process_name(tgid);
    let title = format!("threads of {name} wait whenever the table of descriptors has to grow");
    let mut claim = Claim::new(title, time.accounts.clone(), time.sleeps);

    claim.mechanism(format!(
        "{} asleep {} for an RCU grace period (mean {}, longest {}): the kernel replaces a table \
         that several threads use only after all CPUs let go of the old one",
        duration(time.ns()),
        counted(time.sleeps, "time"),
        mean(time.ns(), time.sleeps),
        duration(time.max_ns)
    ));
    let calls = calls(case, grows);
    let names: Vec<_> = calls.keys().map(|call| call.to_string()).collect();
    let sizes = sizes(case, &calls);
    let full = match sizes.as_slice() {
        [] => "a table that was full".to_owned(),
        sizes => format!("a table that was full, at {} descriptors", joined(sizes)),
    };
    claim.trigger(format!("{} found {full}", names.join(", ")));
    for (call, (count, ns)) in &calls {
        let (all, _) = case.calls(&call.to_string());
        let of = if all > 0 {
            format!(" of {}", case.calls_in_words(all, "call"))
        } else {
            String::new()
        };
        claim.saw(
            format!(
                "{call}: {count}{of} waited, {} in all, mean {}",
                duration(*ns),
                mean(*ns, *count)
            ),
            "kernel stack and call at sched_switch",
        );
    }
    claim.saw_if(path(case, grows), "kernel stack of the sleeps");
    let threads = case.threads_in(|account| account == ASLEEP).filter(|t| t.tgid == tgid).count();
    claim.saw(
        format!("{} of {name} slept like this", counted(threads as u64, "thread")),
        "accounts of the threads",
    );
    claim.saw_if(longest(case, &calls), "longest such call");
    rule_out(case, time.ns(), &mut claim);
    Ok(claim)
}

fn rule_out(case: &Case, claimed: u64, claim: &mut Claim) {
    let rest = others(case, claimed);
    claim.exclude(
        "other RCU grace periods",
        format!(
            "{} of all uninterruptible sleep passed expand_files; other sleeps of that kind took \
             {}",
            percent(claimed, claimed.saturating_add(rest)),
            duration(rest)
        ),
    );
    claim.rule_out(
        ids::CPU_RUNQUEUE,
        format!(
            "the sleeps are counted until the wake-up only; waiting for a CPU came to {}",
            duration(case.accounts.sum_of(|account| account.is_waiting_for_cpu()))
        ),
    );
}

/// The calls that slept so: how often, how long.
fn calls(case: &Case, grows: impl Fn(&PathSum) -> bool) -> BTreeMap<Syscall, (u64, u64)> {
    let mut calls = BTreeMap::<Syscall, (u64, u64)>::new();
    let calls_of = case.run.sums.paths.iter().filter_map(|path| path.call);
    for call in calls_of.collect::<BTreeSet<_>>() {
        let time = waited(case, |path| path.call == Some(call) && grows(path));
        if time.sleeps > 0 {
            calls.insert(call, (time.sleeps, time.ns()));
        }
    }
    calls
}

/// Descriptors that slow calls returned, where they are sizes of a table: powers of two.
fn sizes(case: &Case, calls: &BTreeMap<Syscall, (u64, u64)>) -> Vec<i64> {
    let results = case.run.outliers.iter().filter_map(|o| {
        let call = o.syscall.filter(|s| calls.contains_key(&s.call))?;
        call.result.filter(|fd| *fd >= 32 && fd.count_ones() == 1)
    });
    results.collect::<BTreeSet<_>>().into_iter().take(SIZES_SHOWN).collect()
}

fn joined(sizes: &[i64]) -> String {
    sizes.iter().map(i64::to_string).collect::<Vec<_>>().join(", ")
}

fn longest(case: &Case, calls: &BTreeMap<Syscall, (u64, u64)>) -> Option<String> {
    let slow = case.run.outliers.iter().filter(|o| {
        o.kind == OutlierKind::Syscall
            && o.syscall.is_some_and(|s| calls.contains_key(&s.call))
            && o.breakdown.get(ASLEEP) > 0
    });
    slow.max_by_key(|o| o.breakdown.get(ASLEEP)).map(|o| in_words(case, o))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RunBuilder, SECOND, USER, interval};
    use model::SyscallCall;

    fn slept(call: &str, frames: &[&str]) -> RunBuilder {
        RunBuilder::new().thread(10, 10, &[(USER, SECOND), (ASLEEP, 3 * SECOND)]).slept_path(
            10,
            ASLEEP,
            call,
            frames,
            300,
            2 * SECOND,
        )
    }

    #[test]
    fn claimed_with_the_call_and_the_sizes_at_which_it_waited() {
        let mut dup = interval(10, ASLEEP, 0, SECOND / 100, None);
        dup.kind = OutlierKind::Syscall;
        let call = Syscall::named("dup").unwrap();
        dup.syscall = Some(SyscallCall { call, args: [0; 6], result: Some(256) });
        let run = slept("dup", &["synchronize_rcu_normal", "expand_files", "alloc_fd"]);
        let run = run.kept(dup).build();
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!((claim.lost.get(ASLEEP), claim.waits), (2 * SECOND, 300));
        let trigger = &claim.chain[1].text;
        assert_eq!(trigger, "dup found a table that was full, at 256 descriptors");
        let rest = &claim.excluded[0];
        assert!(rest.because.starts_with("67 % of all") && rest.because.ends_with("1.00 s"));
    }

    #[test]
    fn not_claimed_for_other_grace_periods_nor_for_other_sleeps() {
        for frames in [
            &["synchronize_rcu", "__x64_sys_membarrier"][..],
            &["folio_wait_bit", "expand_files"],
            &["jbd2_log_wait_commit"],
        ] {
            let run = slept("membarrier", frames).build();
            let Absent(missing) = examine(&Case::new(&run)).unwrap_err();
            assert!(missing.contains("3.00 s"), "{missing}");
        }
    }
}
