//! What anybody can make the kernel say.

use std::process::Stdio;

use model::{CheckResult, Checkup};

use crate::attacker::{Den, can_be_nobody};
use crate::common::{nobody::as_nobody, whylag};

/// What the kernel's log is said to have of a kind.
fn found(id: &str) -> (CheckResult, String) {
    let output = whylag().args(["doctor", "--json"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let checkup: Checkup = serde_json::from_slice(&output.stdout).unwrap();
    let check = checkup.checks.into_iter().find(|check| check.id == id).unwrap();
    (check.verdict, format!("{} {}", check.fact, check.detail))
}

/// The kernel logs the name of whoever has a segfault.
#[test]
fn a_name_in_the_log_is_no_message_of_the_kernel() {
    if !can_be_nobody() {
        return;
    }
    let before = found("log-lockup");
    if before.0 == CheckResult::Unknown {
        println!("skipped: {}", before.1);
        return;
    }
    let den = Den::of("attacker");
    for name in ["soft lockup", "\nsoft lockup", "BUG: soft locku"] {
        let mut command = as_nobody(den.command(&["crash", name]));
        let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
        assert!(!status.success(), "{name:?} has had no segfault");
    }
    assert_eq!(found("log-lockup"), before);
}
