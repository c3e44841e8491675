//! Several processes and one store. Each test starts itself again in the role of a recorder.

#![allow(clippy::unwrap_used, reason = "this is the test")]

mod common;

use std::env;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::*;
use model::*;
use store::{Sqlite, Store};

const ROLE: &str = "WHYLAG_TEST_RECORDS_INTO";

/// The store to record into, if this process was started by `start_recorder`.
fn recorders_store() -> Option<PathBuf> {
    env::var_os(ROLE).map(PathBuf::from)
}

fn start_recorder(test: &str, store: &Path) -> Child {
    Command::new(env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads", "1"])
        .env(ROLE, store)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Reads what a recorder prints up to a line with `word`; that line.
fn wait_for(recorder: &mut Child, word: &str) -> String {
    let lines = BufReader::new(recorder.stdout.as_mut().unwrap()).lines();
    lines.map(Result::unwrap).find(|line| line.contains(word)).unwrap()
}

fn outliers_batch(count: u64, heartbeat_ns: u64) -> Batch {
    Batch { heartbeat_ns, outliers: (1..=count).map(outlier).collect(), ..full_batch() }
}

#[test]
fn recorders_at_once_lose_nothing() {
    const RECORDERS: u64 = 3;
    const BATCHES: u64 = 30;
    if let Some(path) = recorders_store() {
        let mut store = Sqlite::open(&path).unwrap();
        let run = store.begin(&header()).unwrap();
        for n in 0..BATCHES {
            store.append(run, &outliers_batch(100, STARTED_NS + n)).unwrap();
        }
        store.finish(run, &end()).unwrap();
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // In a folder that none of them finds: they make it, and the file, at the same time.
    let path = folder.path().join("new/w.db");
    let recorders: Vec<_> =
        (0..RECORDERS).map(|_| start_recorder("recorders_at_once_lose_nothing", &path)).collect();
    for recorder in recorders {
        let output = recorder.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
    let store = Sqlite::open_read_only(&path).unwrap();
    let runs = store.runs().unwrap();
    assert_eq!(runs.len() as u64, RECORDERS);
    for run in runs {
        assert_eq!(run.status, RunStatus::Complete);
        assert_eq!(run.outliers, BATCHES * 100);
        let loaded = store.load(run.id).unwrap();
        assert_eq!(loaded.losses.seen.len() as u64, BATCHES);
        assert_eq!(loaded.threads.len(), 2);
    }
}

#[test]
fn a_killed_recorder_leaves_an_interrupted_run_with_all_it_had_appended() {
    if let Some(path) = recorders_store() {
        let mut store = Sqlite::open(&path).unwrap();
        let run = store.begin(&header()).unwrap();
        for n in 1.. {
            store.append(run, &outliers_batch(50, STARTED_NS + n * 1000)).unwrap();
            println!("appended {n} ");
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.db");
    let mut recorder = start_recorder(
        "a_killed_recorder_leaves_an_interrupted_run_with_all_it_had_appended",
        &path,
    );
    wait_for(&mut recorder, "appended 20 ");
    let store = Sqlite::open_read_only(&path).unwrap();
    assert_eq!(store.runs().unwrap()[0].status, RunStatus::Recording);
    drop(store);
    for suffix in ["", "-wal", "-shm"] {
        let file = folder.path().join(format!("w.db{suffix}"));
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{file:?}");
    }

    recorder.kill().unwrap();
    // Dead, but its parent has not waited for it: it still has an entry in /proc.
    let pid = rustix::process::Pid::from_child(&recorder);
    let dead = rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT;
    rustix::process::waitid(rustix::process::WaitId::Pid(pid), dead).unwrap();
    let said = BufReader::new(recorder.stdout.take().unwrap()).lines().map(Result::unwrap);
    let last_said = said.filter(|line| line.starts_with("appended")).last();
    let store = Sqlite::open_read_only(&path).unwrap();
    assert_eq!(store.runs().unwrap()[0].status, RunStatus::Interrupted);
    recorder.wait().unwrap();

    let run = store.load(store.newest().unwrap().unwrap()).unwrap();
    assert_eq!(run.status, RunStatus::Interrupted);
    assert_eq!(run.end, None);
    let appended = (run.heartbeat_ns - STARTED_NS) / 1000;
    let said: u64 = last_said.map_or(20, |line| line["appended ".len()..].trim().parse().unwrap());
    assert!(appended >= said, "{appended} batches there, {said} were reported as stored");
    assert_eq!(run.outlier_count, appended * 50, "whole batches only");
    assert_eq!(run.losses.seen.len() as u64, appended);
    for thread in &run.threads {
        assert_eq!(thread.accounts.total(), thread.wall_ns());
        assert_eq!(thread.last_ns, run.heartbeat_ns);
    }
    drop(store);

    let mut store = Sqlite::open(&path).unwrap();
    let next = store.begin(&header()).unwrap();
    store.append(next, &full_batch()).unwrap();
    assert_eq!(store.runs().unwrap()[0].outliers, appended * 50);
    assert_eq!(store.runs().unwrap()[1].status, RunStatus::Recording);
}

#[test]
fn only_the_owner_can_read_whatever_the_umask() {
    if let Some(path) = recorders_store() {
        rustix::process::umask(rustix::fs::Mode::empty());
        let mut store = Sqlite::open(&path).unwrap();
        let run = store.begin(&header()).unwrap();
        store.append(run, &full_batch()).unwrap();
        for suffix in ["", "-wal", "-shm"] {
            let file = PathBuf::from(format!("{}{suffix}", path.display()));
            println!("mode {:o} ", file.metadata().unwrap().permissions().mode() & 0o777);
        }
        println!("mode {:o} ", path.parent().unwrap().metadata().unwrap().permissions().mode());
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("whylag/w.db");
    let recorder = start_recorder("only_the_owner_can_read_whatever_the_umask", &path);
    let output = String::from_utf8(recorder.wait_with_output().unwrap().stdout).unwrap();
    let modes: Vec<_> = output.lines().filter_map(|line| line.split("mode ").nth(1)).collect();
    assert_eq!(modes, ["600 ", "600 ", "600 ", "40700 "], "{output}");
}

#[test]
fn connections_of_one_process_work_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.db");
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut store = Sqlite::open(&path).unwrap();
                let run = store.begin(&header()).unwrap();
                for n in 0..20 {
                    store.append(run, &outliers_batch(20, STARTED_NS + n)).unwrap();
                    let reader = Sqlite::open_read_only(&path).unwrap();
                    assert_eq!(reader.load(run).unwrap().outlier_count, (n + 1) * 20);
                }
            });
        }
    });
    let store = Sqlite::open(&path).unwrap();
    assert!(store.runs().unwrap().iter().all(|run| run.outliers == 400));
    let check: String = rusqlite::Connection::open(&path)
        .unwrap()
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(check, "ok");
}

/// A file with a run of so many outliers.
fn large_file(folder: &Path, outliers: u64) -> PathBuf {
    let mut store = Sqlite::open(&folder.join("source.db")).unwrap();
    let run = store.begin(&header()).unwrap();
    store.append(run, &outliers_batch(outliers, STARTED_NS + 1)).unwrap();
    store.finish(run, &end()).unwrap();
    let path = folder.join("large.whylag");
    store.export(run, std::fs::File::create(&path).unwrap()).unwrap();
    path
}

#[test]
fn a_recorder_goes_on_while_a_large_run_is_imported() {
    if let Some(path) = recorders_store() {
        let mut store = Sqlite::open(&path).unwrap();
        let run = store.begin(&header()).unwrap();
        let (mut longest, mut batches) = (Duration::ZERO, 0);
        println!("appending ");
        while !path.with_file_name("imported").exists() {
            let start = Instant::now();
            store.append(run, &outliers_batch(10, STARTED_NS + batches)).unwrap();
            longest = longest.max(start.elapsed());
            batches += 1;
            std::thread::sleep(Duration::from_millis(20));
        }
        println!("longest {} {batches} ", longest.as_millis());
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = large_file(folder.path(), 40_000);
    let path = folder.path().join("w.db");
    let mut store = Sqlite::open(&path).unwrap();
    let test = "a_recorder_goes_on_while_a_large_run_is_imported";
    let mut recorder = start_recorder(test, &path);
    wait_for(&mut recorder, "appending ");
    let start = Instant::now();
    let imported = store.import(&file).unwrap();
    let took = start.elapsed().as_millis() as u64;
    std::fs::write(folder.path().join("imported"), "").unwrap();
    let said = wait_for(&mut recorder, "longest ");
    recorder.wait().unwrap();
    println!("the import took {took} ms; of the recorder's appends: {said}(ms, number)");
    let said = said.split("longest ").nth(1).unwrap();
    let numbers: Vec<u64> = said.split_whitespace().map(|n| n.parse().unwrap()).collect();
    let [longest, batches] = numbers[..] else { panic!("{said}") };
    assert!(took >= 400, "too short an import to hold anybody up: {took} ms");
    assert!(batches >= 5 && longest < took / 2, "{batches} appends, {longest} ms of {took} ms");

    assert_eq!(store.load(imported).unwrap().outlier_count, 40_000);
    let runs = store.runs().unwrap();
    let origin = Origin { file: "large.whylag".into(), number: RunId(1) };
    let imported = runs.iter().find(|run| run.id == imported).unwrap();
    assert_eq!(imported.origin, Some(origin));
    let recorded = runs.iter().find(|run| run.id != imported.id).unwrap();
    assert_eq!((recorded.outliers, &recorded.origin), (batches * 10, &None));
}

#[test]
fn what_a_killed_import_left_is_not_seen_and_goes_with_the_next_one() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("large.whylag");
    if let Some(path) = recorders_store() {
        let file = path.with_file_name("large.whylag");
        println!("importing ");
        Sqlite::open(&path).unwrap().import(&file).unwrap();
        println!("imported ");
        return;
    }
    assert_eq!(large_file(folder.path(), 40_000), file);
    let path = folder.path().join("w.db");
    let mut store = Sqlite::open(&path).unwrap();
    let test = "what_a_killed_import_left_is_not_seen_and_goes_with_the_next_one";
    let mut importer = start_recorder(test, &path);
    let conn = rusqlite::Connection::open(&path).unwrap();
    let rows = |table: &str| -> i64 {
        conn.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
    };
    while rows("outliers") == 0 {
        assert!(importer.try_wait().unwrap().is_none(), "the import ended before it was seen");
        std::thread::sleep(Duration::from_millis(2));
    }
    importer.kill().unwrap();
    importer.wait().unwrap();
    assert!((1..40_000).contains(&rows("outliers")), "it was killed on its way");
    assert!(store.runs().unwrap().is_empty());
    assert_eq!(store.newest().unwrap(), None);
    assert!(matches!(store.load(RunId(1)), Err(store::StoreError::NoSuchRun { .. })));

    let imported = store.import(&file).unwrap();
    assert_eq!(store.runs().unwrap().len(), 1);
    assert_eq!(store.load(imported).unwrap().outlier_count, 40_000);
    // Nothing of the other is left, in any table.
    let (whole, number) = Sqlite::open_run_file(&file).unwrap();
    assert_eq!(store.load(imported).unwrap().threads, *whole.load(number).unwrap().threads);
    assert_eq!((rows("runs"), rows("outliers")), (1, 40_000));
    let sql = "SELECT count(*) FROM accounts WHERE thread NOT IN (SELECT id FROM threads)";
    assert_eq!(conn.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap(), 0);
    let tables = "SELECT m.name FROM sqlite_schema m JOIN pragma_table_info(m.name) c
                  WHERE m.type = 'table' AND c.name = 'run'";
    let mut tables = conn.prepare(tables).unwrap();
    let names = tables.query_map([], |row| row.get::<_, String>(0)).unwrap();
    for table in names.map(Result::unwrap) {
        let sql = format!("SELECT count(*) FROM {table} WHERE run <> ?1");
        let others: i64 = conn.query_row(&sql, [imported.0], |row| row.get(0)).unwrap();
        assert_eq!(others, 0, "{table}");
    }
}
