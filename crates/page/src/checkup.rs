//! What `whylag doctor` says, on the page: this host now, and how it differs from a run's.

use explain::Side;
use model::{Check, CheckResult, Checkup, CheckupDiff, Run};
use serde::Serialize;

/// All checks of this host.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct CheckupPage {
    /// How many checks came out how.
    pub summary: String,
    /// Checks by what they are about.
    pub subjects: Vec<CheckedSubject>,
    /// What is different from a run that was asked for.
    pub differences: Option<CheckupDiff>,
}

/// Checks that are about one thing.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct CheckedSubject {
    /// Its heading.
    pub title: String,
    /// Worst first.
    pub checks: Vec<CheckRow>,
}

/// A check as people read it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct CheckRow {
    /// Its stable name.
    pub id: String,
    /// How it came out.
    pub result: CheckResult,
    /// The same in a word or two.
    pub word: String,
    /// What was found.
    pub fact: String,
    /// Why it matters for latency.
    pub why: String,
    /// What to do; empty if there is nothing to do.
    pub advice: String,
    /// Where it was read.
    pub source: String,
}

/// The checkup, compared with a run if there is one.
pub fn page(checkup: Checkup, run: Option<&Run>) -> CheckupPage {
    let summary = report::doctor::summary(&checkup);
    let subjects = checkup.checks.chunk_by(|a, b| a.subject == b.subject).filter_map(|checks| {
        let title = report::doctor::title(checks.first()?.subject).to_owned();
        let mut checks: Vec<CheckRow> = checks.iter().map(row).collect();
        checks.sort_by_key(|check| std::cmp::Reverse(check.result));
        Some(CheckedSubject { title, checks })
    });
    let subjects = subjects.collect();
    let differences = run
        .map(|run| explain::compare_checkups(&Side::of_run(run), &Side::of_checkup(checkup, "")));
    CheckupPage { summary, subjects, differences }
}

fn row(check: &Check) -> CheckRow {
    CheckRow {
        id: check.id.clone(),
        result: check.verdict,
        word: report::doctor::word(check.verdict).to_owned(),
        fact: report::doctor::fact(check),
        why: check.why.clone(),
        advice: check.advice.clone(),
        source: check.source.clone(),
    }
}

/// In what surroundings two runs were recorded.
pub fn of_runs(before: &Run, after: &Run) -> CheckupDiff {
    explain::compare_checkups(&Side::of_run(before), &Side::of_run(after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Compared, Fact, Subject};

    fn fact(name: &str, value: &str) -> Fact {
        Fact { name: name.to_owned(), value: value.to_owned(), source: "/proc".to_owned() }
    }

    #[test]
    fn the_worst_checks_come_first_and_a_run_is_compared_by_its_facts() {
        let check = |id: &str, verdict| Check {
            id: id.to_owned(),
            subject: Subject::Time,
            verdict,
            fact: "tsc".to_owned(),
            detail: "fast".to_owned(),
            why: String::new(),
            advice: String::new(),
            source: String::new(),
            compared: Compared::Setting,
        };
        let checkup = Checkup {
            version: String::new(),
            host: "a".to_owned(),
            taken_unix_ns: 0,
            pid: None,
            checks: vec![check("fine", CheckResult::Good), check("slow", CheckResult::Bad)],
            facts: vec![fact("thp.enabled", "always")],
            unbound: Vec::new(),
        };
        let run = Run { facts: vec![fact("thp.enabled", "never")], ..Run::default() };
        let page = page(checkup, Some(&run));
        let [time] = page.subjects.as_slice() else { panic!("{:?}", page.subjects) };
        let rows: Vec<_> = time.checks.iter().map(|row| (&*row.id, &*row.word)).collect();
        assert_eq!(rows, [("slow", "bad"), ("fine", "good")]);
        assert_eq!((&*time.title, &*time.checks[0].fact), ("Time", "tsc (fast)"));
        assert!(page.summary.starts_with("a: 2 checks: 1 bad"), "{}", page.summary);
        let differences = page.differences.unwrap().differences;
        assert_eq!(differences.len(), 1);
        assert_eq!((&*differences[0].first, &*differences[0].second), ("never", "always"));
    }
}
