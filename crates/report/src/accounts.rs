//! Where the wall time of the watched threads went.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Write};

use model::units::{count, counted, duration, share_of};
use model::{Account, Accounts, OtherThreads, PathSum, Run, Syscall, ThreadAccounts};

use crate::style::Paint;
use crate::table::{Align, Cell, Table};
use crate::{Class, Style, text};

/// Accounts shown one by one; smaller ones are summed.
const ACCOUNTS: usize = 24;

/// Threads shown one by one; the others are summed.
const THREADS: usize = 40;

/// CPUs shown one by one: twice this.
const CPUS: usize = 8;

/// Fewer samples say nothing of what `running` was.
const LEAST_SAMPLES: u64 = 20;

/// Parts of `running` that are named.
const RUNNING_PARTS: usize = 5;

const BAR: usize = 24;

/// Writes the accounts of all watched threads together, and how idle the CPUs were: what
/// `whylag record` prints at the end.
///
/// # Errors
/// Those of `out`.
pub fn write_summary(out: &mut dyn Write, run: &Run, style: &Style) -> io::Result<()> {
    let accounts = run.accounts();
    let total = accounts.total();
    let heading = format!(
        "Where {} of wall time went: {} in {}",
        duration(total),
        counted(run.thread_count(), "thread"),
        duration(run.length_ns()),
    );
    writeln!(out, "{}", style.bold(&heading))?;
    if let Some(summed) = run.summed() {
        let why = format!("{summed}: there were too many to keep them one by one");
        write!(out, "{}", text::labelled("  ", 2, &why, style.width))?;
    }
    if run.header.sampled {
        writeln!(out, "  sampled from /proc, not recorded: shares are estimates")?;
    }

    let columns = [("account", Align::Left), ("time", Align::Right), ("share", Align::Right)];
    let mut table = Table::new(2, &[columns.as_slice(), &[("", Align::Left)]].concat());
    let row = |table: &mut Table, name: Cell, ns: u64, paint: Paint| {
        let bar = Cell::painted(bar(ns, total, BAR), paint);
        table.row([name, duration(ns).into(), share_of(ns, total).into(), bar]);
    };
    let known: Vec<_> = accounts
        .largest_first()
        .into_iter()
        .filter(|(account, _)| *account != Account::Unaccounted)
        .collect();
    let (shown, rest) = known.split_at(known.len().min(ACCOUNTS));
    for (account, ns) in shown {
        let star = if *account == Account::Stolen { " *" } else { "" };
        let paint = Paint::Account(Class::of(*account));
        row(&mut table, format!("{account}{star}").into(), *ns, paint);
    }
    if !rest.is_empty() {
        let name = format!("{} smaller accounts", rest.len());
        row(&mut table, name.into(), sum(rest.iter().map(|(_, ns)| *ns)), Paint::Dim);
    }
    let unaccounted = accounts.get(Account::Unaccounted);
    let paint = if unaccounted > 0 { Paint::Yellow } else { Paint::Dim };
    row(&mut table, Cell::painted("unaccounted", paint), unaccounted, paint);
    let all =
        [Cell::painted("all", Paint::Bold), duration(total).into(), share_of(total, total).into()];
    table.row(all);
    table.write(out, style)?;
    if accounts.get(Account::Stolen) > 0 {
        writeln!(out, "  {}", style.dim("* stolen (per CPU, as far as the host reports)"))?;
    }
    write_running(out, run, style)?;
    write_cpus(out, run, style)
}

/// Writes what time on a CPU was spent in whose system calls were not recorded, by samples; nothing if
/// there are too few of it. Errors are standard errors of a share.
fn write_running(out: &mut dyn Write, run: &Run, style: &Style) -> io::Result<()> {
    let mut parts = BTreeMap::<Option<Syscall>, u64>::new();
    let (mut n, mut longest_ns) = (0u64, 1);
    let of_running = |path: &&PathSum| path.sampled && path.account == Account::Running;
    for path in run.sums.paths.iter().filter(of_running) {
        // A page fault is the program's own.
        let part = parts.entry(path.kernel.and(path.call)).or_default();
        *part = part.saturating_add(path.ns);
        n = n.saturating_add(path.count);
        longest_ns = longest_ns.max(path.max_ns);
    }
    if n < LEAST_SAMPLES {
        return Ok(());
    }
    let all = sum(parts.values().copied());
    // As many as there were if all had stood for as long as those that stand for most.
    let alike = (all / longest_ns).clamp(1, n);
    let mut parts: Vec<_> = parts.into_iter().collect();
    parts.sort_by_key(|(call, ns)| (std::cmp::Reverse(*ns), *call));
    let words = parts.iter().take(RUNNING_PARTS).map(|(call, ns)| {
        let share = *ns as f64 / all as f64;
        let error = (share * (1.0 - share) / alike as f64).sqrt();
        let what =
            call.map_or_else(|| "the program's own code".to_owned(), |call| call.to_string());
        format!("{:.1} ± {:.1} % {what}", share * 100.0, error * 100.0)
    });
    let words = words.collect::<Vec<_>>().join(", ");
    let more = if parts.len() > RUNNING_PARTS { ", ..." } else { "" };
    let words = format!("by {}: {words}{more}", counted(n, "sample"));
    write!(out, "{}", text::labelled("  running: ", 12, &words, style.width))
}

