//! Run files with absurd numbers or broken texts in them, and stores with flipped bits: each is
//! refused, or explained and shown, and none makes whylag panic. A test is built with checks for
//! overflow, which a release is not. FUZZ_SECONDS has the texts and the bits broken for so long.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::ops::Range;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use explain::{Compared, ComparedRun, compare_recordings};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use model::{Checkup, RunId, SlowMessages, Trial, TrialSide};
use report::Style;
use store::{Sqlite, Store};

/// Small ones that have something in most parts of a run.
const RUNS: [&str; 6] = [
    "udp-rcvbuf-stall-fixed",
    "tcp-rto-faulty",
    "nagle-delack-fixed",
    "timer-slack-faulty",
    "healthy-perl",
    "cgroup-throttle-faulty",
];

/// What numbers are replaced with.
const ABSURD: [&str; 9] = [
    "0",
    "1",
    "255",
    "4294967295",
    "9007199254740992",
    "576460752303423488",
    "9223372036854775807",
    "288230376151711744",
    "18446744073709551615",
];

/// How often each of them is changed.
const ROUNDS: usize = 20;

fn text_of(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let mut text = Vec::new();
    let file = File::open(folder.join(name).with_extension("whylag")).unwrap();
    GzDecoder::new(file).read_to_end(&mut text).unwrap();
    text
}

fn written(text: &[u8], path: &Path) {
    let mut out = GzEncoder::new(File::create(path).unwrap(), Compression::fast());
    out.write_all(text).unwrap();
    out.finish().unwrap();
}

/// Reads it as `explain`, `show` and `export` do. True if it was taken for a run.
fn read(path: &Path) -> bool {
    let Ok((store, id)) = Sqlite::open_run_file(path) else { return false };
    read_run(&store, id);
    true
}

fn read_run(store: &Sqlite, id: RunId) {
    let Ok(run) = store.load(id) else { return };
    let style = Style { color: false, width: 80 };
    let answer = explain::explain(&run);
    report::explanation::write(&mut Vec::new(), &answer, &run, &style).unwrap();
    report::show::write(
        &mut Vec::new(),
        &run,
        "x.whylag",
        &explain::annotations(&run, SlowMessages::default()),
        &style,
    )
    .unwrap();
    drop(report::export::csv::write(&mut Vec::new(), &run));
    let intervals = store.longest(id, page::run::INTERVALS).unwrap_or_default();
    let loaded = page::Loaded { name: "x.whylag".to_owned(), run, intervals };
    page::html::write(&mut Vec::new(), &page::Page::of(&[loaded], None)).unwrap();
}

/// Puts runs into a store, and reads them as the verbs do that are about several: grids, series,
/// comparisons, proofs and pages of two, and a host beside a run.
fn read_together(paths: &[PathBuf]) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Sqlite::open(&folder.path().join("whylag.db")).unwrap();
    let taken: Vec<RunId> = paths.iter().flat_map(|path| store.import(path)).collect();
    let style = Style { color: false, width: 80 };
    let mut loaded = Vec::new();
    for id in &taken {
        let Ok(run) = store.load(*id) else { continue };
        if explain::is_recording(&run.header) {
            let figures = explain::figures(&run, &explain::explain(&run));
            store.put_figures(*id, &figures).unwrap();
        }
        drop(page::checkup::page(checkup(), Some(&run)));
        let intervals = store.longest(*id, page::run::INTERVALS).unwrap_or_default();
        loaded.push(page::Loaded { name: "x.whylag".to_owned(), run, intervals });
    }
    for two in loaded.chunks_exact(2) {
        page::html::write(&mut Vec::new(), &page::Page::of(two, None)).unwrap();
    }
    page::overview::grids(&store).unwrap();
    page::overview::trends(&store).unwrap();
    let runs = store.runs().unwrap();
    let mut compared = Vec::new();
    let mut trials = Vec::new();
    for (pair, run) in runs.into_iter().enumerate() {
        let figures = store.figures(run.id).unwrap().unwrap_or_default();
        trials.push(Trial {
            side: if pair % 2 == 0 { TrialSide::Before } else { TrialSide::After },
            pair: pair / 2,
            run: Some(run.id),
            wall_ns: figures.length_ns,
            metric: None,
            figures: Some(figures.clone()),
        });
        compared.push(ComparedRun { id: run.id, header: run.header, figures });
    }
    if compared.len() < 2 {
        return taken.len();
    }
    let half = compared.split_off(compared.len() / 2);
    let side = |name: &str, runs| Compared { name: name.to_owned(), runs };
    if let Ok(comparison) = compare_recordings(&side("a", compared), &side("b", half)) {
        report::recordings::write(&mut Vec::new(), &comparison, &style).unwrap();
    }
    let proof = explain::prove(&explain::ProofQuestion::default(), trials);
    report::proof::write(&mut Vec::new(), &proof, &style).unwrap();
    taken.len()
}

