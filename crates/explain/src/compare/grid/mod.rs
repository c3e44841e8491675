//! Runs in columns, told apart as clean, recovered and lost, and what splits the bad ones from the
//! clean ones.
//!
//! Only runs of the same program on the same kind of host are beside each other: everything else
//! differs between others anyway. Whatever could split them is tried, and the p of each is corrected
//! for all that were tried: of a hundred facts five look like it by chance.

mod rule;
mod splits;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use model::{Account, Grid, GridCell, GridRow, Outcome, RunFigures, RunId, RunSummary};

pub use self::rule::{NoRule, Rule};

/// Facts that make a group.
const OF_GROUP: [&str; 4] = ["host.name", "kernel.release", "cpu.model", "cpu.count"];
/// Accounts below this part of the wall time in all runs have no row.
const LEAST_SHARE: f64 = 0.05;

/// A run of a grid.
pub struct GridRun {
    /// Its number.
    pub id: RunId,
    /// The program or target.
    pub target: String,
    /// What it says.
    pub figures: RunFigures,
}

impl GridRun {
    /// Of a stored run with its figures.
    pub fn of(run: &RunSummary, figures: RunFigures) -> GridRun {
        GridRun { id: run.id, target: run.header.target.to_string(), figures }
    }
}

/// What makes a run a bad one. Without a rule: an exit status other than 0 is a lost run, a named
/// cause a recovered one.
#[derive(Clone, Debug, Default)]
pub struct GridRules {
    /// A run of which this holds is lost.
    pub lost: Option<Rule>,
    /// A run that is not lost and of which this holds is recovered.
    pub recovered: Option<Rule>,
}

impl GridRules {
    fn outcome(&self, run: &RunFigures) -> Outcome {
        let is_lost = match &self.lost {
            Some(rule) => rule.holds(run),
            None => run.exit_status.is_some_and(|status| status != 0),
        };
        let is_recovered = match &self.recovered {
            Some(rule) => rule.holds(run),
            None => self.lost.is_none() && run.causes.iter().any(|cause| !cause.minor),
        };
        match (is_lost, is_recovered) {
            (true, _) => Outcome::Lost,
            (false, true) => Outcome::Recovered,
            (false, false) => Outcome::Clean,
        }
    }
}

/// A grid per group, the largest group first.
pub fn grids(runs: &[GridRun], rules: &GridRules) -> Vec<Grid> {
    let mut groups = BTreeMap::<String, Vec<&GridRun>>::new();
    for run in runs {
        groups.entry(group(run)).or_default().push(run);
    }
    let mut grids: Vec<Grid> =
        groups.into_iter().map(|(group, runs)| grid(group, &runs, rules)).collect();
    grids.sort_by_key(|grid| std::cmp::Reverse(grid.runs.len()));
    grids
}

fn group(run: &GridRun) -> String {
    let facts = OF_GROUP.iter().filter_map(|name| run.figures.facts.get(*name).cloned());
    std::iter::once(run.target.clone()).chain(facts).collect::<Vec<_>>().join(", ")
}

fn grid(group: String, runs: &[&GridRun], rules: &GridRules) -> Grid {
    let figures: Vec<&RunFigures> = runs.iter().map(|run| &run.figures).collect();
    let outcomes: Vec<Outcome> = figures.iter().map(|run| rules.outcome(run)).collect();
    let (splits, tried) = splits::find(&figures, &outcomes);
    Grid {
        group,
        runs: runs.iter().map(|run| run.id).collect(),
        rows: rows(&figures),
        outcomes,
        splits,
        tried,
    }
}

fn rows(runs: &[&RunFigures]) -> Vec<GridRow> {
    let mut rows = Vec::new();
    let causes: BTreeSet<&String> =
        runs.iter().flat_map(|run| &run.causes).map(|figure| &figure.cause).collect();
    for id in causes {
        let share = |run: &&RunFigures| {
            GridCell::Share(run.cause(id).map_or(0.0, |cause| cause.wall_share))
        };
        rows.push(row(format!("cause {id}"), runs, share));
    }
    let losses: BTreeSet<&String> = runs.iter().flat_map(|run| run.losses.keys()).collect();
    for kind in losses {
        let count = |run: &&RunFigures| GridCell::Count(*run.losses.get(kind).unwrap_or(&0));
        rows.push(row(format!("loss {kind}"), runs, count));
    }
    let accounts: BTreeSet<Account> =
        runs.iter().flat_map(|run| run.accounts.keys()).copied().collect();
    for account in accounts {
        let share = |run: &&RunFigures| account_share(run, account);
        if runs.iter().any(|run| share(run) >= LEAST_SHARE) {
            let cell = |run: &&RunFigures| GridCell::Share(share(run));
            rows.push(row(format!("account {account}"), runs, cell));
        }
    }
    for name in varying_facts(runs) {
        let value = |run: &&RunFigures| GridCell::Value(run.facts.get(name).cloned());
        rows.push(row(format!("fact {name}"), runs, value));
    }
    rows
}

fn row(name: String, runs: &[&RunFigures], cell: impl Fn(&&RunFigures) -> GridCell) -> GridRow {
    GridRow { name, cells: runs.iter().map(cell).collect() }
}

fn account_share(run: &RunFigures, account: Account) -> f64 {
    *run.accounts.get(&account).unwrap_or(&0) as f64 / run.wall_ns.max(1) as f64
}

/// Facts that are not the same in all runs.
fn varying_facts<'a>(runs: &[&'a RunFigures]) -> Vec<&'a String> {
    let names: BTreeSet<&String> = runs.iter().flat_map(|run| run.facts.keys()).collect();
    let varies = |name: &&String| {
        let mut values = runs.iter().map(|run| run.facts.get(*name));
        let first = values.next();
        values.any(|value| Some(value) != first)
    };
    names.into_iter().filter(varies).collect()
}
