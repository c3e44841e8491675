//! A run goes into a file and comes back to the last count; what is no such file, is damaged or
//! hostile gives one line, and leaves the store as it was.

#![allow(clippy::unwrap_used, reason = "this is the test")]

mod common;

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use common::*;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use model::*;
use rustix::fs::CWD;
use store::{LOADED_OUTLIERS, RunFileError, Sqlite, Store};
use tempfile::TempDir;

/// More outliers than `load` gives, some of them below the threshold; more than one piece of most.
fn rich_batch() -> Batch {
    let mut batch = full_batch();
    let outliers = LOADED_OUTLIERS as u64 + 700;
    batch.outliers = (0..outliers)
        .map(|n| Outlier { start_ns: STARTED_NS + n, ..outlier(THRESHOLD_NS - 300 + n / 2) })
        .collect();
    batch.outliers.push(bare_outlier(400_000));
    batch.events = (0..6_000).map(|n| event(EventKind::BlockIo, STARTED_NS + n % 1000)).collect();
    batch.threads = (101..400).map(thread).collect();
    batch.messages.slow = (0..2_500).map(|n| message(n, None, 300_000 + n / 3)).collect();
    batch
}

const THRESHOLD_NS: u64 = 100_000;

fn rich_header() -> RunHeader {
    RunHeader { threshold_ns: THRESHOLD_NS, ..header() }
}

fn finding(cause: &str) -> Finding {
    Finding {
        cause: cause.into(),
        title: "it waits".into(),
        share: 0.1 + 0.2,
        lost_ns: 7,
        confidence: 1.0 / 3.0,
        doubts: vec!["few".into()],
        chain: vec![],
        evidence: vec![Evidence { text: "n = 3".into(), source: "probe".into() }],
        ruled_out: vec![],
        excluded: vec![],
        not_ruled_out: vec![],
        not_looked_at: vec![],
        fix: "f".into(),
        reproduce: "r".into(),
        verify: "v".into(),
        ..Finding::default()
    }
}

/// A folder with a store, which has a rich run.
fn filled() -> (TempDir, Sqlite, RunId) {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Sqlite::open(&folder.path().join("w.db")).unwrap();
    // Another run before and behind it, which must not come along.
    store.begin(&header()).unwrap();
    let run = store.begin(&rich_header()).unwrap();
    store.append(run, &rich_batch()).unwrap();
    store.finish(run, &end()).unwrap();
    store.put_findings(run, &[finding("mmap-lock"), finding("futex-convoy")]).unwrap();
    let other = store.begin(&header()).unwrap();
    store.append(other, &full_batch()).unwrap();
    (folder, store, run)
}

fn exported(store: &Sqlite, run: RunId, path: &Path) {
    store.export(run, File::create(path).unwrap()).unwrap();
}

/// All that the trait gives of a run, in text; the number of the run and the state of its
/// recorder left out.
fn everything(store: &Sqlite, run: RunId) -> String {
    let part = |from, to, tid| Window { from_ns: STARTED_NS + from, to_ns: STARTED_NS + to, tid };
    let mut text = Vec::new();
    let loaded = store.load(run).unwrap();
    let of_part = store.load_part(run, &part(100, 300, Some(101))).unwrap();
    for mut run in [loaded, of_part.0] {
        run.id = RunId(0);
        text.push(serde_json::to_value(&run).unwrap());
    }
    text.push(serde_json::to_value(of_part.1).unwrap());
    text.push(serde_json::to_value(store.findings(run).unwrap()).unwrap());
    serde_json::to_string(&text).unwrap()
}

/// The text of a run file.
fn text_of(path: &Path) -> String {
    let mut text = String::new();
    GzDecoder::new(File::open(path).unwrap()).read_to_string(&mut text).unwrap();
    text
}

fn compressed(text: &[u8]) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), Compression::fast());
    out.write_all(text).unwrap();
    out.finish().unwrap()
}

