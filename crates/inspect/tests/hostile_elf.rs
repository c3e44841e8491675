//! ELF files that lie: a clear error, or what is left; never a panic, never much memory or time.

#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "../fuzz/hostile.rs"]
mod hostile;

use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use inspect::elf::{Elf, ElfError};
use proptest::prelude::*;
use proptest::test_runner::RngAlgorithm;

fn patch(at: usize, value: u64) -> [u8; 12] {
    let mut patch = [0; 12];
    patch[..4].copy_from_slice(&(at as u32).to_le_bytes());
    patch[4..].copy_from_slice(&value.to_le_bytes());
    patch
}

/// Values that break arithmetic more often than others.
fn value() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        0..100u64,
        (0..64u32).prop_map(|bit| 1 << bit),
        (0..64u32).prop_map(|bit| (1u64 << bit).wrapping_sub(1)),
        (0..100u64).prop_map(|less| u64::MAX - less),
        0..8192u64,
        (any::<u32>(), 0..600u64).prop_map(|(high, low)| u64::from(high) << 32 | low),
    ]
}

/// Headers, dynamic segment, symbols and relocations are at the beginning and near the end.
fn place() -> impl Strategy<Value = usize> {
    prop_oneof![0..1024usize, 0..6000usize].prop_map(|at| at & !3)
}

/// The same inputs each time; more of them with CASES=n in the environment.
fn config() -> ProptestConfig {
    let cases = std::env::var("CASES").ok().and_then(|cases| cases.parse().ok());
    ProptestConfig {
        cases: cases.unwrap_or(3000),
        failure_persistence: None,
        rng_algorithm: RngAlgorithm::ChaCha,
        rng_seed: proptest::test_runner::RngSeed::Fixed(6),
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]
    #[test]
    fn no_change_makes_the_reader_panic(
        number in 1..8u8,
        patches in prop::collection::vec((place(), value()), 1..6),
    ) {
        let mut input = vec![number];
        patches.iter().for_each(|(at, value)| input.extend(patch(*at, *value)));
        hostile::read(&input);
    }

    #[test]
    fn nor_do_any_bytes(number in 0..7usize, cut in 0..6000usize, tail in prop::collection::vec(any::<u8>(), 0..200)) {
        let good = hostile::good(number);
        hostile::ask(&[&good[..cut.min(good.len())], &tail[..]].concat());
    }
}

/// Each byte of the headers and tables of each file, set to each of a few values.
#[test]
fn every_byte_alone() {
    let mut taken = 0;
    for number in 0..7 {
        let good = hostile::good(number);
        assert!(hostile::ask(good), "file {number} is good");
        for at in 0..good.len().min(1400) {
            for byte in [0, 1, 0x7f, 0xff] {
                let mut file = good.to_vec();
                file[at] = byte;
                taken += usize::from(Elf::read(&file).is_ok());
            }
        }
        for cut in 0..good.len() {
            taken += usize::from(Elf::read(&good[..cut].to_vec()).is_ok());
        }
    }
    assert!(taken > 1000, "most single bytes do not matter: {taken}");
}

#[test]
fn the_corpus_of_the_fuzzer() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/elf");
    let inputs =
        fs::read_dir(corpus).unwrap().map(|entry| fs::read(entry.unwrap().path()).unwrap());
    let taken = inputs.filter(|input| hostile::ask(input)).count();
    assert_eq!(taken, 13, "all but the 32-bit and the big-endian one");
}

/// A number in the file of the dynamic entry with this tag.
fn dynamic_value(file: &[u8], tag: u64) -> usize {
    let word = |at: usize| u64::from_le_bytes(file[at..at + 8].try_into().unwrap());
    let table = word(32) as usize;
    let segment = (0..16).map(|n| table + 56 * n).find(|at| file[*at..*at + 4] == [2, 0, 0, 0]);
    let start = word(segment.unwrap() + 8) as usize;
    (0..64).map(|n| start + 16 * n).find(|at| word(*at) == tag).unwrap() + 8
}

#[test]
fn each_lie_is_refused_with_its_reason() {
    let good = hostile::good(0);
    const STRTAB: u64 = 5;
    const SYMTAB: u64 = 6;
    const STRSZ: u64 = 10;
    const JMPREL: u64 = 23;
    const PLTRELSZ: u64 = 2;
    let dynamic = |tag| dynamic_value(good, tag);
    for (at, value, reason) in [
        (32, u64::MAX - 8, "the program headers at offset 0xfffffffffffffff7"),
        (32, 1 << 40, "the program headers at offset 0x10000000000, 336 bytes, beyond the end"),
        (dynamic(STRTAB), 1 << 40, "the string table at address 0x10000000000"),
        (dynamic(STRSZ), u64::MAX, "the string table at address"),
        (dynamic(SYMTAB), 0x10_0000, "the dynamic symbols at address 0x100000"),
        (dynamic(JMPREL), u64::MAX - 71, "the relocations of the PLT at address"),
        (dynamic(PLTRELSZ), 71, "71 bytes, with entries of 24"),
        (dynamic(PLTRELSZ), u64::MAX, "the relocations of the PLT at address"),
    ] {
        let mut file = good.to_vec();
        file[at..at + 8].copy_from_slice(&value.to_le_bytes());
        match Elf::read(&file) {
            Err(ElfError::Damaged(why)) => assert!(why.contains(reason), "{why:?}, not {reason:?}"),
            other => panic!("{other:?}, not {reason:?}"),
        }
    }
    // 65,535 program headers.
    let mut file = good.to_vec();
    file[56..58].copy_from_slice(&[0xff, 0xff]);
    assert!(Elf::read(&file).unwrap_err().to_string().contains("65535 program headers"));
}

/// A sparse file of a TiB may claim tables of any size; none of them is read.
#[test]
fn a_file_that_claims_a_terabyte_costs_little() {
    let good = hostile::good(0);
    let word = |at: usize| u64::from_le_bytes(good[at..at + 8].try_into().unwrap());
    let table = word(32) as usize;
    let mut file = tempfile::tempfile().unwrap();
    for tag in [10, 2] {
        let mut bytes = good.to_vec();
        bytes[dynamic_value(good, tag)..][..8].copy_from_slice(&(1u64 << 39).to_le_bytes());
        for segment in 0..5 {
            // Each segment is as long as the file.
            bytes[table + 56 * segment + 32..][..8].copy_from_slice(&(1u64 << 39).to_le_bytes());
        }
        file.seek(SeekFrom::Start(0)).unwrap();
        file.write_all(&bytes).unwrap();
        file.set_len(1 << 40).unwrap();
        let error = Elf::read(&file).unwrap_err().to_string();
        assert!(error.contains("bytes; at most"), "{error}");
    }
}
