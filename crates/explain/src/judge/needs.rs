//! What each cause says it needs, held against what it reads of recorded runs.
//!
//! From the recording of its mystery is taken out what one part of the recorder delivers. If the
//! cause then says something else, it has to name that part: `explain` would otherwise take "not
//! recorded" for "not there".

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Mutex;
use std::thread;

use model::{Capability, Losses, RecorderPart, Run, Standing};
use store::{Sqlite, Store};

use crate::case::Case;
use crate::catalogue::{ALL, is_of_ticks};
use crate::cause::Cause;
use crate::judge::divided::divided;
use crate::testing::made_up::made_up;
use crate::testing::without::{without, without_histograms, without_kernel_symbols};

fn fixture(name: &str) -> Run {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../whylag/tests/fixtures");
    let (store, id) = Sqlite::open_run_file(&folder.join(format!("{name}.whylag"))).unwrap();
    store.load(id).unwrap()
}

/// A recording of its mystery; of some there is none, because not every host can show them.
fn run_of(cause: &Cause) -> Run {
    let id = cause.id.as_str();
    made_up(id).unwrap_or_else(|| fixture(&format!("{id}-faulty")))
}

/// What a run may lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Lack {
    Part(RecorderPart),
    KernelSymbols,
    Histograms,
}

impl Lack {
    fn all() -> impl Iterator<Item = Lack> {
        let parts = RecorderPart::ALL.into_iter().map(Lack::Part);
        parts.chain([Lack::KernelSymbols, Lack::Histograms])
    }

    /// The run as it would be.
    fn of(self, run: &Run) -> Run {
        match self {
            Lack::Part(part) => without(run, part),
            Lack::KernelSymbols => without_kernel_symbols(run),
            Lack::Histograms => without_histograms(run),
        }
    }

    /// The same, and the run says so.
    fn noted(self, run: &Run) -> Run {
        let mut run = self.of(run);
        match self {
            Lack::Part(part) => {
                run.capabilities.retain(|capability| capability.part != part);
                let because = "not permitted".to_owned();
                run.capabilities.push(Capability { part, on: false, because });
            }
            Lack::KernelSymbols => {}
            Lack::Histograms => run.losses.seen.push((Losses::VALUES.to_owned(), 0, 1000)),
        }
        run
    }

    fn is_needed_by(self, cause: &Cause) -> bool {
        match self {
            Lack::Part(part) => cause.needs.parts.contains(&part),
            Lack::KernelSymbols => cause.needs.kernel_symbols,
            Lack::Histograms => cause.needs.histograms,
        }
    }
}

/// Time and packets that it claims; `None` if it is absent.
fn claimed(cause: &Cause, run: &Run) -> Option<(u64, u64)> {
    let run = divided(run);
    let claim = (cause.examine)(&Case::new(&run).asking(ALL)).ok()?;
    Some((claim.lost_ns(), claim.dropped))
}

/// Another verdict: claimed or not, packets or none, or less than half of the time, or twice.
fn is_another(whole: Option<(u64, u64)>, now: Option<(u64, u64)>) -> bool {
    let (Some((lost, dropped)), Some((lost_now, dropped_now))) = (whole, now) else {
        return whole.is_some() != now.is_some();
    };
    (dropped > 0) != (dropped_now > 0) || lost_now < lost / 2 || lost_now / 2 > lost
}

fn of_threads() -> impl Iterator<Item = &'static Cause> {
    ALL.iter().copied().filter(|cause| !is_of_ticks(cause))
}

#[test]
fn a_cause_names_everything_without_which_it_says_something_else_and_nothing_it_does_not_read() {
    let left = Mutex::new(of_threads());
    let wrong = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let Some(cause) = left.lock().unwrap().next() else { return };
                    let mut of_cause = wrongly_said(cause);
                    wrong.lock().unwrap().append(&mut of_cause);
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What it needs and does not name, or names and does not read.
fn wrongly_said(cause: &Cause) -> Vec<String> {
    let mut wrong = Vec::new();
    let run = run_of(cause);
    let whole = claimed(cause, &run);
    for lack in Lack::all() {
        let now = claimed(cause, &lack.of(&run));
        match lack.is_needed_by(cause) {
            false if is_another(whole, now) => {
                wrong.push(format!("{} needs {lack:?} and does not say so", cause.id));
            }
            true if whole == now => {
                wrong.push(format!("{} says it needs {lack:?} and does not", cause.id));
            }
            _ => {}
        }
    }
    wrong
}

#[test]
fn causes_of_late_ticks_are_found_by_the_ticks_alone() {
    for cause in ALL.iter().filter(|cause| is_of_ticks(cause)) {
        let run = fixture(&format!("{}-faulty", cause.id));
        let is_found = |run: &Run| {
            matches!(
                crate::why_not(run, cause.id.as_str()).unwrap().standing,
                Standing::Finding { .. }
            )
        };
        assert!(is_found(&run), "{}", cause.id);
        // Without the intervals of threads there is nothing that another part could add to.
        for part in [RecorderPart::Threads, RecorderPart::Timers] {
            assert!(is_found(&without(&run, part)), "{} without {part}", cause.id);
        }
    }
}

/// The runs of which everything that is said is looked at: of each kind of cause one, and healthy
/// ones.
const LOOKED_THROUGH: [&str; 4] =
    ["mm-reader-faulty", "fork-cow-faulty", "udp-rcvbuf-stall-faulty", "healthy-compiler"];

#[test]
fn what_was_not_recorded_acquits_no_cause() {
    for name in LOOKED_THROUGH {
        let whole = fixture(name);
        let is_needed = |lack: &Lack| of_threads().any(|cause| lack.is_needed_by(cause));
        for lack in Lack::all().filter(is_needed) {
            let run = lack.noted(&whole);
            let said = crate::explain(&run);
            let found: BTreeSet<&str> = said.findings.iter().map(|f| f.cause.as_str()).collect();
            let groups = said.not_looked_at.iter().flat_map(|group| &group.causes);
            let unseen: BTreeSet<&str> = groups.map(String::as_str).collect();
            let needing = of_threads().filter(|cause| lack.is_needed_by(cause));
            let needing: BTreeSet<&str> = needing.map(|cause| cause.id.as_str()).collect();
            if lack == Lack::KernelSymbols && whole.stacks.is_empty() {
                continue;
            }
            let open: BTreeSet<&str> = needing.difference(&found).copied().collect();
            assert!(open.is_subset(&unseen), "{name} {lack:?}: {open:?} {unseen:?}");
            for finding in &said.findings {
                for other in &finding.ruled_out {
                    let is_open = needing.contains(other.cause.as_str());
                    assert!(!is_open, "{name} {lack:?}: {} {other:?}", finding.cause);
                }
            }
        }
    }
}

#[test]
fn an_explanation_that_rests_on_a_part_that_was_off_is_not_excluded_either() {
    let run = fixture("memcg-reclaim-faulty");
    let first = |run: &Run| {
        let said = crate::explain(run).findings;
        said.into_iter().find(|finding| finding.cause == "memcg-reclaim").unwrap()
    };
    let swap = "reading pages back from swap";
    assert!(first(&run).excluded.iter().any(|other| other.what == swap));
    let blind = first(&Lack::Part(RecorderPart::Faults).noted(&run));
    assert!(blind.excluded.iter().all(|other| other.what != swap));
    let unseen = blind.not_looked_at.iter().find(|other| other.what == swap).unwrap();
    assert_eq!(unseen.because, "not looked at: part 'page faults' was off (not permitted)");
}
