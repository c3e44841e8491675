//! What stands in several places about the causes agrees with the catalogue: a page for each in
//! docs/causes, the README's table, a mystery, and its test.
//!
//! `WHYLAG_UPDATE_DOCS=1 cargo test -p whylag --test cause_pages` writes pages and table anew.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use explain::catalogue::ALL;

/// Causes whose program is not in mysteries/ under their name: a JVM's; and what no program brings
/// about on any machine: another guest, a second memory node, a host without memory.
const ELSEWHERE: [&str; 5] =
    ["jvm-gc", "cpu-steal", "direct-compaction", "direct-reclaim", "numa-balancing"];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn is_update() -> bool {
    std::env::var_os("WHYLAG_UPDATE_DOCS").is_some()
}

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn the_pages_are_what_the_causes_say() {
    let folder = root().join("docs/causes");
    if is_update() {
        fs::create_dir_all(&folder).unwrap();
        for cause in ALL {
            let page = explain::page(cause.id.as_str()).unwrap();
            fs::write(folder.join(format!("{}.md", cause.id)), page).unwrap();
        }
        return;
    }
    let wanted: BTreeSet<String> = ALL.iter().map(|cause| format!("{}.md", cause.id)).collect();
    assert_eq!(names(&folder), wanted, "a page for each cause; WHYLAG_UPDATE_DOCS=1 writes them");
    for cause in ALL {
        let page = fs::read_to_string(folder.join(format!("{}.md", cause.id))).unwrap();
        let now = explain::page(cause.id.as_str()).unwrap();
        assert_eq!(page, now, "docs/causes/{}.md; WHYLAG_UPDATE_DOCS=1 writes it anew", cause.id);
    }
}

/// The folder of crates/explain/src/causes that each cause is in: what it is about.
fn groups() -> BTreeMap<String, String> {
    let causes = root().join("crates/explain/src/causes");
    let folders = names(&causes).into_iter().filter(|name| causes.join(name).is_dir());
    let of_folder = |group: String| {
        let files = names(&causes.join(&group)).into_iter();
        files.map(move |file| (file.trim_end_matches(".rs").replace('_', "-"), group.clone()))
    };
    folders.flat_map(of_folder).collect()
}

#[test]
fn the_table_of_the_readme_has_every_cause() {
    const HEAD: &str = "| about | causes |\n|---|---|\n";
    let groups = groups();
    let mut rows: Vec<(&str, Vec<String>)> = Vec::new();
    for cause in ALL {
        let group = groups[cause.id.as_str()].as_str();
        let name = format!("[{0}](docs/causes/{0}.md)", cause.id);
        match rows.iter_mut().find(|(known, _)| *known == group) {
            Some((_, names)) => names.push(name),
            None => rows.push((group, vec![name])),
        }
    }
    let row =
        |(group, names): &(&str, Vec<String>)| format!("| {group} | {} |\n", names.join(", "));
    let table: String = rows.iter().map(row).collect();

    let path = root().join("README.md");
    let readme = fs::read_to_string(&path).unwrap();
    let (before, after) = readme.split_once(HEAD).expect("the table of causes");
    let rows = after.split_inclusive('\n').take_while(|line| line.starts_with('|'));
    let found: String = rows.collect();
    if is_update() {
        fs::write(&path, format!("{before}{HEAD}{table}{}", &after[found.len()..])).unwrap();
        return;
    }
    assert_eq!(found, table, "README.md; WHYLAG_UPDATE_DOCS=1 writes the table anew");
}

#[test]
fn every_cause_has_a_mystery_and_a_test() {
    let mysteries = names(&root().join("mysteries"));
    let tests = names(&root().join("crates/whylag/tests/mysteries"));
    let timers = fs::read_to_string(root().join("crates/whylag/tests/timer_mysteries.rs")).unwrap();
    let rows = fs::read_to_string(root().join("mysteries/README.md")).unwrap();
    for id in ALL.iter().map(|cause| cause.id.as_str()).filter(|id| !ELSEWHERE.contains(id)) {
        assert!(mysteries.contains(id), "mysteries/{id}");
        assert!(rows.contains(&format!("| [{id}]({id}) |")), "mysteries/README.md: {id}");
        let file = format!("{}.rs", id.replace('-', "_"));
        let is_tested = tests.contains(&file) || timers.contains(&format!("\"{id}\""));
        assert!(is_tested, "crates/whylag/tests/mysteries/{file}");
    }
}
