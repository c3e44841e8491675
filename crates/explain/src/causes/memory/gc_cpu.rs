//! gc-cpu: the garbage collector of a program takes much of its CPU time.
//!
//! Go, and V8 in Node.js and browsers, look for the memory that is still used while the program runs.
//! That takes CPU time in proportion to what the program allocates and to what it keeps, and the less
//! room the heap has beyond what is kept, the more often. Go plans with a quarter of its CPUs while it
//! marks; a goroutine that allocates faster than that has to help (an assist), in the middle of whatever
//! it does. V8 scavenges and compacts on the thread of the event loop: nothing else runs there meanwhile.
//!
//! # Evidence
//!
//! CPU samples whose user stack is in the collector, by the functions of the runtime: a quarter of the
//! process's CPU time, or more. What Go's workers do on a CPU that would be idle otherwise is left out.
//! A program without symbols shows nothing. Stops of the JVM are jvm-gc's.
//!
//! # Without whylag
//!
//!     GODEBUG=gctrace=1 ./server                 # each collection of Go: shares, CPU time, heap
//!     go tool pprof -top http://HOST/debug/pprof/profile
//!     node --trace-gc server.js                  # each collection of V8, ms
//!     perf record -g -p PID -- sleep 5           # CPU time under gcAssistAlloc, gcBgMarkWorker
//!
//! # Sources
//!
//! src/runtime/mgc.go, mgcpacer.go (gcBackgroundUtilization) and mgcmark.go of Go; "A Guide to the Go
//! Garbage Collector" (go.dev/doc/gc-guide); src/heap of V8.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use model::{Accounts, RecorderPart, Stack, StackId, part_of};

use crate::case::Case;
use crate::case::lost::{Class, class};
use crate::case::slowest::cost;
use crate::cause::{Absent, Cause, Claim, Needs, OfRequests, Verdict};
use crate::causes::ids;
use crate::judge::LEAST_OF_REQUESTS;
use crate::text::{count, duration, percent};

pub const CAUSE: Cause = Cause {
    id: ids::GC_CPU,
    title: "a garbage collector takes much of a program's CPU time",
    fix: "Allocate less on the hot path, and keep less. Or give the heap more room, so that it is \
          collected less often.",
    reproduce: "WHYLAG_SERVER=go_gc make test-servers",
    needs: Needs::parts(&[RecorderPart::Threads, RecorderPart::Samples]),
    look_alikes: &[],
    symptom: false,
    examine,
};

/// A runtime by its functions, as their symbols begin.
struct Runtime {
    name: &'static str,
    collector: &'static [&'static str],
    /// Of these what runs in a thread of the program, which did not ask for it.
    in_the_way: &'static [&'static str],
    /// On CPUs that would be idle.
    idle: &'static [&'static str],
    what_in_the_way: &'static str,
    fix: &'static str,
}

const RUNTIMES: [Runtime; 2] = [
    Runtime {
        name: "Go",
        collector: &[
            "runtime.bgscavenge",
            "runtime.bgsweep",
            "runtime.gcAssistAlloc",
            "runtime.gcBgMarkWorker",
            "runtime.gcDrain",
            "runtime.gcMark",
            "runtime.gcStart",
            "runtime.gcSweep",
            "runtime.(*sweepLocked).sweep",
            "runtime.wbBufFlush",
        ],
        in_the_way: &["runtime.gcAssistAlloc", "runtime.(*mcentral).cacheSpan"],
        idle: &["runtime.gcDrainMarkWorkerIdle"],
        what_in_the_way: "goroutines that allocate, and so have to help (gcAssistAlloc, sweep)",
        fix: "Allocate less on the hot path ('go tool pprof -sample_index=alloc_space' says where; \
              sync.Pool, buffers that are kept, values instead of pointers), and keep fewer pointers. \
              Or give the heap more room: GOGC=200 and more, best with GOMEMLIMIT.",
    },
    Runtime {
        name: "V8",
        collector: &[
            "v8::internal::ConcurrentMarking::",
            "v8::internal::Heap::CollectGarbage",
            "v8::internal::Heap::PerformGarbageCollection",
            "v8::internal::IncrementalMarking",
            "v8::internal::MarkCompactCollector::",
            "v8::internal::MinorMark",
            "v8::internal::PageEvacuation",
            "v8::internal::Scavenge",
            "v8::internal::Sweeper::",
        ],
        in_the_way: &[
            "v8::internal::Heap::CollectGarbage",
            "v8::internal::Heap::PerformGarbageCollection",
        ],
        idle: &[],
        what_in_the_way: "the thread that runs JavaScript (Heap::CollectGarbage)",
        fix: "Allocate less on the hot path ('node --heap-prof' says where), and keep less. Or give the \
              young generation more room, where most of it dies: --max-semi-space-size=64 and more; and \
              the heap: --max-old-space-size.",
    },
];

