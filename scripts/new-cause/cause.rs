//! @ID@: one sentence, without a capital letter: what makes whom wait.
//!
//! What the kernel (or the program) does there, and why it takes time: what an engineer has to know
//! to believe the finding. Lines up to 100 columns.
//!
//! # Evidence
//!
//! What has to be seen for a claim, and how much.
//!
//! # Without whylag
//!
//!     strace -f -T -p PID                        # commands that show it, and where to look
//!
//! # Sources
//!
//! The file of the kernel, or the document.

use model::{PathSum, RecorderPart};

use crate::case::Case;
use crate::cause::{Absent, Cause, Claim, Needs, Verdict};
use crate::causes::ids;
use crate::text::{counted, duration, mean};

pub const CAUSE: Cause = Cause {
    id: ids::@UPPER@,
    title: "one line that is true of every run that has it",
    fix: "What to change, in sentences.",
    reproduce: "mysteries/bin/@ID@-faulty 5",
    needs: Needs::parts(&[RecorderPart::Threads, RecorderPart::SystemCalls]).and_kernel_symbols(),
    look_alikes: &[],
    symptom: false,
    examine,
};

/// Functions of the kernel that the waits pass. `whylag show` lists the longest stacks of a run; a
/// fault that costs CPU time has samples in such a stack (`path.sampled`, `PathTime::samples`).
const WAITS_IN: [&str; 1] = ["the function of the kernel that sleeps"];

/// A claim needs evidence: here the sums of sleeps by kernel stack, which have sleeps of any length.
/// They leave out what looks like waiting for work (futex, pipe, socket, poll, timer, child, and
/// blocked:other, in which is all that nobody told apart): such sleeps are in `run.sums.stack_sums`,
/// from `--threshold` on, as in network/close_linger.rs.
/// Other evidence of a run is in crates/model/src/run.rs and sums.rs: waits by object and waker,
/// counters, and what was kept whole (`Case::outliers_in`), which is from `--threshold` on only.
fn examine(case: &Case) -> Verdict {
    let asleep = |path: &PathSum| !path.sampled;
    let time = case.time_through(&WAITS_IN, asleep);
    let Some(tgid) = case.main_of(&WAITS_IN, asleep) else {
        return Err(Absent("what was looked for, and what was seen instead".to_owned()));
    };
    let title = format!("{} waits for ...", case.process_name(tgid));
    let mut claim = Claim::new(title, time.accounts.clone(), time.sleeps);
    // The README's table of accounts says which are lost time, and which wait for work (idle).
    // Idle time is claimed only by a cause that proves that it was none: then this is true.
    claim.takes_idle = false;
    claim.mechanism(format!(
        "{}: {}, mean {}, longest {}",
        counted(time.sleeps, "sleep"),
        duration(time.ns()),
        mean(time.ns(), time.sleeps),
        duration(time.max_ns)
    ));
    claim.trigger("who or what began it".to_owned());
    let path = case.path_in_words(&WAITS_IN, asleep);
    claim.saw_if(path, "kernel stack of the sleeps");
    Ok(claim)
}

#[cfg(test)]
mod tests {
    use model::{Account, Blocked};

    use super::*;
    use crate::testing::{RunBuilder, SECOND};

    const ACCOUNT: Account = Account::Blocked(Blocked::Uninterruptible);

    #[test]
    fn claimed_with_its_evidence() {
        let run = RunBuilder::new().thread(10, 10, &[(ACCOUNT, SECOND)]);
        let run = run.slept_path(10, ACCOUNT, "read", &WAITS_IN, 20, SECOND / 2).build();
        let claim = examine(&Case::new(&run)).expect("its sleeps are there");
        assert_eq!(claim.lost.get(ACCOUNT), SECOND / 2);
        assert_eq!(claim.waits, 20);
    }

    #[test]
    fn not_claimed_without_it() {
        let run = RunBuilder::new().thread(10, 10, &[(ACCOUNT, SECOND)]);
        let run = run.slept_path(10, ACCOUNT, "read", &["schedule"], 20, SECOND / 2).build();
        assert!(examine(&Case::new(&run)).is_err());
    }
}
