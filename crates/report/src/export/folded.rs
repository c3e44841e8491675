//! Off-CPU time by stack in the folded form that flame graph tools read.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};

use model::units::{duration, share_of};
use model::{Account, Run, StackId, StackSum};

use crate::text;

/// Stands between user and kernel frames.
pub(crate) const BOUNDARY: &str = "-";

/// Ends the name of each kernel frame.
pub(crate) const KERNEL: &str = "_[k]";

/// Which part of the off-CPU time the stacks cover: only intervals beyond the threshold have one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coverage {
    /// Off-CPU time with a stack, ns.
    pub stacks_ns: u64,
    /// All time that the watched threads were blocked or runnable, ns.
    pub off_cpu_ns: u64,
    /// Shorter intervals have no stack, ns.
    pub threshold_ns: u64,
}

impl Coverage {
    /// Of a run.
    pub fn of(run: &Run) -> Coverage {
        let off_cpu = |account: Account| {
            account.is_waiting_for_cpu() || matches!(account, Account::Blocked(_))
        };
        Coverage {
            stacks_ns: run.sums.stack_sums.iter().fold(0, |sum, s| s.ns.saturating_add(sum)),
            off_cpu_ns: run.accounts().sum_of(off_cpu),
            threshold_ns: run.header.threshold_ns,
        }
    }
}

/// `stacks cover 1.50 s of 2.00 s off the CPU (75.0 %): intervals from 1.00 ms on`.
impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "stacks cover {} of {} off the CPU ({}): intervals from {} on",
            duration(self.stacks_ns),
            duration(self.off_cpu_ns),
            share_of(self.stacks_ns, self.off_cpu_ns),
            duration(self.threshold_ns),
        )
    }
}

/// Writes `comm;user frames;-;kernel frames_[k] microseconds` lines, outermost frame first, and
/// returns which part of the off-CPU time they cover.
///
/// # Errors
/// Those of `out`.
pub fn write(out: &mut dyn Write, run: &Run) -> io::Result<Coverage> {
    for line in lines(run) {
        writeln!(out, "{line}")?;
    }
    Ok(Coverage::of(run))
}

/// The lines, sorted; equal stacks are summed, and sums below half a microsecond left out.
pub(crate) fn lines(run: &Run) -> Vec<String> {
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for stack_sum in &run.sums.stack_sums {
        let sum = sums.entry(path(run, stack_sum)).or_default();
        *sum = sum.saturating_add(stack_sum.ns);
    }
    sums.into_iter()
        .map(|(stack, ns)| (stack, ns.saturating_add(500) / 1_000))
        .filter(|(_, us)| *us > 0)
        .map(|(stack, us)| format!("{stack} {us}"))
        .collect()
}

/// `comm;user frames;-;kernel frames_[k]`, outermost frame first.
pub(crate) fn path(run: &Run, stack_sum: &StackSum) -> String {
    let mut frames = vec![frame(run.comm(stack_sum.tgid))];
    frames.extend(stack(run, stack_sum.user, "[no user stack]"));
    frames.push(BOUNDARY.to_owned());
    let kernel = stack(run, stack_sum.kernel, "[no kernel stack]");
    frames.extend(kernel.into_iter().map(|name| name + KERNEL));
    frames.join(";")
}

/// The names of the frames, outermost first; `none` alone if there is no such stack.
pub(crate) fn stack(run: &Run, id: Option<StackId>, none: &str) -> Vec<String> {
    let Some(stack) = id.and_then(|id| run.stacks.get(&id)) else {
        return vec![none.to_owned()];
    };
    let cut = stack.truncated.then(|| "[cut short]".to_owned());
    cut.into_iter().chain(stack.frames.iter().rev().map(|f| frame(&f.label()))).collect()
}

/// A name without the characters that mean something in the folded form.
pub(crate) fn frame(name: &str) -> String {
    let name = text::clean(name).replace(';', ":");
    if name.trim().is_empty() { "?".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    /// Each line as (frames, microseconds).
    fn parsed(run: &Run) -> Vec<(Vec<String>, u64)> {
        let text = sample::written(|out| write(out, run).map(|_| ()));
        let parse = |line: &str| {
            let (stack, us) = line.rsplit_once(' ').unwrap();
            (stack.split(';').map(str::to_owned).collect(), us.parse().unwrap())
        };
        text.lines().map(parse).collect()
    }

    #[test]
    fn totals_are_those_of_the_run() {
        let run = sample::run();
        let total: u64 = parsed(&run).iter().map(|(_, us)| us).sum();
        let ns: u64 = run.sums.stack_sums.iter().map(|s| s.ns).sum();
        assert_eq!(total, ns / 1_000);
        assert_eq!(Coverage::of(&run).stacks_ns, ns);
    }

    #[test]
    fn frames_go_from_the_outermost_to_where_it_slept() {
        let lines = parsed(&sample::run());
        let (frames, _) = lines.iter().find(|(frames, _)| frames.len() > 5).unwrap();
        let expected = "scan;[cut short];scanner+0x1234;scan_block(u8: 4);__mmap;-;\
                        entry_SYSCALL_64_[k];vm_mmap_pgoff_[k];rwsem_down_write_slowpath_[k]";
        assert_eq!(frames.join(";"), expected);
    }

    #[test]
    fn a_missing_stack_is_said_to_be_missing() {
        let mut run = sample::run();
        run.stacks.clear();
        for (frames, _) in parsed(&run) {
            assert_eq!(frames.join(";"), "scan;[no user stack];-;[no kernel stack]_[k]");
        }
    }

    #[test]
    fn coverage_counts_blocked_and_runnable_time() {
        let coverage = Coverage::of(&sample::run());
        assert_eq!(
            coverage.to_string(),
            "stacks cover 2.10 s of 2.60 s off the CPU (80.8 %): intervals from 1.00 ms on"
        );
    }
}
