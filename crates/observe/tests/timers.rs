//! Which timer ended a sleep, recorded for a thread of this process that knows what it asked for.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::net::UdpSocket;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use model::{Outlier, OutlierKind, TimerLegs};
use observe::{Detail, Recorder, SlowRequests, Timers, Watch, WatchTarget};
use rustix::thread::{clock_nanosleep_absolute, gettid};
use rustix::time::{ClockId, Timespec};

const MS: u64 = 1_000_000;
const SLACK_NS: u64 = 5 * MS;
const SLEEPS: u64 = 10;

/// Sleeps of 20 ms, each with the time it asked for.
fn sleep_with_slack(asked: &Sender<u64>) {
    // SAFETY: changes a number of the calling thread.
    assert_eq!(unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, SLACK_NS) }, 0);
    for _ in 0..SLEEPS {
        let until = clock::monotonic_ns() + 20 * MS;
        let time = Timespec {
            tv_sec: (until / (1_000 * MS)) as i64,
            tv_nsec: (until % (1_000 * MS)) as i64,
        };
        clock_nanosleep_absolute(ClockId::Monotonic, &time).unwrap();
        asked.send(until).unwrap();
    }
}

/// Receives nothing for 10 ms, several times.
fn wait_in_jiffies() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(10))).unwrap();
    for _ in 0..SLEEPS {
        socket.recv(&mut [0; 8]).unwrap_err();
    }
}

fn sleeps(outliers: &[Outlier], call: &str) -> Vec<(u64, u64, TimerLegs)> {
    let named = outliers.iter().filter(|o| {
        o.kind == OutlierKind::OffCpu
            && o.syscall.is_some_and(|syscall| syscall.call.to_string() == call)
    });
    named.filter_map(|o| Some((o.start_ns, o.end_ns(), o.timer?))).collect()
}

#[test]
fn a_timer_is_told_with_what_was_asked_of_it() {
    let (ready, tid) = channel();
    let (go, gone) = channel::<()>();
    let (asked, times) = channel();
    let sleeper = std::thread::spawn(move || {
        ready.send(gettid().as_raw_nonzero().get() as u32).unwrap();
        gone.recv().unwrap();
        sleep_with_slack(&asked);
        wait_in_jiffies();
    });
    let watch = Watch {
        target: WatchTarget::Thread(tid.recv().unwrap()),
        follow: false,
        threshold_ns: MS,
        budget_percent: None,
        detail: Detail::All,
        timers: Timers::On,
        keep_secrets: false,
        requests: SlowRequests::Off,
        pipe_stdout: false,
    };
    let recorder = Recorder::start(&watch, Instant::now()).unwrap();
    let timers = recorder
        .capabilities()
        .iter()
        .find(|part| part.part == model::RecorderPart::Timers)
        .unwrap()
        .clone();
    go.send(()).unwrap();
    sleeper.join().unwrap();
    let mut batches = Vec::new();
    recorder.finish(|batch| batches.push(batch)).unwrap();
    if !timers.on {
        println!("skipped: {}", timers.because);
        return;
    }
    // Some hosts hide tasks of their own; a sleep that ends behind one is not seen, but counted.
    let hidden: u64 =
        batches.iter().flat_map(|batch| &batch.losses).map(|(_, _, count)| count).sum();
    let outliers: Vec<Outlier> = batches.into_iter().flat_map(|batch| batch.outliers).collect();

    let slept = sleeps(&outliers, "clock_nanosleep");
    let asked: Vec<u64> = times.iter().collect();
    assert!(slept.len() as u64 + hidden >= SLEEPS, "{} of {SLEEPS}", slept.len());
    for (.., timer) in &slept {
        let programmed = timer.softexpires_ns.unwrap();
        assert!(asked.contains(&programmed), "not one of the times that were asked for");
    }
    for (start, end, timer) in slept {
        assert_eq!(timer.expires_ns - timer.softexpires_ns.unwrap(), SLACK_NS);
        assert!(timer.fired_ns >= timer.softexpires_ns.unwrap(), "{timer:?}");
        assert!((start..end).contains(&timer.fired_ns), "{timer:?} in {start} to {end}");
    }

    let waited = sleeps(&outliers, "recvfrom");
    assert!(waited.len() as u64 + hidden >= SLEEPS, "{} of {SLEEPS}", waited.len());
    for (start, end, timer) in waited {
        assert_eq!(
            timer.softexpires_ns, None,
            "a timer in jiffies does not know the time asked for"
        );
        assert!(timer.expires_ns > start && timer.fired_ns < end, "{timer:?} in {start} to {end}");
    }
}
