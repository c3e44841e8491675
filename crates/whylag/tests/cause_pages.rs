//! What stands in several places about the causes agrees with the catalogue: a page for each in
//! docs/causes, the README's table, a mystery, and its test.
//!
//! `WHYLAG_UPDATE_DOCS=1 scripts/cargo.sh test --locked --workspace --test cause_pages` writes pages
//! and table anew.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use explain::catalogue::ALL;

/// Causes whose program is not in mysteries/ under their name: a JVM's and Go's; and what no program brings
/// about on any machine: another guest, a second memory node, a host without memory.
const ELSEWHERE: [&str; 7] = [
    "jvm-gc",
    "safepoint-late",
    "gc-cpu",
    "cpu-steal",
    "direct-compaction",
    "direct-reclaim",
    "numa-balancing",
];

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
        assert!(
            page == now,
            "docs/causes/{}.md is not what the cause says; WHYLAG_UPDATE_DOCS=1 writes it anew.\n{}",
            cause.id,
            first_difference(&page, &now)
        );
    }
}

/// The first line that two texts do not share: a page as a whole is too long to compare by eye.
fn first_difference(page: &str, cause: &str) -> String {
    let (mut pages, mut causes) = (page.lines(), cause.lines());
    loop {
        match (pages.next(), causes.next()) {
            (None, None) => return "They differ in their last newline".to_owned(),
            (page, cause) if page != cause => return format!("page:  {page:?}\ncause: {cause:?}"),
            _ => {}
        }
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
        assert!(mysteries.contains(id), "no program shows {id}: there is no mysteries/{id}");
        let row = format!("| [{id}]({id}) |");
        assert!(rows.contains(&row), "no line of mysteries/README.md begins with '{row}'");
        let file = format!("{}.rs", id.replace('-', "_"));
        let is_tested = tests.contains(&file) || timers.contains(&format!("\"{id}\""));
        assert!(
            is_tested,
            "no test records {id}: there is no crates/whylag/tests/mysteries/{file}"
        );
    }
}

/// What `make new-cause` lays down asks for what is to be written, until it is.
#[test]
fn no_text_of_the_templates_is_left() {
    let read = |path: String| fs::read_to_string(root().join(path)).unwrap();
    let template = read("scripts/new-cause/cause.rs".to_owned());
    let of_page = template.lines().filter_map(|line| line.strip_prefix("//! "));
    let of_page: Vec<&str> = of_page
        .filter(|line| !line.starts_with('#') && !line.starts_with(' ') && !line.contains("@ID@"))
        .collect();
    assert!(of_page.len() > 2, "scripts/new-cause/cause.rs has no comment");
    let template = read("scripts/new-cause/README.md".to_owned());
    let of_readme: Vec<&str> =
        template.lines().filter(|l| l.starts_with("**") && !l.contains("@ID@")).collect();
    assert!(of_readme.len() > 2, "scripts/new-cause/README.md has no headings");
    if is_update() {
        return;
    }
    let rows = read("mysteries/README.md".to_owned());
    for id in ALL.iter().map(|cause| cause.id.as_str()) {
        let page = read(format!("docs/causes/{id}.md"));
        let left = page.lines().find(|line| of_page.contains(line));
        assert_eq!(left, None, "text of scripts/new-cause/cause.rs in the comment of {id}");
        if ELSEWHERE.contains(&id) {
            continue;
        }
        let readme = read(format!("mysteries/{id}/README.md"));
        let left = readme.lines().find(|line| of_readme.contains(line));
        assert_eq!(left, None, "text of scripts/new-cause/README.md in mysteries/{id}");
        let row = format!("| [{id}]({id}) | what the user sees | measured |");
        assert!(!rows.contains(&row), "mysteries/README.md still has '{row}'");
    }
}
