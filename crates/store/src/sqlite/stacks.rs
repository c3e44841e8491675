//! Stacks, and the frames that they share.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use model::{Frame, Outlier, RunId, SourceLine, Stack, StackId, Sums};
use rusqlite::{Connection, OptionalExtension, Result, Row, Transaction, params};

use super::columns::{Json, Text, U64, stack_key};
use super::read::u64_at;

/// Those of a frame, in the order in which [`frame`] takes them.
const COLUMNS: &str = "frames.id, address, module, offset, symbol, symbol_offset, unknown_because,
                       after_call, line, first_line";

/// Beyond so many stacks all frames of a run are read at once.
const FEW: usize = 64;

/// Stores stacks; one that was stored before is replaced.
pub(super) fn put(tx: &Transaction<'_>, run: RunId, stacks: &[Stack]) -> Result<()> {
    let mut ids = HashMap::new();
    let mut insert = tx.prepare_cached(
        "INSERT INTO stacks (run, stack, space, truncated, copies, frames)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)
         ON CONFLICT DO UPDATE SET space = ?3, truncated = ?4, copies = ?5, frames = ?6",
    )?;
    for stack in stacks {
        let mut frames = Vec::with_capacity(stack.frames.len());
        for frame in &stack.frames {
            let id = match ids.entry(frame) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(new) => *new.insert(put_frame(tx, run, frame)?),
            };
            frames.push(id);
        }
        insert.execute(params![
            run.0,
            stack_key(stack.id),
            Text(stack.space),
            stack.truncated,
            U64(stack.copies),
            Json(frames)
        ])?;
    }
    Ok(())
}

fn put_frame(tx: &Transaction<'_>, run: RunId, frame: &Frame) -> Result<i64> {
    let mut insert = tx.prepare_cached(
        "INSERT INTO frames (run, address, module, offset, symbol, symbol_offset,
                             unknown_because, after_call, line, first_line)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    )?;
    insert.insert(params![
        run.0,
        U64(frame.address),
        frame.module,
        U64(frame.offset),
        frame.symbol,
        U64(frame.symbol_offset),
        frame.unknown_because,
        frame.after.as_ref().map(Text),
        frame.source.and_then(|source| source.line),
        frame.source.map(|source| source.first),
    ])
}

/// Removes the frames of stacks that were replaced when all got their names: those before the first that a
/// stack has.
pub(super) fn remove_replaced(conn: &Connection, run: RunId) -> Result<()> {
    let sql = "DELETE FROM frames WHERE run = ?1 AND id < (
                   SELECT min(place.value) FROM stacks, json_each(stacks.frames) place
                   WHERE stacks.run = ?1)";
    conn.execute(sql, [run.0]).map(|_| ())
}

/// Those that these outliers and sums refer to, as far as they were stored.
pub(super) fn of(
    conn: &Connection,
    run: RunId,
    outliers: &[Outlier],
    sums: &Sums,
) -> Result<HashMap<StackId, Stack>> {
    let of_outliers =
        outliers.iter().flat_map(|outlier| [outlier.kernel_stack, outlier.user_stack]);
    let wanted: HashSet<StackId> = of_outliers.flatten().chain(sums.stacks()).collect();
    if wanted.len() <= FEW {
        let by_itself = |id| Ok(one(conn, run, id)?.map(|stack| (id, stack)));
        return wanted.into_iter().filter_map(|id| by_itself(id).transpose()).collect();
    }
    let frames = frames_of(conn, run)?;
    let with_frames = |id| {
        let Some((mut stack, places)) = without_frames(conn, run, id)? else { return Ok(None) };
        stack.frames = places.iter().filter_map(|place| frames.get(place)).cloned().collect();
        // There may be a hundred thousand stacks, and most are short.
        stack.frames.shrink_to_fit();
        Ok(Some((id, stack)))
    };
    wanted.into_iter().filter_map(|id| with_frames(id).transpose()).collect()
}

