//! A run that a later whylag recorded, with a part of the recorder that this one does not know:
//! it loads, says what that part is called, and travels on unchanged. The run is a recorded one.

#![allow(clippy::unwrap_used, reason = "this is the test")]

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use model::{RecorderPart, Run, RunId};
use store::{Sqlite, Store};
use tempfile::TempDir;

const RECORDED: &str = "../whylag/tests/fixtures/futex-convoy-faulty.whylag";
const LATER: &str = "gpu queues";

fn recorded() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(RECORDED)
}

fn text_of(path: &Path) -> String {
    let mut text = String::new();
    GzDecoder::new(File::open(path).unwrap()).read_to_string(&mut text).unwrap();
    text
}

/// The recorded run as that whylag would have written it.
fn written_later(folder: &TempDir) -> PathBuf {
    let text = text_of(&recorded());
    let later = text.replacen("\"part\":\"signals\"", &format!("\"part\":\"{LATER}\""), 1);
    assert!(later != text, "the run has a part 'signals'");
    let path = folder.path().join("later.whylag");
    let mut out = GzEncoder::new(File::create(&path).unwrap(), Compression::fast());
    out.write_all(later.as_bytes()).unwrap();
    out.finish().unwrap();
    path
}

/// That the run is the recorded one, but for the part.
#[track_caller]
fn assert_only_the_part_differs(run: &Run) {
    let (store, number) = Sqlite::open_run_file(&recorded()).unwrap();
    let known = store.load(number).unwrap();
    let names = |run: &Run| -> Vec<String> {
        run.capabilities.iter().map(|capability| capability.part.to_string()).collect()
    };
    let expected = names(&known).into_iter();
    let renamed = |name: String| if name == "signals" { LATER.to_owned() } else { name };
    assert_eq!(names(run), expected.map(renamed).collect::<Vec<_>>());
    let later = run.capabilities.iter().find(|c| c.part.name() == LATER).unwrap();
    assert!(later.on && !RecorderPart::ALL.contains(&later.part));
    assert_eq!((&*run.threads, &run.sums), (&*known.threads, &known.sums));
}

#[test]
fn a_run_file_with_an_unknown_part_loads_and_is_exported_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = written_later(&folder);
    let (alone, number) = Sqlite::open_run_file(&path).unwrap();
    assert_only_the_part_differs(&alone.load(number).unwrap());

    let mut store = Sqlite::open(&folder.path().join("w.db")).unwrap();
    let imported = store.import(&path).unwrap();
    assert_only_the_part_differs(&store.load(imported).unwrap());
    let again = folder.path().join("again.whylag");
    store.export(imported, File::create(&again).unwrap()).unwrap();
    assert!(text_of(&again).contains(&format!("\"part\":\"{LATER}\"")));
}

#[test]
fn a_store_with_an_unknown_part_loads() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.db");
    let mut store = Sqlite::open(&path).unwrap();
    let run: RunId = store.import(&recorded()).unwrap();
    drop(store);
    let conn = rusqlite::Connection::open(&path).unwrap();
    let sql = "UPDATE capabilities SET part = ?1 WHERE part = 'signals'";
    assert_eq!(conn.execute(sql, [LATER]).unwrap(), 1);
    drop(conn);
    let store = Sqlite::open_read_only(&path).unwrap();
    assert_only_the_part_differs(&store.load(run).unwrap());
}
