//! Compiles the kernel side, generates its skeleton, and writes in Rust the enums and
//! records of bpf/wire.h, with its two parts, and the arguments of the programs.

mod header;
mod prototypes;

use std::path::PathBuf;
use std::{env, fs};

use libbpf_cargo::SkeletonBuilder;

/// What crosses between the kernel side and this one, in the order in which they use each other.
const WIRE: [&str; 3] = ["bpf/wire.h", "bpf/sums.h", "bpf/records.h"];

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang-19".to_owned());
    println!("cargo:rerun-if-changed=bpf");
    println!("cargo:rerun-if-env-changed=CLANG");
    let wire = WIRE.map(|path| fs::read_to_string(path).expect("the headers can be read")).concat();
    let records =
        header::structs_of_integers(&wire).unwrap_or_else(|error| panic!("{WIRE:?}: {error}"));
    fs::write(out.join("records.rs"), format!("records!({});\n", records.join(" ")))
        .expect("OUT_DIR can be written");
    let wire = header::in_rust(&wire).unwrap_or_else(|error| panic!("{WIRE:?}: {error}"));
    fs::write(out.join("wire.rs"), wire).expect("OUT_DIR can be written");
    let prototypes =
        prototypes::in_rust(&sources()).unwrap_or_else(|error| panic!("bpf/: {error}"));
    fs::write(out.join("prototypes.rs"), prototypes).expect("OUT_DIR can be written");
    SkeletonBuilder::new()
        .source("bpf/whylag.bpf.c")
        .clang(clang)
        .clang_args(["-mcpu=v3", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror"])
        .build_and_generate(out.join("whylag.skel.rs"))
        .expect("the BPF side does not compile: is clang-19 installed (or CLANG set)?");
}

/// The files of bpf/ with programs, by name.
fn sources() -> Vec<String> {
    let entries = fs::read_dir("bpf").expect("bpf/ can be listed");
    let paths = entries.map(|entry| entry.expect("bpf/ can be listed").path());
    let mut paths: Vec<_> =
        paths.filter(|path| path.extension().is_some_and(|e| e == "c")).collect();
    paths.sort();
    paths.iter().map(|path| fs::read_to_string(path).expect("bpf/ can be read")).collect()
}
