//! ELF files that lie: a clear error, or what is left; never a panic, never much memory or time.

#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "../fuzz/hostile.rs"]
mod hostile;

use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use inspect::elf::{Bytes, CallSites, Elf, ElfError};
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
        number in 1..9u8,
        patches in prop::collection::vec((place(), value()), 1..6),
    ) {
        let mut input = vec![number];
        patches.iter().for_each(|(at, value)| input.extend(patch(*at, *value)));
        hostile::read(&input);
    }

    #[test]
    fn nor_do_any_bytes(number in 0..8usize, cut in 0..6000usize, tail in prop::collection::vec(any::<u8>(), 0..200)) {
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
    assert_eq!(taken, 14, "all but the 32-bit and the big-endian one");
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

/// A good file, and behind its end as many functions as anybody asks for.
struct Endless(Vec<u8>);

impl Bytes for Endless {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> std::io::Result<()> {
        // Name 1, a function, in section 1, at 0, of 16 bytes.
        let mut function = [0; 24];
        [function[0], function[4], function[6], function[16]] = [1, 0x12, 1, 16];
        for (place, byte) in (offset as usize..).zip(into) {
            let behind = place.checked_sub(self.0.len());
            *byte = behind.map_or_else(|| self.0[place], |behind| function[behind % 24]);
        }
        Ok(())
    }

    fn length(&self) -> std::io::Result<u64> {
        Ok(1 << 40)
    }
}

/// Functions are kept up to a number; a longer table is not read at all. The reason is said.
#[test]
fn a_symbol_table_that_is_too_large_names_nothing() {
    const DYNSYM: u8 = 11;
    let good = hostile::good(0);
    let word = |at: usize| u64::from_le_bytes(good[at..at + 8].try_into().unwrap());
    let sections = (0..usize::from(good[60])).map(|number| word(40) as usize + 64 * number);
    let tables: Vec<usize> = sections.filter(|at| [2, DYNSYM].contains(&good[at + 4])).collect();
    for (symbols, reason) in [
        (1000, None),
        (3_000_000, Some("too large: more than 2097152 functions in the symbol table")),
        (5_000_000, Some("too large: the symbol table of 120000000 bytes; at most 100663296")),
    ] {
        let mut file = good.to_vec();
        for table in &tables {
            file[table + 24..][..8].copy_from_slice(&(good.len() as u64).to_le_bytes());
            file[table + 32..][..8].copy_from_slice(&(symbols * 24u64).to_le_bytes());
        }
        let sites = CallSites::new("endless", Box::new(Endless(file))).unwrap();
        let function = sites.function_at_offset(0);
        match reason {
            None => assert!(function.is_ok(), "{function:?}"),
            Some(reason) => {
                let because = function.unwrap_err();
                assert!(because.contains(reason), "{because}");
            }
        }
        assert!(sites.memory() < 1 << 20, "{} bytes", sites.memory());
    }
}
