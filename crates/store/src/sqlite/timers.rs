//! What timer tests measured, written and read. The ticks are most of it, and lie in pieces: a text of
//! all would be too long to be moved about.

use model::{Batch, Jitter, RunId, SeriesTicks, Tick};
use rusqlite::{Connection, Transaction, params};

use super::columns::Json;
use super::read_parts;

/// Ticks of a piece: 3.5 MB of text.
const PIECE: usize = 100_000;

const SOURCE: &str = "jitter";

/// In the order in which they were put.
const TICKS: &str = "SELECT series, ticks FROM ticks WHERE run = ?1 ORDER BY rowid";

/// Replaces all of it.
pub(super) fn put(tx: &Transaction<'_>, run: RunId, jitter: &Jitter) -> rusqlite::Result<()> {
    tx.prepare_cached("INSERT OR REPLACE INTO results (run, source, result) VALUES (?1, ?2, ?3)")?
        .execute(params![run.0, SOURCE, Json(jitter.without_ticks())])?;
    tx.prepare_cached("DELETE FROM ticks WHERE run = ?1")?.execute([run.0])?;
    for (series, ticks) in pieces(jitter) {
        put_piece(tx, run, series, ticks)?;
    }
    Ok(())
}

/// Adds to the ticks of series.
pub(super) fn put_ticks(
    tx: &Transaction<'_>,
    run: RunId,
    ticks: &[SeriesTicks],
) -> rusqlite::Result<()> {
    ticks.iter().try_for_each(|piece| put_piece(tx, run, piece.series, &piece.ticks))
}

fn put_piece(
    tx: &Transaction<'_>,
    run: RunId,
    series: usize,
    ticks: &[Tick],
) -> rusqlite::Result<()> {
    tx.prepare_cached("INSERT INTO ticks (run, series, ticks) VALUES (?1, ?2, ?3)")?
        .execute(params![run.0, series as i64, Json(ticks)])?;
    Ok(())
}

/// The ticks that are kept, by the series that they are of.
fn pieces(jitter: &Jitter) -> impl Iterator<Item = (usize, &[Tick])> {
    let most = jitter.kept_of_each();
    jitter.series.iter().enumerate().flat_map(move |(number, series)| {
        let kept = &series.ticks[..series.ticks.len().min(most)];
        kept.chunks(PIECE).map(move |piece| (number, piece))
    })
}

/// All of it.
pub(super) fn load(conn: &Connection, run: RunId) -> rusqlite::Result<Option<Jitter>> {
    let Some(mut jitter) = stored(conn, run)? else { return Ok(None) };
    let mut select = conn.prepare_cached(TICKS)?;
    let mut rows = select.query([run.0])?;
    while let Some(row) = rows.next()? {
        let number: i64 = row.get(0)?;
        let series = usize::try_from(number).ok().and_then(|at| jitter.series.get_mut(at));
        if let Some(series) = series {
            series.ticks.append(&mut row.get::<_, Json<Vec<Tick>>>(1)?.0);
        }
    }
    Ok(Some(jitter))
}

/// As it lies there: with the ticks of a run of before.
fn stored(conn: &Connection, run: RunId) -> rusqlite::Result<Option<Jitter>> {
    read_parts::result(conn, run, SOURCE)
}

/// True if there are ticks, wherever they lie.
pub(super) fn has_ticks(conn: &Connection, run: RunId) -> rusqlite::Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM ticks WHERE run = ?1)";
    if conn.query_row(sql, [run.0], |row| row.get(0))? {
        return Ok(true);
    }
    let of_before = stored(conn, run)?;
    Ok(of_before.is_some_and(|jitter| jitter.series.iter().any(|one| !one.ticks.is_empty())))
}

/// All of it, a piece at a time: what is not ticks first.
pub(super) fn each<E: From<rusqlite::Error>>(
    conn: &Connection,
    run: RunId,
    mut put: impl FnMut(&Batch) -> Result<(), E>,
) -> Result<(), E> {
    let Some(jitter) = stored(conn, run)? else { return Ok(()) };
    put(&Batch { jitter: Some(jitter.without_ticks()), ..Batch::default() })?;
    let mut put_ticks = |series, ticks| {
        put(&Batch { ticks: vec![SeriesTicks { series, ticks }], ..Batch::default() })
    };
    for (series, ticks) in pieces(&jitter) {
        put_ticks(series, ticks.to_vec())?;
    }
    drop(jitter);
    let mut select = conn.prepare_cached(TICKS)?;
    let mut rows = select.query([run.0])?;
    while let Some(row) = rows.next()? {
        let (series, Json(ticks)) = (row.get::<_, i64>(0)?, row.get(1)?);
        // One below 0 is of nobody.
        if let Ok(series) = usize::try_from(series) {
            put_ticks(series, ticks)?;
        }
    }
    Ok(())
}
