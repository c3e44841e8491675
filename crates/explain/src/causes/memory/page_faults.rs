//! Page faults on a CPU by kind, and memory given back: what the causes about memory share.

use std::collections::BTreeMap;

use model::{Account, Accounts, EventKind, Metric, MetricSecond, PathSum, Syscall, Target};

use crate::case::Case;
use crate::case::kernel_paths::PathTime;
use crate::cause::Claim;
use crate::text::{duration, percent, quantiles};

/// Where the kernel makes a page for memory that is no file: 4 KiB ones, and huge ones.
const NEW: [&str; 4] = [
    "do_anonymous_page",
    "alloc_anon_folio",
    "do_huge_pmd_anonymous_page",
    "vma_alloc_anon_folio_pmd",
];
/// The same where these are parts of their caller: the page is made and zeroed.
const ZEROED: [&str; 8] = [
    "vma_alloc_folio",
    "vma_alloc_folio_noprof",
    "clear_page_erms",
    "clear_page_rep",
    "clear_page_orig",
    "clear_huge_page",
    "folio_zero_user",
    "folio_add_new_anon_rmap",
];
/// Pages are zeroed there as well: for files in memory, for tables of pages.
const ZEROED_FOR_OTHERS: [&str; 5] =
    ["__do_fault", "shmem_get_folio_gfp", "shmem_fault", "__pte_alloc", "__pmd_alloc"];
/// Where it copies a page that is shared and written to.
const COPIED: [&str; 3] = ["wp_page_copy", "do_wp_page", "do_huge_pmd_wp_page"];
/// Calls that copy an address space; threads are made by clone3 or clone, too, but copy nothing.
pub const FORKS: [&str; 3] = ["fork", "clone", "clone3"];
/// Threads that were there before the recording are all found within this time of the first.
const ATTACHING_NS: u64 = 100_000_000;
/// Calls by which memory goes back to the kernel.
const GIVES_BACK: [&str; 3] = ["brk", "munmap", "madvise"];
/// What the same calls do where they get memory: MADV_POPULATE_WRITE, locked memory.
const POPULATES: [&str; 4] =
    ["handle_mm_fault", "__get_user_pages", "faultin_page_range", "populate_vma_page_range"];

/// On-CPU time of first touches.
pub fn new_pages(case: &Case) -> PathTime {
    case.faults_through(&[&NEW[..], &ZEROED].concat(), |path| is_new(case, path))
}

/// True if a sample in a page fault shows that memory is touched for the first time.
pub fn is_new(case: &Case, path: &PathSum) -> bool {
    let is_zeroed = || {
        case.passes(path, &["handle_mm_fault"])
            && case.passes(path, &ZEROED)
            && !case.passes(path, &COPIED)
            && !case.passes(path, &ZEROED_FOR_OTHERS)
    };
    path.sampled && (case.passes(path, &NEW) || is_zeroed())
}

/// On-CPU time of copying shared pages.
pub fn copied_pages(case: &Case) -> PathTime {
    case.faults_through(&COPIED, |_| true)
}

/// The most expensive first touch, in words.
pub fn new_page_in_words(case: &Case) -> Option<String> {
    let named = case.path_in_words(&NEW, |path| path.sampled);
    named.or_else(|| case.path_in_words(&ZEROED, |path| is_new(case, path)))
}

/// The most expensive copy, in words.
pub fn copy_in_words(case: &Case) -> Option<String> {
    case.path_in_words(&COPIED, |path| path.sampled)
}

/// What madvise does where it pages out or ages what stays the program's (MADV_PAGEOUT, MADV_COLD).
const PAGES_OUT: [&str; 3] =
    ["madvise_cold_or_pageout_pte_range", "madvise_pageout_page_range", "madvise_cold_page_range"];

/// Calls that give memory back, their time on a CPU, and that time by account.
pub struct GivenBack {
    /// `brk`, `munmap` and `madvise`.
    pub calls: u64,
    /// On a CPU in them, but for what they got or paged out. Giving back what was never touched takes next to
    /// none.
    pub accounts: Accounts,
}

