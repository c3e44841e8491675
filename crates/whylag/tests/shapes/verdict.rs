//! What is right of what was said of one program.

use std::fmt;
use std::ops::Range;

use model::Finding;

use crate::truth::{Loss, Truth};

/// A finding is as large as the waits that the program measured.
const SIZE: Range<f64> = 0.85..1.15;
/// Losses of which either may come first.
const ALIKE: f64 = 0.8;

/// Words of which one has to stand beside the name of the thread behind a loss, by what it does.
const WORDS: [(&str, &[&str]); 5] = [
    ("sleep", &["sleep", "timer"]),
    ("cpu", &["on a CPU", "on the CPU", "comput", "running", " ran "]),
    ("disk", &["disk", "fdatasync", "fsync", "pwrite", "pread"]),
    ("stop", &["stopped"]),
    ("deadlock", &["deadlock", "each other", "one another", "circle", "cycle"]),
];

/// Right or wrong in each respect.
pub struct Verdict {
    pub name: String,
    truth: Truth,
    findings: Vec<Finding>,
    /// What made the recording worthless.
    pub disturbed: Option<String>,
    pub first: bool,
    pub causes: bool,
    pub size: bool,
    pub chain: bool,
    /// Of a healthy program: nothing was found.
    pub silent: bool,
}

impl Verdict {
    pub fn of(
        name: &str,
        truth: Truth,
        findings: Vec<Finding>,
        disturbed: Option<&str>,
    ) -> Verdict {
        let losses = &truth.losses;
        let largest = losses.iter().map(|loss| loss.lost_ns).max().unwrap_or(0) as f64;
        let leads = |loss: &&Loss| loss.lost_ns as f64 >= largest * ALIKE;
        let first = findings.first().is_some_and(|finding| {
            losses.iter().filter(leads).any(|loss| loss.is_called(&finding.cause))
        });
        let ways = assignments(losses, &findings);
        let size = ways.iter().any(|way| has_right_sizes(losses, &findings, way))
            || (!ways.is_empty() && are_right_together(losses, &findings));
        let chain = ways.iter().any(|way| {
            losses
                .iter()
                .zip(way)
                .all(|(loss, finding)| names_who_is_behind(&findings[*finding], loss, name))
        });
        let is_faulty = !losses.is_empty();
        Verdict {
            name: name.to_owned(),
            first,
            causes: is_faulty && !ways.is_empty(),
            size: is_faulty && size,
            chain: is_faulty && chain,
            silent: findings.is_empty(),
            disturbed: disturbed.map(str::to_owned),
            truth,
            findings,
        }
    }

    pub fn is_of_healthy(&self) -> bool {
        self.truth.losses.is_empty()
    }
}

/// Each way to give every loss a finding that is called like it. One finding may stand for two
/// losses behind the same thread.
fn assignments(losses: &[Loss], findings: &[Finding]) -> Vec<Vec<usize>> {
    losses.iter().fold(vec![Vec::new()], |ways, loss| {
        let fits = |way: &Vec<usize>, finding: usize| {
            let others = losses.iter().zip(way).filter(|(_, taken)| **taken == finding);
            loss.is_called(&findings[finding].cause)
                && others.into_iter().all(|(other, _)| other.behind == loss.behind)
        };
        let longer = ways.iter().flat_map(|way| {
            let fitting = (0..findings.len()).filter(move |finding| fits(way, *finding));
            fitting.map(move |finding| [way.as_slice(), &[finding]].concat())
        });
        longer.collect()
    })
}

fn has_right_sizes(losses: &[Loss], findings: &[Finding], way: &[usize]) -> bool {
    way.iter().all(|finding| {
        let of_it = losses.iter().zip(way).filter(|(_, other)| *other == finding);
        let truth: u64 = of_it.map(|(loss, _)| loss.lost_ns).sum();
        SIZE.contains(&(findings[*finding].lost_ns as f64 / truth.max(1) as f64))
    })
}

/// All losses are behind one thread, and so are all findings that are called like one of them: a wait
/// behind a thread that ran for a part of it, and had no CPU for the rest, is divided between the
/// lock and the CPU, which the program cannot see.
fn are_right_together(losses: &[Loss], findings: &[Finding]) -> bool {
    let is_called = |finding: &&Finding| losses.iter().any(|loss| loss.is_called(&finding.cause));
    let found: u64 = findings.iter().filter(is_called).map(|finding| finding.lost_ns).sum();
    let truth: u64 = losses.iter().map(|loss| loss.lost_ns).sum();
    losses.len() > 1
        && losses.iter().all(|loss| loss.behind == losses[0].behind)
        && SIZE.contains(&(found as f64 / truth.max(1) as f64))
}

/// Title and chain together, or one piece of evidence, name the thread and what it did. Of a thread
/// that waits for the disk itself nobody else is behind it: whom it hurts names it.
fn names_who_is_behind(finding: &Finding, loss: &Loss, program: &str) -> bool {
    let links = finding.chain.iter().map(|link| link.text.as_str());
    let is_alone =
        loss.does == "disk" && ["disk-sync", "disk-read"].contains(&finding.cause.as_str());
    let hurts = finding.hurts.iter().filter(|_| is_alone).map(|hurt| hurt.who.as_str());
    let chain: Vec<&str> = [finding.title.as_str()].into_iter().chain(hurts).chain(links).collect();
    let mut texts = vec![chain.join("\n")];
    texts.extend(finding.evidence.iter().map(|evidence| evidence.text.clone()));
    let (_, words) = WORDS.iter().find(|(does, _)| *does == loss.does).unwrap();
    texts.iter().any(|text| {
        // What sleeps in a lock is "asleep", which is not the end of a chain; nor is the name of the
        // program a word about it, whole or as the kernel keeps it.
        let kept = &program[..program.len().min(15)];
        let text = text.replace("asleep", "").replace(program, "").replace(kept, "");
        text.contains(&loss.behind) && words.iter().any(|word| text.contains(word))
    })
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = |right: bool| if right { "right" } else { "WRONG" };
        write!(f, "{:18}", self.name)?;
        if self.is_of_healthy() {
            write!(f, " healthy {:37}", word(self.silent))?;
        } else {
            write!(f, " first {} causes {}", word(self.first), word(self.causes))?;
            write!(f, " size {} chain {}", word(self.size), word(self.chain))?;
        }
        let text = |loss: &Loss| loss.to_string();
        let truth: Vec<String> = self.truth.losses.iter().map(text).collect();
        let text =
            |finding: &Finding| format!("{} {:.2} s", finding.cause, finding.lost_ns as f64 / 1e9);
        let found: Vec<String> = self.findings.iter().map(text).collect();
        write!(f, " | truth: {} | found: {}", truth.join("; "), found.join("; "))?;
        self.disturbed.as_ref().map_or(Ok(()), |by| write!(f, " | disturbed by {by}"))
    }
}
