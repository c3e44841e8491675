//! Time off the CPU by stack: one tree for all of it, and one for each account; and time on a CPU,
//! by samples, one for each of the threads with most.

use std::collections::{BTreeMap, HashMap};

use model::units::{count, duration, share_of};
use model::{Account, PathSum, Run, StackId};
use report::Class;
use report::export::Coverage;
use report::export::difference::{self, Moved};
use serde::Serialize;

/// What is narrower than this part of its tree is summed as "smaller".
const NARROWEST: u64 = 5000;

/// Threads whose time on a CPU has a tree.
const THREADS: usize = 12;

/// Kinds of frames of a tree of what differs begin here.
const DIFFERENCE: u8 = 4;

/// The trees of a run.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Flames {
    /// Names of frames; trees have places of this list.
    pub names: Vec<String>,
    /// The first is of all accounts off the CPU.
    pub trees: Vec<Tree>,
    /// The same from the other end: where threads slept is the root's neighbour.
    pub reversed: Vec<Tree>,
    /// Which part of the time off the CPU has a stack.
    pub coverage: String,
}

/// A tree: its frames in the order in which one walks it, each before what it calls.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Tree {
    /// Its account, as in JSON, or the thread that was on a CPU; empty: all off the CPU.
    pub account: String,
    /// Its time and n in words.
    pub about: String,
    /// Name of each frame, as a place in the names.
    pub name: Vec<u32>,
    /// 0: the root.
    pub depth: Vec<u32>,
    /// Time under it, itself included.
    pub ns: Vec<u64>,
    /// Intervals, or samples, under it.
    pub n: Vec<u64>,
    /// 0: a process or a sum; 1: a function of the program; 2: of the kernel; 3: not known. In a tree
    /// of what differs 4 and the place in the kinds of the comparison.
    pub kind: Vec<u8>,
    /// Functions with most time of their own, for those who read rather than look; not of a tree that is
    /// reversed, whose first row they are.
    pub top: Vec<TopRow>,
}

/// A function and the time that ended in it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct TopRow {
    /// Its name.
    pub name: String,
    /// Time, as people read it.
    pub time: String,
    /// Part of the tree, as people read it.
    pub share: String,
    /// Intervals.
    pub n: u64,
}

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// The root, a process, a sum of what is small.
    Other,
    User,
    Kernel,
    /// Not known.
    Missing,
    /// Of a stack that differs in this way.
    Differs(difference::Kind),
}

impl Kind {
    /// As in [`Tree::kind`].
    fn code(self) -> u8 {
        match self {
            Kind::Other => 0,
            Kind::User => 1,
            Kind::Kernel => 2,
            Kind::Missing => 3,
            Kind::Differs(kind) => DIFFERENCE + kind as u8,
        }
    }
}

#[derive(Default)]
struct Node {
    ns: u64,
    n: u64,
    below: BTreeMap<(Kind, String), Node>,
}

/// Places of names.
#[derive(Default)]
struct Names {
    places: HashMap<String, u32>,
    names: Vec<String>,
}

impl Names {
    fn place(&mut self, name: &str) -> u32 {
        if let Some(place) = self.places.get(name) {
            return *place;
        }
        let place = self.names.len() as u32;
        self.places.insert(name.to_owned(), place);
        self.names.push(name.to_owned());
        place
    }
}

/// Of a run.
pub fn flames(run: &Run) -> Flames {
    let mut names = Names::default();
    let mut time: BTreeMap<Account, u64> = BTreeMap::new();
    for sum in &run.sums.stack_sums {
        let entry = time.entry(sum.account).or_default();
        *entry = entry.saturating_add(sum.ns);
    }
    let mut accounts: Vec<_> = time.into_iter().collect();
    accounts.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    let several = accounts.len() > 1;
    let of_one = accounts.into_iter().filter(|_| several).map(|(account, _)| Some(account));
    let wanted: Vec<Option<Account>> = [None].into_iter().chain(of_one).collect();
    let on_cpu = threads_on_cpu(run);
    let mut trees = |from: From| -> Vec<Tree> {
        let off = wanted.iter().filter_map(|account| off_cpu(run, *account, from, &mut names));
        let off: Vec<Tree> = off.collect();
        let on =
            on_cpu.iter().filter_map(|(who, paths)| on_cpu_of(run, who, paths, from, &mut names));
        off.into_iter().chain(on.collect::<Vec<_>>()).collect()
    };
    let (trees, reversed) = (trees(From::Outermost), trees(From::Innermost));
    Flames { trees, reversed, names: names.names, coverage: Coverage::of(run).to_string() }
}

