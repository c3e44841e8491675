//! Many runs on the page: beside each other in a grid, and their figures over time.

use explain::{GridRules, GridRun, SeriesRun};
use model::{Grid, RunId, Trend, TrendLine};
use serde::Serialize;
use store::{Sqlite, Store, StoreError};

/// Runs of one program on one host, in columns.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct GridPage {
    /// What `runs --grid --json` says.
    pub grid: Grid,
    /// What splits the bad runs from the clean ones, a sentence each; or why nothing does.
    pub splits: Vec<String>,
}

/// Runs of one program on one host, over time.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct TrendPage {
    /// Program and host.
    pub group: String,
    /// The runs, oldest first.
    pub runs: Vec<RunId>,
    /// When each began, ms since 1970-01-01 UTC.
    pub started_unix_ms: Vec<f64>,
    /// Latencies, accounts and causes; those that changed come first.
    pub lines: Vec<TrendLine>,
    /// How many of them changed.
    pub changed: usize,
    /// What changed when, oldest first.
    pub changes: Vec<Change>,
}

/// What `whylag series` says of a change.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Change {
    /// The first run that has it.
    pub run: RunId,
    /// Names of the lines that changed.
    pub names: Vec<String>,
    /// In a sentence, with what changed around the program at the same time.
    pub text: String,
}

/// All stored runs in grids, by the rules of `runs --grid` without options.
///
/// # Errors
/// Those of the store.
pub fn grids(store: &Sqlite) -> Result<Vec<GridPage>, StoreError> {
    let mut runs = Vec::new();
    for run in store.runs()? {
        runs.extend(store.figures(run.id)?.map(|figures| GridRun::of(&run, figures)));
    }
    let page = |grid: Grid| {
        let splits = match report::grid::no_splits(&grid) {
            Some(why) => vec![why],
            None => report::grid::splits(&grid),
        };
        GridPage { grid, splits }
    };
    Ok(explain::grids(&runs, &GridRules::default()).into_iter().map(page).collect())
}

/// All stored runs as series, those of dismissed changes left out.
///
/// # Errors
/// Those of the store.
pub fn trends(store: &Sqlite) -> Result<Vec<TrendPage>, StoreError> {
    let mut runs = Vec::new();
    for run in store.runs()? {
        runs.extend(store.figures(run.id)?.and_then(|figures| SeriesRun::of(&run, figures)));
    }
    Ok(explain::trends(runs).into_iter().map(trend).collect())
}

fn trend(trend: Trend) -> TrendPage {
    let Trend { series, runs, started_unix_ns, mut lines } = trend;
    let shown = series.changes.iter().filter(|change| !change.dismissed);
    let changes: Vec<Change> = shown
        .map(|change| Change {
            run: change.run,
            names: change.metrics.iter().map(|metric| metric.name.clone()).collect(),
            text: report::runs_series::in_words(change),
        })
        .collect();
    let changed = |line: &TrendLine| changes.iter().any(|change| change.names.contains(&line.name));
    lines.sort_by_key(|line| !changed(line));
    TrendPage {
        group: series.group,
        runs,
        started_unix_ms: started_unix_ns.iter().map(|ns| *ns as f64 / 1e6).collect(),
        changed: lines.iter().filter(|line| changed(line)).count(),
        lines,
        changes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{MetricChange, Series, SeriesChange, SeriesKind};

    #[test]
    fn lines_that_changed_come_first_and_dismissed_changes_are_not_told() {
        let line = |name: &str| TrendLine {
            kind: SeriesKind::Account,
            name: name.to_owned(),
            values: vec![Some(0.1), None],
            p99: None,
        };
        let metric = |name: &str| MetricChange {
            kind: SeriesKind::Account,
            name: name.to_owned(),
            before: 0.1,
            after: 0.4,
            p99: None,
            p: 1e-4,
        };
        let change = |name: &str, dismissed| SeriesChange {
            run: RunId(2),
            started_unix_ns: 2_000_000,
            metrics: vec![metric(name)],
            facts: Vec::new(),
            dismissed,
        };
        let page = trend(Trend {
            series: Series {
                group: "server, host".to_owned(),
                runs: 2,
                from_to_unix_ns: [1_000_000, 2_000_000],
                tried: 3,
                changes: vec![change("known", true), change("user", false)],
                week: None,
            },
            runs: vec![RunId(1), RunId(2)],
            started_unix_ns: vec![1_000_000, 2_000_000],
            lines: ["known", "kernel", "user"].map(line).to_vec(),
        });
        let names: Vec<&str> = page.lines.iter().map(|line| line.name.as_str()).collect();
        assert_eq!(names, ["user", "known", "kernel"]);
        assert_eq!((page.changed, page.changes.len()), (1, 1));
        assert_eq!(page.started_unix_ms, [1.0, 2.0]);
        assert!(page.changes[0].text.contains("user 10.0 % to 40.0 %"), "{:?}", page.changes);
    }
}
