//! Lost time that no finding explains: its accounts and its stacks, for a person to go on from.

use std::io::{self, Write};

use model::units::{count, counted, duration, share, share_of};
use model::{Account, Explanation, LostStack, UnseenTasks};

use crate::{Style, text};

/// Accounts that are named.
const ACCOUNTS: usize = 6;

/// Frames of a stack that are shown, the innermost.
const KERNEL_FRAMES: usize = 7;
const USER_FRAMES: usize = 6;

/// Kernel frames that every sleep, or every system call, has.
const EVERYWHERE: [&str; 6] = [
    "__schedule",
    "schedule",
    "do_syscall_64",
    "entry_SYSCALL_64",
    "entry_SYSCALL_64_after_hwframe",
    "asm_exc_page_fault",
];

/// Below this share of the lost time the rest gets one line, and no stacks. A stack is shown from a
/// hundredth of the lost time on.
const WORTH_STACKS: f64 = 0.05;

/// Where there is no finding: the largest accounts of lost time, of all time if none was lost, and
/// the largest stacks in them.
pub fn write_all(out: &mut dyn Write, explanation: &Explanation, style: &Style) -> io::Result<()> {
    let lost = explanation.lost_ns;
    let (what, accounts): (_, Vec<(Account, u64, f64)>) = if explanation.unexplained.is_empty() {
        ("The largest accounts, of the wall time:", explanation.accounts.clone())
    } else {
        let of_lost = |ns: u64| ns as f64 / lost.max(1) as f64;
        let accounts = explanation.unexplained.iter().map(|(a, ns)| (*a, *ns, of_lost(*ns)));
        ("The largest accounts of lost time, unexplained:", accounts.collect())
    };
    writeln!(out, "\n{what}")?;
    for (account, ns, part) in accounts.iter().take(ACCOUNTS) {
        let words = format!("{} {} ({account})", share(*part), account.describe());
        write!(
            out,
            "{}",
            text::labelled(&format!("  {}", duration(*ns)), 13, &words, style.width)
        )?;
    }
    write_stacks(out, explanation, style)
}

/// After findings: what they leave.
pub fn write_rest(out: &mut dyn Write, explanation: &Explanation, style: &Style) -> io::Result<()> {
    let total = explanation.unexplained.iter().fold(0u64, |sum, (_, ns)| sum.saturating_add(*ns));
    let mut words = format!("{} of the lost time", share_of(total, explanation.lost_ns));
    if total > 0 {
        let accounts = explanation.unexplained.iter().take(ACCOUNTS);
        let named: Vec<String> =
            accounts.map(|(account, ns)| format!("{account} {}", duration(*ns))).collect();
        words += &format!(" ({}): {}", duration(total), named.join(", "));
        let more = explanation.unexplained.len().saturating_sub(ACCOUNTS);
        if more > 0 {
            words += &format!(" and {} more", count(more as u64));
        }
    }
    write!(out, "{}", text::labelled("unexplained: ", 13, &words, style.width))?;
    if total as f64 >= WORTH_STACKS * explanation.lost_ns as f64 {
        write_stacks(out, explanation, style)?;
    }
    Ok(())
}

fn write_stacks(out: &mut dyn Write, explanation: &Explanation, style: &Style) -> io::Result<()> {
    let least = explanation.lost_ns / 100;
    let stacks = || explanation.unexplained_stacks.iter().filter(|stack| stack.ns >= least);
    if stacks().next().is_none() {
        return Ok(());
    }
    writeln!(out, "The largest stacks in these accounts, innermost function first:")?;
    stacks().try_for_each(|stack| write_stack(out, stack, style))
}

fn write_stack(out: &mut dyn Write, stack: &LostStack, style: &Style) -> io::Result<()> {
    let label = format!("  {}", duration(stack.ns));
    let head = format!("{} ({})", stack.account, counted(stack.count, "time"));
    write!(out, "{}", text::labelled(&label, 13, &head, style.width))?;
    write!(out, "{}", text::labelled("", 15, &frames(stack), style.width))
}