/// A collector takes this part of the CPU time of its process, at least. It is what Go plans with while
/// it marks.
const PART: u64 = 4;
/// Fewer samples show no part.
const SAMPLES: u64 = 20;

/// What a collector took of a process.
#[derive(Default)]
struct Collected {
    accounts: Accounts,
    samples: u64,
    /// In threads of the program.
    in_the_way_ns: u64,
    /// The samples of each runtime.
    of: [u64; RUNTIMES.len()],
}

fn examine(case: &Case) -> Verdict {
    let mut all = collected(case);
    if all.is_empty() {
        return Err(Absent("no sample was in a garbage collector that is known".to_owned()));
    }
    let cpu_ns = |tgid: u32| {
        let accounts = case.process(tgid);
        accounts.map_or(0, |accounts| accounts.sum_of(|account| class(account) == Class::Work))
    };
    let most = |all: &BTreeMap<u32, Collected>| {
        all.iter().max_by_key(|(_, one)| one.accounts.total()).map(|(tgid, _)| *tgid)
    };
    let largest = most(&all).unwrap_or_default();
    let of_largest = all.get(&largest).map_or(0, |one| one.accounts.total());
    all.retain(|tgid, one| {
        one.samples >= SAMPLES && one.accounts.total() >= cpu_ns(*tgid).div_ceil(PART)
    });
    let Some(tgid) = most(&all) else {
        return Err(Absent(format!(
            "the garbage collector of {} took {} of its CPU time, {}: less than {}",
            case.process_name(largest),
            percent(of_largest, cpu_ns(largest)),
            duration(of_largest),
            percent(1, PART)
        )));
    };

    let one = &all[&tgid];
    let place = (0..RUNTIMES.len()).max_by_key(|place| one.of[*place]).unwrap_or_default();
    let runtime = &RUNTIMES[place];
    let ns = one.accounts.total();
    let part = percent(ns, cpu_ns(tgid));
    let process = case.process_name(tgid);
    let mut lost = Accounts::default();
    all.values().for_each(|one| lost.merge(&one.accounts));
    let title = format!("the garbage collector of {process} takes {part} of its CPU time");
    let mut claim = Claim::new(title, lost, all.values().map(|one| one.samples).sum());
    claim.fix = Some(runtime.fix);
    claim.requests = of_requests(case, tgid, ns, cpu_ns(tgid));
    claim.mechanism(format!(
        "{}'s collector was on a CPU for {} of the {} of {process}",
        runtime.name,
        duration(ns),
        duration(cpu_ns(tgid))
    ));
    claim.trigger(format!(
        "{} of that ran in {}",
        duration(one.in_the_way_ns),
        runtime.what_in_the_way
    ));
    claim.saw(
        format!("{} samples on a CPU were in the collector", count(one.samples)),
        "user stacks of on-CPU samples, by the functions of the runtime",
    );
    Ok(claim)
}

/// What it takes of the slowest requests: of the time that their threads ran the part that it has of
/// that of the process. Goroutines and collector share their threads, so that it is not known of one
/// request. `None` where it is little.
fn of_requests(case: &Case, tgid: u32, ns: u64, cpu_ns: u64) -> Option<OfRequests> {
    let programs = case.run.messages.programs.iter().filter(|program| program.tgid == tgid);
    let programs: BTreeSet<u32> = programs.map(|program| program.program).collect();
    let slowest = cost(case.slowest(), |one| {
        let times = one.parts.iter().flat_map(|part| &part.time);
        // What is in no interval that was kept ran, as a rule.
        let ran = times.filter(|time| time.account.is_none_or(|a| class(a) == Class::Work));
        let ran = ran.map(|time| time.ns).fold(0, u64::saturating_add);
        if programs.contains(&one.message.program) { part_of(ran, ns, cpu_ns) } else { 0 }
    });
    let of_all = slowest.share();
    (of_all >= LEAST_OF_REQUESTS).then_some(OfRequests { slowest, of_all })
}

