//! What whylag said of a situation, and what that is worth.

use std::fmt;
use std::path::Path;

use model::Finding;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::situation::{Situation, Truth};
use crate::stage::Recorded;

/// Below this the fault did not come about.
const LEAST_LOST_S: f64 = 0.3;

/// Causes that programs outside of the test make.
const OF_OTHERS: [&str; 2] = ["cpu-runqueue", "softirq-interference"];

/// What the first statement is worth.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Debug)]
pub enum Worth {
    /// One of the accepted causes; of a healthy server nothing.
    Right,
    /// Nothing was found of a fault.
    Silent,
    /// Another cause, with an accepted one among the next.
    Wrong,
    /// Only other causes: the reader is sent elsewhere. Anything of a healthy server.
    Misleading,
    /// Others made the cause that comes first, or the fault did not come about.
    NotJudged,
}

#[derive(Serialize, Deserialize)]
pub struct Verdict {
    pub name: String,
    pub version: String,
    pub truth: Truth,
    /// Of findings that are no minor ones: cause, part of the wall time, title.
    pub found: Vec<(String, f64, String)>,
    /// The first finding's chain.
    pub chain: Vec<String>,
    /// First paragraph of the text for people.
    pub said: String,
    pub disturbed: Option<String>,
    pub worth: Worth,
}

impl Verdict {
    pub fn of(
        situation: &Situation,
        truth: Truth,
        explained: &Value,
        said: &str,
        recorded: Recorded,
    ) -> Verdict {
        let mut findings: Vec<Finding> =
            serde_json::from_value(explained["findings"].clone()).unwrap();
        findings.retain(|finding| !finding.minor);
        let chain = findings.first().map(|finding| finding.chain.iter());
        let said = said.split("\n\n").next().unwrap_or_default();
        Verdict {
            name: situation.name.to_owned(),
            version: situation.version(),
            worth: worth(situation, &truth, &findings, &recorded),
            chain: chain.into_iter().flatten().map(|link| link.text.clone()).collect(),
            found: findings.into_iter().map(|f| (f.cause, f.wall_share, f.title)).collect(),
            said: said.split_ascii_whitespace().collect::<Vec<_>>().join(" "),
            disturbed: recorded.disturbed,
            truth,
        }
    }

    /// Keeps it for the page.
    pub fn keep(&self, folder: &Path) {
        let path = folder.join(&self.name).with_extension("json");
        std::fs::write(path, serde_json::to_string_pretty(self).unwrap()).unwrap();
    }

    pub fn kept(folder: &Path, name: &str) -> Option<Verdict> {
        let text = std::fs::read(folder.join(name).with_extension("json")).ok()?;
        Some(serde_json::from_slice(&text).unwrap())
    }
}

fn worth(situation: &Situation, truth: &Truth, findings: &[Finding], recorded: &Recorded) -> Worth {
    let is_accepted =
        |finding: &Finding| situation.accepted.iter().any(|(id, _)| *id == finding.cause);
    let worth = match findings.first() {
        None if situation.is_healthy() => Worth::Right,
        None => Worth::Silent,
        Some(first) if is_accepted(first) => Worth::Right,
        Some(_) if findings.iter().any(is_accepted) => Worth::Wrong,
        Some(_) => Worth::Misleading,
    };
    let has_happened = situation.is_healthy() || truth.lost_s >= LEAST_LOST_S;
    // Others can make a cause of theirs come first; they hide none and make no other.
    let is_of_others = recorded.disturbed.is_some()
        && worth != Worth::Right
        && findings.first().is_some_and(|first| OF_OTHERS.contains(&first.cause.as_str()));
    let counts = has_happened && !is_of_others;
    if counts { worth } else { Worth::NotJudged }
}

impl fmt::Display for Worth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Worth::Right => "right",
            Worth::Silent => "silent",
            Worth::Wrong => "wrong",
            Worth::Misleading => "misleading",
            Worth::NotJudged => "not judged",
        })
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {} | truth: {:.2} s: {}",
            self.name, self.worth, self.truth.lost_s, self.truth.text
        )?;
        write!(f, " | said: {}", self.said)?;
        let found = |(cause, wall, title): &(String, f64, String)| {
            format!("{cause} {:.1} % of the wall time ({title})", wall * 100.0)
        };
        let found: Vec<String> = self.found.iter().map(found).collect();
        write!(f, " | found: {}", found.join("; "))?;
        write!(f, " | chain: {}", self.chain.join(" <- "))?;
        self.disturbed.as_ref().map_or(Ok(()), |by| write!(f, " | disturbed by {by}"))
    }
}
