//! Perf maps that lie: no more memory than there is room for, and no panic.

#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "../fuzz/hostile_map.rs"]
mod hostile_map;

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use proptest::test_runner::RngAlgorithm;

/// Lines that are nearly right.
fn line() -> impl Strategy<Value = Vec<u8>> {
    let number =
        prop_oneof!["[0-9a-f]{1,16}", "0x[0-9a-f]{0,17}", "[-+ g]{0,2}", Just("f".repeat(16))];
    let name = prop_oneof![prop::collection::vec(any::<u8>(), 0..20), Just(b"n".repeat(600))];
    (number.clone(), number, name).prop_map(|(start, length, name)| {
        [start.as_bytes(), b" ", length.as_bytes(), b" ", &name, b"\n"].concat()
    })
}

/// The same inputs each time; more of them with CASES=n in the environment.
fn config() -> ProptestConfig {
    let cases = std::env::var("CASES").ok().and_then(|cases| cases.parse().ok());
    ProptestConfig {
        cases: cases.unwrap_or(500),
        failure_persistence: None,
        rng_algorithm: RngAlgorithm::ChaCha,
        rng_seed: proptest::test_runner::RngSeed::Fixed(7),
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]
    #[test]
    fn no_lines_break_the_reader(kib in 0..40u8, lines in prop::collection::vec(line(), 0..30)) {
        hostile_map::read(&[&[kib, 0], &lines.concat()[..]].concat());
    }

    #[test]
    fn nor_do_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..1000)) {
        hostile_map::read(&bytes);
    }
}

#[test]
fn the_corpus_of_the_fuzzer() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/perf_map");
    let found = |name: &str| hostile_map::read(&fs::read(corpus.join(name)).unwrap());
    assert_eq!(fs::read_dir(&corpus).unwrap().count(), 8);
    assert_eq!((found("node"), found("java"), found("none")), (4, 8, 0));
    assert!(found("prefixes") > 0 && found("ends") > 0 && found("long") > 0 && found("bytes") > 0);
}