/// Which end of a stack is the root's neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum From {
    Outermost,
    Innermost,
}

/// Stacks with time and number, to be put together.
struct Growing {
    from: From,
    root: Node,
    own: BTreeMap<String, (u64, u64)>,
}

impl Growing {
    fn new(from: From) -> Growing {
        Growing { from, root: Node::default(), own: BTreeMap::new() }
    }

    fn add(&mut self, mut frames: Vec<(Kind, String)>, ns: u64, n: u64) {
        if let Some((_, last)) = frames.last() {
            let entry = self.own.entry(last.clone()).or_default();
            *entry = (entry.0.saturating_add(ns), entry.1.saturating_add(n));
        }
        if self.from == From::Innermost {
            frames.reverse();
        }
        self.root.add(frames, ns, n);
    }

    /// `None` if there is no time in it.
    fn tree(self, account: String, all: &str, counted: &str, names: &mut Names) -> Option<Tree> {
        let root = self.root;
        if root.ns == 0 {
            return None;
        }
        let mut made = Tree {
            account,
            about: format!("{}, n = {} {counted}", duration(root.ns), count(root.n)),
            top: if self.from == From::Outermost { top(self.own, root.ns) } else { Vec::new() },
            ..Tree::default()
        };
        push(&mut made, names, (Kind::Other, all), &root, 0, root.ns / NARROWEST);
        Some(made)
    }
}

fn off_cpu(run: &Run, account: Option<Account>, from: From, names: &mut Names) -> Option<Tree> {
    let mut growing = Growing::new(from);
    let sums = run.sums.stack_sums.iter();
    for sum in sums.filter(|sum| account.is_none_or(|account| account == sum.account)) {
        let mut frames = process(run, sum.tgid);
        side(run, sum.user, Kind::User, "[no user stack]", &mut frames);
        side(run, sum.kernel, Kind::Kernel, "[no kernel stack]", &mut frames);
        growing.add(frames, sum.ns, sum.count);
    }
    let all = account.map_or("all accounts".to_owned(), |account| {
        format!("{account}: {}", Class::of(account).name())
    });
    let key = account.map_or_else(String::new, |account| account.to_string());
    growing.tree(key, &all, "intervals", names)
}

/// The threads with most samples of running, and these.
fn threads_on_cpu(run: &Run) -> Vec<(String, Vec<&PathSum>)> {
    let mut threads: BTreeMap<u32, (u64, Vec<&PathSum>)> = BTreeMap::new();
    let sampled = run.sums.paths.iter().filter(|path| path.sampled && path.account.is_running());
    for path in sampled.filter(|path| path.tid != 0) {
        let thread = threads.entry(path.tid).or_default();
        thread.0 = thread.0.saturating_add(path.count);
        thread.1.push(path);
    }
    let mut threads: Vec<_> = threads.into_iter().collect();
    threads.sort_by_key(|(_, (samples, _))| std::cmp::Reverse(*samples));
    threads.truncate(THREADS);
    let named = threads.into_iter().map(|(tid, (_, paths))| {
        let thread = run.threads.iter().find(|thread| thread.tid == tid);
        let comm = thread.map_or("", |thread| thread.comm.as_str());
        (format!("on a CPU: {comm} (tid {tid})"), paths)
    });
    named.collect()
}

