//! One outlier in words, and in full.

use std::io::{self, Write};

use model::units::{count, duration, moment, share_of};
use model::{Account, Blocked, Frame, Outlier, OutlierKind, Run, Space, Stack, StackId};

use crate::style::Paint;
use crate::table::{Align, Cell, Table};
use crate::{Style, call, text, who};

/// How many parts of the breakdown a sentence names.
const PARTS: usize = 4;

/// The outlier in one sentence: the call with its arguments and result, how long it took, and
/// where that time went, largest part first.
pub fn sentence(outlier: &Outlier, run: &Run) -> String {
    let parts = outlier.breakdown.largest_first();
    let mut words: Vec<String> = parts
        .iter()
        .take(PARTS)
        .map(|(account, ns)| part_of(outlier, run, *account, *ns))
        .collect();
    let rest = parts.iter().skip(PARTS).fold(0u64, |sum, (_, ns)| sum.saturating_add(*ns));
    if rest > 0 {
        words.push(format!("{} in {} smaller accounts", duration(rest), parts.len() - PARTS));
    }
    format!("{}: {}", subject(outlier, run), words.join(", "))
}

/// What took how long.
fn subject(outlier: &Outlier, run: &Run) -> String {
    let length = duration(outlier.duration_ns);
    let call = outlier.syscall.as_ref();
    let within = call.map_or_else(String::new, |c| format!(" in {}", call::call(c)));
    match (outlier.kind, call) {
        (OutlierKind::Syscall, Some(c)) => {
            let result = c.result.map_or("? (not returned)".to_owned(), call::result);
            format!("{} = {result} took {length}", call::call(c))
        }
        (OutlierKind::Syscall, None) => format!("an unknown system call took {length}"),
        (OutlierKind::OffCpu, _) => format!("off the CPU for {length}{within}"),
        (OutlierKind::RunQueue, _) => format!("ready, but off the CPU for {length}{within}"),
        (OutlierKind::FirstCall, _) => first_call(outlier, run, &length),
        (OutlierKind::LockHold, _) => {
            format!("held mmap_lock of pid {} for {length}{within}", outlier.object)
        }
    }
}

/// Which function was called for the first time, by whom, and the page faults that it took.
fn first_call<'a>(outlier: &Outlier, run: &'a Run, length: &str) -> String {
    let stack = outlier.user_stack.and_then(|id| run.stacks.get(&id));
    let call = |frame: &'a Frame| Some((frame, frame.after.as_ref()?));
    let caller = stack.and_then(|stack| stack.frames.iter().find_map(call));
    let (called, by) = match caller {
        Some((frame, call)) => (call.symbol(), frame.place()),
        None => ("an unknown function", "unknown code".to_owned()),
    };
    let faults = outlier.first_call.map_or_else(String::new, |call| {
        let left = call.left.map_or_else(String::new, |left| {
            format!("; {} of {} calls of that library were still unbound", left.unbound, left.slots)
        });
        format!(", {} minor and {} major page faults{left}", call.minor_faults, call.major_faults)
    });
    format!("the first call of {called}, by {by}, took at most {length}{faults}")
}

/// A part of the breakdown, with who was to blame for it as far as is known.
fn part_of(outlier: &Outlier, run: &Run, account: Account, ns: u64) -> String {
    let mut words = format!("{} {}", duration(ns), account.describe());
    match account {
        Account::Blocked(kind) => {
            words += &object(outlier, run, kind);
            if outlier.blocked.is_none_or(|blocked| blocked == kind) {
                words += &ended_by(outlier, kind);
            }
        }
        account if account.is_waiting_for_cpu() => {
            if let Some(runner) = outlier.ran_instead.first() {
                let who = who::thread(&runner.comm, runner.tid, runner.tgid);
                words += &format!(" while {who} ran {}", duration(runner.ns));
            }
        }
        _ => {}
    }
    words
}

/// Whose mmap_lock, or which lock or futex, was waited for; empty if that is not known.
fn object(outlier: &Outlier, run: &Run, kind: Blocked) -> String {
    match kind {
        Blocked::MmapLockWrite => format!(" of pid {}", outlier.tgid),
        // Within a call it may be that of another process: reading /proc/PID/smaps takes it.
        Blocked::MmapLockRead if outlier.syscall.is_none() => format!(" of pid {}", outlier.tgid),
        Blocked::Futex if outlier.object != 0 => format!(" at {:#x}", outlier.object),
        _ => {
            let name = run
                .sums
                .waits
                .iter()
                .filter(|wait| wait.account == Account::Blocked(kind) && outlier.object != 0)
                .filter(|wait| wait.tgid == outlier.tgid && wait.object == outlier.object)
                .find_map(|wait| wait.name.as_ref());
            name.map_or_else(String::new, |name| format!(" ({})", name.as_str()))
        }
    }
}

