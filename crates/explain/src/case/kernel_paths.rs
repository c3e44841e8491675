//! Time by kernel code path: which functions of the kernel a process spent its time under.
//!
//! Sleeps are exact. On-CPU time is sampled and scaled to the exact time of its account (`scales`).

use std::collections::{BTreeMap, HashSet};

use model::{Accounts, PathSum, StackId, part_of};

use crate::case::functions::{Functions, is_function};
use crate::case::sums::Case;
use crate::text::count;

/// Frames of a path that are worth words.
const KERNEL_FRAMES_SHOWN: usize = 5;
const USER_FRAMES_SHOWN: usize = 3;

/// Where the kernel knows what kind of page fault it is (`handle_pte_fault` and the huge ones in
/// mm/memory.c). Compilers may put any of these into its caller, so what they call is here, too:
/// Debian's Linux 6.1 has no `do_anonymous_page` and no `do_fault` of its own.
const KINDS_OF_FAULTS: [&str; 22] = [
    "do_anonymous_page",
    "do_huge_pmd_anonymous_page",
    "do_fault",
    "do_read_fault",
    "do_cow_fault",
    "do_shared_fault",
    "do_swap_page",
    "do_numa_page",
    "do_wp_page",
    "wp_page_copy",
    "do_huge_pmd_wp_page",
    "__do_fault",
    "filemap_map_pages",
    "finish_fault",
    "clear_page_erms",
    "clear_page_rep",
    "clear_page_orig",
    "clear_huge_page",
    "folio_zero_user",
    "vma_alloc_folio",
    "vma_alloc_folio_noprof",
    "folio_add_new_anon_rmap",
];

/// Time of some paths.
#[derive(Clone, Debug, Default)]
pub struct PathTime {
    /// By account.
    pub accounts: Accounts,
    /// Sleeps, exactly.
    pub sleeps: u64,
    /// Samples on a CPU.
    pub samples: u64,
    /// As many samples would be as good if all stood for the same time: a recorder takes them less
    /// often after a while, and what stands for more says no more.
    pub alike: u64,
    /// Longest sleep.
    pub max_ns: u64,
}

impl PathTime {
    /// All of it.
    pub fn ns(&self) -> u64 {
        self.accounts.total()
    }

    /// Sleeps and samples: how many observations it is made of.
    pub fn observations(&self) -> u64 {
        self.sleeps.saturating_add(self.samples)
    }
}

