//! The room keeps its shape: few files in its root, and no circle of files that import each other.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A module, as in `crate::case::sums`: its path without `crate`.
type Module = Vec<String>;

/// lib.rs, cause, catalogue, text and testing.
const ROOT_FILES: usize = 6;
/// A case knows the catalogue, whose causes examine cases: `case/sums.rs` and `cause.rs`.
const FILES_IN_CIRCLES: usize = 3;

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

fn files(folder: &Path, module: &Module, found: &mut BTreeMap<Module, PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let inner = || [&module[..], std::slice::from_ref(&name)].concat();
        if path.is_dir() {
            files(&path, &inner(), found);
        } else if name == "mod" || name == "lib" {
            found.insert(module.clone(), path);
        } else {
            found.insert(inner(), path);
        }
    }
}

/// What is between `use` and `;`, each path of a group by itself.
fn used_paths(text: &str) -> Vec<String> {
    let statements = text.split("use ").skip(1).filter_map(|rest| rest.split_once(';'));
    statements.flat_map(|(statement, _)| ungrouped(&statement.replace(['\n', ' '], ""))).collect()
}

fn ungrouped(path: &str) -> Vec<String> {
    let Some((prefix, rest)) = path.split_once('{') else { return vec![path.to_owned()] };
    let inside = rest.strip_suffix('}').unwrap_or(rest);
    let (mut depth, mut part, mut parts) = (0, String::new(), Vec::new());
    for letter in inside.chars().chain([',']) {
        match letter {
            ',' if depth == 0 => parts.push(std::mem::take(&mut part)),
            _ => {
                depth += i32::from(letter == '{') - i32::from(letter == '}');
                part.push(letter);
            }
        }
    }
    let parts = parts.into_iter().filter(|part| !part.is_empty());
    parts.flat_map(|part| ungrouped(&format!("{prefix}{part}"))).collect()
}

/// The file that a path leads to, seen from `module`.
fn resolved(path: &str, module: &Module, all: &BTreeMap<Module, PathBuf>) -> Option<Module> {
    let is_folder = all[module].ends_with("mod.rs") || all[module].ends_with("lib.rs");
    let folder = if is_folder { &module[..] } else { &module[..module.len() - 1] };
    let names: Vec<String> = path.split("::").map(str::to_owned).collect();
    let names = match names[0].as_str() {
        "crate" => names[1..].to_vec(),
        "self" => [module, &names[1..]].concat(),
        "super" if is_folder => [&module[..module.len() - 1], &names[1..]].concat(),
        "super" => [folder, &names[1..]].concat(),
        _ if is_folder => [folder, &names[..]].concat(),
        _ => return None,
    };
    (1..=names.len()).rev().map(|n| names[..n].to_vec()).find(|prefix| all.contains_key(prefix))
}

fn imports(all: &BTreeMap<Module, PathBuf>) -> BTreeMap<Module, BTreeSet<Module>> {
    let of_file = |module: &Module, path: &PathBuf| {
        let text = fs::read_to_string(path).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap();
        let paths = used_paths(code).into_iter();
        let others = paths.filter_map(|path| resolved(&path, module, all));
        others.filter(|other| other != module).collect()
    };
    all.iter().map(|(module, path)| (module.clone(), of_file(module, path))).collect()
}

fn reachable<'a>(
    from: &'a Module,
    imports: &'a BTreeMap<Module, BTreeSet<Module>>,
) -> BTreeSet<&'a Module> {
    let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(next) = open.pop() {
        for other in &imports[next] {
            if seen.insert(other) {
                open.push(other);
            }
        }
    }
    seen
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    let mut all = BTreeMap::new();
    files(&source(), &Module::new(), &mut all);
    let imports = imports(&all);
    let edges: usize = imports.values().map(BTreeSet::len).sum();
    assert!(edges > 2 * all.len(), "only {edges} imports were found in {} files", all.len());
    let in_circle = |module: &&Module| reachable(module, &imports).contains(module);
    let circle: Vec<String> = all.keys().filter(in_circle).map(|module| module.join("/")).collect();
    println!("{} files, {edges} imports, in circles: {circle:?}", all.len());
    assert!(circle.len() <= FILES_IN_CIRCLES, "{circle:#?}");
}

#[test]
fn the_root_has_few_files() {
    let entries = fs::read_dir(source()).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<PathBuf> = entries.filter(|path| path.is_file()).collect();
    assert!(files.len() <= ROOT_FILES, "{files:#?}");
}
