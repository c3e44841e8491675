//! What threads that sleep on a futex wait for, as the names of the functions say in which they do.
//!
//! Who fills a queue waits for who empties it in the same way as the other way round: from both sides
//! one thread sleeps until another wakes it. Where nothing that the kernel sees tells them apart, the
//! words that programmers use do: a thread waits for room in `put`, `send` or `push`, for work in `get`,
//! `recv` or `pop`, and for what it has asked for in `result`. The innermost function with such a word
//! counts. Only waits that were kept with their stacks are known so; of the others, and of functions
//! with other names, nothing is said.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use model::{Account, Blocked, Frame, Outlier, OutlierKind, Run, Stack, StackId, WaitSum, part_of};

const FUTEX: Account = Account::Blocked(Blocked::Futex);

/// What a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    /// Room in a queue, for what it wants to put there.
    Room,
    /// What it has asked another thread for.
    Result,
    /// Something to do.
    Work,
    /// The same, in a function that waits for nothing else.
    NextJob,
    /// A lock.
    Lock,
    /// The last one of those that meet at a barrier.
    Barrier,
}

/// Functions in which a thread waits for others to come to a barrier: of the C library, Java, C++ and Boost, Rust
/// and Python, and GCC's OpenMP.
const BARRIERS: [[&str; 2]; 9] = [
    ["", "pthread_barrier_wait"],
    ["CyclicBarrier", "await"],
    ["CyclicBarrier", "dowait"],
    ["barrier", "wait"],
    ["barrier", "arrive_and_wait"],
    ["Barrier", "wait"],
    ["", "gomp_barrier_wait_end"],
    ["", "gomp_team_barrier_wait_end"],
    ["", "gomp_team_barrier_wait_final"],
];

/// Functions in which a thread waits for a lock and for nothing else: Java's monitors, PostgreSQL's locks
/// of what its processes share, the C library's for readers and writers, and those of [`TRANSACTIONS`].
const LOCKS: [[&str; 2]; 5] = [
    ["ObjectMonitor", "enter"],
    ["ObjectMonitor", "EnterI"],
    ["", "LWLockAcquire"],
    ["", "pthread_rwlock_rdlock"],
    ["", "pthread_rwlock_wrlock"],
];

/// The same of what a transaction has until it ends: rows of InnoDB (MariaDB, MySQL), and tables and what
/// GET_LOCK() names in both servers.
const TRANSACTIONS: [[&str; 2]; 4] = [
    ["", "lock_wait"],
    ["", "lock_wait_suspend_thread"],
    ["MDL_wait", "timed_wait"],
    ["MDL_context", "acquire_lock"],
];

/// File and function of an interpreter's library in which a thread waits for something to do, though no
/// word says so: workers of Python's concurrent.futures. Whatever it works on is in functions of its own.
const WORKERS: [(&str, &str); 1] = [("thread.py", "_worker")];

const ROOM: [&str; 6] = ["put", "send", "push", "offer", "enqueue", "publish"];
const RESULT: [&str; 1] = ["result"];
const WORK: [&str; 11] = [
    "get", "recv", "receive", "take", "pop", "poll", "dequeue", "accept", "consume", "fetch",
    "idle",
];
/// Getting or awaiting one of these is no work.
const PROMISED: [&str; 2] = ["future", "promise"];
const AWAITING: [&str; 4] = ["get", "wait", "await", "join"];
/// So many of the innermost functions are looked at: the rest is how the thread came to its work.
const INNERMOST: usize = 16;

/// Of the waits for one word that one process ended, as far as they were kept with a stack.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// Time by what the thread waited for, and by the function that says so.
    ns: BTreeMap<(Purpose, String), u64>,
    /// All of their time, that of functions which say nothing included.
    all_ns: u64,
    /// Threads that ended them.
    wakers: BTreeSet<u32>,
}

/// Process that waited, word, process that ended the wait.
type Key = (u32, u64, u32);

/// Of all waits of a run.
#[derive(Default)]
pub struct Purposes {
    by_word: BTreeMap<Key, Known>,
    by_stack: HashMap<StackId, Option<(Purpose, String)>>,
}

