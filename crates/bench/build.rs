//! Builds the library of the cases about the dynamic linker: what they measure is the first call
//! through a slot that is bound lazily, and distributions build more and more of theirs without.

use std::env;
use std::path::PathBuf;

fn main() {
    const SOURCE: &str = "src/cases/lazy.c";
    println!("cargo::rerun-if-changed={SOURCE}");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("lazy.so");
    // Optimised whatever the profile: it is the linker that is measured, not the caller.
    let mut compiler = cc::Build::new();
    compiler.opt_level(2).pic(true).debug(false).cargo_metadata(false);
    let built = compiler
        .get_compiler()
        .to_command()
        .args(["-shared", "-fplt", "-Wl,-z,lazy", SOURCE, "-o"])
        .arg(&out)
        .status();
    assert!(built.is_ok_and(|status| status.success()), "{SOURCE} does not compile");
}