#[test]
fn a_run_comes_back_to_the_last_count() {
    let (folder, store, run) = filled();
    let path = folder.path().join("x.whylag");
    exported(&store, run, &path);

    let other = tempfile::tempdir().unwrap();
    let mut importing = Sqlite::open(&other.path().join("o.db")).unwrap();
    importing.begin(&header()).unwrap();
    let imported = importing.import(&path).unwrap();
    assert_eq!(imported, RunId(2));
    assert!(everything(&importing, imported) == everything(&store, run));
    let loaded = importing.load(imported).unwrap();
    assert_eq!(loaded.status, RunStatus::Complete);
    assert_eq!(loaded.outlier_count, 2_700 - 600 + 1, "those of the threshold and beyond");
    assert_eq!(loaded.messages.slow_count, 2_500);
    assert_eq!(importing.load_part(imported, &ALL).unwrap().1, 2_701);
    assert_eq!(importing.runs().unwrap()[1].leading_cause.as_deref(), Some("mmap-lock"));

    let (alone, number) = Sqlite::open_run_file(&path).unwrap();
    assert_eq!(number, run, "the number where it comes from");
    assert!(everything(&alone, number) == everything(&store, run));
    assert_eq!(alone.runs().unwrap().len(), 1);

    let again = folder.path().join("again.whylag");
    exported(&alone, number, &again);
    assert!(fs::read(&path).unwrap() == fs::read(&again).unwrap(), "exporting what was imported");
}

/// A series with so many ticks, all of them different.
fn series(source: &str, ticks: u64) -> JitterSeries {
    let tick = |n| Tick(STARTED_NS + n * 100_000, n as i64 % 7_001 - 1_000, 100_000 - n % 13);
    JitterSeries {
        source: source.into(),
        interval_ns: 100_000,
        thread: None,
        started_ns: STARTED_NS,
        to_wall_ns: -7,
        intended: ticks + 1,
        missed: 1,
        over: 2,
        late: Histogram::new(7),
        early: Histogram::new(7),
        ticks: (0..ticks).map(tick).collect(),
        worst: vec![LateTick { number: 3, late_ns: 8, ..LateTick::default() }],
        periods: vec![],
        pairs: None,
    }
}

/// The first line of a file.
fn first_line(path: &Path) -> String {
    let mut line = String::new();
    BufReader::new(GzDecoder::new(File::open(path).unwrap())).read_line(&mut line).unwrap();
    line
}

/// 84 MiB of text: more than a line can have.
#[test]
fn two_million_ticks_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Sqlite::open(&folder.path().join("w.db")).unwrap();
    let all = [("timerfd", 1_000_000), ("poll", 0), ("spin", 1_000_000), ("epoll", 250_007)];
    let series = all.map(|(source, ticks)| series(source, ticks));
    let jitter = Jitter { series: series.into(), notes: vec!["n".into()], ..Jitter::default() };
    let run = store.begin(&header()).unwrap();
    store.append(run, &Batch { jitter: Some(jitter.clone()), ..Batch::default() }).unwrap();
    let path = folder.path().join("x.whylag");
    exported(&store, run, &path);
    let imported = store.import(&path).unwrap();
    assert!(store.load(imported).unwrap().jitter == Some(jitter));
    assert!(first_line(&path).starts_with("{\"whylag_run\":2,"));
    store.forget(imported).unwrap();
    // Put again, they are replaced.
    let few = Jitter { series: vec![self::series("poll", 3)], ..Jitter::default() };
    store.append(run, &Batch { jitter: Some(few.clone()), ..Batch::default() }).unwrap();
    assert!(store.load(run).unwrap().jitter == Some(few));
}