impl Purposes {
    pub fn of(run: &Run) -> Purposes {
        let mut by_word = BTreeMap::<Key, Known>::new();
        let mut by_stack = HashMap::new();
        let asleep = run.outliers.iter().filter(|outlier| {
            outlier.kind == OutlierKind::OffCpu && outlier.blocked == Some(Blocked::Futex)
        });
        for wait in asleep {
            let Some(waker) = &wait.waker else { continue };
            let Some(stack) = wait.user_stack.and_then(|id| run.stacks.get(&id)) else { continue };
            let purpose = by_stack.entry(stack.id).or_insert_with(|| purpose(stack)).as_ref();
            // What many stacks have in common, or frame pointers give of code without them, is too little.
            if purpose.is_none() && stack.truncated {
                continue;
            }
            let known = by_word.entry((wait.tgid, wait.object, waker.tgid)).or_default();
            let ns = wait.breakdown.get(FUTEX);
            known.wakers.insert(waker.tid);
            known.add(purpose, ns);
        }
        // Waits of which none has ended are in no interval.
        for wait in run.sums.waits.iter().filter(|wait| is_never_ended(wait)) {
            let Some(stack) = wait.open_at.and_then(|id| run.stacks.get(&id)) else { continue };
            let purpose = by_stack.entry(stack.id).or_insert_with(|| purpose(stack)).as_ref();
            by_word
                .entry((wait.tgid, wait.object, wait.waker_tgid))
                .or_default()
                .add(purpose, wait.ns);
        }
        Purposes { by_word, by_stack }
    }

    /// What a wait that was kept was for, if it says so.
    pub fn of_wait(&self, wait: &Outlier) -> Option<Purpose> {
        let known = self.by_stack.get(&wait.user_stack?)?.as_ref();
        known.map(|(purpose, _)| *purpose)
    }

    /// The words of processes at which most waits, of those that were kept, are at a barrier.
    pub fn barriers(&self) -> BTreeSet<(u32, u64)> {
        let mut words = BTreeMap::<(u32, u64), (u64, u64)>::new();
        for ((tgid, word, _), known) in &self.by_word {
            let (at_barrier, all) = words.entry((*tgid, *word)).or_default();
            *at_barrier = at_barrier.saturating_add(known.ns_for(Purpose::Barrier));
            *all = all.saturating_add(known.all_ns);
        }
        words.retain(|_, (at_barrier, all)| *at_barrier > *all / 2);
        words.into_keys().collect()
    }

    /// Of these waits, if any was kept with its stack.
    pub fn known(&self, wait: &WaitSum) -> Option<&Known> {
        (wait.account == FUTEX)
            .then(|| self.by_word.get(&(wait.tgid, wait.object, wait.waker_tgid)))
            .flatten()
    }
}

fn is_never_ended(wait: &WaitSum) -> bool {
    wait.account == FUTEX && wait.open > 0 && wait.open == wait.count
}

impl Known {
    fn add(&mut self, purpose: Option<&(Purpose, String)>, ns: u64) {
        self.all_ns = self.all_ns.saturating_add(ns);
        if let Some(purpose) = purpose {
            let sum = self.ns.entry(purpose.clone()).or_default();
            *sum = sum.saturating_add(ns);
        }
    }

    /// The part of such waits that was for this.
    pub fn part_for(&self, wait: &WaitSum, purpose: Purpose) -> WaitSum {
        let of_it = self.ns_for(purpose);
        let part = |all: u64| part_of(all, of_it, self.all_ns);
        WaitSum {
            count: part(wait.count),
            ns: part(wait.ns),
            ends: wait.ends.iter().map(|(end, ns)| (*end, part(*ns))).collect(),
            ..wait.clone()
        }
    }

    fn ns_for(&self, purpose: Purpose) -> u64 {
        let times = self.ns.iter().filter(|((other, _), _)| *other == purpose);
        times.fold(0, |sum, (_, ns)| sum.saturating_add(*ns))
    }

    /// The function that shows it most.
    pub fn function(&self, purpose: Purpose) -> Option<&str> {
        let of_it = self.ns.iter().filter(|((other, _), _)| *other == purpose);
        of_it.max_by_key(|(_, ns)| **ns).map(|((_, function), _)| function.as_str())
    }

