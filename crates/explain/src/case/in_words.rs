//! One outlier in words, and a stack on one line.

use std::cmp::Reverse;

use model::{Account, Outlier, OutlierKind, StackId};

use crate::case::sums::Case;
use crate::text::duration;

/// Accounts of a breakdown that are worth words.
const ACCOUNTS_SHOWN: usize = 3;
/// Frames of a stack that are worth words.
const FRAMES_SHOWN: usize = 6;

/// `outlier 3, worker (tid 12) at +1.23 s: mmap took 19.2 ms: 18.1 ms blocked:..., 0.9 ms ...; held by ...`.
pub fn in_words(case: &Case, outlier: &Outlier) -> String {
    let at = outlier.start_ns.saturating_sub(case.whole().header.started_ns);
    let call = outlier.syscall.map(|s| s.call.to_string());
    let what = match (outlier.kind, call) {
        (OutlierKind::Syscall, Some(call)) => format!("{call} took"),
        (OutlierKind::Syscall, None) => "a system call took".to_owned(),
        (OutlierKind::OffCpu, Some(call)) => format!("asleep in {call} for"),
        (OutlierKind::OffCpu, None) => "asleep for".to_owned(),
        (OutlierKind::RunQueue, _) => "waited for a CPU for".to_owned(),
        (OutlierKind::LockHold, Some(call)) => format!("held mmap_lock in {call} for"),
        (OutlierKind::FirstCall, _) => "a first call took at most".to_owned(),
        (OutlierKind::LockHold, None) => "held mmap_lock for".to_owned(),
    };
    // A part of a run has other numbers than those that 'whylag show' lists.
    let place = if case.scope().is_none() {
        case.run.outliers.iter().position(|other| std::ptr::eq(other, outlier))
    } else {
        None
    };
    let number = place.map_or(String::new(), |place| format!("outlier {}, ", place + 1));
    let mut text = format!(
        "{number}{} (tid {}) at +{}: {what} {}",
        outlier.comm,
        outlier.tid,
        duration(at),
        duration(outlier.duration_ns)
    );
    let parts: Vec<_> = outlier
        .breakdown
        .largest_first()
        .into_iter()
        .take(ACCOUNTS_SHOWN)
        .map(|(account, ns)| format!("{} {account}", duration(ns)))
        .collect();
    if !parts.is_empty() {
        text += &format!(": {}", parts.join(", "));
    }
    if let Some(holder) = &outlier.holder {
        let call = holder.call.map_or(String::new(), |call| format!(" in {call}"));
        text += &format!(
            "; the lock was held by {} (tid {}, pid {}){call} for {} of it",
            holder.comm,
            holder.tid,
            holder.tgid,
            duration(holder.overlap_ns)
        );
    }
    if let Some(runner) = outlier.ran_instead.first() {
        text += &format!(
            "; {} (pid {}) ran {} meanwhile",
            runner.comm,
            runner.tgid,
            duration(runner.ns)
        );
    }
    text
}

/// The frames of a stack, innermost first, from the first whose label starts with `from`
/// (from the innermost if none does); `None` if the stack was not recorded.
fn frames(case: &Case, id: Option<StackId>, from: &str) -> Option<String> {
    let stack = case.run.stacks.get(&id?)?;
    let labels: Vec<_> = stack.frames.iter().map(|frame| frame.label()).collect();
    let first = labels.iter().position(|label| label.starts_with(from)).unwrap_or(0);
    let shown: Vec<_> = labels.into_iter().skip(first).take(FRAMES_SHOWN).collect();
    (!shown.is_empty()).then(|| shown.join(" <- "))
}

/// The stacks of the longest times in `account` among the outliers that `which` accepts:
/// (kernel, user), each on one line; the kernel's from the first frame that starts with `from`.
pub fn stacks(
    case: &Case,
    account: Account,
    which: impl Fn(&Outlier) -> bool,
    from: &str,
) -> (Option<String>, Option<String>) {
    let mut found: Vec<_> = case.outliers_in(account).filter(|o| which(o)).collect();
    found.sort_by_key(|o| Reverse(o.breakdown.get(account)));
    (
        found.iter().find_map(|o| frames(case, o.kernel_stack, from)),
        found.iter().find_map(|o| frames(case, o.user_stack, "")),
    )
}