/// Recorded when all ticks were in the line of their series, in files and in stores.
#[test]
fn a_file_of_the_first_version_is_read_and_written_as_one_of_now() {
    let recorded = "../whylag/tests/fixtures/timer-slack-faulty.whylag";
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join(recorded);
    assert!(first_line(&recorded).starts_with("{\"whylag_run\":1,"));
    let text = text_of(&recorded);
    let with_series = text.lines().find(|line| line.contains("\"ticks\":[[")).unwrap();
    let line: serde_json::Value = serde_json::from_str(with_series).unwrap();
    let jitter: Jitter = serde_json::from_value(line["batch"]["jitter"].clone()).unwrap();
    assert!(jitter.series[0].ticks.len() > 100);

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.db");
    let mut store = Sqlite::open(&path).unwrap();
    let run = store.import(&recorded).unwrap();
    assert_eq!(store.load(run).unwrap().jitter.as_ref(), Some(&jitter));
    let of_now = folder.path().join("now.whylag");
    exported(&store, run, &of_now);
    assert!(first_line(&of_now).starts_with("{\"whylag_run\":2,"));
    let (alone, number) = Sqlite::open_run_file(&of_now).unwrap();
    assert!(everything(&alone, number) == everything(&store, run));

    // As a whylag of before stored it.
    drop(store);
    let conn = rusqlite::Connection::open(&path).unwrap();
    conn.execute("DELETE FROM ticks", []).unwrap();
    let text = serde_json::to_string(&jitter).unwrap();
    conn.execute("UPDATE results SET result = ?1 WHERE source = 'jitter'", [&text]).unwrap();
    drop(conn);
    let store = Sqlite::open(&path).unwrap();
    assert_eq!(store.load(run).unwrap().jitter.as_ref(), Some(&jitter));
    let again = folder.path().join("again.whylag");
    exported(&store, run, &again);
    assert!(fs::read(&of_now).unwrap() == fs::read(&again).unwrap());
}

#[test]
fn a_file_without_ticks_is_one_that_every_whylag_reads() {
    let folder = tempfile::tempdir().unwrap();
    assert!(first_line(&written(&folder, &small_file())).starts_with("{\"whylag_run\":1,"));
}

#[test]
fn more_ticks_than_are_kept_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let text = text_of(&written(&folder, &small_file()));
    let first = text.split_inclusive('\n').next().unwrap();
    let ticks = format!("[0,0,0]{}", ",[0,0,0]".repeat(999_999));
    let line = format!("{{\"batch\":{{\"ticks\":[{{\"series\":0,\"ticks\":[{ticks}]}}]}}}}\n");
    let error =
        refused(&written(&folder, &compressed((first.to_owned() + &line.repeat(9)).as_bytes())));
    assert!(error.to_string().contains("line 10: it has more than 8000000 ticks"), "{error}");
}

/// Names of C++ templates: 70 MB in what is usually one line.
#[test]
fn stacks_with_long_names_are_written_in_lines_that_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Sqlite::open(&folder.path().join("w.db")).unwrap();
    let run = store.begin(&header()).unwrap();
    let mut long = stack(1, Space::User);
    let frame = Frame { symbol: Some("std::x<".repeat(500)), ..long.frames[0].clone() };
    long.frames = vec![frame; 120];
    let stacks: Vec<Stack> =
        (1..=165).map(|id| Stack { id: StackId(id), ..long.clone() }).collect();
    store.append(run, &Batch { stacks, ..Batch::default() }).unwrap();
    let path = folder.path().join("x.whylag");
    exported(&store, run, &path);
    assert_eq!(store.import(&path).unwrap(), RunId(2));
    let text = text_of(&path);
    assert_eq!(text.matches("\"truncated\"").count(), 165);
    assert!(text.lines().all(|line| line.len() < 16 << 20));
}

const ALL: Window = Window { from_ns: 0, to_ns: u64::MAX >> 8, tid: None };

#[test]
fn a_run_without_an_end_is_interrupted_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Sqlite::open(&folder.path().join("w.db")).unwrap();
    let run = store.begin(&header()).unwrap();
    store.append(run, &full_batch()).unwrap();
    assert_eq!(store.load(run).unwrap().status, RunStatus::Recording, "this process is alive");
    let path = folder.path().join("x.whylag");
    exported(&store, run, &path);
    let imported = store.import(&path).unwrap();
    let loaded = store.load(imported).unwrap();
    assert_eq!((loaded.status, loaded.end), (RunStatus::Interrupted, None));
    assert_eq!(loaded.header, header());
    assert_eq!(loaded.threads, *store.load(run).unwrap().threads, "extended once, when loaded");
}