fn ended_by(outlier: &Outlier, kind: Blocked) -> String {
    match (&outlier.holder, &outlier.waker) {
        (Some(holder), _) if kind.is_kernel_lock() => {
            let who = who::thread(&holder.comm, holder.tid, holder.tgid);
            let call = holder.call.map_or_else(String::new, |call| format!(" in {call}"));
            format!(", held {} by {who}{call}", duration(holder.overlap_ns))
        }
        (_, Some(waker)) => format!(" until woken by {}", who::waker(waker)),
        _ => String::new(),
    }
}

/// Writes everything known of the outlier; `number` is its place in the list.
///
/// # Errors
/// Those of `out`.
pub fn write(
    out: &mut dyn Write,
    number: usize,
    outlier: &Outlier,
    run: &Run,
    style: &Style,
) -> io::Result<()> {
    let into = outlier.start_ns.saturating_sub(run.header.started_ns);
    let heading = format!(
        "{number}. {} of {}, on CPU {}, {} into the run",
        duration(outlier.duration_ns),
        who::thread(&outlier.comm, outlier.tid, outlier.tgid),
        outlier.cpu,
        moment(into),
    );
    writeln!(out, "{}", style.bold(&text::clean(&heading)))?;
    for line in text::wrap(&sentence(outlier, run), style.width.saturating_sub(3)) {
        writeln!(out, "   {line}")?;
    }

    let mut table = Table::new(5, &[("", Align::Right), ("", Align::Right), ("", Align::Left)]);
    for (account, ns) in outlier.breakdown.largest_first() {
        let share = share_of(ns, outlier.duration_ns);
        table.row([duration(ns).into(), share.into(), account.to_string().into()]);
    }
    let all = outlier.breakdown.total();
    let name = if all == outlier.duration_ns { "all" } else { "all that is accounted for" };
    let all = [duration(all), share_of(all, outlier.duration_ns), name.to_owned()];
    table.row(all.map(|text| Cell::painted(text, Paint::Dim)));
    table.write(out, style)?;

    for (label, text) in details(outlier) {
        write!(out, "{}", text::labelled(&format!("   {label}"), 17, &text, style.width))?;
    }
    write_stack(out, run, Space::Kernel, outlier.kernel_stack, style)?;
    write_stack(out, run, Space::User, outlier.user_stack, style)
}

/// Who and what was involved, by label.
fn details(outlier: &Outlier) -> Vec<(&'static str, String)> {
    let mut details = Vec::new();
    if outlier.object != 0 && outlier.kind != OutlierKind::LockHold {
        details.push(("object", format!("{:#x}", outlier.object)));
    }
    if let Some(ip) = outlier.fault_ip {
        details.push(("faulted at", format!("{ip:#x}")));
    }
    if let Some(waker) = &outlier.waker {
        details.push(("woken by", who::waker(waker)));
    }
    if let Some(holder) = &outlier.holder {
        let how = if holder.write { "writing" } else { "reading" };
        let call = holder.call.map_or_else(String::new, |call| format!(" in {call}"));
        let who = who::thread(&holder.comm, holder.tid, holder.tgid);
        let overlap = duration(holder.overlap_ns);
        details.push(("lock holder", format!("{who}, {how}{call}, for {overlap}")));
    }
    for (n, runner) in outlier.ran_instead.iter().enumerate() {
        let who = who::thread(&runner.comm, runner.tid, runner.tgid);
        let label = if n == 0 { "ran instead" } else { "" };
        details.push((label, format!("{who}, {}", duration(runner.ns))));
    }
    details
}

fn write_stack(
    out: &mut dyn Write,
    run: &Run,
    space: Space,
    id: Option<StackId>,
    style: &Style,
) -> io::Result<()> {
    let name = match space {
        Space::Kernel => "kernel stack",
        Space::User => "user stack",
    };
    let Some(stack) = id.and_then(|id| run.stacks.get(&id)) else {
        return writeln!(out, "   {}", style.dim(&format!("[no {name}]")));
    };
    let unwound = match stack.copies {
        0 => String::new(),
        1 => " (unwound from 1 copy)".to_owned(),
        n => format!(" (what {} copies of it have in common)", count(n)),
    };
    writeln!(out, "   {}", style.dim(&format!("{name}{unwound}")))?;
    for frame in &stack.frames {
        let why = match (&frame.symbol, &frame.unknown_because) {
            (None, Some(why)) => style.dim(&format!("  ({})", text::clean(why))),
            _ => String::new(),
        };
        writeln!(out, "     {}{why}", text::clean(&frame.to_string()))?;
    }
    if stack.truncated {
        writeln!(out, "     {}", style.dim(why_cut(stack)))?;
    }
    Ok(())
}