impl Case<'_> {
    /// Time of all paths that `which` accepts and that have one of these functions in their kernel
    /// stack; of all that `which` accepts if no function is given.
    pub fn time_through(&self, functions: &[&str], which: impl Fn(&PathSum) -> bool) -> PathTime {
        let mut time = PathTime::default();
        for (path, ns) in self.paths_through(functions, which) {
            time.accounts.add(path.account, ns);
            if path.sampled {
                time.samples = time.samples.saturating_add(path.count);
                let alike = path.ns.checked_div(path.max_ns).unwrap_or(path.count);
                time.alike = time.alike.saturating_add(alike.min(path.count));
            } else {
                time.sleeps = time.sleeps.saturating_add(path.count);
                time.max_ns = time.max_ns.max(path.max_ns);
            }
        }
        time
    }

    /// On-CPU time of page faults of a kind: those that pass one of these functions and that `which`
    /// accepts, with their part of what all kinds of faults have in common: entry, look-up of the
    /// mapping, exit.
    ///
    /// A sample there does not tell yet which kind of fault it is (and the timer fires late there:
    /// the entry runs with interrupts off), so that time is divided as the rest is. Where the kernel
    /// shows of less than half of its handling of faults what kind they are, the rest is of unknown
    /// kind and stays so.
    pub fn faults_through(&self, functions: &[&str], which: impl Fn(&PathSum) -> bool) -> PathTime {
        let is_sample = |path: &PathSum| path.sampled;
        let all = self.time_through(&["asm_exc_page_fault"], is_sample);
        let handled = self.time_through(&["handle_mm_fault"], is_sample).ns();
        let known = self.time_through(&KINDS_OF_FAULTS, is_sample).ns();
        let whole = if known >= handled / 2 { known } else { handled };
        let kind = self.time_through(functions, |path| is_sample(path) && which(path));
        let part = kind.ns().min(whole);
        let accounts =
            all.accounts.iter().map(|(account, ns)| (account, part_of(ns, part, whole))).collect();
        PathTime { accounts, ..kind }
    }

    /// The process with the most time in these paths.
    pub fn main_of(&self, functions: &[&str], which: impl Fn(&PathSum) -> bool) -> Option<u32> {
        let processes = self.time_by_process(functions, which);
        let longest = processes.into_iter().max_by_key(|(_, ns)| *ns);
        longest.filter(|(_, ns)| *ns > 0).map(|(tgid, _)| tgid)
    }

    /// Time in these paths, by process.
    pub fn time_by_process(
        &self,
        functions: &[&str],
        which: impl Fn(&PathSum) -> bool,
    ) -> BTreeMap<u32, u64> {
        let mut processes = BTreeMap::<u32, u64>::new();
        for (path, ns) in self.paths_through(functions, which) {
            let sum = processes.entry(path.tgid).or_default();
            *sum = sum.saturating_add(ns);
        }
        processes
    }

    /// Sleeps in these paths, by process: how many.
    pub fn sleeps_by_process(
        &self,
        functions: &[&str],
        which: impl Fn(&PathSum) -> bool,
    ) -> BTreeMap<u32, u64> {
        let mut processes = BTreeMap::<u32, u64>::new();
        for (path, _) in self.paths_through(functions, |path| !path.sampled && which(path)) {
            let sum = processes.entry(path.tgid).or_default();
            *sum = sum.saturating_add(path.count);
        }
        processes
    }

    /// `12 ± 3 of 3,000 samples on a CPU`: how much the time of a path rests on, with the standard
    /// deviation of that number.
    pub fn samples_in_words(&self, time: &PathTime) -> String {
        let all = self.time_through(&[], |path| path.sampled).samples;
        let squared = time.samples.saturating_mul(time.samples) / time.alike.max(1);
        format!(
            "{} ± {} of {} samples on a CPU",
            count(time.samples),
            count(squared.isqrt()),
            count(all)
        )
    }

    /// True if the path has one of these functions in its kernel stack.
    pub fn passes(&self, path: &PathSum, functions: &[&str]) -> bool {
        self.goes_through(path.kernel, functions)
    }

    /// True if a kernel stack has one of these functions.
    pub fn goes_through(&self, kernel: Option<StackId>, functions: &[&str]) -> bool {
        let stack = kernel.and_then(|id| self.run.stacks.get(&id));
        stack.is_some_and(|stack| passes(stack, functions))
    }

    /// The longest of these paths on one line: the kernel's frames down to the function asked for,
    /// then its caller in user space.
    pub fn path_in_words(
        &self,
        functions: &[&str],
        which: impl Fn(&PathSum) -> bool,
    ) -> Option<String> {
        let (path, _) = self.paths_through(functions, which).max_by_key(|(_, ns)| *ns)?;
        let kernel = self.labels(path.kernel);
        let passes = |label: &String| functions.iter().any(|f| is_function(label, f));
        let from = kernel.iter().position(passes).unwrap_or(0);
        let mut shown: Vec<_> = kernel.into_iter().skip(from).take(KERNEL_FRAMES_SHOWN).collect();
        shown.extend(self.labels(path.user).into_iter().take(USER_FRAMES_SHOWN));
        (!shown.is_empty()).then(|| shown.join(" <- "))
    }

    fn paths_through<'b>(
        &'b self,
        functions: &[&str],
        which: impl Fn(&PathSum) -> bool,
    ) -> impl Iterator<Item = (&'b PathSum, u64)> {
        let stacks = self.stacks_through(functions);
        let wanted = move |path: &&PathSum| {
            which(path)
                && (stacks.is_none()
                    || path
                        .kernel
                        .is_some_and(|id| stacks.as_ref().is_some_and(|s| s.contains(&id))))
        };
        self.run.sums.paths.iter().filter(wanted).map(|path| (path, self.ns_of(path)))
    }

    /// Stacks that pass one of the functions; `None` if any stack will do.
    fn stacks_through(&self, functions: &[&str]) -> Option<HashSet<StackId>> {
        if functions.is_empty() {
            return None;
        }
        Some(self.functions.get_or_init(|| Functions::of(self.run)).stacks_through(functions))
    }

    /// What a path stands for.
    pub(crate) fn ns_of(&self, path: &PathSum) -> u64 {
        if path.sampled { self.scales.exact_ns(path) } else { path.ns }
    }

    pub(crate) fn labels(&self, id: Option<StackId>) -> Vec<String> {
        let stack = id.and_then(|id| self.run.stacks.get(&id));
        stack.map_or(Vec::new(), |s| s.frames.iter().map(|frame| frame.label()).collect())
    }
}

