//! Compiles the C side of the benchmark: the hot calls are inline in the header.

fn main() {
    let c = "../../crates/trace/c";
    println!("cargo::rerun-if-changed={c}");
    println!("cargo::rerun-if-changed=src/message.c");
    cc::Build::new()
        .file(format!("{c}/whylag.c"))
        .file("src/message.c")
        .include(format!("{c}/include"))
        .opt_level(2)
        .compile("message");
}
