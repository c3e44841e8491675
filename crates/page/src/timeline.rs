//! Intervals kept whole, as lanes of threads over time.

use std::collections::{BTreeSet, HashMap};

use model::units::{count, duration};
use model::{Account, Context, Outlier, OutlierKind, Run};
use report::Class;
use serde::Serialize;

use crate::chain::Picture;
use crate::run::left_out;

/// Intervals that are shown in words: the longest, and those of pictures.
const DETAILS: usize = 400;

/// Frames of a stack that are shown.
const FRAMES: usize = 24;

/// The moment on the monotonic clock that a run began at.
#[derive(Clone, Copy, Debug)]
pub struct Origin(pub u64);

impl Origin {
    /// Time since the start of the run.
    pub fn since(self, ns: u64) -> u64 {
        ns.saturating_sub(self.0)
    }
}

/// Intervals kept whole, those of a thread together in time order.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Timeline {
    /// Threads that have any, those with most of their time first.
    pub lanes: Vec<Lane>,
    /// The intervals. They are not in the JSON but in bytes behind it (`wire.rs`).
    #[serde(skip)]
    pub intervals: Intervals,
    /// The longest, and those of pictures, in words.
    pub details: Vec<Detail>,
    /// How many the run has.
    pub total: u64,
    /// What is drawn of how many.
    pub basis: String,
}

/// Intervals, column by column: what stands at one place of each is one of them. First all of the
/// first lane, then all of the next.
#[derive(Clone, Debug, Default)]
pub struct Intervals {
    /// Begin of each, since the start of the run.
    pub from_ns: Vec<u64>,
    /// Length of each.
    pub length_ns: Vec<u64>,
    /// Class of its largest account, by place.
    pub class: Vec<u8>,
    /// True where it is a whole system call, which may have others within it.
    pub outer: Vec<bool>,
    /// Lane of the thread that ended it, if that is one of these.
    pub waker: Vec<Option<u32>>,
}

/// A thread.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Lane {
    /// Thread id.
    pub tid: u32,
    /// Its name and number; and its process, where threads of several have lanes.
    pub name: String,
    /// How many intervals it has.
    pub n: u32,
}

/// An interval in words.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Detail {
    /// Its place in the columns.
    pub place: usize,
    /// Its number in `show` and `explain --outlier`: 1 is the longest.
    pub number: usize,
    /// What it was.
    pub text: String,
    /// Who ended it, held the lock or ran meanwhile.
    pub others: Vec<String>,
    /// Functions, innermost first, the kernel's before the program's.
    pub stack: Vec<String>,
    /// The command that explains it.
    pub command: String,
}

/// The lanes of a run, of whose findings there are these pictures.
pub fn timeline(
    run: &Run,
    intervals: &[Outlier],
    pictures: &[Picture],
    name: &str,
    origin: Origin,
) -> Timeline {
    let own: Vec<&Outlier> = intervals.iter().filter(|o| o.kind.is_own_time()).collect();
    let (lanes, lane_of) = lanes(run, &own);
    let lane = |tid: u32| lane_of.get(&tid).copied();
    let mut order: Vec<(Option<u32>, &Outlier)> = own.iter().map(|o| (lane(o.tid), *o)).collect();
    order.sort_by_key(|(lane, o)| (*lane, o.start_ns, std::cmp::Reverse(o.duration_ns)));
    let mut made = Timeline { lanes, total: run.outlier_count, ..Timeline::default() };
    let mut places: HashMap<(u32, u64, u64, OutlierKind), usize> = HashMap::new();
    let all = &mut made.intervals;
    for (place, (_, outlier)) in order.iter().enumerate() {
        places.insert(key(outlier), place);
        all.from_ns.push(origin.since(outlier.start_ns));
        all.length_ns.push(outlier.duration_ns);
        all.class.push(Class::of(largest(outlier)).place() as u8);
        all.outer.push(outlier.kind == OutlierKind::Syscall);
        let waker = outlier.waker.as_ref().filter(|waker| waker.context == Context::Task);
        all.waker.push(waker.and_then(|waker| lane(waker.tid)));
    }
    let is_told =
        |place: usize| place < DETAILS || pictures.iter().any(|one| one.number == place + 1);
    for (place, outlier) in run.outliers.iter().enumerate().filter(|(place, _)| is_told(*place)) {
        if let Some(at) = places.get(&key(outlier)) {
            made.details.push(detail(run, outlier, *at, place + 1, name));
        }
    }
    made.basis = basis(run, order.len() as u64, intervals);
    made
}