/// True if one of the functions is among the frames.
fn passes(stack: &model::Stack, functions: &[&str]) -> bool {
    let frames = stack.frames.iter().filter(|frame| frame.source.is_none());
    let mut symbols = frames.filter_map(|frame| frame.symbol.as_deref());
    symbols.any(|symbol| functions.iter().any(|function| is_function(symbol, function)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RunBuilder, SECOND, USER};
    use model::{Account, Blocked};

    const ASLEEP: Account = Account::Blocked(Blocked::Uninterruptible);

    #[test]
    fn samples_are_scaled_to_the_exact_time_of_their_account() {
        let run = RunBuilder::new()
            .thread(10, 10, &[(USER, SECOND)])
            .sampled_path(10, USER, &["do_wp_page.isra.0", "handle_mm_fault"], 250)
            .sampled_path(10, USER, &[], 750)
            .build();
        let case = Case::new(&run);
        let time = case.time_through(&["do_wp_page"], |_| true);
        assert_eq!((time.accounts.get(USER), time.samples, time.sleeps), (SECOND / 4, 250, 0));
        assert_eq!(
            case.time_through(&["do_wp"], |_| true).ns(),
            0,
            "part of a name is no function"
        );
        assert_eq!(case.time_through(&[], |_| true).ns(), SECOND);
    }

    #[test]
    fn samples_that_stand_for_different_times_have_the_error_of_fewer() {
        let ms = 1_000_000;
        let words = |ns, max_ns| {
            let mut run = RunBuilder::new()
                .thread(10, 10, &[(USER, SECOND)])
                .sampled_path(10, USER, &["do_wp_page"], 100)
                .build();
            run.sums.paths[0].ns = ns;
            run.sums.paths[0].max_ns = max_ns;
            let case = Case::new(&run);
            case.samples_in_words(&case.time_through(&["do_wp_page"], |_| true))
        };
        assert_eq!(words(100 * ms, ms), "100 ± 10 of 100 samples on a CPU");
        // 50 of 1 ms and 50 of 5 ms: at least as good as 60 of 5 ms.
        assert_eq!(words(300 * ms, 5 * ms), "100 ± 12 of 100 samples on a CPU");
    }

    #[test]
    fn processes_with_few_samples_are_scaled_together() {
        let exit = Account::Syscall(model::Syscall::named("exit_group").unwrap());
        let mut builder = RunBuilder::new();
        for tgid in 100..200 {
            builder = builder.thread(tgid, tgid, &[(exit, SECOND / 100)]);
        }
        let run = builder
            .sampled_path(100, exit, &["acct_collect"], 9)
            .sampled_path(120, exit, &["acct_collect"], 6)
            .sampled_path(140, exit, &[], 5)
            .build();
        let time = Case::new(&run).time_through(&["acct_collect"], |_| true);
        assert_eq!(time.ns(), SECOND / 4 * 3);
    }

    #[test]
    fn a_fault_has_its_part_of_entry_and_exit() {
        let fault = ["handle_mm_fault", "exc_page_fault", "asm_exc_page_fault"];
        let run = RunBuilder::new()
            .thread(10, 10, &[(USER, SECOND)])
            .sampled_path(10, USER, &[&["do_wp_page"], &fault[..]].concat(), 300)
            .sampled_path(10, USER, &[&["do_anonymous_page"], &fault[..]].concat(), 100)
            .sampled_path(10, USER, &fault[1..], 400)
            .sampled_path(10, USER, &[], 200)
            .build();
        let case = Case::new(&run);
        let time = case.faults_through(&["do_wp_page"], |_| true);
        assert_eq!((time.ns(), time.samples), (SECOND / 10 * 6, 300));
    }

    #[test]
    fn sleeps_are_exact_and_each_counts_once() {
        let run = RunBuilder::new()
            .thread(10, 10, &[(ASLEEP, 3 * SECOND)])
            .slept_path(10, ASLEEP, "dup", &["synchronize_rcu", "expand_files"], 30, SECOND)
            .slept_path(10, ASLEEP, "fsync", &["jbd2_log_wait_commit"], 5, 2 * SECOND)
            .build();
        let case = Case::new(&run);
        let time = case.time_through(&["expand_files", "synchronize_rcu"], |_| true);
        assert_eq!((time.ns(), time.sleeps), (SECOND, 30));
        let words = case.path_in_words(&["jbd2_log_wait_commit"], |_| true);
        assert_eq!(words.as_deref(), Some("jbd2_log_wait_commit"));
    }
}