#[test]
fn an_empty_run_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Sqlite::open(&folder.path().join("w.db")).unwrap();
    let run = store.begin(&header()).unwrap();
    let path = folder.path().join("x.whylag");
    exported(&store, run, &path);
    let imported = store.import(&path).unwrap();
    assert_eq!(store.load(imported).unwrap().heartbeat_ns, header().started_ns);
    assert!(matches!(
        store.export(RunId(77), Vec::new()).unwrap_err(),
        RunFileError::Store(store::StoreError::NoSuchRun { .. })
    ));
}

#[test]
fn what_a_later_whylag_adds_is_ignored_and_what_an_older_one_lacks_is_empty() {
    let (folder, store, run) = filled();
    let path = folder.path().join("x.whylag");
    exported(&store, run, &path);
    let text = text_of(&path);
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for line in &mut lines {
        let mut value: serde_json::Value = serde_json::from_str(line).unwrap();
        if let Some(batch) = value.get_mut("batch").and_then(|batch| batch.as_object_mut()) {
            batch.retain(|_, value| value.as_array().is_none_or(|rows| !rows.is_empty()));
            batch.insert("gravity".into(), serde_json::json!({"g": [9.81, null]}));
        }
        value["more"] = serde_json::json!("ignored");
        if value.get("whylag_run").is_none() {
            value.as_object_mut().unwrap().remove("more");
        }
        *line = value.to_string();
    }
    let text = lines.join("\n") + "\n";
    fs::write(&path, compressed(text.as_bytes())).unwrap();
    let (alone, number) = Sqlite::open_run_file(&path).unwrap();
    assert!(everything(&alone, number) == everything(&store, run));
}

/// Reads the file both ways: the same line, which names it, and nothing is left in the store.
#[track_caller]
fn refused(path: &Path) -> RunFileError {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Sqlite::open(&folder.path().join("w.db")).unwrap();
    let error = store.import(path).unwrap_err();
    let line = error.to_string();
    assert!(line.starts_with(&format!("{}: ", path.display())), "{line}");
    assert!(!line.chars().any(char::is_control) && line.len() < 500, "{line}");
    assert_eq!(line, Sqlite::open_run_file(path).unwrap_err().to_string());
    assert!(store.runs().unwrap().is_empty());
    assert_eq!(store.begin(&header()).unwrap(), RunId(1), "not even a number is used up");
    error
}

fn written(folder: &TempDir, content: &[u8]) -> PathBuf {
    let path = folder.path().join("x.whylag");
    fs::write(&path, content).unwrap();
    path
}

#[test]
fn foreign_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (content, what) in [
        (b"".as_slice(), "empty"),
        (b"a text\n", "not compressed"),
        (&[0; 9000], "not compressed"),
        (b"SQLite format 3\0\x10\0", "--store"),
        (&compressed(b""), "the file ends here"),
        (&compressed(b"a text\n"), "something else"),
        (&compressed(b"{\"whylag_run\":\"one\"}\n"), "something else"),
        (&compressed(b"[[[[[[[[[[[[[[[[[[[[[[[[[\n"), "something else"),
    ] {
        let error = refused(&written(&folder, content));
        assert!(error.to_string().contains(what), "{error}");
    }
    let error = refused(folder.path());
    assert!(error.to_string().contains("no regular file"), "{error}");
    let error = refused(Path::new("/dev/zero"));
    assert!(error.to_string().contains("no regular file"), "{error}");
    let fifo = folder.path().join("fifo");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let error = refused(&fifo);
    assert!(error.to_string().contains("no regular file"), "{error}");
    let error = refused(&folder.path().join("nothing"));
    assert!(matches!(error, RunFileError::Unreadable { .. }), "{error}");
}

