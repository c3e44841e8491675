//! Compiles the kernel side, generates its skeleton, and writes the enums of bpf/wire.h in Rust.

mod header;

use std::path::PathBuf;
use std::{env, fs};

use libbpf_cargo::SkeletonBuilder;

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang-19".to_owned());
    println!("cargo:rerun-if-changed=bpf");
    println!("cargo:rerun-if-env-changed=CLANG");
    let wire = fs::read_to_string("bpf/wire.h").expect("bpf/wire.h can be read");
    let wire = header::in_rust(&wire).unwrap_or_else(|error| panic!("bpf/wire.h: {error}"));
    fs::write(out.join("wire.rs"), wire).expect("OUT_DIR can be written");
    SkeletonBuilder::new()
        .source("bpf/whylag.bpf.c")
        .clang(clang)
        .clang_args(["-mcpu=v3", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror"])
        .build_and_generate(out.join("whylag.skel.rs"))
        .expect("the BPF side does not compile: is clang-19 installed (or CLANG set)?");
}
