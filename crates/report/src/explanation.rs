//! The answer of `whylag explain` for people.

use std::io::{self, Write};

use model::{Account, Explanation, Finding, Run};

use crate::units::{count, duration, part, plural, share};
use crate::{Style, cost, text, words};

/// Column in which the text beside a label begins.
const INDENT: usize = 14;

/// How many accounts are named where there is no cause.
const ACCOUNTS: usize = 6;

/// Writes the leading cause, each finding with its chain and evidence, what stays unexplained, and
/// the cost of the recorder. Commands are on lines of their own, unbroken.
///
/// # Errors
/// Those of `out`.
pub fn write(
    out: &mut dyn Write,
    explanation: &Explanation,
    run: &Run,
    style: &Style,
) -> io::Result<()> {
    for line in text::wrap(&leading(explanation), style.width) {
        writeln!(out, "{}", style.bold(&line))?;
    }
    for line in text::wrap(&sums(explanation, run), style.width) {
        writeln!(out, "{line}")?;
    }
    if explanation.findings.is_empty() {
        write_largest_accounts(out, explanation, style)?;
    }
    for (n, finding) in explanation.findings.iter().enumerate() {
        writeln!(out)?;
        write_finding(out, n + 1, finding, style)?;
    }
    if !explanation.findings.is_empty() {
        writeln!(out)?;
        write_unexplained(out, explanation, style)?;
    }
    writeln!(out)?;
    cost::write(out, run, style)
}

/// The first line: the leading cause in plain words.
fn leading(explanation: &Explanation) -> String {
    match explanation.findings.first() {
        Some(finding) => format!(
            "{} ({}): {} of the lost time",
            finding.title,
            finding.cause,
            share(finding.share)
        ),
        None if explanation.lost_ns == 0 => {
            format!("No time was lost in run {}: there is nothing to explain.", explanation.run)
        }
        None => format!("No known cause explains the time lost in run {}.", explanation.run),
    }
}

/// How the wall time divides.
fn sums(explanation: &Explanation, run: &Run) -> String {
    let wall = explanation.wall_ns;
    format!(
        "Run {} of {}: {} and {} of wall time, of which {} ({}) lost, {} ({}) waiting for work, {} \
         ({}) unaccounted.",
        explanation.run,
        run.header.target,
        plural(run.threads.len() as u64, "thread"),
        duration(wall),
        duration(explanation.lost_ns),
        part(explanation.lost_ns, wall),
        duration(explanation.idle_ns),
        part(explanation.idle_ns, wall),
        duration(explanation.unaccounted_ns),
        part(explanation.unaccounted_ns, wall),
    )
}

fn write_largest_accounts(
    out: &mut dyn Write,
    explanation: &Explanation,
    style: &Style,
) -> io::Result<()> {
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
        let words = format!("{} {} ({account})", share(*part), words::account(*account));
        write!(
            out,
            "{}",
            text::labelled(&format!("  {}", duration(*ns)), 13, &words, style.width)
        )?;
    }
    Ok(())
}

fn write_finding(
    out: &mut dyn Write,
    number: usize,
    finding: &Finding,
    style: &Style,
) -> io::Result<()> {
    for line in text::wrap(&format!("{number}. {}: {}", finding.cause, finding.title), style.width)
    {
        writeln!(out, "{}", style.bold(&line))?;
    }
    let mut labelled = |label: &str, text: &str| {
        write!(out, "{}", text::labelled(&format!("   {label}"), INDENT, text, style.width))
    };
    let lost = duration(finding.lost_ns);
    labelled("explains", &format!("{} of the lost time ({lost})", share(finding.share)))?;
    labelled("confidence", &format!("{:.2}", finding.confidence))?;
    each(&mut labelled, "doubts", finding.doubts.iter().map(|doubt| format!("- {doubt}")))?;
    for (n, link) in finding.chain.iter().enumerate() {
        let arrow = if n == 0 { "" } else { "<- " };
        labelled(&link.role, &format!("{arrow}{}", link.text))?;
    }
    let evidence = finding.evidence.iter().map(|e| format!("- {} [{}]", e.text, e.source));
    each(&mut labelled, "evidence", evidence)?;
    let ruled_out = finding.ruled_out.iter().map(|r| format!("- not {}: {}", r.cause, r.because));
    each(&mut labelled, "ruled out", ruled_out)?;
    if !finding.fix.is_empty() {
        labelled("fix", &finding.fix)?;
    }
    for (label, command) in [("reproduce", &finding.reproduce), ("verify", &finding.verify)] {
        for (n, line) in command.lines().enumerate() {
            let label = if n == 0 { label } else { "" };
            let line = text::clean(line);
            writeln!(out, "{:INDENT$}{line}", format!("   {label}"))?;
        }
    }
    Ok(())
}

