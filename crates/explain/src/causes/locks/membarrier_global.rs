//! membarrier-global: membarrier(MEMBARRIER_CMD_GLOBAL) waits for an RCU grace period.
//!
//! It makes sure that every thread of the host has passed a memory barrier, by waiting until every
//! CPU has switched tasks. The expedited commands interrupt the CPUs instead and take microseconds.
//! Registering for those waits for a grace period too, but once in the life of a process.
//!
//! # Evidence
//!
//! Sleeps for an RCU grace period in the call membarrier, with the command that slow calls were
//! given. Registering for an expedited command sleeps elsewhere (sync_runqueues_membarrier_state)
//! and is not claimed.
//!
//! # Without whylag
//!
//!     strace -f -T -e trace=membarrier -p PID
//!     bpftrace -e 'tracepoint:syscalls:sys_enter_membarrier { @[comm, args->cmd] = count(); }'
//!
//! # Sources
//!
//! membarrier(2); kernel/sched/membarrier.c.

use model::{Outlier, OutlierKind, PathSum, RecorderPart, Syscall};

use crate::case::Case;
use crate::case::in_words::in_words;
use crate::cause::{Absent, Cause, Claim, LookAlike, Needs, Verdict};
use crate::causes::ids;
use crate::causes::locks::grace_period::{ASLEEP, main_process, others, path, waited};
use crate::text::{counted, duration, mean, percent};

pub const CAUSE: Cause = Cause {
    id: ids::MEMBARRIER_GLOBAL,
    title: "membarrier() waits until every CPU of the host has switched tasks",
    fix: "Register once with MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, before there are threads, \
          then call MEMBARRIER_CMD_PRIVATE_EXPEDITED: it interrupts only CPUs that run this \
          process. (liburcu: the bulletproof or memb flavour on a kernel with private expedited \
          membarrier.)",
    reproduce: "mysteries/bin/membarrier-global-faulty 5",
    needs: Needs::parts(&[RecorderPart::Threads]).and_kernel_symbols(),
    look_alikes: &[LookAlike {
        cause: ids::RCU_SYNC_FDTABLE,
        tell_apart: "see which call sleeps ('strace -f -T -p PID'): membarrier, or one that \
                         makes a descriptor (open, socket, accept, dup)",
        mutual: true,
    }],
    symptom: false,
    examine,
};

const CALL: &str = "membarrier";
/// MEMBARRIER_CMD_GLOBAL, the first argument.
const GLOBAL: u64 = 1;
/// What a registration waits in.
const REGISTERS: [&str; 1] = ["sync_runqueues_membarrier_state"];

fn examine(case: &Case) -> Verdict {
    let Some(call) = Syscall::named(CALL) else {
        return Err(Absent("this processor's table of system calls has no membarrier".to_owned()));
    };
    let in_call = |path: &PathSum| path.call == Some(call);
    let is_global = |path: &PathSum| in_call(path) && !case.passes(path, &REGISTERS);
    let time = waited(case, is_global);
    let (calls, wall) = case.calls(CALL);
    if time.sleeps == 0 {
        return Err(Absent(match calls {
            0 if case.accounts.get(model::Account::Syscall(call)) == 0 => {
                "membarrier was not called".to_owned()
            }
            0 => "membarrier was called and never slept; how often was not counted".to_owned(),
            n => format!(
                "none of {} of membarrier waited for an RCU grace period (mean {})",
                case.calls_in_words(n, "call"),
                mean(wall, n)
            ),
        }));
    }
    let process = main_process(case, is_global);
    let name = process.map_or("a process".to_owned(), |tgid| case.process_name(tgid));
    let title = format!("threads of {name} wait in membarrier for every CPU to switch tasks");
    let mut claim = Claim::new(title, time.accounts.clone(), time.sleeps);

    claim.mechanism(format!(
        "{} asleep in membarrier for {} (mean {}, longest {}): each lasts one RCU grace period, \
         whether any other CPU runs this program or not",
        duration(time.ns()),
        counted(time.sleeps, "call"),
        mean(time.ns(), time.sleeps),
        duration(time.max_ns)
    ));
    let slow: Vec<&Outlier> = slow_calls(case, call).collect();
    let global = slow.iter().filter(|o| command(o) == Some(GLOBAL)).count() as u64;
    claim.trigger(match slow.len() as u64 {
        0 => "membarrier with a command that waits for all CPUs".to_owned(),
        n => format!(
            "MEMBARRIER_CMD_GLOBAL: the command of {} of {} kept whole",
            crate::text::count(global),
            counted(n, "such call")
        ),
    });
    claim.saw_if(
        (calls > 0).then(|| {
            format!(
                "{} of {} of membarrier slept; the calls took {} in all",
                percent(time.sleeps.min(calls), calls),
                case.calls_in_words(calls, "call"),
                duration(wall)
            )
        }),
        "system call histogram (sys_enter, sys_exit) and kernel stacks of the sleeps",
    );
    claim.saw_if(path(case, is_global), "kernel stack of the sleeps");
    let longest = slow.iter().max_by_key(|o| o.breakdown.get(ASLEEP));
    claim.saw_if(longest.map(|o| in_words(case, o)), "longest such call");
    let registering = waited(case, |path| in_call(path) && !is_global(path));
    rule_out(case, time.ns(), registering.ns(), &mut claim);
    if !slow.is_empty() && global == 0 {
        claim.doubt(0.7, "no call with MEMBARRIER_CMD_GLOBAL as its argument was kept whole");
    }
    Ok(claim)
}

