//! Files that lie: the reader refuses them with a reason, or shows what is left; it never panics.

#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

#[path = "../fuzz/hostile.rs"]
mod hostile;

use std::path::Path;

use common::{memory_folder, open, place};
use proptest::prelude::*;
use trace::layout::{Header, Section};
use trace::reader::{ReadError, Reader, TraceFile, list_in};

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
        (any::<u32>(), 0..600u64).prop_map(|(high, low)| u64::from(high) << 32 | low),
    ]
}

/// Places in a good file that mean something: its first part, and the heads of histograms.
fn place_in_file() -> impl Strategy<Value = usize> {
    prop_oneof![0..700usize, 4096..16_000usize, 0..hostile::good().len()].prop_map(|at| at & !3)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]
    #[test]
    fn no_change_makes_the_reader_panic(
        patches in prop::collection::vec((place_in_file(), value()), 1..6)
    ) {
        let mut input = vec![1];
        patches.iter().for_each(|(at, value)| input.extend(patch(*at, *value)));
        hostile::read(&input);
    }

    #[test]
    fn nor_do_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..5000), cut in 0..260_000usize) {
        hostile::read(&[&[0], &bytes[..]].concat());
        let good = hostile::good();
        hostile::read(&[&[0], &good[..cut.min(good.len())]].concat());
    }
}

#[test]
fn the_corpus_of_the_fuzzer() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/reader");
    let mut inputs = 0;
    for entry in std::fs::read_dir(corpus).unwrap() {
        hostile::read(&std::fs::read(entry.unwrap().path()).unwrap());
        inputs += 1;
    }
    assert!(inputs > 0);
    // The unchanged file reads.
    assert_eq!(hostile::read(&[1]), 1);
}

fn refusal(changes: &[(usize, u64)]) -> String {
    let mut bytes = hostile::good().to_vec();
    for (at, value) in changes {
        bytes[*at..*at + 8].copy_from_slice(&value.to_le_bytes());
    }
    let looked = Reader::new(bytes).and_then(|mut reader| {
        reader.flows()?;
        reader.threads()?;
        reader.messages()?;
        reader.histograms()
    });
    looked.err().map_or_else(String::new, |error| error.to_string())
}

#[test]
fn each_lie_is_refused_with_its_reason_and_place() {
    let section = |index: usize, field: usize| {
        std::mem::offset_of!(Header, table) + index * size_of::<Section>() + field
    };
    let good = hostile::good();
    let u64_at = |at: usize| u64::from_le_bytes(good[at..at + 8].try_into().unwrap());
    let threads = u64_at(section(2, 16)) as usize;
    let recent = u64_at(section(3, 16)) as usize;
    let blocks = u64_at(section(5, 16)) as usize;
    for (changes, reason) in [
        (vec![(0, 0)], "at offset 0 the magic"),
        (vec![(8, 2 | 0x0102_0304 << 32)], "version 2"),
        (vec![(8, 1)], "at offset 12 the byte order"),
        (vec![(16, 4096)], "at offset 16 the length"),
        (vec![(104, 2 | 6 << 32)], "at offset 104 the clock"),
        (vec![(104, 1 | 17 << 32)], "17 sections are too many"),
        (vec![(section(0, 16), u64::MAX - 63)], "section 1 reaches beyond"),
        (vec![(section(0, 24), u64::MAX)], "section 1 reaches beyond"),
        (vec![(section(0, 8), u64::MAX / 8)], "section 1 is shorter than its entries"),
        (vec![(section(0, 16), 4097)], "section 1 does not begin at a multiple of 64"),
        (vec![(section(1, 16), 4096)], "section 2 lies in another"),
        (vec![(section(0, 16), 0)], "section 1 lies in another"),
        (vec![(section(1, 0), 1 | 64 << 32)], "section 1 is there twice"),
        (vec![(section(1, 0), 2 | 128 << 32)], "section 2 has entries of another size"),
        (
            vec![(section(0, 8), 1), (section(0, 0), 1 | 320 << 32)],
            "section 1 has entries of implausible size",
        ),
        (vec![(section(2, 0), 77 | 256 << 32)], "section 3 is missing"),
        (vec![(section(3, 8), 6)], "the recent rings are no powers of two"),
        (vec![(4096, 7 | 5 << 32)], "at offset 4096 the name has the id 7"),
        (vec![(4096, 1 | 57 << 32)], "a name of 57 bytes"),
        (vec![(4104, 0xff)], "the name is not plain text"),
        (vec![(4104, u64::from_le_bytes(*b"\nrder\0\0\0"))], "the name is not plain text"),
        (vec![(recent + 16, 9)], "a record of a flow that does not exist"),
        (vec![(recent + 24, u64::MAX)], "whose times run backwards"),
        (vec![(recent + 64, u64::MAX)], "a gap that is longer than its logic"),
        (vec![(recent + 48, 1 << 32)], "of another thread than its ring"),
        (vec![(blocks, 2 | 5 << 32)], "histograms of thread 5 and flow 1"),
        (vec![(threads + 64 + 16, 4 | 1 << 32)], "a message of a flow that does not exist"),
    ] {
        let refusal = refusal(&changes);
        assert!(refusal.contains(reason), "{changes:?}: {refusal:?}, not {reason:?}");
    }
    assert_eq!(refusal(&[]), "");
}

