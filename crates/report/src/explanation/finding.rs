//! A finding with its chain, its evidence, and what to do.

use std::io::{self, Write};

use model::units::{count, duration, share, share_of};
use model::{Finding, RequestCost};

use crate::{Style, text};

/// Column in which the text after a label begins.
const INDENT: usize = 14;

/// Programs with a known fault are in the source alone.
const MYSTERIES: &str = "mysteries/bin/";

pub(crate) fn write_finding(
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
    let of_wall = match finding.wall_share {
        0.0 => String::new(),
        part => format!(", {} of the wall time", share(part)),
    };
    labelled("explains", &format!("{} of the lost time ({lost}){of_wall}", share(finding.share)))?;
    if let Some(hurt) = &finding.hurts {
        let (part, wanted) = (share_of(hurt.lost_ns, hurt.wanted_ns), duration(hurt.wanted_ns));
        let who = &hurt.who;
        labelled(
            "hurts",
            &format!("{who}: {part} of the {wanted} in which it worked or was wanted"),
        )?;
    }
    if let Some(cost) = &finding.requests {
        labelled("requests", &of_requests(cost))?;
    }
    if let Some(when) = &finding.when {
        labelled("when", &when.text)?;
    }
    labelled("confidence", &format!("{:.2}", finding.confidence))?;
    each(&mut labelled, "doubts", finding.doubts.iter().map(|doubt| format!("- {doubt}")))?;
    for (n, link) in finding.chain.iter().enumerate() {
        let arrow = if n == 0 { "" } else { "<- " };
        let cause = link.cause.as_ref().map_or_else(String::new, |cause| format!("{cause}: "));
        labelled(link.role.name(), &format!("{arrow}{cause}{}", link.text))?;
    }
    let evidence = finding.evidence.iter().map(|e| format!("- {} [{}]", e.text, e.source));
    each(&mut labelled, "evidence", evidence)?;
    let ruled_out = finding.ruled_out.iter().map(|r| (&r.cause, &r.because));
    let excluded = finding.excluded.iter().map(|e| (&e.what, &e.because));
    let ruled_out =
        ruled_out.chain(excluded).map(|(what, because)| format!("- not {what}: {because}"));
    each(&mut labelled, "ruled out", ruled_out)?;
    let not_ruled_out = finding.not_ruled_out.iter().map(|other| {
        format!(
            "- {} or {}: {}; to tell them apart, {}",
            finding.cause, other.cause, other.because, other.tell_apart
        )
    });
    let unseen = finding.not_looked_at.iter();
    let unseen = unseen.map(|other| format!("- {}: {}", other.what, other.because));
    each(&mut labelled, "undecided", not_ruled_out.chain(unseen))?;
    if !finding.fix.is_empty() {
        labelled("fix", &finding.fix)?;
    }
    for (label, command) in [("reproduce", &finding.reproduce), ("verify", &finding.verify)] {
        for (n, line) in command.lines().enumerate() {
            let label = if n == 0 { label } else { "" };
            let line = text::clean(line);
            writeln!(out, "{:INDENT$}{line}", format!("   {label}"))?;
        }
        if command.starts_with(MYSTERIES) {
            writeln!(out, "{:INDENT$}(built by 'make mysteries' in whylag's source)", "")?;
        }
    }
    Ok(())
}

/// `in 38 of the 40 slowest: 91 % of their 343 ms on average`.
fn of_requests(cost: &RequestCost) -> String {
    if cost.with == 0 {
        return format!(
            "in none of the {} slowest{}: something else made these slow",
            count(cost.of),
            cost.of_port()
        );
    }
    format!(
        "in {} of the {} slowest{}: {} of their {} on average",
        count(cost.with),
        count(cost.of),
        cost.of_port(),
        share_of(cost.ns, cost.total_ns),
        duration(cost.total_ns / cost.of.max(1))
    )
}

/// One paragraph per item, the label before the first.
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