/// Somebody who may write in the folder puts a FIFO there, and the file again, all the time.
#[test]
fn a_fifo_in_the_place_of_a_file_keeps_nobody_waiting() {
    let folder = tempfile::tempdir().unwrap();
    let place = written(&folder, &small_file());
    let other = folder.path().join("other");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &other, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let (swapped, file) = (place.clone(), place.clone());
    let is_over = Arc::new(AtomicBool::new(false));
    let ends = Arc::clone(&is_over);
    let attacker = thread::spawn(move || {
        let exchange = rustix::fs::RenameFlags::EXCHANGE;
        let mut swaps = 0;
        while !ends.load(Ordering::Relaxed) {
            rustix::fs::renameat_with(CWD, &swapped, CWD, &other, exchange).unwrap();
            swaps += 1;
        }
        swaps
    });
    let (done, is_done) = mpsc::channel();
    thread::spawn(move || {
        let began = Instant::now();
        let mut found = [0, 0];
        while began.elapsed() < Duration::from_secs(1) {
            found[usize::from(store::is_run_file(&file))] += 1;
            let _ = Sqlite::open_run_file(&file);
        }
        let _ = done.send(found);
    });
    let found = is_done.recv_timeout(Duration::from_secs(30)).expect("it waits for a writer");
    is_over.store(true, Ordering::Relaxed);
    let swaps = attacker.join().unwrap();
    println!("{swaps} swaps, {found:?} looks");
    assert!(swaps > 100 && found.iter().all(|looks| *looks > 0), "{swaps} {found:?}");
}

#[test]
fn a_newer_format_is_refused_whatever_else_it_has() {
    let folder = tempfile::tempdir().unwrap();
    let text = b"{\"whylag_run\":3,\"by\":\"9.1\\u001b[31m\",\"head\":[]}\n<more>\n";
    let error = refused(&written(&folder, &compressed(text)));
    assert!(error.to_string().contains("newer whylag (9.1?[31m; format 3, known up to 2)"));
}

/// A small run as a file.
fn small_file() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Sqlite::open(&folder.path().join("w.db")).unwrap();
    let run = store.begin(&header()).unwrap();
    store.append(run, &full_batch()).unwrap();
    store.finish(run, &end()).unwrap();
    let mut file = Vec::new();
    store.export(run, &mut file).unwrap();
    file
}

#[test]
fn a_file_that_was_cut_short_anywhere_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = small_file();
    for length in (2..file.len()).step_by(211).chain(file.len() - 9..file.len()) {
        let error = refused(&written(&folder, &file[..length]));
        assert!(error.to_string().contains("cut short"), "{length}: {error}");
    }
    let twice = [&file[..], &file[..]].concat();
    let error = refused(&written(&folder, &twice));
    assert!(error.to_string().contains("something follows"), "{error}");
}

#[test]
fn a_flipped_bit_is_noticed_or_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = small_file();
    let (whole, run) = Sqlite::open_run_file(&written(&folder, &file)).unwrap();
    let whole = everything(&whole, run);
    let mut harmless = 0;
    for place in (0..10).chain((10..file.len()).step_by(97)) {
        let mut flipped = file.clone();
        flipped[place] ^= 1 << (place % 8);
        let path = written(&folder, &flipped);
        match Sqlite::open_run_file(&path) {
            Ok((store, run)) => {
                assert!(everything(&store, run) == whole, "byte {place}");
                harmless += 1;
            }
            Err(_) => drop(refused(&path)),
        }
    }
    // The time, the flags and the system in the header of gzip.
    assert!(harmless <= 10, "{harmless}");
}

/// The lines of a small run with one of them changed.
#[track_caller]
fn changed(from: &str, to: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let text = text_of(&written(&folder, &small_file()));
    let changed = text.replacen(from, to, 1);
    assert!(changed != text, "{from} is not in {text}");
    let error = refused(&written(&folder, &compressed(changed.as_bytes())));
    error.to_string()
}

