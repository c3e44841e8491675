//! What was recorded on other kernels, in virtual machines: `make test-kernels` boots them and
//! names the folder of the results in `WHYLAG_KERNELS`. Without it nothing is judged here.
//!
//! The machines are translated, some fifteen times slower than a real one, and each has one thread
//! for all its CPUs. So nothing that takes CPU time is judged: not shares, and not whether
//! something else was slow besides. What is judged: the recorder loads, only the parts are off that
//! this kernel cannot give, the accounts sum, and a fault that takes no CPU time is named before all
//! that does not only say that a CPU was missing.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use model::{Account, RecorderPart, Run, Standing, WhyNot};
use store::{Sqlite, Store};

/// The parts that a kernel cannot give, and why: what its own sources say. A kernel that is not
/// here gives all.
const OFF: [(&str, &[RecorderPart]); 3] = [
    // lock contention has tracepoints since 5.19; kfree_skb names the socket since 6.11; reads and
    // sends of sockets have theirs since 6.3.
    ("5.15", &[RecorderPart::Locks, RecorderPart::Drops, RecorderPart::Requests]),
    ("6.1", &[RecorderPart::Drops, RecorderPart::Requests]),
    ("6.8", &[RecorderPart::Drops]),
];

/// Causes that are there because the machine is slow.
const SLOW_MACHINE: [&str; 2] = ["cpu-runqueue", "lazy-binding"];

/// Faults that a kernel cannot show, and why.
const CANNOT_SHOW: [(&str, &str, &str); 1] = [(
    "5.15",
    "ksm-cow",
    "which pages KSM merged is known since 5.19, and of a program that has ended not at all",
)];

/// One recorded program.
struct Recorded {
    mystery: String,
    /// The program's exit status, and whether it says that its fault cost it time.
    status: i32,
    has_happened: bool,
    /// How long a quota kept its threads from a CPU, if the program knows that.
    throttled_ns: Option<u64>,
    /// `None` if nothing was recorded.
    run: Option<Run>,
}

/// A kernel on so many CPUs.
struct Kernel {
    series: String,
    cpus: String,
    release: String,
    recorded: Vec<Recorded>,
}

fn kernels(folder: &Path) -> Vec<Kernel> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut kernels: Vec<Kernel> = names.map(|path| kernel(&path)).collect();
    let version = |kernel: &Kernel| {
        let numbers = kernel.series.split('.').map(|number| number.parse::<u32>().unwrap());
        (numbers.collect::<Vec<_>>(), kernel.cpus.clone())
    };
    kernels.sort_by_key(version);
    kernels
}

fn kernel(folder: &Path) -> Kernel {
    let (series, cpus) = folder.file_name().unwrap().to_str().unwrap().split_once('-').unwrap();
    let out = folder.join("out");
    let release = fs::read_to_string(out.join("kernel")).unwrap_or_else(|error| {
        panic!("{}: the machine did not run its job: {error}", out.display())
    });
    let results = fs::read_to_string(out.join("results")).unwrap();
    let recorded = results.lines().map(|line| {
        let (program, status) = line.split_once(' ').unwrap();
        let run = out.join(format!("{program}.whylag"));
        let text = fs::read_to_string(out.join(format!("{program}.text"))).unwrap_or_default();
        Recorded {
            has_happened: has_happened(&text),
            throttled_ns: value(&text, "throttled_ns"),
            mystery: program.trim_end_matches("-faulty").to_owned(),
            status: status.parse().unwrap(),
            run: Sqlite::open_run_file(&run).ok().map(|(store, id)| store.load(id).unwrap()),
        }
    });
    Kernel {
        series: series.to_owned(),
        cpus: cpus.to_owned(),
        release: release.trim().to_owned(),
        recorded: recorded.collect(),
    }
}

/// NAME=NUMBER of the line in which a program says what its fault cost.
fn value(text: &str, name: &str) -> Option<u64> {
    let truth = text.lines().find_map(|line| line.strip_prefix("truth: "))?;
    let words = truth.split(' ').filter_map(|word| word.split_once('='));
    words.filter(|(key, _)| *key == name).find_map(|(_, value)| value.parse().ok())
}

/// False if the program itself says that its fault cost it less than a twentieth of its time: in a
/// slow machine some do not come about.
fn has_happened(text: &str) -> bool {
    match (value(text, "lost_ns"), value(text, "wall_ns")) {
        (Some(lost), Some(wall)) => lost.saturating_mul(20) >= wall,
        _ => true,
    }
}

/// How much of the time for which the kernel had its run queues throttled is in the account of that.
/// A thread waits a little for a CPU when that is over, and some come to the queue late.
const THROTTLED: std::ops::Range<f64> = 0.8..1.3;

/// The accounts of each thread sum to its wall time. What was lost is printed: the clocks of a
/// translated machine are not the same on all CPUs, and go backwards between them.
fn sums_are_exact(of: &str, run: &Run) {
    for thread in &run.threads {
        assert_eq!(thread.accounts.total(), thread.wall_ns(), "{of}: {thread:?}");
    }
    let unaccounted = run.accounts().get(Account::Unaccounted);
    assert!(unaccounted * 200 <= run.wall_ns(), "{of}: {unaccounted} ns unaccounted");
    for (kind, count) in run.losses.by_kind() {
        println!("{of}: lost {count} {kind}");
        // Debian's kernels opened no timer for the lower rate from the third second on.
        assert!(!kind.starts_with("looks at CPUs"), "{of}: {count} {kind}");
    }
}

fn parts_off(run: &Run) -> BTreeSet<String> {
    // What was given up because there was too much of it had been there: an emulated CPU is soon full.
    let is_given_up = |because: &str| because.starts_with("recorded for the first ");
    let off = run.capabilities.iter().filter(|one| !one.on && !is_given_up(&one.because));
    off.map(|capability| capability.part.to_string()).collect()
}