/// What collectors took, by process.
fn collected(case: &Case) -> BTreeMap<u32, Collected> {
    let mut known = HashMap::<StackId, Option<(usize, bool)>>::new();
    let mut all = BTreeMap::<u32, Collected>::new();
    for path in case.run.sums.paths.iter().filter(|path| path.sampled) {
        let Some(id) = path.user else { continue };
        let within = *known.entry(id).or_insert_with(|| case.run.stacks.get(&id).and_then(within));
        let Some((runtime, is_in_the_way)) = within else { continue };
        let ns = case.ns_of(path);
        let one = all.entry(path.tgid).or_default();
        one.accounts.add(path.account, ns);
        one.samples = one.samples.saturating_add(path.count);
        one.of[runtime] = one.of[runtime].saturating_add(path.count);
        if is_in_the_way {
            one.in_the_way_ns = one.in_the_way_ns.saturating_add(ns);
        }
    }
    all
}

/// The runtime whose collector a stack is in, and whether it runs there in the program's way.
fn within(stack: &Stack) -> Option<(usize, bool)> {
    let native = || stack.frames.iter().filter(|frame| frame.source.is_none());
    let has = |names: &[&str]| {
        let mut symbols = native().filter_map(|frame| frame.symbol.as_deref());
        symbols.any(|symbol| names.iter().any(|name| symbol.starts_with(name)))
    };
    let runtime = RUNTIMES.iter().position(|runtime| has(runtime.collector))?;
    let Runtime { idle, in_the_way, .. } = &RUNTIMES[runtime];
    (!has(idle)).then(|| (runtime, has(in_the_way)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::requests::{request, served};
    use crate::testing::{RunBuilder, SECOND, USER};

    const ASSIST: [&str; 3] = ["runtime.scanobject", "runtime.gcAssistAlloc1", "main.serve"];
    const WORKER: [&str; 2] = ["runtime.scanobject", "runtime.gcBgMarkWorker.func2"];
    const IDLE: [&str; 3] =
        ["runtime.scanobject", "runtime.gcDrainMarkWorkerIdle", "runtime.gcBgMarkWorker.func2"];
    const OWN: [&str; 2] = ["runtime.mallocgc", "main.serve"];

    fn run(samples: &[(&[&str], u64)]) -> model::Run {
        let mut run = RunBuilder::new().thread(10, 10, &[(USER, 2 * SECOND)]);
        for (frames, count) in samples {
            run = run.sampled_in_user(10, USER, frames, *count);
        }
        run.build()
    }

    #[test]
    fn claimed_with_what_runs_in_the_way_of_the_program() {
        let run = run(&[(&ASSIST, 400), (&WORKER, 200), (&IDLE, 400), (&OWN, 1_000)]);
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!((claim.lost.get(USER), claim.waits), (6 * SECOND / 10, 600));
        assert!(claim.title.contains("takes 30 % of its CPU time"), "{}", claim.title);
        assert!(claim.chain[1].text.starts_with("400 ms of that ran in goroutines"));
        assert!(claim.fix.unwrap().contains("GOGC"));
        assert_eq!(crate::explain(&run).findings[0].cause, "gc-cpu");
    }

    /// Each 100 ms a request that runs for 90 ms.
    #[test]
    fn requests_lose_their_part_of_what_runs() {
        let run = run(&[(&ASSIST, 1_000), (&OWN, 1_000)]);
        let requests = (0..20).map(|n| request(1, 10, 1000 + 100 * n, 0, 90)).collect();
        let run = served(run, requests);
        let cost = examine(&Case::new(&run)).unwrap().requests.unwrap().slowest;
        assert_eq!((cost.with, cost.of), (20, 20));
        assert!((cost.share() - 0.5).abs() < 0.01, "{cost:?}");
    }

    #[test]
    fn a_collector_of_v8_is_known_by_the_begin_of_its_symbols() {
        let scavenge = ["v8::internal::ScavengerCollector::CollectGarbage()"];
        let heap = ["x", "v8::internal::Heap::CollectGarbage(v8::internal::AllocationSpace, int)"];
        let run = run(&[(&scavenge, 300), (&heap, 400), (&["main"], 1_300)]);
        let claim = examine(&Case::new(&run)).unwrap();
        assert!(claim.chain[0].text.starts_with("V8's collector was on a CPU for 700 ms"));
        assert!(claim.chain[1].text.starts_with("400 ms of that"));
    }

    #[test]
    fn not_claimed_where_it_takes_what_a_collector_usually_does() {
        let few = run(&[(&ASSIST, 200), (&WORKER, 200), (&IDLE, 1_000), (&OWN, 600)]);
        let Absent(why) = examine(&Case::new(&few)).unwrap_err();
        assert!(why.contains("20 % of its CPU time, 400 ms: less than 25 %"), "{why}");
        let none = run(&[(&OWN, 2_000)]);
        assert!(examine(&Case::new(&none)).is_err());
    }
}