/// One paragraph per item, the label beside the first.
fn each(
    labelled: &mut impl FnMut(&str, &str) -> io::Result<()>,
    label: &str,
    items: impl Iterator<Item = String>,
) -> io::Result<()> {
    for (n, item) in items.enumerate() {
        labelled(if n == 0 { label } else { "" }, &item)?;
    }
    Ok(())
}

fn write_unexplained(
    out: &mut dyn Write,
    explanation: &Explanation,
    style: &Style,
) -> io::Result<()> {
    let total = explanation.unexplained.iter().fold(0u64, |sum, (_, ns)| sum.saturating_add(*ns));
    let mut words = format!("{} of the lost time", part(total, explanation.lost_ns));
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
    write!(out, "{}", text::labelled("unexplained: ", 13, &words, style.width))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn text(explanation: &Explanation) -> String {
        sample::written(|out| write(out, explanation, &sample::run(), &Style::default()))
    }

    #[test]
    fn the_first_line_is_the_leading_cause() {
        let text = text(&sample::explanation());
        let first = text.split("\nRun ").next().unwrap().replace('\n', " ");
        assert_eq!(
            first,
            "Threads of scan wait for the mmap_lock of their own process (mmap-lock): 61.0 % of \
             the lost time"
        );
    }

    #[test]
    fn a_finding_has_all_its_parts_in_order() {
        let text = text(&sample::explanation());
        let prose: String = text
            .lines()
            .filter(|line| !line.contains("whylag bench"))
            .collect::<Vec<_>>()
            .join("\n");
        sample::assert_fits(&prose, 80);
        let parts = [
            "1. mmap-lock:",
            "explains   61.0 % of the lost time",
            "confidence 0.85",
            "doubts     - only 12 waits",
            "symptom    mmap takes",
            "mechanism  <- the lock",
            "trigger    <- MAP_POPULATE",
            "evidence   - 2,000 waits",
            "[mmap_lock tracepoints]",
            "ruled out  - not cpu-runqueue: threads were in state D",
            "fix        read() instead",
            "reproduce  whylag bench mmap-populate",
            "verify     whylag prove",
            "2. cpu-runqueue:",
            "unexplained: 9.0 %",
            "whylag itself:",
        ];
        let mut from = 0;
        for part in parts {
            let at = text[from..].find(part).unwrap_or_else(|| panic!("{part}\n{text}"));
            from += at;
        }
    }

    #[test]
    fn commands_are_not_broken() {
        let explanation = sample::explanation();
        assert!(text(&explanation).contains(&explanation.findings[0].verify));
        assert!(explanation.findings[0].verify.len() > 80);
    }

    #[test]
    fn without_a_cause_it_says_so_and_names_the_largest_accounts() {
        let mut explanation = sample::explanation();
        explanation.findings.clear();
        let unexplained = text(&explanation);
        assert!(unexplained.starts_with("No known cause explains the time lost in run 12."));
        assert!(unexplained.contains("waiting for the disk (blocked:disk)"), "{unexplained}");
        explanation.lost_ns = 0;
        explanation.unexplained.clear();
        let nothing = text(&explanation);
        assert!(nothing.starts_with("No time was lost in run 12"), "{nothing}");
        assert!(nothing.contains("(blocked:lock:mmap_lock:write)"), "{nothing}");
    }
}