/// What became of a mystery, in words for the table, and whether that is as it should be.
fn verdict(series: &str, recorded: &Recorded) -> (String, bool) {
    let Recorded { mystery, status, has_happened, throttled_ns, run } = recorded;
    let Some(run) = run else { return (format!("not recorded: status {status}"), false) };
    // Ended by timeout, or a panic: whylag itself.
    if [101, 124, 137].contains(status) {
        return (format!("whylag ended with status {status}"), false);
    }
    if *status != 0 {
        return (format!("not judged: its program ended with status {status}"), true);
    }
    if !has_happened {
        return ("not judged: the fault did not come about".to_owned(), true);
    }
    if let Some(truth) = throttled_ns {
        let of_truth = run.accounts().get(Account::Throttled) as f64 / *truth as f64;
        if !THROTTLED.contains(&of_truth) {
            return (format!("{of_truth:.2} of its time throttled is in that account"), false);
        }
    }
    // What stands after an @ is a way in which the fault comes about.
    let cause = mystery.split('@').next().unwrap_or(mystery);
    let findings = explain::explain(run).findings;
    let mut causes = findings.iter().map(|finding| finding.cause.as_str());
    let first = causes.clone().next().unwrap_or("nothing");
    let named = causes.find(|cause| !SLOW_MACHINE.contains(cause)).unwrap_or("nothing");
    if first == cause {
        return ("named first".to_owned(), true);
    }
    if named == cause {
        return (format!("named after {first}"), true);
    }
    if let Some((.., why)) =
        CANNOT_SHOW.iter().find(|(of, which, _)| *of == series && *which == cause)
    {
        return (format!("not named: {why}"), true);
    }
    // In a slow machine all else takes longer, and some faults last less than they would.
    if let Ok(WhyNot { standing: Standing::BelowFloor { .. }, .. }) = explain::why_not(run, cause) {
        return ("seen, and too short there to be a finding".to_owned(), true);
    }
    (format!("not named; first is {first}"), false)
}

#[test]
fn mysteries_are_named_on_other_kernels() {
    let Some(folder) = std::env::var_os("WHYLAG_KERNELS").map(PathBuf::from) else {
        println!("skipped: make test-kernels records on other kernels");
        return;
    };
    let kernels = kernels(&folder);
    let mut failures = Vec::new();
    for kernel in &kernels {
        let wanted = OFF.iter().find(|(series, _)| *series == kernel.series);
        let wanted: BTreeSet<String> =
            wanted.iter().flat_map(|(_, parts)| parts.iter()).map(ToString::to_string).collect();
        for recorded in &kernel.recorded {
            let of =
                format!("Linux {} on {} CPUs, {}", kernel.release, kernel.cpus, recorded.mystery);
            if let Some(run) = &recorded.run {
                assert!(!run.header.sampled, "{of}: {:?}", run.capabilities);
                sums_are_exact(&of, run);
                assert_eq!(parts_off(run), wanted, "{of}");
                // These kernels allow what the one that runs the other tests may refuse.
                let walk = run.facts.iter().find(|fact| fact.name == "recorder.socket_walk");
                assert!(walk.is_some_and(|walk| walk.value == "over the notes at sockets"), "{of}");
            }
            let (words, is_right) = verdict(&kernel.series, recorded);
            println!("{of}: {words}");
            if !is_right {
                failures.push(format!("{of}: {words}"));
            }
        }
    }
    if std::env::var("WHYLAG_UPDATE_DOCS").is_ok_and(|value| !value.is_empty()) {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/kernels.md");
        fs::write(page, in_markdown(&kernels)).unwrap();
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

/// docs/kernels.md.
fn in_markdown(kernels: &[Kernel]) -> String {
    let mut page = String::from(
        "# Kernels that whylag records on

Written by `make test-kernels`. Each kernel is Debian's or Ubuntu's own, booted in a virtual machine
whose CPUs are translated by QEMU (TCG). So no figure here is one of speed, and most of the
faults that are judged take no CPU time. A cause counts as found if it comes first, or behind nothing
but run-queue delay, which translated CPUs always have.

| kernel | CPUs | attached in | off, and why |
|---|---|---|---|
",
    );
    for kernel in kernels {
        let runs = || kernel.recorded.iter().filter_map(|recorded| recorded.run.as_ref());
        let mut attach: Vec<u64> = runs().map(|run| run.cost.attach_ns).collect();
        attach.sort_unstable();
        let attach = attach.get(attach.len() / 2).map_or(0.0, |ns| *ns as f64 / 1e9);
        let off = runs().next().map_or(Vec::new(), |run| {
            let off = run.capabilities.iter().filter(|capability| !capability.on);
            off.map(|part| format!("{}: {}", part.part, part.because)).collect()
        });
        let off = if off.is_empty() { "nothing".to_owned() } else { off.join("<br>") };
        // Writing to a string does not fail.
        let _ = writeln!(page, "| {} | {} | {attach:.1} s | {off} |", kernel.release, kernel.cpus);
    }
    page += "\nAttached in: the median time until whylag records. The CPUs are translated, so compare \
             these times with each other only.\n";
    for kernel in kernels {
        let _ = write!(
            page,
            "\n## {} on {} CPUs\n\n| mystery | its cause |\n|---|---|\n",
            kernel.release, kernel.cpus
        );
        for recorded in &kernel.recorded {
            let (words, _) = verdict(&kernel.series, recorded);
            let _ = writeln!(page, "| {} | {words} |", recorded.mystery);
        }
    }
    page
}