/// One, for those who take so many that the frames of all are too much at a time.
pub(super) fn one(conn: &Connection, run: RunId, id: StackId) -> Result<Option<Stack>> {
    let Some((mut stack, places)) = without_frames(conn, run, id)? else { return Ok(None) };
    let sql = format!(
        "SELECT {COLUMNS} FROM json_each(?1) place JOIN frames ON frames.id = place.value
         ORDER BY place.key"
    );
    let mut select = conn.prepare_cached(&sql)?;
    let frames = select.query_map([Json(places)], frame)?;
    stack.frames = frames.map(|frame| Ok(frame?.1)).collect::<Result<_>>()?;
    Ok(Some(stack))
}

/// A stack, and the ids of its frames.
fn without_frames(conn: &Connection, run: RunId, id: StackId) -> Result<Option<(Stack, Vec<i64>)>> {
    let sql = "SELECT space, truncated, copies, frames FROM stacks WHERE run = ?1 AND stack = ?2";
    let read = |row: &Row<'_>| {
        let space = row.get::<_, Text<_>>(0)?.0;
        let (truncated, copies) = (row.get(1)?, u64_at(row, 2)?);
        let stack = Stack { id, space, frames: Vec::new(), truncated, copies };
        Ok((stack, row.get::<_, Json<_>>(3)?.0))
    };
    conn.prepare_cached(sql)?.query_row(params![run.0, stack_key(id)], read).optional()
}

/// All of a run by id.
fn frames_of(conn: &Connection, run: RunId) -> Result<HashMap<i64, Frame>> {
    let sql = format!("SELECT {COLUMNS} FROM frames WHERE run = ?1");
    let mut select = conn.prepare_cached(&sql)?;
    select.query_map([run.0], frame)?.collect()
}

fn frame(row: &Row<'_>) -> Result<(i64, Frame)> {
    let (line, first): (Option<u32>, Option<u32>) = (row.get(8)?, row.get(9)?);
    let frame = Frame {
        address: u64_at(row, 1)?,
        module: row.get(2)?,
        offset: u64_at(row, 3)?,
        symbol: row.get(4)?,
        symbol_offset: u64_at(row, 5)?,
        unknown_because: row.get(6)?,
        after: row.get::<_, Option<Text<_>>>(7)?.map(|call| call.0),
        source: first.map(|first| SourceLine { line, first }),
    };
    Ok((row.get(0)?, frame))
}

#[cfg(test)]
mod tests {
    use model::{Account, Space, StackSum};

    use super::super::schema::{MIGRATIONS, migrate};
    use super::*;

    const RUN: RunId = RunId(7);

    /// A run as it was stored with a row for each frame of each stack.
    const OLD: &str = r#"
        INSERT INTO runs (id, started_unix_ns, started_ns, target, follow, threshold_ns, sampled,
                          recorder_pid, version, heartbeat_ns)
        VALUES (7, 1, 2, '"host"', 0, 3, 0, 4, 'v', 5);
        INSERT INTO stacks (id, run, stack, space, truncated, copies)
        VALUES (1, 7, 0, 'user', 0, 2), (2, 7, 1, 'kernel', 1, 0), (3, 7, 2, 'user', 0, 0);
        INSERT INTO frames (stack, depth, address, module, offset, symbol, symbol_offset,
                            unknown_because, after_call, line, first_line)
        VALUES (1, 1, -16, '/lib', 9, 'main', 2, NULL, 'read@plt', NULL, NULL),
               (1, 0, 5, '/x.py', 0, 'f', 0, NULL, NULL, 12, 10),
               (2, 0, -16, '[kernel]', 0, NULL, 0, 'hidden', NULL, NULL, NULL),
               (2, 1, -16, '/lib', 9, 'main', 2, NULL, 'read@plt', NULL, NULL);
    "#;

    fn frame(address: u64, module: &str) -> Frame {
        Frame {
            address,
            module: module.to_owned(),
            offset: 0,
            symbol: None,
            symbol_offset: 0,
            unknown_because: None,
            after: None,
            source: None,
        }
    }