fn on_cpu_of(
    run: &Run,
    who: &str,
    paths: &[&PathSum],
    from: From,
    names: &mut Names,
) -> Option<Tree> {
    let mut growing = Growing::new(from);
    for path in paths {
        let mut frames = process(run, path.tgid);
        side(run, path.user, Kind::User, "[no user stack]", &mut frames);
        if path.kernel.is_some() {
            side(run, path.kernel, Kind::Kernel, "[no kernel stack]", &mut frames);
        }
        growing.add(frames, path.ns, path.count);
    }
    growing.tree(who.to_owned(), who, "samples", names)
}

impl Node {
    /// Adds time to a path of frames.
    fn add(&mut self, frames: Vec<(Kind, String)>, ns: u64, n: u64) {
        let mut node = self;
        for frame in frames {
            node.count(ns, n);
            node = node.below.entry(frame).or_default();
        }
        node.count(ns, n);
    }

    fn count(&mut self, ns: u64, n: u64) {
        self.ns = self.ns.saturating_add(ns);
        self.n = self.n.saturating_add(n);
    }
}

/// One tree of how stacks differ: below the root how, below that account and functions. Widths are
/// differences, and n is a number of stacks.
pub fn difference_tree(stacks: &[Moved], branches: String) -> Flames {
    let mut root = Node::default();
    for stack in stacks {
        let kind = Kind::Differs(stack.kind);
        let frames =
            std::iter::once(stack.kind.name()).chain(stack.frames.iter().map(String::as_str));
        let frames = frames.map(|name| (kind, name.to_owned())).collect();
        let ns = stack.ns.abs().round() as u64;
        if ns > 0 {
            root.add(frames, ns, 1);
        }
    }
    let mut names = Names::default();
    let mut made = Tree { about: branches, ..Tree::default() };
    if root.ns > 0 {
        push(&mut made, &mut names, (Kind::Other, "what differs"), &root, 0, root.ns / NARROWEST);
    }
    let trees = vec![made];
    Flames { trees, reversed: Vec::new(), names: names.names, coverage: String::new() }
}

/// Writes a node and all below it.
fn push(
    tree: &mut Tree,
    names: &mut Names,
    who: (Kind, &str),
    node: &Node,
    depth: u32,
    least: u64,
) {
    tree.name.push(names.place(who.1));
    tree.depth.push(depth);
    tree.ns.push(node.ns);
    tree.n.push(node.n);
    tree.kind.push(who.0.code());
    let (mut small, mut number) = (Node::default(), 0u64);
    for ((kind, name), below) in &node.below {
        if below.ns < least {
            small.ns = small.ns.saturating_add(below.ns);
            small.n = small.n.saturating_add(below.n);
            number += 1;
        } else {
            push(tree, names, (*kind, name), below, depth + 1, least);
        }
    }
    if small.ns >= least.max(1) {
        let name = format!("{number} smaller");
        push(tree, names, (Kind::Other, &name), &small, depth + 1, least);
    }
}

fn process(run: &Run, tgid: u32) -> Vec<(Kind, String)> {
    vec![(Kind::Other, format!("{} (pid {tgid})", run.comm(tgid)))]
}

/// Adds the functions of one side of a stack, outermost first.
fn side(run: &Run, id: Option<StackId>, kind: Kind, none: &str, frames: &mut Vec<(Kind, String)>) {
    let Some(stack) = id.and_then(|id| run.stacks.get(&id)) else {
        frames.push((Kind::Missing, none.to_owned()));
        return;
    };
    if stack.truncated {
        frames.push((Kind::Missing, "[cut short]".to_owned()));
    }
    frames.extend(stack.frames.iter().rev().map(|frame| (kind, frame.label())));
}

/// The functions that most time ended in.
fn top(own: BTreeMap<String, (u64, u64)>, total: u64) -> Vec<TopRow> {
    let mut rows: Vec<_> = own.into_iter().collect();
    rows.sort_by_key(|(_, (ns, _))| std::cmp::Reverse(*ns));
    rows.truncate(30);
    let row = |(name, (ns, n)): (String, (u64, u64))| TopRow {
        name,
        time: duration(ns),
        share: share_of(ns, total),
        n,
    };
    rows.into_iter().map(row).collect()
}