/// Writes how idle the CPUs of the host were; nothing if that was not recorded.
fn write_cpus(out: &mut dyn Write, run: &Run, style: &Style) -> io::Result<()> {
    let total = |pick: fn(&model::CpuTime) -> u64| sum(run.sums.cpus.iter().map(pick));
    let (idle, busy, stolen) =
        (total(|cpu| cpu.idle_ns), total(|cpu| cpu.busy_ns), total(|cpu| cpu.stolen_ns));
    let all = idle.saturating_add(busy).saturating_add(stolen);
    if all == 0 {
        return Ok(());
    }
    let mut words = format!("{} of all CPU time", share_of(idle, all));
    if stolen > 0 {
        words += &format!(", stolen {} (as far as the host reports)", share_of(stolen, all));
    }
    words += ":";

    let mut cpus: Vec<(u32, u64, u64)> = run
        .sums
        .cpus
        .iter()
        .map(|cpu| (cpu.cpu, cpu.idle_ns, sum([cpu.idle_ns, cpu.busy_ns, cpu.stolen_ns])))
        .collect();
    let name = |(cpu, idle, all): &(u32, u64, u64)| format!("cpu{cpu} {}", share_of(*idle, *all));
    let share = |(_, idle, all): &(u32, u64, u64)| *idle as f64 / (*all).max(1) as f64;
    if cpus.len() <= 2 * CPUS {
        words += &format!(" {}", cpus.iter().map(name).collect::<Vec<_>>().join(", "));
    } else {
        cpus.sort_by(|a, b| share(a).total_cmp(&share(b)));
        let least: Vec<String> = cpus.iter().take(CPUS).map(name).collect();
        let most: Vec<String> = cpus.iter().rev().take(CPUS).map(name).collect();
        words += &format!(" least {}; most {}", least.join(", "), most.join(", "));
    }
    write!(out, "{}", text::labelled("  idle CPU: ", 12, &words, style.width))
}

/// Writes one line per thread, with what it was blocked on longest: those that ran, or waited for a
/// CPU or a kernel lock, the longest first.
///
/// # Errors
/// Those of `out`.
pub fn write_threads(out: &mut dyn Write, run: &Run, style: &Style) -> io::Result<()> {
    let others = run.sums.others.iter().filter(|others| others.threads > 0);
    let one_by_one = run.threads.iter().map(Line::of_thread);
    let mut lines: Vec<Line> = one_by_one.chain(others.map(Line::of_others)).collect();
    lines.sort_by_cached_key(|line| (std::cmp::Reverse(active(line.accounts)), line.tid));
    writeln!(out, "{}", style.bold("Threads (parts of the wall time in %)"))?;
    let mut table = Table::new(
        2,
        &[
            ("tid", Align::Right),
            ("comm", Align::Left),
            ("wall", Align::Right),
            ("run", Align::Right),
            ("queue", Align::Right),
            ("other", Align::Right),
            ("blocked", Align::Right),
            ("blocked on", Align::Left),
        ],
    );
    let (shown, rest) = lines.split_at(lines.len().min(THREADS));
    for line in shown {
        let tid = line.tid.map_or_else(String::new, |tid| tid.to_string());
        table.row(thread_row(&tid, &line.name, line.accounts));
    }
    if !rest.is_empty() {
        let mut together = Accounts::new();
        rest.iter().for_each(|line| together.merge(line.accounts));
        let number = sum(rest.iter().map(|line| line.threads));
        table.row(thread_row("", &format!("{} others", count(number)), &together));
    }
    table.write(out, style)?;
    let note = "  queue: ready but not on a CPU; other: interrupts, stolen, unaccounted";
    writeln!(out, "{}", style.dim(note))
}