    /// Threads that ended them.
    pub fn wakers(&self) -> &BTreeSet<u32> {
        &self.wakers
    }
}

/// What a thread with this stack waits for, with the function that says so. An interpreter's own code waits for
/// the innermost function of the program that it runs: of a worker, in a queue's `get`.
fn purpose(stack: &Stack) -> Option<(Purpose, String)> {
    let innermost = || stack.frames.iter().take(INNERMOST);
    let next_job = innermost().find(|frame| frame.source.is_some()).and_then(next_job);
    next_job.or_else(|| innermost().find_map(|frame| of_function(frame.symbol.as_deref()?)))
}

fn next_job(interpreted: &Frame) -> Option<(Purpose, String)> {
    let (file, symbol) = (interpreted.module.rsplit('/').next()?, interpreted.symbol.as_deref()?);
    WORKERS.contains(&(file, symbol)).then(|| (Purpose::NextJob, symbol.to_owned()))
}

fn of_function(symbol: &str) -> Option<(Purpose, String)> {
    let path = path(symbol);
    let (function, around) = path.split_last()?;
    let of = around.last().map_or("", String::as_str);
    let named = if of.is_empty() { function.clone() } else { format!("{of}::{function}") };
    if is_one_of(&LOCKS, of, function) || is_one_of(&TRANSACTIONS, of, function) {
        return Some((Purpose::Lock, named));
    }
    if is_one_of(&BARRIERS, of, function) {
        return Some((Purpose::Barrier, named));
    }
    let words = words(function);
    let has = |of: &[&str]| words.iter().any(|word| of.contains(&word.as_str()));
    let is_promised = || {
        let mut all = path.iter().flat_map(|part| self::words(part));
        all.any(|word| PROMISED.contains(&word.as_str()))
    };
    let purpose = match (has(&ROOM), has(&WORK), has(&RESULT)) {
        (_, _, true) => Purpose::Result,
        _ if has(&AWAITING) && is_promised() => Purpose::Result,
        (true, false, false) => Purpose::Room,
        (false, true, false) => Purpose::Work,
        _ => return None,
    };
    Some((purpose, named))
}

/// True if a lock that threads wait for in this function is kept until a transaction ends.
pub fn is_of_transactions(named: &str) -> bool {
    let (of, function) = named.rsplit_once("::").unwrap_or(("", named));
    is_one_of(&TRANSACTIONS, of, function)
}

fn is_one_of(names: &[[&str; 2]], of: &str, function: &str) -> bool {
    let plain = function.trim_start_matches('_');
    let plain = plain.strip_prefix("GI_").map_or(plain, |name| name.trim_start_matches('_'));
    names.iter().any(|[class, name]| plain == *name && (class.is_empty() || of == *class))
}

/// The parts of a function's name, without types, parameters and what a compiler split off:
/// `std::sync::mpmc::array::Channel<T>::send::{{closure}}`, `Queue.put`, `main.(*Queue).Put`,
/// `ns::Queue<int>::push(int) const`.
pub fn path(symbol: &str) -> Vec<String> {
    let mut depth = 0u32;
    let mut plain = String::new();
    for letter in symbol.chars() {
        match letter {
            '<' | '(' | '{' | '[' => depth += 1,
            '>' | ')' | '}' | ']' => depth = depth.saturating_sub(1),
            _ if depth == 0 => plain.push(letter),
            _ => {}
        }
    }
    // `<Channel<T>>::send` has its type in brackets alone.
    let before = symbol.strip_prefix('<').and_then(|rest| rest.split(['<', '>', ' ']).next());
    let name = plain.split_whitespace().rfind(|part| *part != "const").unwrap_or("");
    let parts = before.into_iter().flat_map(split).chain(split(name));
    parts.filter(|part| !is_split_off(part)).map(str::to_owned).collect()
}

fn split(name: &str) -> impl Iterator<Item = &str> {
    name.split(['.', ':']).filter(|part| !part.is_empty())
}

fn is_split_off(part: &str) -> bool {
    let is_number = part.chars().all(|letter| letter.is_ascii_digit());
    is_number || ["part", "isra", "constprop", "cold", "lto_priv"].contains(&part)
}

