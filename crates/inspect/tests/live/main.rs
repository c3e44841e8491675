//! Slots of live processes: what was called and what was not, wherever the process is.

#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "../common/mod.rs"]
mod common;
#[path = "../../fuzz/hostile.rs"]
#[allow(dead_code, reason = "only its files are used here")]
mod hostile;

mod large;
mod many_mounts;
mod mapped_files;
mod odd_processes;
mod slots;
mod undisturbed;

use std::path::{Path, PathBuf};

use common::{built, program};
use inspect::live::{Library, Process, bindings};

/// libten.so with f0 to f9, and a program that calls them, in a folder.
fn ten(folder: &Path, options: &[&str]) -> PathBuf {
    let functions: String = (0..10).map(|n| format!("void f{n}(void) {{}}\n")).collect();
    built(folder, "libten.so", &functions, &["-shared", "-fPIC"]);
    let place = format!("-L{}", folder.display());
    let run_path = format!("-Wl,-rpath,{}", folder.display());
    program(folder, "calls", &[&["-O1", &place, "-lten", &run_path], options].concat())
}

fn of<'l>(libraries: &'l [Library], name: &str) -> &'l Library {
    libraries.iter().find(|library| library.name() == name).unwrap_or_else(|| panic!("no {name}"))
}

fn look(pid: u32) -> Vec<Library> {
    bindings(&Process::open(pid).unwrap()).unwrap()
}

fn functions(range: std::ops::Range<u8>) -> Vec<String> {
    range.map(|n| format!("f{n}")).collect()
}

/// The unbound symbols of the program itself, but for `execl`, which it never calls.
fn unbound(libraries: &[Library]) -> Vec<String> {
    let mut names: Vec<String> = of(libraries, "calls").unbound().collect();
    names.sort();
    assert_eq!(names.first().map(String::as_str), Some("execl"));
    names.split_off(1)
}
