//! Reads threads: of many those that matter one by one, the rest in sums.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};

use model::{Account, Crowd, Messages, OtherThreads, Outlier, RunId, ThreadAccounts, Window};
use rusqlite::{Connection, Result, Row, params};

use super::columns::Text;
use super::read::u64_at;
use crate::LOADED_THREADS;

/// The threads of a run.
pub(super) struct Threads {
    /// In the order in which they began.
    pub one_by_one: Vec<ThreadAccounts>,
    /// All others.
    pub others: Crowd,
    /// Of processes without a thread of their own in the run: the group that they are in.
    pub groups: HashMap<u32, u32>,
}

/// Threads that something else that is loaded tells of, and when: they stay one by one.
#[derive(Default)]
pub(super) struct Told {
    at: HashMap<u32, Vec<(u64, u64)>>,
}

impl Told {
    pub fn of(outliers: &[Outlier], messages: &Messages, part: Option<&Window>) -> Told {
        let mut told = Told::default();
        for one in outliers {
            told.add(one.tid, one.start_ns, one.end_ns());
        }
        let segments = messages.slow.iter().flat_map(model::Message::segments);
        for segment in segments {
            if let Some(tid) = segment.tid {
                told.add(tid, segment.from_ns, segment.to_ns);
            }
        }
        if let Some((tid, part)) = part.and_then(|part| Some((part.tid?, part))) {
            told.add(tid, part.from_ns, part.to_ns);
        }
        told
    }

    fn add(&mut self, tid: u32, from_ns: u64, to_ns: u64) {
        self.at.entry(tid).or_default().push((from_ns, to_ns));
    }

    /// Tids are reused: a thread is told of if it lived then.
    fn has(&self, tid: u32, first_ns: u64, last_ns: u64) -> bool {
        let lived = |(from_ns, to_ns): &(u64, u64)| *from_ns <= last_ns && *to_ns >= first_ns;
        self.at.get(&tid).is_some_and(|times| times.iter().any(lived))
    }
}

/// Loads them. The open accounts of living threads are extended up to `until_ns`; `others` are the
/// sums that were stored.
pub(super) fn load(
    conn: &Connection,
    run: RunId,
    until_ns: Option<u64>,
    told: &Told,
    others: Vec<OtherThreads>,
) -> Result<Threads> {
    let chosen = chosen(conn, run, told)?;
    let is_chosen = |id: i64| chosen.as_ref().is_none_or(|chosen| chosen.ids.contains(&id));
    let mut threads =
        Threads { one_by_one: Vec::new(), others: Crowd::from(others), groups: HashMap::new() };
    each(conn, run, |id, mut thread| {
        if let Some(until_ns) = until_ns {
            extend_open(&mut thread, until_ns);
        }
        if is_chosen(id) {
            threads.one_by_one.push(thread);
        } else if chosen.as_ref().is_some_and(|chosen| chosen.tgids.contains(&thread.tgid)) {
            threads.others.add(&thread, thread.tgid);
        } else {
            let of_name = || threads.others.group(&thread.comm);
            let group = *threads.groups.entry(thread.tgid).or_insert_with(of_name);
            threads.others.add(&thread, group);
        }
        Ok(())
    })?;
    threads.one_by_one.sort_by_key(|thread| (thread.first_ns, thread.tid));
    Ok(threads)
}

/// Threads that stay one by one, by their `threads.id`, and their processes.
struct Chosen {
    ids: HashSet<i64>,
    tgids: HashSet<u32>,
}