fn checkup() -> Checkup {
    Checkup {
        version: String::new(),
        host: "here".to_owned(),
        taken_unix_ns: 0,
        pid: None,
        checks: Vec::new(),
        facts: Vec::new(),
        unbound: Vec::new(),
    }
}

/// Where the numbers of a text are, by the key that they have.
fn numbers(text: &[u8]) -> BTreeMap<Vec<u8>, Vec<Range<usize>>> {
    let mut all = BTreeMap::<_, Vec<_>>::new();
    let mut key = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let length = text[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        if text[at] == b'"' {
            let quoted = text[at + 1..].iter().position(|byte| *byte == b'"').unwrap();
            if text.get(at + quoted + 2) == Some(&b':') {
                key = text[at + 1..=at + quoted].to_vec();
                key.retain(|byte| !byte.is_ascii_digit());
            }
            at += quoted + 2;
        } else {
            if length > 0 {
                all.entry(key.clone()).or_default().push(at..at + length);
            }
            at += length.max(1);
        }
    }
    all
}

/// The text with this in place of all these.
fn with(text: &[u8], places: &[Range<usize>], absurd: &str) -> Vec<u8> {
    let mut changed = Vec::new();
    let mut at = 0;
    for place in places {
        changed.extend_from_slice(&text[at..place.start]);
        changed.extend_from_slice(absurd.as_bytes());
        at = place.end;
    }
    changed.extend_from_slice(&text[at..]);
    changed
}

/// Numbers below a limit, the same each time.
fn random() -> impl FnMut(usize) -> usize {
    let mut seed = 1u64;
    move |below| {
        seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (seed >> 33) as usize % below
    }
}

/// How long texts and bits are broken.
fn time() -> Duration {
    let seconds = std::env::var("FUZZ_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(5))
}

/// Less than a megabyte of a file that would be a gigabyte in memory if its values were kept.
#[test]
fn a_small_file_of_many_values_takes_little_memory() {
    const MOST: i64 = 400 << 10; // KiB
    let folder = tempfile::tempdir().unwrap();
    let text = text_of(RUNS[0]);
    let first = text.split_inclusive(|byte| *byte == b'\n').next().unwrap();
    let path = folder.path().join("bomb.whylag");
    for (begins, value) in [
        ("{\"batch\":{\"zz\":[0", ",0"),
        ("{\"batch\":{\"zz\":[{}", ",{}"),
        ("{\"batch\":{\"waits\":[0", ",0"),
        ("{\"batch\":{\"jitter\":{\"changed\":[\"\"", ",\"\""),
        ("{\"batch\":{\"jitter\":{\"changed\":[\"a\"", ",\"a\""),
        ("{\"batch\":{\"jitter\":{\"changed\":[\"a\"", ",\"aaaaaaaaaaaaaaaa\""),
        ("{\"complete\":{\"zz\":[0", ",0"),
    ] {
        for length in [15 << 20, 60 << 20] {
            let mut out = GzEncoder::new(File::create(&path).unwrap(), Compression::fast());
            out.write_all(first).unwrap();
            out.write_all(begins.as_bytes()).unwrap();
            let values = value.repeat((1 << 20) / value.len());
            (0..length / values.len()).for_each(|_| out.write_all(values.as_bytes()).unwrap());
            out.write_all(b"]}}\n").unwrap();
            out.finish().unwrap();
            let (status, peak) = peak_of_import(&path, &folder.path().join("store"));
            println!("{begins} of {length} bytes: {} MiB", peak >> 10);
            assert!(peak < MOST, "{begins} of {length} bytes: {} MiB", peak >> 10);
            assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 2, "{status}");
        }
    }
}