/// `putAll`, `mpmc_bounded_push`, `MPQueuePut`: the words of a name, in small letters.
pub fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut last = '_';
    for letter in name.chars() {
        let begins = letter.is_uppercase() && !last.is_uppercase();
        if (begins || !letter.is_alphabetic()) && words.last().is_some_and(|word| !word.is_empty())
        {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| letter.is_alphabetic()) {
            word.extend(letter.to_lowercase());
        }
        last = letter;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RunBuilder, SECOND, user_stack, wait};

    #[test]
    fn functions_of_barriers_are_known() {
        for symbol in [
            "pthread_barrier_wait",
            "__GI___pthread_barrier_wait",
            "std::barrier<std::__empty_completion>::arrive_and_wait()",
            "boost::barrier::wait()",
            "std::sync::barrier::Barrier::wait",
            "java.util.concurrent.CyclicBarrier.await",
            "gomp_team_barrier_wait_end",
        ] {
            assert_eq!(of(symbol), Some(Purpose::Barrier), "{symbol}");
        }
        assert_eq!(of("barrier_sleep"), None);
    }

    /// Nobody has ended the wait, so that there is no interval with its stack.
    #[test]
    fn a_wait_that_has_not_ended_is_known_by_where_it_stands() {
        let stack = user_stack("__pthread_rwlock_wrlock");
        let open = WaitSum { open: 1, open_at: Some(stack.id), ..wait(10, FUTEX, 0x10, 1, SECOND) };
        let mut run = RunBuilder::new().wait(open.clone()).build();
        run.stacks.insert(stack.id, stack);
        let purposes = Purposes::of(&run);
        let known = purposes.known(&open).unwrap();
        assert_eq!(known.part_for(&open, Purpose::Lock).ns, SECOND);
        let ended = WaitSum { count: 2, ..open };
        run.sums.waits = vec![ended.clone()];
        assert!(Purposes::of(&run).known(&ended).is_none(), "the other one may have been another");
    }

    fn of(symbol: &str) -> Option<Purpose> {
        of_function(symbol).map(|(purpose, _)| purpose)
    }

    #[test]
    fn names_of_many_languages_say_what_a_thread_waits_for() {
        for symbol in [
            "std::sync::mpmc::array::Channel<T>::send::{{closure}}",
            "<std::sync::mpmc::zero::Channel<T>>::send",
            "Queue.put",
            "rb_szqueue_push",
            "ns::Bounded<int>::push(int const&) const",
            "main.(*Queue).Put",
            "queue_put.part.0",
            "java.util.concurrent.ArrayBlockingQueue.put",
            "spdlog::details::mpmc_blocking_queue<msg>::enqueue(msg&&)",
            "sendOrder",
        ] {
            assert_eq!(of(symbol), Some(Purpose::Room), "{symbol}");
        }
        for symbol in [
            "std::sync::mpmc::list::Channel<T>::recv",
            "SimpleQueue.get",
            "java.util.concurrent.LinkedBlockingQueue.take",
            "queue_pop",
            "worker_get_job",
        ] {
            assert_eq!(of(symbol), Some(Purpose::Work), "{symbol}");
        }
        for symbol in [
            "ObjectMonitor::enter(JavaThread*)",
            "LWLockAcquire.isra.0",
            "___pthread_rwlock_wrlock",
            "lock_wait(que_thr_t*)",
            "MDL_context::acquire_lock(MDL_request*, double)",
        ] {
            assert_eq!(of(symbol), Some(Purpose::Lock), "{symbol}");
        }
        for symbol in [
            "Future.result",
            "java.util.concurrent.FutureTask.get",
            "std::future<int>::get()",
            "std::promise<void>::wait",
        ] {
            assert_eq!(of(symbol), Some(Purpose::Result), "{symbol}");
        }
    }

    #[test]
    fn names_that_say_nothing_or_both() {
        for symbol in [
            "pthread_cond_wait",
            "PyThread_acquire_lock_timed",
            "send_and_receive",
            "sender",
            "Input::wait",
            "compute(Queue::put)",
            "Room::enter",
            "acquire_lock",
            "__lll_lock_wait",
            "",
        ] {
            assert_eq!(of(symbol), None, "{symbol}");
        }
    }
}
