//! Pages of made-up runs. Where WHYLAG_PAGES is a folder they are written there, for the tests in a
//! browser (`make test-page`):
//!
//! - outlier.html: ten minutes with 200,000 waits of at most 200 us for a CPU, one wait of 1 ms for a
//!   disk at 333.3 s, and something that was lost at 100 s
//! - million.html: a million waits
//! - crowd.html: 20,000 threads, each with five waits
//! - alone.html: ten minutes of one thread, which waits once

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::PathBuf;

use model::{
    Account, Accounts, Blocked, Losses, Outlier, OutlierKind, Run, RunEnd, RunHeader, Shared,
    ThreadAccounts,
};
use page::{Loaded, Page};

const SECOND: u64 = 1_000_000_000;
const LENGTH: u64 = 600 * SECOND;
const THREADS: u32 = 40;

fn page(intervals: Vec<Outlier>) -> Page {
    page_of(intervals, THREADS)
}

fn page_of(mut intervals: Vec<Outlier>, threads: u32) -> Page {
    intervals.sort_by_key(|outlier| std::cmp::Reverse(outlier.duration_ns));
    let run = run(&intervals, threads);
    Page::of(&[Loaded { name: "1".to_owned(), run, intervals }], None)
}

fn folder() -> Option<PathBuf> {
    std::env::var_os("WHYLAG_PAGES").map(PathBuf::from)
}

fn write(name: &str, page: &Page) {
    let Some(folder) = folder() else { return };
    let mut html = Vec::new();
    page::html::write(&mut html, page).unwrap();
    fs::write(folder.join(name), html).unwrap();
}

#[test]
fn one_long_wait_among_many_short_ones_is_in_every_view() {
    let at = 333 * SECOND + 300_000_000;
    let mut intervals = small(200_000);
    intervals.push(interval(7, at, 1_000_000, Account::Blocked(Blocked::Disk)));
    let page = page(intervals);
    let run = &page.runs[0];
    let all = &run.timeline.intervals;
    let place = all.length_ns.iter().position(|ns| *ns == 1_000_000).unwrap();
    assert_eq!(all.from_ns[place], at);
    let mut before = 0;
    let lane = run.timeline.lanes.iter().find(|lane| {
        before += lane.n as usize;
        place < before
    });
    assert_eq!(lane.unwrap().tid, 7);
    assert_eq!(run.timeline.details[0].place, place, "it is the longest");
    let column = run.latencies[0].columns.iter().find(|column| column.max_ns == 1_000_000);
    let (row, n) = *column.unwrap().cells.last().unwrap();
    assert_eq!((row as usize, n), (run.latencies[0].rows.len() - 2, 1));
    let map = run.scope.maps.iter().find(|map| map.account == "blocked:disk").unwrap();
    let (column, row) = (333 * run.scope.rows, 300_000_000 / run.scope.row_ns as u32);
    assert_eq!(
        (map.cells.as_slice(), run.scope.column_ns),
        (&[(column + row, 1_000_000)][..], SECOND)
    );
    write("outlier.html", &page);
}

#[test]
fn what_is_not_drawn_of_a_run_is_said_at_each_picture_of_intervals() {
    let mut intervals = small(5_000);
    intervals.sort_by_key(|outlier| std::cmp::Reverse(outlier.duration_ns));
    let run = run(&intervals, THREADS);
    intervals.truncate(1_000);
    let page = Page::of(&[Loaded { name: "1".to_owned(), run, intervals }], None);
    let run = &page.runs[0];
    let said = "; of 5,000 such intervals the 1,000 longest are drawn, none under 164 us";
    let kept = &run.latencies[0].about;
    for basis in [&run.timeline.basis, &run.scope.basis, &run.over_time.basis, kept] {
        assert!(basis.contains("n = 1,000") && basis.ends_with(said), "{basis}");
    }
}

#[test]
fn a_million_intervals_are_all_drawn() {
    if folder().is_none() {
        return;
    }
    let page = page(small(1_000_000));
    assert_eq!(page.runs[0].timeline.intervals.from_ns.len(), 1_000_000);
    write("million.html", &page);
}

#[test]
fn a_crowd_has_a_lane_for_each_thread_and_one_alone_has_one() {
    const CROWD: u32 = 20_000;
    let waits = (0..5 * CROWD).map(|n| {
        let start = u64::from(n) * 5_000_000;
        interval(1 + n % CROWD, start, 30_000, Account::RunnableWakeup)
    });
    let lanes = |page: &Page| page.runs[0].timeline.lanes.len();
    let crowd = page_of(waits.collect(), CROWD);
    assert_eq!(lanes(&crowd), CROWD as usize);
    write("crowd.html", &crowd);
    let wait = interval(1, 7 * SECOND, 2 * SECOND, Account::Blocked(Blocked::Disk));
    let alone = page_of(vec![wait], 1);
    assert_eq!(lanes(&alone), 1);
    write("alone.html", &alone);
}

/// Waits for a CPU, 20 to 200 us long, spread over all of the run and all threads.
fn small(number: u64) -> Vec<Outlier> {
    let one = |n: u64| {
        // Numbers that look drawn by lot, and are the same each time.
        let drawn = (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let tid = 1 + (drawn >> 40) as u32 % THREADS;
        let start = n * (LENGTH / number);
        interval(tid, start, 20_000 + drawn % 180_000, Account::RunnablePreempted)
    };
    (0..number).map(one).collect()
}

fn interval(tid: u32, start_ns: u64, duration_ns: u64, account: Account) -> Outlier {
    let mut breakdown = Accounts::new();
    breakdown.add(account, duration_ns);
    let (kind, blocked) = match account {
        Account::Blocked(blocked) => (OutlierKind::OffCpu, Some(blocked)),
        _ => (OutlierKind::RunQueue, None),
    };
    Outlier {
        kind,
        tid,
        tgid: 1,
        comm: format!("worker-{tid}"),
        cpu: 0,
        start_ns,
        duration_ns,
        syscall: None,
        blocked,
        breakdown,
        object: 0,
        fault_ip: None,
        kernel_stack: None,
        user_stack: None,
        waker: None,
        ran_instead: Vec::new(),
        holder: None,
        timer: None,
        interrupts: None,
        first_call: None,
    }
}

fn run(intervals: &[Outlier], threads: u32) -> Run {
    let mut threads: Vec<ThreadAccounts> = (1..=threads).map(thread).collect();
    for outlier in intervals {
        let thread = &mut threads[outlier.tid as usize - 1];
        thread.accounts.merge(&outlier.breakdown);
    }
    for thread in &mut threads {
        thread.accounts.add(Account::User, LENGTH - thread.accounts.total().min(LENGTH));
    }
    Run {
        header: RunHeader { threshold_ns: 20_000, ..RunHeader::default() },
        end: Some(RunEnd { ended_ns: LENGTH, exit_status: None, reason: "made up".to_owned() }),
        threads: Shared::from(threads),
        outliers: intervals.iter().take(store::LOADED_OUTLIERS).cloned().collect(),
        outlier_count: intervals.len() as u64,
        losses: Losses { seen: vec![("events (made up)".to_owned(), 100 * SECOND, 7)] },
        ..Run::default()
    }
}

fn thread(tid: u32) -> ThreadAccounts {
    ThreadAccounts {
        tid,
        tgid: 1,
        comm: format!("worker-{tid}"),
        first_ns: 0,
        last_ns: LENGTH,
        alive: true,
        open: Account::User,
        accounts: Accounts::new(),
        realtime: 0,
        minor_faults: 0,
        major_faults: 0,
        sleeps: 0,
        preemptions: 0,
        migrations: 0,
    }
}
