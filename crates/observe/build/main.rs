//! Compiles the kernel side and generates its skeleton.

use std::env;
use std::path::PathBuf;

use libbpf_cargo::SkeletonBuilder;

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang-19".to_owned());
    println!("cargo:rerun-if-changed=bpf");
    println!("cargo:rerun-if-env-changed=CLANG");
    SkeletonBuilder::new()
        .source("bpf/whylag.bpf.c")
        .clang(clang)
        .clang_args(["-mcpu=v3", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror"])
        .build_and_generate(out.join("whylag.skel.rs"))
        .expect("the BPF side does not compile: is clang-19 installed (or CLANG set)?");
}
