//! Killed in the middle of whatever it writes, a program leaves a file that reads without an error
//! and shows no torn record. KILLS says how many programs are killed.

#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use std::time::{Duration, Instant};

use common::memory_folder;
use trace::reader::{Record, TraceFile, list_in};
use trace::{Point, Publish, Trace, Tracer, now};

/// Writes as fast as it can; everything of a message follows from its id.
fn write(folder: &std::path::Path, ready: impl FnOnce()) -> Option<()> {
    let builder = Tracer::builder().folder(folder).names(8).threads(1).histograms(1);
    let tracer = builder.recent(4).slow(4).build().ok()?;
    let flow = tracer.flow("order").infra(["a", "b"]).build().ok()?;
    let names = [flow.publish("x").ok()?, flow.publish("y").ok()?, Publish::UNNAMED];
    let mut thread = tracer.thread().ok()?;
    let mut trace = Trace::new();
    ready();
    loop {
        let t0 = now();
        // Every other message is slow: both rings are written.
        let t0 = if t0 & 1 == 0 { t0 - 2_000_000 } else { t0 };
        trace.begin(&flow, t0, t0);
        if t0 & 4 != 0 {
            trace.mark(Point::new(1));
        }
        let mut logic = thread.logic_start(&mut trace, Some(t0 as u32));
        for turn in 0..t0 % 4 {
            logic.published(names[((t0 + turn) % 3) as usize]);
        }
        logic.end();
    }
}

fn check(record: &Record) {
    let t0 = record.t0;
    assert_eq!((record.id, record.depth), (t0, Some(t0 as u32)));
    assert_eq!(record.publishes as u64, t0 % 4);
    assert_eq!(record.published.len() as u64, t0 % 4);
    let mut last = record.logic_start;
    let mut longest = 0;
    for (turn, publish) in record.published.iter().enumerate() {
        let name = (t0 + turn as u64) % 3;
        assert_eq!(publish.publish, (name < 2).then_some(name as u32));
        longest = longest.max(publish.time - last);
        last = publish.time;
    }
    assert_eq!(record.longest_gap, longest);
    let marked: Vec<u32> = record.points.iter().map(|point| point.point).collect();
    assert_eq!(marked, if t0 & 4 != 0 { vec![1] } else { vec![] });
    assert_eq!(record.is_slow, record.end - t0 >= 1_000_000);
}

#[test]
fn killed_in_mid_write() {
    let kills = std::env::var("KILLS").map_or(1000, |kills| kills.parse().unwrap());
    let folder = memory_folder();
    let begin = Instant::now();
    let (mut shown, mut torn, mut messages, mut in_logic) = (0, 0, 0, 0);
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..kills {
        let mut pipe = [0; 2];
        // SAFETY: room for two descriptors.
        assert_eq!(unsafe { libc::pipe(pipe.as_mut_ptr()) }, 0);
        // SAFETY: the child of this thread only traces, until it is killed.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: the descriptor is open; a write of one byte.
            write(folder.path(), || _ = unsafe { libc::write(pipe[1], [1u8].as_ptr().cast(), 1) });
            // SAFETY: without the harness. Only reached where the tracer could not be made.
            unsafe { libc::_exit(1) };
        }
        let mut byte = [0u8];
        // SAFETY: both descriptors are ours, and the byte has room for one.
        unsafe {
            libc::close(pipe[1]);
            assert_eq!(libc::read(pipe[0], byte.as_mut_ptr().cast(), 1), 1);
            libc::close(pipe[0]);
        }
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let until = now() + random % 300_000;
        let mut living = list_in(folder.path()).unwrap();
        let mut file = TraceFile::open(living.remove(0).path).unwrap();
        let mut seen = 0;
        while seen == 0 || now() < until {
            // Also while it is written.
            let messages = file.reader.messages().unwrap();
            messages.recent.iter().chain(&messages.slow).for_each(check);
            seen += messages.recent.len();
            // Where there are few CPUs, the writer is to have one.
            std::thread::sleep(Duration::from_micros(50));
        }
        let mut status = 0;
        // SAFETY: a child of ours, and a place for its status.
        unsafe {
            libc::kill(child, libc::SIGKILL);
            libc::waitpid(child, &mut status, 0);
        }
        assert!(libc::WIFSIGNALED(status));

        let mut file = TraceFile::open(file.path()).unwrap();
        let last = file.reader.messages().unwrap();
        last.recent.iter().chain(&last.slow).for_each(check);
        shown += last.recent.len() + last.slow.len();
        torn += file.reader.losses().torn;
        assert!(file.reader.losses().torn <= 2, "one in each ring");
        let threads = file.reader.threads().unwrap();
        messages += threads[0].messages;
        if let Some(message) = &threads[0].current {
            in_logic += 1;
            assert_eq!(message.id, message.t0);
        }
        let counted: u64 = file
            .reader
            .histograms()
            .unwrap()
            .iter()
            .filter(|counted| counted.metric == trace::reader::Metric::Total)
            .map(|counted| counted.count())
            .sum();
        assert!(counted - threads[0].messages <= 1, "{counted} and {}", threads[0].messages);
        file.remove().unwrap();
    }
    println!(
        "{kills} programs killed after {messages} messages: {shown} records shown, {torn} torn and \
         not shown, {in_logic} in logic; {:.1} s",
        begin.elapsed().as_secs_f64()
    );
    assert!(kills < 500 || torn > 0, "no kill hit a record while it was written");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
