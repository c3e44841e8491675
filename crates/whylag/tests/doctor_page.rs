//! docs/doctor.md has exactly the checks that there are, with what they say of themselves.
//!
//! `WHYLAG_UPDATE_DOCS=1 cargo test -p whylag --test doctor_page` writes its tables anew.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fmt::Write;
use std::path::Path;

use inspect::doctor;

/// (heading, rows with their head) of each table of the page.
fn tables() -> Vec<(&'static str, String)> {
    let checks = doctor::described();
    let row = |cells: [&str; 3]| {
        let cells = cells.map(|cell| cell.replace('|', "\\|"));
        format!("| {} |\n", cells.join(" | "))
    };
    let mut tables = Vec::new();
    for of_subject in checks.chunk_by(|a, b| a.subject == b.subject) {
        let mut table = "| check | read | why it matters |\n|---|---|---|\n".to_owned();
        for check in of_subject {
            table += &row([&format!("`{}`", check.id), check.source, check.why]);
        }
        tables.push((report::doctor::title(of_subject[0].subject), table));
    }
    let mut table = "| cause | what it is | what has to be recorded |\n|---|---|---|\n".to_owned();
    for cause in explain::catalogue::ALL {
        let mut needs: Vec<_> = cause.needs.parts.iter().map(|part| part.name()).collect();
        if cause.needs.kernel_symbols {
            needs.push("names of kernel functions");
        }
        table += &row([&format!("`{}`", cause.id), cause.title, &needs.join(", ")]);
    }
    tables.push((report::doctor::title(model::Subject::Recorder), table));
    tables
}

/// The page with these tables in place of its own; its other text stays.
fn with_tables(page: &str, tables: &[(&str, String)]) -> String {
    let mut written = String::new();
    let mut left = tables.iter();
    for line in page.lines() {
        if line.starts_with('|') {
            continue;
        }
        writeln!(written, "{line}").unwrap();
        if line == "<!-- generated -->" {
            let heading = written.lines().rev().find_map(|line| line.strip_prefix("## ")).unwrap();
            let (title, table) = left.next().expect("a table for each mark");
            assert_eq!(heading, *title, "headings are those of the report, in its order");
            written += table;
        }
    }
    let missing: Vec<&str> = left.map(|(title, _)| *title).collect();
    assert_eq!(missing, [""; 0], "sections that the page lacks");
    written
}

#[test]
fn the_page_is_what_the_checks_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/doctor.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let now = with_tables(&page, &tables());
    if std::env::var_os("WHYLAG_UPDATE_DOCS").is_some() {
        std::fs::write(&path, now).unwrap();
        return;
    }
    for (is, should) in page.lines().zip(now.lines()) {
        assert_eq!(is, should, "docs/doctor.md; WHYLAG_UPDATE_DOCS=1 writes it anew");
    }
    assert_eq!(page, now);
}