#[test]
fn histograms_take_no_more_memory_than_they_may() {
    let mut reader = Reader::new(hostile::good().to_vec()).unwrap();
    reader.histograms().unwrap();
    let needed = reader.memory();
    assert!((100..100_000).contains(&needed), "{needed} bytes: only buckets that are not empty");
    let mut reader = Reader::new(hostile::good().to_vec()).unwrap();
    reader.keep_within(needed);
    assert!(reader.histograms().is_ok());
    let mut reader = Reader::new(hostile::good().to_vec()).unwrap();
    reader.keep_within(needed - 1);
    let error = reader.histograms().unwrap_err().to_string();
    assert!(error.contains("the histograms need more than 0 MiB"), "{error}");
}

#[test]
fn what_goes_backwards_is_refused() {
    let good = hostile::good();
    let threads = u64::from_le_bytes(good[112 + 64 + 16..][..8].try_into().unwrap()) as usize;
    // Looks once, then at fewer records than before.
    let input = [&[1], &patch(0, u64::from_le_bytes(*b"WHYLAGT\n"))[..], &patch(threads + 32, 1)];
    assert_eq!(hostile::read(&input.concat()), 1);
}

#[test]
fn a_file_that_is_cut_short_while_it_is_read_gives_an_error() {
    let place = place();
    let tracer = place.builder().build().unwrap();
    let copy = place.folder.path().join("1-1.trace");
    std::fs::copy(tracer.path().unwrap(), &copy).unwrap();
    let mut file = TraceFile::open(&copy).unwrap();
    file.reader.flows().unwrap();
    std::fs::File::options().write(true).open(&copy).unwrap().set_len(5000).unwrap();
    assert!(matches!(file.reader.flows(), Err(ReadError::Read { offset: 4096.., .. })));
    assert!(file.reader.messages().is_err() && file.reader.histograms().is_err());
    open(&tracer);
}

#[test]
fn what_is_no_file_of_its_owner_is_not_opened() {
    let folder = memory_folder();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("good"), hostile::good()).unwrap();
    TraceFile::open(path("good")).unwrap();
    std::os::unix::fs::symlink(path("good"), path("1-1.trace")).unwrap();
    std::fs::create_dir(path("2-2.trace")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        path("3-3.trace"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .unwrap();
    let large = std::fs::File::create(path("4-4.trace")).unwrap();
    large.set_len(1 << 40).unwrap();
    std::fs::write(path("5-5.trace"), hostile::good()).unwrap();
    let is_other = std::os::unix::fs::chown(path("5-5.trace"), Some(1), None).is_ok();
    let listed = list_in(folder.path()).unwrap();
    let errors: Vec<String> =
        listed.iter().filter_map(|one| Some(one.what.as_ref().err()?.to_string())).collect();
    assert!(errors[0].contains("no link is followed"), "{errors:?}");
    assert!(errors[1].contains("no regular file") && errors[2].contains("no regular file"));
    assert!(errors[3].contains("more than a trace may have"));
    assert_eq!(errors.len(), if is_other { 5 } else { 4 });
    assert!(!is_other || errors[4].contains("belongs to user 1"));
}
