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
//! Commands that show it.
//!
//! # Sources
//!
//! The file of the kernel, or the document.

use crate::case::Case;
use crate::cause::{Absent, Cause, Verdict};
use crate::causes::ids;

pub const CAUSE: Cause = Cause {
    id: ids::@UPPER@,
    title: "one line that is true of every run that has it",
    fix: "What to change, in sentences.",
    reproduce: "mysteries/bin/@ID@-faulty 5",
    needs: &[],
    look_alikes: &[],
    symptom: false,
    examine,
};

fn examine(_case: &Case) -> Verdict {
    Err(Absent("which evidence was looked for, and what was seen instead".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RunBuilder, SECOND, USER};

    #[test]
    fn claimed_with_its_evidence() {
        let run = RunBuilder::new().thread(10, 10, &[(USER, SECOND)]).build();
        let claim = examine(&Case::new(&run)).expect("make a run that has the fault");
        assert!(claim.lost.total() > 0 && !claim.evidence.is_empty());
    }

    #[test]
    fn not_claimed_without_it() {
        let run = RunBuilder::new().thread(10, 10, &[(USER, SECOND)]).build();
        assert!(examine(&Case::new(&run)).is_err());
    }
}
