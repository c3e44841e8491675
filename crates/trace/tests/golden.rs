//! The files in golden/, one per writer and version: the reader reads them all, and the writers
//! of today write the same, but for times and ids of processes.
//!
//! After a change of the format: GOLDEN=write cargo test -p whylag-trace --test golden

#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::mem::{offset_of, size_of};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use common::{expect_success, memory_folder, place};
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use trace::layout::{self, Block, Header, Histogram, Mark, Plan, Record, Thread};
use trace::reader::{Language, Metric, Reader, TraceFile};
use trace::{Point, Publish, Trace, now};

const PLAN: Plan = Plan { names: 16, flows: 16, threads: 2, recent: 4, slow: 2, blocks: 1 };

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden")
}

/// All golden files, those of other writers too.
fn golden_files() -> Vec<(String, Vec<u8>)> {
    let files = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    files
        .filter(|path| path.to_string_lossy().contains(".trace"))
        .map(|path| {
            let mut bytes = Vec::new();
            let file = File::open(&path).unwrap();
            if path.extension().unwrap() == "gz" {
                GzDecoder::new(file).read_to_end(&mut bytes).unwrap();
            } else {
                (&file).read_to_end(&mut bytes).unwrap();
            }
            (path.file_name().unwrap().to_string_lossy().into_owned(), bytes)
        })
        .collect()
}

/// The messages of the golden file; tests/c/program.c and Child.java in java/tracer have the same.
fn golden() -> Vec<u8> {
    let place = place();
    let builder = place.builder().names(16).threads(2).recent(4).slow(2).histograms(1);
    let tracer = builder.build().unwrap();
    let mut thread = tracer.thread().unwrap();
    let order = tracer
        .flow("order")
        .infra(["journalled", "replicated"])
        .threshold(Duration::from_secs(1))
        .build()
        .unwrap();
    let quote = tracer.flow("quote").threshold(Duration::from_secs(2)).build().unwrap();
    let fill = order.publish("fill").unwrap();
    let report = order.publish("trade-report").unwrap();
    let mut trace = Trace::new();
    for id in 1..=5 {
        trace.begin(&order, id, now() - if id == 3 { 1_500_000_000 } else { 0 });
        trace.mark(Point::new(0));
        if id % 2 == 1 {
            trace.mark(Point::new(1));
        }
        let mut logic = thread.logic_start(&mut trace, Some(id as u32 * 10));
        for publish in [fill, report, Publish::UNNAMED] {
            logic.published(publish);
        }
        logic.end();
    }
    trace.begin(&quote, 6, now());
    trace.begin(&quote, 7, now());
    trace.mark(Point::new(5));
    let mut logic = thread.logic_start(&mut trace, None);
    (0..20).for_each(|_| logic.published(fill));
    logic.end();
    trace.begin(&order, 8, now());
    let mut logic = thread.logic_start(&mut trace, Some(0));
    logic.published(report);
    std::fs::read(tracer.path().unwrap()).unwrap()
}

fn c_program(compiler: &[&str], folder: &Path) -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (library, program) = (folder.join("whylag.o"), folder.join("program"));
    let strict = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-O2"];
    let include = here.join("c/include");
    let output = Command::new("cc")
        .args(["-std=c11", "-c", "-o"])
        .arg(&library)
        .args(strict)
        .arg("-I")
        .arg(&include)
        .arg(here.join("c/whylag.c"))
        .output()
        .expect("a C compiler, cc");
    expect_success(output);
    let output = Command::new(compiler[0])
        .args(&compiler[1..])
        .args(strict)
        .arg("-I")
        .arg(&include)
        .arg(here.join("tests/c/program.c"))
        .args(["-x", "none"])
        .arg(&library)
        .args(["-pthread", "-o"])
        .arg(&program)
        .output()
        .expect("a C++ compiler, c++");
    expect_success(output);
    program
}

/// Runs the program of tests/c, looks at its file while it waits, and gives what `look` saw.
fn with_c_program<T>(compiler: &[&str], role: &str, look: impl FnOnce(&Path) -> T) -> T {
    let folder = memory_folder();
    let mut child = Command::new(c_program(compiler, folder.path()))
        .arg(role)
        .env("WHYLAG_TRACE_DIR", folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut path = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut path).unwrap();
    let path = Path::new(path.trim_end());
    let seen = look(path);
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    assert!(!path.exists(), "removed at the end");
    seen
}

/// Sets to zero what is another each time: times, ids of processes, sums and buckets.
fn without_what_varies(mut bytes: Vec<u8>) -> Vec<u8> {
    let mut clear = |at: usize, length: usize| bytes[at..at + length].fill(0);
    for at in [offset_of!(Header, pid), offset_of!(Header, language)] {
        clear(at, 4);
    }
    clear(offset_of!(Header, start), 16);
    clear(offset_of!(Header, boot_id), 36);
    clear(offset_of!(Header, created_unix), 16);
    let [_, _, threads, recent, slow, blocks] = PLAN.places();
    for index in 0..threads.entries {
        let at = threads.offset + index * threads.entry_bytes;
        clear(at + offset_of!(Thread, tid), 28);
        clear(at + offset_of!(Thread, current) + offset_of!(layout::Current, t0), 24);
    }
    for ring in [recent, slow] {
        for index in 0..ring.entries {
            let at = ring.offset + index * ring.entry_bytes;
            clear(at + offset_of!(Record, t0), 24);
            clear(at + offset_of!(Record, longest_gap), 8);
            let marks = layout::POINTS + layout::PUBLISHES;
            (0..marks).for_each(|mark| {
                clear(at + offset_of!(Record, point) + mark * size_of::<Mark>(), 8);
            });
        }
    }
    for metric in 0..layout::METRICS {
        let at = blocks.offset + offset_of!(Block, metrics) + metric * size_of::<Histogram>();
        clear(at + offset_of!(Histogram, sum), size_of::<Histogram>() - 8);
    }
    bytes
}