fn rule_out(case: &Case, claimed: u64, registering: u64, claim: &mut Claim) {
    claim.exclude(
        "registering for an expedited command",
        format!("registering for an expedited command took {}", duration(registering)),
    );
    claim.rule_out(
        ids::CPU_RUNQUEUE,
        format!(
            "the sleeps are counted until the wake-up only; waiting for a CPU came to {}",
            duration(case.accounts.sum_of(|account| account.is_waiting_for_cpu()))
        ),
    );
    let rest = others(case, claimed);
    if rest > claimed {
        let text = format!("more uninterruptible sleep ({}) is of another kind", duration(rest));
        claim.doubt(0.9, &text);
    }
}

/// Calls kept whole that slept.
fn slow_calls<'a>(case: &Case<'a>, call: Syscall) -> impl Iterator<Item = &'a Outlier> {
    case.run.outliers.iter().filter(move |o| {
        o.kind == OutlierKind::Syscall
            && o.syscall.is_some_and(|s| s.call == call)
            && o.breakdown.get(ASLEEP) > 0
    })
}

/// The command: an int, so its upper half is whatever was in the register.
fn command(outlier: &Outlier) -> Option<u64> {
    outlier.syscall.map(|call| call.args[0] & u64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RunBuilder, SECOND, USER, interval};
    use model::{Metric, SyscallCall};

    fn slept(call: &str, frames: &[&str]) -> RunBuilder {
        let metric = Metric::Syscall(Syscall::named("membarrier").unwrap());
        RunBuilder::new()
            .thread(10, 10, &[(USER, SECOND), (ASLEEP, 2 * SECOND)])
            .slept_path(10, ASLEEP, call, frames, 200, 2 * SECOND)
            .values(metric, 5, &[10_000_000; 200])
    }

    fn kept(command: u64) -> Outlier {
        let call = Syscall::named("membarrier").unwrap();
        let args = [command, 0, 0, 0, 0, 0];
        Outlier {
            kind: OutlierKind::Syscall,
            syscall: Some(SyscallCall { call, args, result: Some(0) }),
            ..interval(10, ASLEEP, 0, 10_000_000, None)
        }
    }

    #[test]
    fn claimed_with_its_command() {
        let stack = ["synchronize_rcu_normal", "__x64_sys_membarrier"];
        let run = slept("membarrier", &stack).kept(kept(GLOBAL)).build();
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!((claim.lost.get(ASLEEP), claim.waits), (2 * SECOND, 200));
        assert_eq!(
            claim.chain[1].text,
            "MEMBARRIER_CMD_GLOBAL: the command of 1 of 1 such call kept whole"
        );
        assert!(claim.doubts.is_empty());
        let run = slept("membarrier", &stack).kept(kept(8)).build();
        assert_eq!(examine(&Case::new(&run)).unwrap().doubts.len(), 1);
    }

    #[test]
    fn not_claimed_for_registering_nor_for_the_grace_periods_of_other_calls() {
        let registering =
            ["synchronize_rcu", "sync_runqueues_membarrier_state.part.0", "__x64_sys_membarrier"];
        let table = ["synchronize_rcu", "expand_files", "alloc_fd"];
        for run in [slept("membarrier", &registering), slept("dup", &table)] {
            let run = run.build();
            let Absent(missing) = examine(&Case::new(&run)).unwrap_err();
            assert!(missing.starts_with("none of 200 calls"), "{missing}");
        }
    }

    #[test]
    fn a_program_that_never_called_it_is_told_so() {
        let run = RunBuilder::new().thread(10, 10, &[(ASLEEP, SECOND)]).build();
        let Absent(missing) = examine(&Case::new(&run)).unwrap_err();
        assert_eq!(missing, "membarrier was not called");
    }
}