/// A line of the table: a thread, or some that are summed.
struct Line<'a> {
    tid: Option<u32>,
    name: Cow<'a, str>,
    threads: u64,
    accounts: &'a Accounts,
}

impl Line<'_> {
    fn of_thread(thread: &ThreadAccounts) -> Line<'_> {
        let (tid, name) = (Some(thread.tid), thread.comm.as_str().into());
        Line { tid, name, threads: 1, accounts: &thread.accounts }
    }

    fn of_others(others: &OtherThreads) -> Line<'_> {
        let name = format!("{} x {}", count(others.threads), others.comm).into();
        Line { tid: None, name, threads: others.threads, accounts: &others.accounts }
    }
}

fn thread_row(tid: &str, comm: &str, accounts: &Accounts) -> [Cell; 8] {
    let wall = accounts.total();
    let running = accounts.sum_of(Account::is_running);
    let queue = accounts.sum_of(Account::is_waiting_for_cpu);
    let is_blocked = |account| matches!(account, Account::Blocked(_));
    let blocked = accounts.sum_of(is_blocked);
    let other = wall.saturating_sub(running).saturating_sub(queue).saturating_sub(blocked);
    let longest = accounts.largest_first().into_iter().find(|(account, _)| is_blocked(*account));
    let mostly = match longest {
        Some((Account::Blocked(kind), _)) => kind.name().to_owned(),
        _ => "-".to_owned(),
    };
    let percent = |ns: u64| {
        let text = share_of(ns, wall);
        Cell::from(text.strip_suffix(" %").unwrap_or(&text))
    };
    [
        tid.into(),
        comm.into(),
        duration(wall).into(),
        percent(running),
        percent(queue),
        percent(other),
        percent(blocked),
        mostly.into(),
    ]
}

/// Time in which the thread wanted to run.
fn active(accounts: &Accounts) -> u64 {
    accounts.sum_of(|account| {
        account.is_running()
            || account.is_waiting_for_cpu()
            || matches!(account, Account::Blocked(kind) if kind.is_kernel_lock())
    })
}

fn sum(parts: impl IntoIterator<Item = u64>) -> u64 {
    parts.into_iter().fold(0, u64::saturating_add)
}