/// 8 million ticks in 70 kB, the most that a run has; and more of them.
#[test]
fn many_lines_of_ticks_take_no_more_memory_than_a_run_may_have() {
    const MOST: i64 = 400 << 10; // KiB
    let folder = tempfile::tempdir().unwrap();
    let text = text_of("timer-slack-faulty");
    let lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
    let ending = String::from_utf8(lines.last().unwrap().to_vec()).unwrap();
    let path = folder.path().join("bomb.whylag");
    let piece = format!(
        "{{\"batch\":{{\"ticks\":[{{\"series\":0,\"ticks\":[[1,0,0]{}]}}]}}}}\n",
        ",[1,0,0]".repeat(99_999)
    );
    for (pieces, expected) in [(75, 0), (1_000, 2)] {
        let mut out = GzEncoder::new(File::create(&path).unwrap(), Compression::fast());
        lines[..lines.len() - 1].iter().for_each(|line| out.write_all(line).unwrap());
        (0..pieces).for_each(|_| out.write_all(piece.as_bytes()).unwrap());
        let before = format!("\"batches\":{},", lines.len() - 2);
        let with_ticks = format!("\"batches\":{},", lines.len() - 2 + pieces);
        let changed = ending.replace(&before, &with_ticks);
        assert!(changed != ending, "{ending}");
        out.write_all(changed.as_bytes()).unwrap();
        out.finish().unwrap();
        let (status, peak) = peak_of_import(&path, &folder.path().join("store"));
        println!("{pieces} lines of ticks: {} MiB", peak >> 10);
        assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == expected, "{status}");
        assert!(peak < MOST, "{pieces} lines of ticks: {} MiB", peak >> 10);
    }
}

/// Exit status and peak memory in KiB of an import.
#[allow(clippy::zombie_processes, reason = "wait4 waits for it, and says what it used")]
fn peak_of_import(path: &Path, store: &Path) -> (i32, i64) {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_whylag"));
    command.env("WHYLAG_STORE", store).arg("import").arg(path).stderr(std::process::Stdio::null());
    let child = command.spawn().unwrap();
    // SAFETY: both are plain integers, which are written here.
    let (mut status, mut used) = (0, unsafe { std::mem::zeroed::<libc::rusage>() });
    // SAFETY: the places are valid, and nobody else waits for this child.
    let waited = unsafe { libc::wait4(child.id() as i32, &raw mut status, 0, &raw mut used) };
    assert_eq!(waited, child.id() as i32);
    (status, used.ru_maxrss)
}

#[test]
fn absurd_numbers_make_no_panic() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.whylag");
    let (mut taken, mut panics) = (0, Vec::new());
    let mut random = random();
    for name in RUNS {
        let text = text_of(name);
        let numbers = numbers(&text);
        let keys: Vec<_> = numbers.keys().collect();
        for _ in 0..ROUNDS {
            let key = keys[random(keys.len())];
            let mut places = numbers[key].as_slice();
            if random(2) == 0 {
                let one = random(places.len());
                places = &places[one..=one];
            }
            let absurd = ABSURD[random(ABSURD.len())];
            written(&with(&text, places, absurd), &path);
            match catch_unwind(|| read(&path)) {
                Ok(true) => taken += 1,
                Ok(false) => {}
                Err(_) => {
                    let key = String::from_utf8_lossy(key);
                    panics.push(format!("{name}: {} of {key} -> {absurd}", places.len()));
                }
            }
        }
    }
    assert!(panics.is_empty(), "{}", panics.join("\n"));
    assert!(taken > 20, "so many were read: {taken}");
}

/// Of one program on one host, with numbers that are absurd in each run.
#[test]
fn absurd_numbers_in_many_runs_make_no_panic() {
    let folder = tempfile::tempdir().unwrap();
    let mut random = random();
    let (mut taken, mut tried) = (0, 0);
    let began = Instant::now();
    while began.elapsed() < time() || tried < 3 {
        let text = text_of(RUNS[tried % RUNS.len()]);
        let numbers = numbers(&text);
        let keys: Vec<_> = numbers.keys().collect();
        let paths: Vec<PathBuf> = (0..8)
            .map(|number| {
                let path = folder.path().join(format!("{number}.whylag"));
                let mut text = text.clone();
                // One of eight is as it was.
                if number > 0 {
                    let places = numbers[keys[random(keys.len())]].as_slice();
                    text = with(&text, places, ABSURD[random(ABSURD.len())]);
                }
                written(&text, &path);
                path
            })
            .collect();
        match catch_unwind(|| read_together(&paths)) {
            Ok(number) => taken += number,
            Err(_) => {
                let kept = std::env::temp_dir().join("whylag-panics");
                let _ = std::fs::create_dir(&kept);
                for path in &paths {
                    std::fs::copy(path, kept.join(path.file_name().unwrap())).unwrap();
                }
                panic!("{} made it panic", kept.display());
            }
        }
        tried += 1;
    }
    println!("{tried} sets of 8, {taken} taken for runs");
    assert!(taken > tried, "{taken} of {tried} sets of 8");
}