    fn stack(id: u64, frames: Vec<Frame>) -> Stack {
        Stack { id: StackId(id), space: Space::User, frames, truncated: false, copies: 0 }
    }

    /// The stacks 0 to `count`, by one query each and by one for all frames.
    fn read(conn: &Connection, count: u64) -> Vec<Stack> {
        let of_stack = |id| StackSum {
            tgid: 1,
            account: Account::User,
            kernel: None,
            user: Some(StackId(id)),
            count: 1,
            ns: 1,
        };
        // Those that are not there make them many.
        let many =
            Sums { stack_sums: (0..count + FEW as u64).map(of_stack).collect(), ..Sums::default() };
        let mut many: Vec<Stack> = of(conn, RUN, &[], &many).unwrap().into_values().collect();
        many.sort_by_key(|stack| stack.id.0);
        let each: Vec<Stack> =
            (0..count).filter_map(|id| one(conn, RUN, StackId(id)).unwrap()).collect();
        assert_eq!(each, many);
        many
    }

    fn rows(conn: &Connection) -> i64 {
        conn.query_row("SELECT count(*) FROM frames", [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn stacks_of_an_older_store_keep_their_frames() {
        let mut conn = Connection::open_in_memory().unwrap();
        migrate(&mut conn, &MIGRATIONS[..12]).unwrap();
        conn.execute_batch(OLD).unwrap();
        migrate(&mut conn, MIGRATIONS).unwrap();
        assert_eq!(rows(&conn), 3, "one of four is in two stacks");
        let main = Frame {
            offset: 9,
            symbol: Some("main".into()),
            symbol_offset: 2,
            after: Some("read@plt".to_owned().try_into().unwrap()),
            ..frame(u64::MAX - 15, "/lib")
        };
        let python = Frame {
            symbol: Some("f".into()),
            source: Some(SourceLine { line: Some(12), first: 10 }),
            ..frame(5, "/x.py")
        };
        let hidden =
            Frame { unknown_because: Some("hidden".into()), ..frame(u64::MAX - 15, "[kernel]") };
        let kernel = stack(1, vec![hidden, main.clone()]);
        let expected = [
            Stack { copies: 2, ..stack(0, vec![python, main]) },
            Stack { space: Space::Kernel, truncated: true, ..kernel },
            stack(2, vec![]),
        ];
        assert_eq!(read(&conn, 3), expected);
    }

    #[test]
    fn what_stacks_share_is_stored_once_and_one_that_comes_again_is_replaced() {
        let mut conn = Connection::open_in_memory().unwrap();
        migrate(&mut conn, MIGRATIONS).unwrap();
        let tx = conn.transaction().unwrap();
        let recursive = stack(0, vec![frame(1, "a"), frame(2, "a"), frame(1, "a")]);
        let same_address = stack(1, vec![frame(1, "b"), frame(2, "a")]);
        put(&tx, RUN, &[recursive.clone(), same_address.clone()]).unwrap();
        put(&tx, RunId(8), &[stack(0, vec![frame(3, "other run")])]).unwrap();
        assert_eq!(rows(&tx), 4);
        assert_eq!(read(&tx, 2), [recursive, same_address.clone()]);
        let shorter = stack(0, vec![frame(2, "a")]);
        put(&tx, RUN, std::slice::from_ref(&shorter)).unwrap();
        let both = [shorter, same_address];
        assert_eq!(read(&tx, 2), both);
        remove_replaced(&tx, RUN).unwrap();
        assert_eq!((read(&tx, 2), rows(&tx)), (both.to_vec(), 4), "1 a is before the others");
        put(&tx, RUN, &both).unwrap();
        remove_replaced(&tx, RUN).unwrap();
        assert_eq!((read(&tx, 2), rows(&tx)), (both.to_vec(), 3), "one is of the other run");
    }
}