#[test]
fn lines_that_no_whylag_writes_are_refused() {
    let deep = format!("\"facts\":{}", "[".repeat(100_000));
    let unknown = format!("\"deeper\":{}", "[".repeat(100_000));
    let long = format!("\"tid\":{}", "9".repeat(100_000));
    for (from, to, what) in [
        ("\"facts\":[", deep.as_str(), "expected a string, column"),
        ("\"facts\":[", &unknown, "line 2: "),
        ("\"tid\":101", &long, "out of range"),
        ("\"tid\":101", "\"tid\":-1", "invalid value"),
        ("\"tid\":101", "\"tid\":4294967296", "invalid value"),
        ("\"tid\":101", "\"tid\":101,\"tid\":102", "duplicate field"),
        ("{\"batch\":", "{\"batch\":{},\"batch\":", "line 2"),
        ("{\"batch\":", "{\"batches\":", "unknown variant"),
        ("{\"batch\":", "\n{\"batch\":", "line 2"),
        ("\"running:user\":300", "\"running:usher!\":300", "usher!"),
        ("\"precision\":5", "\"precision\":99", "precision 99"),
        ("\"buckets\":{", "\"buckets\":{\"4000000000\":1,", "no bucket 4000000000"),
        (
            "\"running:user\":300",
            "\"running:user\":18446744073709551615",
            "beyond what any host gives",
        ),
        ("\"duration_ns\":9000000", "\"duration_ns\":9000000000000000000", "all times together"),
        ("\"first_ns\":1000000000000", "\"first_ns\":5000000000000", "before it begins"),
        ("\"ended_ns\":1002500000000", "\"ended_ns\":5", "before its start"),
        ("\"outliers\":2,", "\"outliers\":3,", "counts"),
        ("\"batches\":", "\"batches\":-", "invalid"),
    ] {
        let line = changed(from, to);
        assert!(line.contains("damaged (line "), "{from}: {line}");
        assert!(line.contains(what), "{from}: {line}");
    }
}

/// All numbers of sums that are added up, made too large one at a time.
#[test]
fn a_sum_that_no_host_gives_is_refused_in_every_table() {
    const TABLES: [&str; 9] = [
        "stack_sums",
        "waits",
        "holds",
        "paths",
        "beside",
        "retries",
        "call_errors",
        "runners",
        "cpus",
    ];
    let folder = tempfile::tempdir().unwrap();
    let text = text_of(&written(&folder, &small_file()));
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for table in TABLES {
        let row = format!("/batch/{table}/0");
        let line = lines.iter().position(|line| line.pointer(&row).is_some()).unwrap();
        let sum = lines[line].pointer(&row).unwrap().as_object().unwrap();
        let is_added_up = |name: &str| {
            name.ends_with("ns") || ["count", "by_waiter", "lock_like"].contains(&name)
        };
        let numbers: Vec<&String> = sum.keys().filter(|name| is_added_up(name)).collect();
        assert!(!numbers.is_empty(), "{sum:?}");
        for number in numbers {
            let mut lines = lines.clone();
            *lines[line].pointer_mut(&format!("{row}/{number}")).unwrap() = (1u64 << 63).into();
            let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            let error = refused(&written(&folder, &compressed(text.as_bytes()))).to_string();
            assert!(error.contains("beyond what any host gives"), "{table} {number}: {error}");
        }
    }
}

#[test]
fn a_line_without_end_is_refused_before_it_fills_the_memory() {
    let folder = tempfile::tempdir().unwrap();
    // 300 MiB of text in 1.3 MB: beyond the limit of a line.
    let mut bomb = GzEncoder::new(Vec::new(), Compression::fast());
    bomb.write_all(text_of(&written(&folder, &small_file())).lines().next().unwrap().as_bytes())
        .unwrap();
    let zeros = vec![b' '; 1 << 20];
    (0..300).for_each(|_| bomb.write_all(&zeros).unwrap());
    let error = refused(&written(&folder, &bomb.finish().unwrap()));
    assert!(error.to_string().contains("a longer line than the limit of 64 MiB"), "{error}");
}