fn key(outlier: &Outlier) -> (u32, u64, u64, OutlierKind) {
    (outlier.tid, outlier.start_ns, outlier.duration_ns, outlier.kind)
}

/// The account that most of an interval was in.
pub(crate) fn largest(outlier: &Outlier) -> Account {
    let parts = outlier.breakdown.largest_first();
    parts.first().map_or(Account::Unaccounted, |(account, _)| *account)
}

/// The threads, those with most time in intervals first.
fn lanes(run: &Run, own: &[&Outlier]) -> (Vec<Lane>, HashMap<u32, u32>) {
    let mut time: HashMap<u32, (u64, &str, u32, u32)> = HashMap::new();
    for outlier in own {
        let entry = time.entry(outlier.tid).or_insert((0, &outlier.comm, outlier.tgid, 0));
        entry.0 = entry.0.saturating_add(outlier.duration_ns);
        entry.3 += 1;
    }
    let mut order: Vec<_> = time.into_iter().collect();
    order.sort_by_key(|(tid, (ns, ..))| (std::cmp::Reverse(*ns), *tid));
    let numbers = order.iter().enumerate().map(|(place, (tid, _))| (*tid, place as u32)).collect();
    let processes: BTreeSet<u32> = order.iter().map(|(_, (_, _, tgid, _))| *tgid).collect();
    let lane = |(tid, (_, comm, tgid, n)): (u32, (u64, &str, u32, u32))| {
        // Where all are of one process, its name is no news.
        let name = match tid == tgid || processes.len() == 1 {
            true => format!("{comm} {tid}"),
            false => format!("{comm} {tid}, of {} {tgid}", run.comm(tgid)),
        };
        Lane { tid, name, n }
    };
    (order.into_iter().map(lane).collect(), numbers)
}

fn detail(run: &Run, outlier: &Outlier, place: usize, number: usize, name: &str) -> Detail {
    Detail {
        place,
        number,
        text: report::outlier::sentence(outlier, run),
        others: others(outlier),
        stack: stack(run, outlier),
        command: format!("whylag explain {name} --outlier {number}"),
    }
}

/// Who had to do with it.
fn others(outlier: &Outlier) -> Vec<String> {
    let holder = outlier.holder.iter().map(|holder| {
        let call = holder.call.map_or_else(String::new, |call| format!(" in {call}"));
        let time = duration(holder.overlap_ns);
        format!("{} (tid {}) had the lock{call} for {time} of it", holder.comm, holder.tid)
    });
    let runners = outlier.ran_instead.iter().map(|runner| {
        let time = duration(runner.ns);
        format!("{} (tid {}) ran on that CPU for {time} of it", runner.comm, runner.tid)
    });
    let waker = outlier.waker.iter().map(|waker| {
        let from = if waker.context == Context::Task { "" } else { "an interrupt on the CPU of " };
        format!("ended by {from}{} (tid {})", waker.comm, waker.tid)
    });
    holder.chain(runners).chain(waker).collect()
}

fn stack(run: &Run, outlier: &Outlier) -> Vec<String> {
    let frames = |id: Option<model::StackId>| {
        let stack = id.and_then(|id| run.stacks.get(&id));
        stack.map_or(&[][..], |stack| stack.frames.as_slice()).iter().map(|frame| frame.label())
    };
    let kernel = frames(outlier.kernel_stack).map(|name| format!("{name} [kernel]"));
    kernel.chain(frames(outlier.user_stack)).take(FRAMES).collect()
}

fn basis(run: &Run, drawn: u64, intervals: &[Outlier]) -> String {
    let threshold = duration(run.header.threshold_ns);
    format!("n = {} intervals of {threshold} and longer{}", count(drawn), left_out(run, intervals))
}
