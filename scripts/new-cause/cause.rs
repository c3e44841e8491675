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

use model::{Account, Accounts, Blocked, Outlier, OutlierKind, RecorderPart};

use crate::case::Case;
use crate::case::in_words::in_words;
use crate::cause::{Absent, Cause, Claim, Needs, Verdict};
use crate::causes::ids;
use crate::text::{counted, duration, mean};

pub const CAUSE: Cause = Cause {
    id: ids::@UPPER@,
    title: "one line that is true of every run that has it",
    fix: "What to change, in sentences.",
    reproduce: "mysteries/bin/@ID@-faulty 5",
    needs: Needs::parts(&[RecorderPart::Threads, RecorderPart::SystemCalls]),
    look_alikes: &[],
    symptom: false,
    examine,
};

/// The account of the waits. crates/model/src/account/blocked.rs has them all, with the text of each
/// (`blocked:disk` is `Blocked::Disk`).
const WAIT: Account = Account::Blocked(Blocked::Disk);

/// A claim needs evidence: here waits kept whole. What else a run has is in
/// crates/model/src/run.rs and sums.rs (waits by object and waker, time by kernel code path,
/// counters); sums that several causes need are in `Case`.
fn examine(case: &Case) -> Verdict {
    let waits: Vec<&Outlier> = case.outliers_in(WAIT).filter(|o| is_of_this_cause(o)).collect();
    let Some(longest) = waits.iter().max_by_key(|o| o.duration_ns) else {
        return Err(Absent("what was looked for, and what was seen instead".to_owned()));
    };
    let n = waits.len() as u64;
    let ns = waits.iter().map(|o| o.breakdown.get(WAIT)).sum();
    let lost: Accounts = [(WAIT, ns)].into_iter().collect();
    let title = format!("{} waits for ...", case.process_name(longest.tgid));
    let mut claim = Claim::new(title, lost, n);
    // The README's table of accounts says which count as waiting for work. Only a cause that proves
    // that this was none may claim them: then `claim.takes_idle = true`.
    claim.mechanism(format!("{}: {}, mean {}", counted(n, "wait"), duration(ns), mean(ns, n)));
    claim.trigger("who or what began it".to_owned());
    claim.saw(in_words(case, longest), "longest wait of the run");
    Ok(claim)
}

/// A sleep within a system call is kept twice, as the sleep and as the call: count one kind.
fn is_of_this_cause(outlier: &Outlier) -> bool {
    outlier.kind == OutlierKind::OffCpu && outlier.comm == "what tells it from other waits"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RunBuilder, SECOND};

    #[test]
    fn claimed_with_its_evidence() {
        let run = RunBuilder::new().thread(10, 10, &[(WAIT, SECOND)]).outlier_at(0).build();
        let claim = examine(&Case::new(&run)).expect("make a run that has the fault");
        assert_eq!(claim.lost.total(), SECOND / 50);
    }

    #[test]
    fn not_claimed_without_it() {
        let run = RunBuilder::new().thread(10, 10, &[(WAIT, SECOND)]).build();
        assert!(examine(&Case::new(&run)).is_err());
    }
}