/// A bar of `part` of `whole`, at most `columns` long; never empty for a part that is not.
pub(crate) fn bar(part: u64, whole: u64, columns: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    if part == 0 || whole == 0 {
        return String::new();
    }
    let share = (part as f64 / whole as f64).min(1.0);
    let eighths = ((share * columns as f64 * 8.0).round() as usize).max(1);
    "█".repeat(eighths / 8) + EIGHTHS[eighths % 8]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use model::units::parse_duration;
    use model::{CpuTime, Crowd, StackId};

    fn summary(run: &Run, style: &Style) -> String {
        sample::written(|out| write_summary(out, run, style))
    }

    #[test]
    fn the_times_shown_sum_to_the_wall_time() {
        let run = sample::run();
        let text = summary(&run, &Style::default());
        sample::assert_fits(&text, 80);
        let time = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let unit = words.iter().position(|w| ["ns", "us", "ms", "s"].contains(w)).unwrap();
            parse_duration(&format!("{}{}", words[unit - 1], words[unit])).unwrap()
        };
        let rows: Vec<&str> =
            text.lines().skip(2).take_while(|line| !line.starts_with("  all")).collect();
        let all = text.lines().find(|line| line.starts_with("  all")).unwrap();
        let shown: u64 = rows.iter().map(|row| time(row)).sum();
        assert_eq!(rows.len(), run.accounts().iter().count());
        assert!(shown.abs_diff(run.wall_ns()) as f64 <= 0.01 * run.wall_ns() as f64, "{text}");
        assert!(time(all).abs_diff(run.wall_ns()) as f64 <= 0.005 * run.wall_ns() as f64);
    }

    #[test]
    fn unaccounted_is_always_shown_and_stolen_is_marked() {
        let mut run = sample::run();
        let text = summary(&run, &Style::default());
        assert!(text.contains("stolen *"), "{text}");
        assert!(text.contains("(per CPU, as far as the host reports)"), "{text}");
        run.threads.clear();
        let text = summary(&run, &Style::default());
        assert!(text.contains("unaccounted"), "{text}");
        assert!(!text.contains("stolen *"), "{text}");
    }

    #[test]
    fn time_on_a_cpu_without_calls_is_divided_by_samples() {
        let mut run = sample::run();
        assert!(!summary(&run, &Style::default()).contains("running: by"));
        let sampled = |call: Option<&str>, kernel, count| PathSum {
            tgid: 77,
            account: Account::Running,
            call: call.and_then(Syscall::named),
            kernel,
            user: None,
            sampled: true,
            tid: 77,
            count,
            ns: count * 5_000_000,
            max_ns: 5_000_000,
        };
        run.sums.paths = vec![
            sampled(None, None, 200),
            sampled(None, Some(StackId(5)), 100),
            sampled(Some("write"), Some(StackId(6)), 60),
            sampled(Some("write"), Some(StackId(7)), 40),
        ];
        let text = summary(&run, &Style::default());
        sample::assert_fits(&text, 80);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let said =
            "running: by 400 samples: 75.0 ± 2.2 % the program's own code, 25.0 ± 2.2 % write";
        assert!(text.contains(said), "{text}");
    }

    #[test]
    fn only_colour_writes_escape_codes() {
        assert!(!summary(&sample::run(), &Style::default()).contains('\x1b'));
        assert!(summary(&sample::run(), &Style { color: true, width: 80 }).contains('\x1b'));
    }

    #[test]
    fn idle_cpus_are_named_and_many_are_cut_to_the_extremes() {
        let mut run = sample::run();
        let text = summary(&run, &Style::default());
        assert!(text.contains("idle CPU: 37.5 % of all CPU time"), "{text}");
        assert!(text.contains("cpu0 50.0 %, cpu1 25.0 %"), "{text}");
        run.sums.cpus = (0..64)
            .map(|cpu| CpuTime {
                cpu,
                idle_ns: u64::from(cpu) * 10,
                busy_ns: 1000 - u64::from(cpu) * 10,
                stolen_ns: 0,
            })
            .collect();
        let text = summary(&run, &Style::default());
        sample::assert_fits(&text, 80);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("least cpu0 0.0 %, cpu1 1.0 %"), "{text}");
        assert!(text.contains("most cpu63 63.0 %"), "{text}");
        assert!(!text.contains("cpu30 "), "{text}");
    }

    #[test]
    fn thread_lines_fit_and_their_parts_make_the_whole() {
        let mut run = sample::run();
        for thread in &mut run.threads {
            thread.tid += 4_000_000;
            thread.comm = "fifteen-letters".into();
        }
        let text = sample::written(|out| write_threads(out, &run, &Style::default()));
        sample::assert_fits(&text, 80);
        for thread in &run.threads {
            let tid = thread.tid.to_string();
            let line = text.lines().find(|line| line.trim_start().starts_with(&tid)).unwrap();
            let numbers: Vec<f64> =
                line.split_whitespace().skip(4).take(4).map(|word| word.parse().unwrap()).collect();
            assert!((numbers.iter().sum::<f64>() - 100.0).abs() <= 0.2, "{line}");
        }
        assert!(text.contains("lock:mmap_"), "{text}");
    }

    #[test]
    fn more_threads_than_fit_are_summed_in_one_line() {
        let mut run = sample::run();
        let one = run.threads[0].clone();
        run.threads = (0..100).map(|tid| ThreadAccounts { tid, ..one.clone() }).collect();
        let text = sample::written(|out| write_threads(out, &run, &Style::default()));
        assert!(text.contains("60 others"), "{text}");
        assert!(text.contains(&duration(60 * one.wall_ns())), "{text}");
    }

    #[test]
    fn threads_that_are_summed_are_counted_and_said_to_be() {
        let mut run = sample::run();
        let (wall_ns, one) = (run.wall_ns(), run.threads[0].clone());
        let mut crowd = Crowd::default();
        let group = crowd.group("sh");
        (0..1234).for_each(|_| crowd.add(&one, group));
        run.sums.others = crowd.into_sums();
        assert_eq!(run.wall_ns(), wall_ns + 1234 * one.wall_ns());
        let text = summary(&run, &Style::default());
        sample::assert_fits(&text, 80);
        let threads = format!("{} threads in", count(run.threads.len() as u64 + 1234));
        assert!(text.contains(&threads), "{text}");
        assert!(text.contains("1,234 threads of"), "{text}");
        let text = sample::written(|out| write_threads(out, &run, &Style::default()));
        sample::assert_fits(&text, 80);
        assert!(text.contains("1,234 x sh"), "{text}");
    }

    #[test]
    fn bars_are_proportional_and_never_vanish() {
        assert_eq!(bar(1, 1, 4), "████");
        assert_eq!(bar(1, 2, 4), "██");
        assert_eq!(bar(1, 1_000_000, 4), "▏");
        assert_eq!(bar(0, 5, 4), "");
    }
}
