//! Real servers under load: faults that are injected, with a truth that the software itself tells
//! (its logs, statistics and profiles), and healthy ones. An outside judge: nothing here knows how
//! whylag comes to its findings.
//!
//! `make test` plays the few whose software is there anyway, `make test-servers` (which sets
//! `WHYLAG_FIGURES`) installs the software, plays all, one at a time, and writes docs/servers.md.
//! `WHYLAG_SERVER=redis_keys,nginx_healthy` plays those alone. A situation is one file in
//! situations/.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../common/mod.rs"]
mod common;

mod databases;
mod load;
mod page;
mod peers;
mod process;
mod runtimes;
mod servers;
mod situation;
mod situations;
mod stage;
mod usage;
mod verdict;

use std::panic::catch_unwind;
use std::path::PathBuf;

use common::Lab;
use common::disturbance::figures_are_asked_for;
use page::{Floors, Page};
use situation::Situation;
use situations::SITUATIONS;
use stage::Stage;
use verdict::{Verdict, Worth};

/// Those of `make test`.
const FEW: [&str; 5] =
    ["python_asyncio_sync", "python_lock", "python_healthy", "redis_keys", "nginx_healthy"];

/// How many verdicts are right at least, of 46 faults and of 23 healthy servers. They are there to be
/// raised: whoever makes the engine better writes down what it reaches now.
const FLOORS: Floors = Floors { right: 44, healthy: 22 };

/// The same of `FEW`.
const FLOORS_OF_FEW: Floors = Floors { right: 2, healthy: 2 };

/// A situation that cannot be judged is played again, until there are so many.
const PLAYED: u32 = 2;

#[test]
fn servers_are_explained() {
    let only = std::env::var("WHYLAG_SERVER").ok();
    let is_wanted = |situation: &&Situation| match (&only, figures_are_asked_for()) {
        (Some(only), _) => only.split(',').any(|name| name == situation.name),
        (None, true) => true,
        (None, false) => FEW.contains(&situation.name),
    };
    let wanted: Vec<&Situation> = SITUATIONS.iter().copied().filter(is_wanted).collect();
    let folder = results();
    if only.is_none() {
        let _ = std::fs::remove_dir_all(&folder);
    }
    std::fs::create_dir_all(&folder).unwrap();
    let mut broken = Vec::new();
    for situation in &wanted {
        if let Some(missing) = situation.missing() {
            let name = situation.name;
            println!("skipped: {name}: no {missing} here; make test-servers installs it");
            continue;
        }
        match catch_unwind(|| judged(situation)) {
            Ok(Some(verdict)) => {
                println!("{verdict}");
                verdict.keep(&folder);
            }
            Ok(None) => return,
            Err(_) => broken.push(situation.name),
        }
    }
    if figures_are_asked_for() {
        Page::of(SITUATIONS, &folder).write();
    }
    assert!(broken.is_empty(), "not played to the end: {broken:?}");
    if only.is_none() {
        let floors = if figures_are_asked_for() { FLOORS } else { FLOORS_OF_FEW };
        Page::of(&wanted, &folder).assert_reaches(&floors);
    }
}

/// Where the verdicts of this pass and their runs are kept.
fn results() -> PathBuf {
    let name = if figures_are_asked_for() { "servers" } else { "servers-few" };
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// Plays the situation and compares what is said of it with its truth.
fn judged(situation: &Situation) -> Option<Verdict> {
    for number in 1.. {
        let lab = Lab::new()?;
        let mut stage = Stage::new(&lab);
        let truth = (situation.play)(&mut stage);
        let recorded = stage.recorded();
        let kept = results().join(situation.name).with_extension("whylag");
        let _ = std::fs::remove_file(&kept);
        lab.answer("export", &["--format", "run", "-o", kept.to_str().unwrap()]);
        let explained = String::from_utf8(lab.answer("explain", &[])).unwrap();
        let verdict = Verdict::of(situation, truth, &lab.explain(), &explained, recorded);
        if verdict.worth != Worth::NotJudged || number == PLAYED {
            return Some(verdict);
        }
        println!("to be played again: {verdict}");
    }
    unreachable!("the last verdict is returned")
}

#[test]
fn every_file_of_the_folder_is_a_situation() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/servers/situations");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let sources = files.filter(|path| path.extension().is_some_and(|is| is == "rs"));
    let names = sources.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned());
    let mut names: Vec<String> = names.filter(|name| name != "mod").collect();
    names.sort();
    let known: Vec<&str> = SITUATIONS.iter().map(|situation| situation.name).collect();
    assert_eq!(names, known);
    assert!(FEW.iter().all(|name| names.iter().any(|file| file == name)));
}

#[test]
fn accepted_causes_are_in_the_catalogue() {
    for situation in SITUATIONS {
        for (cause, _) in situation.accepted {
            let page = format!("{}/../../docs/causes/{cause}.md", env!("CARGO_MANIFEST_DIR"));
            let is_known = PathBuf::from(page).exists();
            assert!(is_known, "{}: {cause}", situation.name);
        }
    }
}