/// The text with some bytes changed, a line doubled, or a part of it moved or gone.
fn broken(text: &[u8], random: &mut impl FnMut(usize) -> usize) -> Vec<u8> {
    const BYTES: &[u8] = b"\"{}[]:,-.e019 \\\n\x00\xff";
    let mut broken = text.to_vec();
    for _ in 0..=random(4) {
        let at = random(broken.len());
        let end = (at + 1 + random(200)).min(broken.len());
        match random(6) {
            0 => broken[at] = BYTES[random(BYTES.len())],
            1 => broken[at] ^= 1 << random(8),
            2 => broken.insert(at, BYTES[random(BYTES.len())]),
            3 => drop(broken.drain(at..end)),
            4 => broken.extend_from_within(at..end),
            _ => {
                let lines: Vec<&[u8]> = broken.split_inclusive(|byte| *byte == b'\n').collect();
                let (from, to) = (random(lines.len()), random(lines.len()));
                let mut changed = lines.clone();
                changed.insert(to, lines[from]);
                broken = changed.concat();
            }
        }
    }
    broken
}

#[test]
fn broken_texts_make_no_panic() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.whylag");
    let mut random = random();
    let texts = RUNS.map(text_of);
    let (mut tried, mut taken) = (0, 0);
    let began = Instant::now();
    while began.elapsed() < time() || tried < 12 {
        let name = tried % RUNS.len();
        let broken = broken(&texts[name], &mut random);
        written(&broken, &path);
        match catch_unwind(|| read(&path)) {
            Ok(is_taken) => taken += usize::from(is_taken),
            Err(_) => {
                let kept = std::env::temp_dir().join("whylag-panic.whylag");
                std::fs::copy(&path, &kept).unwrap();
                panic!("{}: {} made it panic", RUNS[name], kept.display());
            }
        }
        tried += 1;
    }
    println!("{tried} broken texts, {taken} taken for runs");
}

#[test]
fn flipped_bits_of_a_store_make_no_panic() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("whole.db");
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let mut store = Sqlite::open(&path).unwrap();
    for name in ["timer-slack-faulty", "nagle-delack-fixed"] {
        store.import(&fixtures.join(name).with_extension("whylag")).unwrap();
    }
    drop(store);
    let whole = std::fs::read(&path).unwrap();
    let flipped = folder.path().join("flipped.db");
    let mut random = random();
    let (mut tried, mut refused) = (0, 0);
    let began = Instant::now();
    while began.elapsed() < time() || tried < 10 {
        let mut bytes = whole.clone();
        for _ in 0..=random(8) {
            // The first page and the roots of tables are where most depends on a bit.
            let within = if random(3) == 0 { 8192 } else { bytes.len() };
            let at = random(within.min(bytes.len()));
            bytes[at] ^= 1 << random(8);
        }
        std::fs::write(&flipped, &bytes).unwrap();
        let read = || {
            let Ok(store) = Sqlite::open_read_only(&flipped) else { return false };
            let Ok(runs) = store.runs() else { return false };
            runs.iter().take(3).for_each(|run| read_run(&store, run.id));
            drop(store);
            // Forgetting writes to it.
            let mut store = match Sqlite::open(&flipped) {
                Ok(store) => store,
                Err(_) => return false,
            };
            drop(store.forget(RunId(1)));
            drop(store.shrink());
            true
        };
        match catch_unwind(read) {
            Ok(is_whole) => refused += usize::from(!is_whole),
            Err(_) => {
                let kept = std::env::temp_dir().join("whylag-panic.db");
                std::fs::write(&kept, &bytes).unwrap();
                panic!("{} made it panic", kept.display());
            }
        }
        for more in ["-wal", "-shm"] {
            let _ = std::fs::remove_file(folder.path().join(format!("flipped.db{more}")));
        }
        tried += 1;
    }
    println!("{tried} stores, {refused} refused");
    assert!(refused > 0);
}
