//! Stacks of code without frame pointers: all that called, in order.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::collections::BTreeSet;

use common::Lab;
use common::programs::program;
use model::{Account, Blocked, Run, Stack};

/// User stacks of the intervals that waited so.
fn stacks(run: &Run, blocked: Blocked) -> Vec<&Stack> {
    let waits = run.outliers.iter().filter(|o| o.breakdown.get(Account::Blocked(blocked)) > 0);
    waits.filter_map(|outlier| run.stacks.get(&outlier.user_stack?)).collect()
}

fn names(stack: &Stack) -> Vec<&str> {
    stack.frames.iter().filter_map(|frame| frame.symbol.as_deref()).collect()
}

#[test]
fn twelve_functions_without_frame_pointers_are_all_there_in_order() {
    let Some(lab) = Lab::new() else { return };
    let run = lab.record(&["--threshold", "1ms"], [program("deep_calls")]).run;
    let expected: Vec<String> =
        (1..=12).rev().map(|n| format!("f{n}")).chain(["main".to_owned()]).collect();
    for blocked in [Blocked::Futex, Blocked::PipeRead, Blocked::TimerSleep] {
        let stacks = stacks(&run, blocked);
        // The thread that writes, and the end of the program, wait, too.
        let deep = stacks.iter().filter(|stack| names(stack).contains(&"f1"));
        let deep: Vec<_> = deep.collect();
        assert!(deep.len() >= 10, "{blocked:?}: {} of {}", deep.len(), stacks.len());
        for stack in deep {
            let names = names(stack);
            let from = names.iter().position(|name| *name == "f12").unwrap();
            assert_eq!(names[from..from + 13], expected, "{blocked:?}");
            assert!(names[..from].contains(&"wait_here"), "{names:?}");
            assert!(!stack.truncated && stack.copies >= 1, "{stack:?}");
        }
    }
    let cost = &run.cost;
    assert!(cost.stack_copies >= 30, "{}", cost.stack_copies);
    assert_eq!(cost.stacks_not_copied, 0);
    let different: BTreeSet<_> = run.outliers.iter().filter_map(|o| o.user_stack).collect();
    assert!(different.len() < 30, "each stack is kept once: {}", different.len());
}