impl GivenBack {
    /// Of all watched processes.
    pub fn of(case: &Case) -> GivenBack {
        let account = |name: &&str| Syscall::named(name).map(Account::Syscall);
        let accounts: Vec<Account> = GIVES_BACK.iter().filter_map(account).collect();
        let in_them = |path: &PathSum| path.sampled && accounts.contains(&path.account);
        let populating = case.time_through(&[&POPULATES[..], &PAGES_OUT].concat(), in_them);
        let given = |a: Account| case.accounts.get(a).saturating_sub(populating.accounts.get(a));
        GivenBack {
            calls: GIVES_BACK.iter().fold(0, |sum, name| sum + case.calls(name).0),
            accounts: accounts.iter().map(|a| (*a, given(*a))).collect(),
        }
    }

    /// True if pages go back as often as they come: unmapping a page takes about a tenth of what
    /// it takes to get one (measured: 0.08 to 0.3 on Linux 6.18).
    pub fn is_as_much_as(&self, new: &PathTime) -> bool {
        self.calls >= 10 && self.accounts.total() >= new.ns() / 20
    }
}

/// Every program touches its memory for a first time, copies some pages after a fork, gives some
/// back: below a fifth of the CPU time of all watched processes that is the ordinary price. Says so.
pub fn ordinary(case: &Case, ns: u64) -> Option<String> {
    let running = case.accounts.sum_of(Account::is_running);
    (ns < running / 5).then(|| {
        format!(
            "it took {}, {} of the CPU time: no more than programs ordinarily pay",
            duration(ns),
            percent(ns, running)
        )
    })
}

/// How often watched processes forked: their [`FORKS`] that made no thread. posix_spawn, whose child
/// copies nothing, counts as well.
pub fn forks(case: &Case) -> u64 {
    forks_by_process(case).values().copied().fold(0, u64::saturating_add)
}

/// The same by process.
pub fn forks_by_process(case: &Case) -> BTreeMap<u32, u64> {
    let run = case.run;
    let mut forks = BTreeMap::<u32, u64>::new();
    for second in fork_calls(case) {
        let calls = forks.entry(second.tgid).or_default();
        *calls = calls.saturating_add(second.histogram.count());
    }
    let begun = run.threads.iter().map(|thread| thread.first_ns).min().unwrap_or(0);
    let is_command = matches!(run.header.target, Target::Command(_));
    let came = |first_ns: u64| is_command || first_ns > begun.saturating_add(ATTACHING_NS);
    for thread in run.threads.iter().filter(|t| t.tid != t.tgid && came(t.first_ns)) {
        forks.entry(thread.tgid).and_modify(|forks| *forks = forks.saturating_sub(1));
    }
    let mut seen = BTreeMap::<u32, u64>::new();
    for event in run.events.iter().filter(|event| event.kind == EventKind::Fork) {
        *seen.entry(event.tgid).or_default() += 1;
    }
    for (process, seen) in seen {
        let forks = forks.entry(process).or_default();
        *forks = seen.max(*forks);
    }
    forks
}

/// Times of the calls of [`FORKS`], by process and second.
fn fork_calls<'a>(case: &Case<'a>) -> impl Iterator<Item = &'a MetricSecond> {
    let calls = FORKS.map(|name| Syscall::named(name).map(Metric::Syscall));
    let is_fork = move |metric: &Metric| calls.iter().flatten().any(|call| call == metric);
    case.run.seconds.iter().filter(move |second| is_fork(&second.metric))
}

/// The longest call of [`FORKS`] by a process, in ns; those that make threads are short.
pub fn longest_fork(case: &Case, process: u32) -> u64 {
    let calls = fork_calls(case).filter(|second| second.tgid == process);
    calls.filter_map(|second| second.histogram.max()).max().unwrap_or(0)
}

/// How long the calls of [`FORKS`] took, as evidence.
pub fn saw_fork_calls(case: &Case, claim: &mut Claim) {
    for name in FORKS {
        let metric = Syscall::named(name).map(Metric::Syscall);
        let histogram = metric.and_then(|metric| case.histogram(&metric));
        let text = histogram.map(|histogram| format!("{name}: {}", quantiles(&histogram)));
        claim.saw_if(text, "system call histogram");
    }
}

/// Minor faults of all watched threads, by the kernel's count.
pub fn minor(case: &Case) -> u64 {
    let others = case.run.sums.others.iter().map(|others| others.minor_faults);
    let threads = case.run.threads.iter().map(|thread| thread.minor_faults);
    threads.chain(others).fold(0, u64::saturating_add)
}
