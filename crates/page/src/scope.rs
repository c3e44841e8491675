//! A map of when threads were off the CPU: columns are seconds, rows parts of a second (after FlameScope).

use std::collections::BTreeMap;

use model::units::{count, duration};
use model::{Account, Blocked, Outlier, OutlierKind, Run};
use report::Class;
use serde::Serialize;

use crate::run::left_out;
use crate::timeline::Origin;

const SECOND: u64 = 1_000_000_000;

/// Parts of a column.
const ROWS: u64 = 50;

/// Columns at most.
const COLUMNS: u64 = 900;

/// Accounts that have a map.
const ACCOUNTS: usize = 8;

/// Maps of a run.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct SecondMaps {
    /// Length of a column: a second, or less of a short run.
    pub column_ns: u64,
    /// Length of a row.
    pub row_ns: u64,
    /// Rows of a column.
    pub rows: u32,
    /// Columns of the run.
    pub columns: u32,
    /// Waits that can be no idleness first, and those with most time before the others.
    pub maps: Vec<SecondMap>,
    /// What these are, with n, and what is not among them.
    pub basis: String,
}

/// The map of an account.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct SecondMap {
    /// Its account, as in JSON.
    pub account: String,
    /// Its time, as people read it.
    pub time: String,
    /// The most time of a cell.
    pub most_ns: u64,
    /// (cell, time of all threads in it): cell n is row n % rows of column n / rows.
    pub cells: Vec<(u32, u64)>,
}

/// Of a run. Each part of an interval is spread over all of it: the order is not known.
pub fn scope(run: &Run, intervals: &[Outlier], origin: Origin) -> SecondMaps {
    let column_ns = column_ns(run.length_ns());
    let row_ns = column_ns / ROWS;
    let mut by_account: BTreeMap<Account, (u64, BTreeMap<u32, u64>)> = BTreeMap::new();
    let mut n = 0u64;
    // A system call may have an interval off the CPU within it.
    let is_whole = |o: &&Outlier| matches!(o.kind, OutlierKind::OffCpu | OutlierKind::RunQueue);
    for outlier in intervals.iter().filter(is_whole) {
        n += 1;
        let span = (origin.since(outlier.start_ns), origin.since(outlier.end_ns()));
        for (account, ns) in outlier.breakdown.iter() {
            let (sum, cells) = by_account.entry(account).or_default();
            *sum = sum.saturating_add(ns);
            spread(cells, row_ns, span, ns);
        }
    }
    let mut accounts: Vec<_> = by_account.into_iter().collect();
    accounts.sort_by_key(|(account, (ns, _))| (may_be_idle(*account), std::cmp::Reverse(*ns)));
    let shown = accounts.into_iter().take(ACCOUNTS);
    let maps = shown.map(|(account, (ns, cells))| map(account.to_string(), ns, cells));
    let columns = u32::try_from(run.length_ns().div_ceil(column_ns)).unwrap_or(u32::MAX);
    SecondMaps {
        column_ns,
        row_ns,
        rows: ROWS as u32,
        columns,
        maps: maps.collect(),
        basis: basis(run, n, intervals),
    }
}

/// Whoever waits for a message or sleeps may have nothing to do, and so may the worker of a pool, who
/// waits on a futex: such maps come last.
fn may_be_idle(account: Account) -> bool {
    account == Account::Blocked(Blocked::Futex)
        || matches!(Class::of(account), Class::Message | Class::Sleep | Class::Unknown)
}

/// Whole seconds, more of a long run; of a run of few seconds less, so that there are columns.
fn column_ns(length_ns: u64) -> u64 {
    match length_ns {
        ..SECOND => SECOND / 100,
        SECOND..10_000_000_000 => SECOND / 10,
        _ => (length_ns / SECOND).div_ceil(COLUMNS).max(1) * SECOND,
    }
}

/// Adds `ns` evenly over the cells that the interval lies in.
fn spread(cells: &mut BTreeMap<u32, u64>, row_ns: u64, (from, to): (u64, u64), ns: u64) {
    let length = u128::from((to - from).max(1));
    for cell in from / row_ns..=to.saturating_sub(1).max(from) / row_ns {
        let (begin, end) = (cell * row_ns, (cell + 1) * row_ns);
        let overlap = to.min(end).saturating_sub(from.max(begin));
        let part = u128::from(ns) * u128::from(overlap) / length;
        if part > 0 {
            let sum = cells.entry(u32::try_from(cell).unwrap_or(u32::MAX)).or_default();
            *sum = sum.saturating_add(part as u64);
        }
    }
}

fn map(account: String, ns: u64, cells: BTreeMap<u32, u64>) -> SecondMap {
    let most_ns = cells.values().copied().max().unwrap_or(0);
    SecondMap { account, time: duration(ns), most_ns, cells: cells.into_iter().collect() }
}

fn basis(run: &Run, n: u64, intervals: &[Outlier]) -> String {
    format!(
        "n = {} intervals off the CPU of {} and longer; shorter ones are not here{}",
        count(n),
        duration(run.header.threshold_ns),
        left_out(run, intervals)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_spread_over_the_cells_of_its_interval_and_none_is_lost() {
        let mut cells = BTreeMap::new();
        spread(&mut cells, 10, (5, 25), 200);
        assert_eq!(cells, BTreeMap::from([(0, 50), (1, 100), (2, 50)]));
        spread(&mut cells, 10, (30, 40), 7);
        assert_eq!((cells.get(&3), cells.get(&4)), (Some(&7), None));
    }

    #[test]
    fn columns_are_seconds_of_a_run_that_has_enough() {
        let second = |length| column_ns(length * SECOND) / SECOND;
        assert_eq!((second(10), second(900), second(901), second(3600)), (1, 1, 2, 4));
        assert_eq!((column_ns(SECOND), column_ns(SECOND - 1)), (SECOND / 10, SECOND / 100));
    }
}
