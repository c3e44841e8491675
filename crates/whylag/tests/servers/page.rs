//! All verdicts together: docs/servers.md.

use std::fmt;
use std::path::Path;

use crate::situation::Situation;
use crate::verdict::{Verdict, Worth};

/// So many verdicts have to be right.
pub struct Floors {
    pub right: usize,
    pub healthy: usize,
}

pub struct Page<'a> {
    rows: Vec<(&'a Situation, Verdict)>,
    /// Of which there is no verdict: their software is not here, or they were not played yet.
    missing: Vec<&'a Situation>,
}

impl<'a> Page<'a> {
    /// Of the verdicts that were kept.
    pub fn of(situations: &[&'a Situation], folder: &Path) -> Page<'a> {
        let mut page = Page { rows: Vec::new(), missing: Vec::new() };
        for situation in situations {
            match Verdict::kept(folder, situation.name) {
                Some(verdict) => page.rows.push((situation, verdict)),
                None => page.missing.push(situation),
            }
        }
        page
    }

    fn count(&self, healthy: bool, worth: Worth) -> usize {
        let is_it =
            |row: &&(&Situation, Verdict)| row.0.is_healthy() == healthy && row.1.worth == worth;
        self.rows.iter().filter(is_it).count()
    }

    fn counts(&self, healthy: bool) -> String {
        let all = [Worth::Right, Worth::Silent, Worth::Wrong, Worth::Misleading, Worth::NotJudged];
        let counts = all.map(|worth| (self.count(healthy, worth), worth));
        let counts = counts.into_iter().filter(|(count, _)| *count > 0);
        counts.map(|(count, worth)| format!("{count} {worth}")).collect::<Vec<_>>().join(", ")
    }

    /// What was not judged, and what was not played, does not count against the engine.
    pub fn assert_reaches(&self, floors: &Floors) {
        println!("faults: {}; healthy servers: {}", self.counts(false), self.counts(true));
        for (healthy, floor) in [(false, floors.right), (true, floors.healthy)] {
            let missing = self.missing.iter().filter(|of| of.is_healthy() == healthy).count();
            let not_judged = self.count(healthy, Worth::NotJudged) + missing;
            let right = self.count(healthy, Worth::Right);
            assert!(
                right + not_judged >= floor,
                "healthy {healthy}: {right} right, {not_judged} not judged, below {floor}"
            );
        }
    }

    /// Writes docs/servers.md, if there is a verdict of all.
    pub fn write(&self) {
        if !self.missing.is_empty() {
            let names: Vec<&str> = self.missing.iter().map(|of| of.name).collect();
            println!("docs/servers.md stays as it is: there is no verdict of {}", names.join(", "));
            return;
        }
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/servers.md");
        std::fs::write(path, self.to_string()).unwrap();
    }
}

const INTRODUCTION: &str = "\
Each server was put under the load of its own clients and recorded for three seconds, with `whylag
record -p PID --follow --time 3s`. The truth is what the software itself says, by its own logs and
statistics; these also cover the start and the end of the recorder, which last about as long again
as the recording, so their sums are larger than whylag's.
Seconds are summed over all who waited.

Right: the first finding is one of the accepted causes (crates/whylag/tests/servers/situations has
the reasons for each, written before the answer was seen). Silent: there is no finding. Wrong: another
cause comes first, and an accepted one later. Misleading: no finding is an accepted cause, or a
healthy server has a finding. Not judged: the cause that comes first was made by programs outside of
the test, or the fault did not come about.
";

impl fmt::Display for Page<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
        let cpus = std::thread::available_parallelism().unwrap();
        writeln!(f, "# What whylag says of real servers\n")?;
        write!(
            f,
            "Written by `make test-servers` on Linux {}, {cpus} CPUs.\n{INTRODUCTION}",
            release.trim()
        )?;
        let healthy = self.rows.iter().filter(|row| row.0.is_healthy()).count();
        let of = self.rows.len() - healthy;
        writeln!(
            f,
            "\nOf {of} faults: {}. Of {healthy} healthy servers: {}.\n",
            self.counts(false),
            self.counts(true)
        )?;
        writeln!(f, "| software | situation | truth | said first | accepted | verdict |")?;
        writeln!(f, "|---|---|---|---|---|---|")?;
        self.rows.iter().try_for_each(|(situation, verdict)| {
            let cells = cells(situation, verdict).map(|cell| cell.replace('|', "/"));
            writeln!(f, "| {} |", cells.join(" | "))
        })
    }
}

fn cells(situation: &Situation, verdict: &Verdict) -> [String; 6] {
    let accepted: Vec<&str> = situation.accepted.iter().map(|(id, _)| *id).collect();
    let (accepted, lost) = match situation.is_healthy() {
        true => ("nothing".to_owned(), String::new()),
        false => (accepted.join(", "), format!(" ({:.1} s)", verdict.truth.lost_s)),
    };
    [
        format!("{} {}", situation.software, verdict.version),
        format!("{}: {}", situation.name, situation.what),
        format!("{}{lost}", verdict.truth.text),
        said_first(verdict),
        accepted,
        verdict.worth.to_string(),
    ]
}

/// The first finding; or the largest account that no cause explains, which is none.
fn said_first(verdict: &Verdict) -> String {
    let unexplained = verdict.said.split_once(": no cause of the catalogue").map(|(what, _)| what);
    match (verdict.found.first(), unexplained) {
        (Some((cause, wall, title)), _) => {
            format!("{cause}, {:.0} % of the wall time: {title}", wall * 100.0)
        }
        (None, Some(what)) => format!("nothing but: {what}"),
        (None, None) => "nothing".to_owned(),
    }
}
