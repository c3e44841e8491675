//! docs/causes has a page for each cause of the catalogue, and the README names them all.
//!
//! `WHYLAG_UPDATE_DOCS=1 cargo test -p whylag --test cause_pages` writes the pages anew.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use explain::catalogue::ALL;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn the_pages_are_what_the_causes_say() {
    let folder = root().join("docs/causes");
    if std::env::var_os("WHYLAG_UPDATE_DOCS").is_some() {
        fs::create_dir_all(&folder).unwrap();
        for cause in ALL {
            fs::write(folder.join(format!("{}.md", cause.id)), explain::page(cause.id).unwrap())
                .unwrap();
        }
        return;
    }
    let names = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name());
    let found: BTreeSet<String> = names.map(|name| name.into_string().unwrap()).collect();
    let wanted: BTreeSet<String> = ALL.iter().map(|cause| format!("{}.md", cause.id)).collect();
    assert_eq!(found, wanted, "a page for each cause; WHYLAG_UPDATE_DOCS=1 writes them");
    for cause in ALL {
        let page = fs::read_to_string(folder.join(format!("{}.md", cause.id))).unwrap();
        let now = explain::page(cause.id).unwrap();
        assert_eq!(page, now, "docs/causes/{}.md; WHYLAG_UPDATE_DOCS=1 writes it anew", cause.id);
    }
}

#[test]
fn the_table_of_the_readme_has_every_cause_once() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let table = readme.split("| about | causes |").nth(1).expect("the table of causes");
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let cells = rows.filter_map(|row| row.split('|').nth(2));
    let mut named: Vec<&str> = cells.flat_map(|cell| cell.split(',').map(str::trim)).collect();
    let mut wanted: Vec<&str> = ALL.iter().map(|cause| cause.id).collect();
    named.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(named, wanted);
}