fn check_against_golden(name: &str, fresh: Vec<u8>) {
    let path = folder().join(name);
    if std::env::var("GOLDEN").is_ok_and(|value| value == "write") {
        let mut file = GzEncoder::new(File::create(&path).unwrap(), flate2::Compression::best());
        file.write_all(&fresh).unwrap();
        file.finish().unwrap();
    }
    let files = golden_files();
    let (_, golden) = files.iter().find(|(file, _)| file == name).unwrap();
    assert_eq!(golden.len(), fresh.len());
    let (golden, fresh) = (without_what_varies(golden.clone()), without_what_varies(fresh));
    let differs = (0..golden.len()).find(|at| golden[*at] != fresh[*at]);
    assert_eq!(differs, None, "the first byte that differs from {name}");
}

#[test]
fn rust_writes_the_golden_file() {
    check_against_golden("rust-1.0.trace.gz", golden());
}

#[test]
fn c_writes_the_golden_file() {
    let bytes = with_c_program(&["cc", "-std=c11"], "", |path| std::fs::read(path).unwrap());
    check_against_golden("c-1.0.trace.gz", bytes);
}

#[test]
fn cpp_writes_what_c_rust_and_java_write() {
    let cpp = ["c++", "-std=c++17", "-x", "c++"];
    let bytes = with_c_program(&cpp, "", |path| {
        let file = TraceFile::open(path).unwrap();
        assert_eq!(file.standing().unwrap(), trace::reader::Standing::Live);
        std::fs::read(path).unwrap()
    });
    for (name, golden) in golden_files() {
        assert!(without_what_varies(golden) == without_what_varies(bytes.clone()), "{name}");
    }
}

#[test]
fn a_child_of_a_c_program_does_not_write_into_its_file() {
    let (messages, begun) = with_c_program(&["cc", "-std=c11"], "fork", |path| {
        // The child is done when it has written: it ends by itself.
        std::thread::sleep(Duration::from_millis(200));
        let mut file = TraceFile::open(path).unwrap();
        (file.reader.threads().unwrap()[0].messages, file.reader.flows().unwrap()[0].begun)
    });
    assert_eq!((messages, begun), (6, 6));
}

#[test]
fn messages_that_several_threads_of_a_c_program_begin_are_counted() {
    let begun = with_c_program(&["cc", "-std=c11"], "threads", |path| {
        TraceFile::open(path).unwrap().reader.flows().unwrap()[2].begun
    });
    assert_eq!(begun, 60_000);
}

#[test]
fn c_refuses_with_a_reason() {
    let folder = memory_folder();
    let program = c_program(&["cc", "-std=c11"], folder.path());
    let run = |role: &str| {
        let mut command = Command::new(&program);
        command.arg(role).env("WHYLAG_TRACE_DIR", folder.path()).output().unwrap()
    };
    expect_success(run("refusals"));
    let why = expect_success(run("none"));
    assert!(why.contains("/proc/no-such-folder: making the folder"), "{why}");
    // The program called main without whylag_stop: a crash, as far as the reader can see.
    let listed = trace::reader::list_in(folder.path()).unwrap();
    let (_, standing) = listed[0].what.as_ref().unwrap();
    assert_eq!(*standing, trace::reader::Standing::Crashed);
}

#[test]
fn the_reader_reads_all_golden_files() {
    let files = golden_files();
    assert_eq!(files.len(), 3);
    for (name, bytes) in files {
        let mut reader = Reader::new(bytes).unwrap();
        let language = match name.split('-').next().unwrap() {
            "rust" => Language::Rust,
            "c" => Language::C,
            "java" => Language::Java,
            other => panic!("{other}"),
        };
        assert_eq!(reader.identity().language, language);
        let flows = reader.flows().unwrap();
        let messages = reader.messages().unwrap();
        let counted = reader.histograms().unwrap();
        let threads = reader.threads().unwrap();
        assert_eq!(reader.losses(), Default::default(), "{name}");
        assert_eq!(flows[0].points, ["journalled", "replicated"]);
        assert_eq!(flows[0].publishes, ["fill", "trade-report"]);
        assert_eq!((flows[0].begun, flows[1].begun, flows[1].abandoned), (6, 2, 1));
        assert_eq!(flows[1].undeclared, 1);
        let ids: Vec<u64> = messages.recent.iter().map(|record| record.id).collect();
        assert_eq!(ids, [3, 4, 5, 7]);
        assert_eq!(messages.slow.len(), 1);
        assert_eq!((messages.slow[0].id, messages.slow[0].depth), (3, Some(30)));
        let last = &messages.recent[3];
        assert_eq!((last.publishes, last.published.len()), (20, 16));
        assert!(last.published.iter().all(|publish| publish.publish.is_none()), "another flow's");
        let gaps = counted.iter().find(|counted| counted.metric == Metric::Gap).unwrap();
        assert_eq!(gaps.count(), 15, "three of each order that ended");
        assert_eq!(reader.dropped().unwrap().others, 1, "one block for two flows");
        let stuck = threads[0].current.as_ref().unwrap();
        assert_eq!((stuck.id, stuck.last_name.as_deref()), (8, Some("trade-report")));
    }
}