fn why_cut(stack: &Stack) -> &'static str {
    match (stack.space, stack.copies) {
        (Space::User, 0) => {
            "[cut short: no frame pointers and not unwound, or deeper than what is kept]"
        }
        (Space::User, 1) => {
            "[cut short: the copy ends here, the file does not say who called, or deeper than what \
             is kept]"
        }
        (Space::User, _) => {
            "[cut short: from here on the copies differ, or end, or deeper than what is kept]"
        }
        (Space::Kernel, _) => "[cut short: deeper than what is kept]",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use model::{Accounts, Context, FirstCall, ImportedCall};

    #[test]
    fn a_slow_call_is_told_in_one_sentence() {
        let run = sample::run();
        assert_eq!(
            sentence(&run.outliers[0], &run),
            "mmap(0, 1265444, PROT_READ, MAP_PRIVATE|MAP_POPULATE, 65, 0) = 0x7f1234567000 took \
             12.1 ms: 11.8 ms waiting to write mmap_lock of pid 77, held 9.20 ms by scan (tid 81 \
             of pid 77) in mmap, 200 us running in mmap, 100 us in the run queue after waking \
             while stress (tid 99) ran 90.0 us"
        );
    }

    #[test]
    fn other_kinds_and_small_parts() {
        let run = sample::run();
        let mut outlier = run.outliers[1].clone();
        let text = sentence(&outlier, &run);
        assert!(text.starts_with("off the CPU for 3.00 ms in read(3, "), "{text}");
        assert!(text.contains("a softirq that interrupted swapper/1 (tid 0)"), "{text}");
        outlier.kind = OutlierKind::LockHold;
        outlier.object = 77;
        assert!(sentence(&outlier, &run).starts_with("held mmap_lock of pid 77 for 3.00 ms"));
        outlier.breakdown = (0..9).map(|n| (Account::Syscall(model::Syscall(n)), 1_000)).collect();
        assert!(sentence(&outlier, &run).contains("5.00 us in 5 smaller accounts"));
        outlier.breakdown = Accounts::new();
        outlier.syscall = None;
        assert_eq!(sentence(&outlier, &run), "held mmap_lock of pid 77 for 3.00 ms: ");
    }

    #[test]
    fn a_first_call_names_the_function_its_caller_and_the_page_faults() {
        let mut run = sample::run();
        let mut outlier = run.outliers[1].clone();
        outlier.kind = OutlierKind::FirstCall;
        outlier.first_call = Some(FirstCall { minor_faults: 6, major_faults: 7, left: None });
        outlier.user_stack = Some(StackId(2));
        let stack = run.stacks.get_mut(&StackId(2)).unwrap();
        stack.frames[1].after = Some(ImportedCall::Plt("sched_yield".to_owned()));
        let text = sentence(&outlier, &run);
        let expected = "the first call of sched_yield, by scanner:scan_block(u8; 4)+0x10 (after \
                        call sched_yield@plt), took at most 3.00 ms, 6 minor and 7 major page \
                        faults: ";
        assert!(text.starts_with(expected), "{text}");
    }

    #[test]
    fn errno_is_named() {
        let run = sample::run();
        let mut outlier = run.outliers[0].clone();
        outlier.syscall.as_mut().unwrap().result = Some(-12);
        assert!(sentence(&outlier, &run).contains(" = -ENOMEM ("));
    }

    #[test]
    fn in_full_it_has_sums_people_and_both_stacks() {
        let run = sample::run();
        let text = sample::written(|out| write(out, 1, &run.outliers[0], &run, &Style::default()));
        sample::assert_fits(&text, 80);
        for part in [
            "1. 12.1 ms of scan (tid 82 of pid 77), on CPU 1, 1.500 s into the run",
            "11.8 ms   97.5 %  blocked:lock:mmap_lock:write",
            "12.1 ms  100.0 %  all\n",
            "woken by      scan (tid 81 of pid 77)",
            "lock holder   scan (tid 81 of pid 77), writing in mmap, for 9.20 ms",
            "ran instead   stress (tid 99), 90.0 us",
            "rwsem_down_write_slowpath+0x1f [kernel]",
            "__mmap+0x1a [libc.so.6+0x11c3fa]",
            "scanner+0x1234  (stripped)",
            "[cut short",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        let kernel = text.find("kernel stack").unwrap();
        assert!(kernel < text.find("user stack").unwrap());
        let text = sample::written(|out| write(out, 2, &run.outliers[1], &run, &Style::default()));
        assert!(text.contains("[no user stack]"), "{text}");
    }

    #[test]
    fn a_hard_interrupt_as_waker_is_not_blamed_on_the_thread() {
        let mut waker = sample::run().outliers[1].waker.clone().unwrap();
        waker.context = Context::HardIrq;
        assert!(who::waker(&waker).starts_with("a hardware interrupt that interrupted "));
    }
}
