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

pub struct Page<'a>(Vec<(&'a Situation, Verdict)>);

impl<'a> Page<'a> {
    /// Of the situations of which a verdict was kept.
    pub fn of(situations: &[&'a Situation], folder: &Path) -> Page<'a> {
        let kept =
            |situation: &&'a Situation| Some((*situation, Verdict::kept(folder, situation.name)?));
        Page(situations.iter().filter_map(kept).collect())
    }

    fn count(&self, healthy: bool, worth: Worth) -> usize {
        let is_it =
            |row: &&(&Situation, Verdict)| row.0.is_healthy() == healthy && row.1.worth == worth;
        self.0.iter().filter(is_it).count()
    }

    fn counts(&self, healthy: bool) -> String {
        let all = [Worth::Right, Worth::Silent, Worth::Wrong, Worth::Misleading, Worth::NotJudged];
        let counts = all.map(|worth| (self.count(healthy, worth), worth));
        let counts = counts.into_iter().filter(|(count, _)| *count > 0);
        counts.map(|(count, worth)| format!("{count} {worth}")).collect::<Vec<_>>().join(", ")
    }

    /// What was not judged does not count against the engine.
    pub fn assert_reaches(&self, floors: &Floors) {
        for (healthy, floor) in [(false, floors.right), (true, floors.healthy)] {
            let reached = self.count(healthy, Worth::Right) + self.count(healthy, Worth::NotJudged);
            assert!(reached >= floor, "healthy {healthy}: {reached} right, below {floor}");
        }
    }

    pub fn write(&self) {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/servers.md");
        std::fs::write(path, self.to_string()).unwrap();
    }
}

const INTRODUCTION: &str = "\
Each server was put under the load of its own clients and recorded for three seconds, with
`whylag record -p PID --follow --time 3s`. The truth is what the software itself says, by its own logs and statistics; they take in the start and the end of the recording, too, which
last as long again. Right: the first finding is one of the causes that the
situation may be called by (crates/whylag/tests/servers/situations, written before the answer was
seen); silent: none was found; wrong: another comes first; misleading: only others were found, or
any of a healthy server. Not judged: the cause that comes first was made by programs outside of the
test, or the fault did not come about.
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
        let healthy = self.0.iter().filter(|row| row.0.is_healthy()).count();
        let of = self.0.len() - healthy;
        writeln!(
            f,
            "\nOf {of} faults: {}. Of {healthy} healthy servers: {}.\n",
            self.counts(false),
            self.counts(true)
        )?;
        writeln!(f, "| software | situation | truth | said first | accepted | verdict |")?;
        writeln!(f, "|---|---|---|---|---|---|")?;
        for (situation, verdict) in &self.0 {
            let said =
                verdict.found.first().map_or("nothing".to_owned(), |(cause, wall, title)| {
                    format!("{cause}, {:.0} % of the wall time: {title}", wall * 100.0)
                });
            let accepted: Vec<&str> = situation.accepted.iter().map(|(id, _)| *id).collect();
            let accepted =
                if situation.is_healthy() { "nothing".into() } else { accepted.join(", ") };
            let lost = match situation.is_healthy() {
                true => String::new(),
                false => format!(", {:.1} s", verdict.truth.lost_s),
            };
            let cells = [
                format!("{} {}", situation.software, verdict.version),
                format!("{}: {}", situation.name, situation.what),
                format!("{}{lost}", verdict.truth.text),
                said,
                accepted,
                verdict.worth.to_string(),
            ];
            writeln!(f, "| {} |", cells.map(|cell| cell.replace('|', "/")).join(" | "))?;
        }
        Ok(())
    }
}