/// What counts as waiting for work, where nothing else is to be said.
pub fn write_idle(out: &mut dyn Write, explanation: &Explanation, style: &Style) -> io::Result<()> {
    if explanation.idle_stacks.is_empty() {
        return Ok(());
    }
    let words = "Counted as waiting for work, since nothing shows that the threads were wanted meanwhile. \
                 If they were, look at what they waited for here:";
    for line in text::wrap(words, style.width) {
        writeln!(out, "{line}")?;
    }
    explanation.idle_stacks.iter().try_for_each(|stack| write_stack(out, stack, style))?;
    for unseen in &explanation.unseen_tasks {
        let UnseenTasks { runtime, waits, shown_by } = unseen;
        let words = format!("{waits}, inside of {runtime}: see {shown_by}");
        write!(out, "{}", text::labelled("not looked at: ", 15, &words, style.width))?;
    }
    Ok(())
}

/// The kernel's frames, then the program's.
fn frames(stack: &LostStack) -> String {
    let kernel: Vec<&String> =
        stack.kernel.iter().filter(|frame| !EVERYWHERE.contains(&frame.as_str())).collect();
    let mut sides = Vec::new();
    for (frames, most) in
        [(kernel, KERNEL_FRAMES), (stack.user.iter().collect::<Vec<_>>(), USER_FRAMES)]
    {
        let mut shown: Vec<&str> = frames.iter().take(most).map(|frame| frame.as_str()).collect();
        if frames.len() > most {
            shown.push("...");
        }
        if !shown.is_empty() {
            sides.push(shown.join(" <- "));
        }
    }
    sides.join(" <- ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use model::Blocked;

    fn stack(kernel: &[&str], user: &[&str]) -> LostStack {
        LostStack {
            account: Account::Blocked(Blocked::Disk),
            count: 12,
            ns: 80_000_000,
            kernel: kernel.iter().map(|frame| (*frame).to_owned()).collect(),
            user: user.iter().map(|frame| (*frame).to_owned()).collect(),
        }
    }

    #[test]
    fn stacks_go_from_the_kernel_to_the_program_without_what_all_have() {
        let kernel = ["__schedule", "schedule", "io_schedule", "filemap_read", "do_syscall_64"];
        let text = frames(&stack(&kernel, &["__read", "load_index", "main"]));
        assert_eq!(text, "io_schedule <- filemap_read <- __read <- load_index <- main");
        let deep: Vec<String> = (0..20).map(|n| format!("f{n}")).collect();
        let deep: Vec<&str> = deep.iter().map(String::as_str).collect();
        assert!(frames(&stack(&[], &deep)).ends_with("f5 <- ..."));
    }

    #[test]
    fn the_rest_has_its_stacks_within_80_columns_if_it_is_worth_them() {
        let mut explanation = sample::explanation();
        let long = ["folio_wait_bit_common", "filemap_update_page", "filemap_get_pages"];
        explanation.unexplained_stacks = vec![stack(&long, &["__libc_pread64", "load_index"])];
        let style = Style::default();
        let text = sample::written(|out| write_rest(out, &explanation, &style));
        sample::assert_fits(&text, 80);
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains("unexplained: 9.0 % of the lost time (180 ms): blocked:disk"));
        assert!(
            flat.contains("80.0 ms blocked:disk (12 times) folio_wait_bit_common <- "),
            "{text}"
        );
        explanation.unexplained[0].1 = 1_000_000;
        let text = sample::written(|out| write_rest(out, &explanation, &style));
        assert_eq!(text.lines().count(), 1, "{text}");
        explanation.findings.clear();
        let text = sample::written(|out| write_all(out, &explanation, &style));
        assert!(text.contains("load_index"), "{text}");
    }
}