/// Those with the longest lives, and those that something tells of; `None`: all.
fn chosen(conn: &Connection, run: RunId, told: &Told) -> Result<Option<Chosen>> {
    let number: i64 = conn
        .prepare_cached("SELECT count(*) FROM threads WHERE run = ?1")?
        .query_row([run.0], |row| row.get(0))?;
    if number <= LOADED_THREADS as i64 {
        return Ok(None);
    }
    let mut longest = BinaryHeap::with_capacity(LOADED_THREADS + 1);
    let mut chosen = Chosen { ids: HashSet::new(), tgids: HashSet::new() };
    let mut select =
        conn.prepare_cached("SELECT id, tid, tgid, first_ns, last_ns FROM threads WHERE run = ?1")?;
    let mut rows = select.query([run.0])?;
    while let Some(row) = rows.next()? {
        let (id, tid, tgid): (i64, u32, u32) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let (first_ns, last_ns) = (u64_at(row, 3)?, u64_at(row, 4)?);
        if told.has(tid, first_ns, last_ns) {
            chosen.ids.insert(id);
            chosen.tgids.insert(tgid);
        }
        longest.push(Reverse((last_ns.saturating_sub(first_ns), id, tgid)));
        if longest.len() > LOADED_THREADS {
            longest.pop();
        }
    }
    chosen.ids.extend(longest.iter().map(|Reverse((_, id, _))| *id));
    chosen.tgids.extend(longest.iter().map(|Reverse((_, _, tgid))| *tgid));
    Ok(Some(chosen))
}

const COLUMNS: &str = "t.id, tid, first_ns, tgid, comm, last_ns, alive, open, minor_faults,
                       major_faults, sleeps, preemptions, migrations, realtime, account, ns";

/// All threads with their `threads.id`, one after the other, in the order in which they were stored.
pub(super) fn each(
    conn: &Connection,
    run: RunId,
    mut take: impl FnMut(i64, ThreadAccounts) -> Result<()>,
) -> Result<()> {
    let ids: (Option<i64>, Option<i64>) = conn
        .prepare_cached("SELECT min(id), max(id) FROM threads WHERE run = ?1")?
        .query_row([run.0], |row| Ok((row.get(0)?, row.get(1)?)))?;
    // With `+run` no index is used, so there is nothing to sort: both tables are in this order.
    let sql = format!(
        "SELECT {COLUMNS} FROM threads t LEFT JOIN accounts ON thread = t.id
         WHERE +run = ?1 AND t.id BETWEEN ?2 AND ?3 ORDER BY t.id"
    );
    let mut select = conn.prepare_cached(&sql)?;
    let mut rows = select.query(params![run.0, ids.0, ids.1])?;
    let mut names = AccountNames::default();
    let mut open: Option<(i64, ThreadAccounts)> = None;
    while let Some(row) = rows.next()? {
        let id = row.get(0)?;
        if open.as_ref().is_none_or(|(of, _)| *of != id)
            && let Some((id, thread)) = open.replace((id, thread(row)?))
        {
            take(id, thread)?;
        }
        if let (Some((_, thread)), Some(account)) = (&mut open, names.at(row, 14)?) {
            thread.accounts.add(account, u64_at(row, 15)?);
        }
    }
    match open {
        Some((id, thread)) => take(id, thread),
        None => Ok(()),
    }
}

/// Without its accounts.
fn thread(row: &Row<'_>) -> Result<ThreadAccounts> {
    Ok(ThreadAccounts {
        tid: row.get(1)?,
        first_ns: u64_at(row, 2)?,
        tgid: row.get(3)?,
        comm: row.get(4)?,
        last_ns: u64_at(row, 5)?,
        alive: row.get(6)?,
        open: row.get::<_, Text<_>>(7)?.0,
        accounts: Default::default(),
        minor_faults: u64_at(row, 8)?,
        major_faults: u64_at(row, 9)?,
        sleeps: u64_at(row, 10)?,
        preemptions: u64_at(row, 11)?,
        migrations: u64_at(row, 12)?,
        realtime: row.get(13)?,
    })
}

/// Accounts by their texts: of millions of rows each text is read once.
#[derive(Default)]
struct AccountNames(HashMap<String, Account>);

impl AccountNames {
    fn at(&mut self, row: &Row<'_>, column: usize) -> Result<Option<Account>> {
        let Some(text) = row.get_ref(column)?.as_str_or_null()? else { return Ok(None) };
        if let Some(account) = self.0.get(text) {
            return Ok(Some(*account));
        }
        let account = row.get::<_, Text<Account>>(column)?.0;
        self.0.insert(text.to_owned(), account);
        Ok(Some(account))
    }
}

/// A recorder stores a thread when its state changes; until `until_ns` it did not.
fn extend_open(thread: &mut ThreadAccounts, until_ns: u64) {
    if thread.alive && until_ns > thread.last_ns {
        thread.accounts.add(thread.open, until_ns - thread.last_ns);
        thread.last_ns = until_ns;
    }
}
