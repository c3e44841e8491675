//! file-major-fault: a mapped file is touched, its page is not in memory, the disk must be read.
//!
//! The thread sleeps in the middle of its own code, with no system call to be seen.
//!
//! # Evidence
//!
//! Sleeps within page faults that waited for a disk, with the file of the faulting address. Faults
//! of the dynamic linker (lazy-binding), on memory that is no file (swap), and of stores that ask
//! the file system (mmap-file-write) are taken off.
//!
//! # Without whylag
//!
//!     ps -o pid,maj_flt,comm -p PID              # read it twice
//!     perf trace -F maj --no-syscalls -p PID     # the code, and the address
//!     perf record -e major-faults -c 1 -g -p PID -- sleep 10
//!
//! # Sources
//!
//! mm/filemap.c (filemap_fault); mlock(2); madvise(2).

use std::collections::HashSet;

use model::{
    Account, Accounts, Blocked, Metric, ObjectName, Outlier, RecorderPart, WaitSum, part_of,
};

use crate::case::in_words::{in_words, stacks};
use crate::case::{Case, Waits, sum_of};
use crate::cause::{Absent, Cause, Claim, Needs, Verdict};
use crate::causes::ids;
use crate::text::{count, counted, duration, mean, percent, quantiles};

pub const CAUSE: Cause = Cause {
    id: ids::FILE_MAJOR_FAULT,
    title: "page faults on a mapped file wait for the disk",
    fix: "Have the pages in memory before they are needed: mlock(), MAP_POPULATE or \
          madvise(MADV_WILLNEED) outside the critical path; or read with pread() where a wait can \
          be seen and planned for. Look for what evicts the file: memory limits, other readers.",
    reproduce: "mysteries/bin/file-major-fault-faulty 5",
    needs: Needs::parts(&[RecorderPart::Threads, RecorderPart::Faults]),
    look_alikes: &[],
    symptom: false,
    examine,
};

const MAJOR: Account = Account::Blocked(Blocked::FaultMajor);
/// Where a fault on a mapped file has its page read from the disk.
const READS: [&str; 2] = ["filemap_fault", "dax_iomap_fault"];
/// Where a store into a page that is in memory waits for the file system.
const STORES: [&str; 1] = ["do_page_mkwrite"];
/// Files worth a line.
const FILES_SHOWN: usize = 3;

/// Sleeps in page faults that waited for a disk.
struct Faults<'a> {
    /// All of them.
    slept_ns: u64,
    /// Of it: reads of mapped files by the program.
    claimed_ns: u64,
    /// By the kernel's count of sleeps and by the kept intervals.
    sleeps: Waits,
    kept: bool,
    /// Of the kept intervals: how long, and how long in the dynamic linker.
    kept_ns: u64,
    linker_ns: u64,
    /// On memory that is no file.
    anonymous_ns: u64,
    files: Vec<(&'a str, u64, u64)>,
    /// Executables of the recorded processes.
    programs: HashSet<&'a str>,
}

impl Faults<'_> {
    /// On which most of the time was spent, if one file has as much. Of a process that has ended the mappings
    /// may not be known, and what is known be of its first pages.
    fn main_file(&self) -> Option<&str> {
        let (name, _, ns) = self.files.first()?;
        (*ns >= self.sleeps.ns / 2).then_some(name)
    }

    /// On files that are not loaded as code.
    fn of_data_ns(&self) -> u64 {
        let is_code = |name: &str| self.programs.contains(name) || is_library(name);
        self.files.iter().filter(|(name, ..)| !is_code(name)).map(|(_, _, ns)| ns).sum()
    }
}

/// By the name: `libc.so.6`, `plugin.so`.
fn is_library(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.strip_suffix(" (deleted)").unwrap_or(name).split('.').skip(1).any(|part| part == "so")
}

fn measure<'a>(case: &Case<'a>) -> Result<Faults<'a>, Absent> {
    let slept_ns = case.accounts.get(MAJOR);
    if slept_ns == 0 {
        return Err(Absent("no page fault waited for a disk".to_owned()));
    }
    let kept: Vec<&Outlier> = case.outliers_in(MAJOR).collect();
    let sum = |sum: u64, o: &&Outlier| sum.saturating_add(o.breakdown.get(MAJOR));
    let kept_ns = kept.iter().fold(0, sum);
    let linker_ns = kept.iter().filter(|o| is_in_dynamic_linker(case, o)).fold(0, sum);
    let anonymous_ns = sum_of(case.waits(MAJOR).filter(|w| is_anonymous(w))).ns;
    let sleeps = case.wait_total(MAJOR);

    let not_linker = slept_ns - part_of(slept_ns, linker_ns, kept_ns);
    let stores = case.time_through(&STORES, |path| !path.sampled && path.account == MAJOR).ns();
    let claimed_ns =
        (not_linker - part_of(not_linker, anonymous_ns, sleeps.ns)).saturating_sub(stores);
    if claimed_ns < slept_ns / 2 {
        return Err(Absent(format!(
            "of {} in page faults that waited for a disk, {} of the longest were in the dynamic \
             linker (lazy-binding), {} on memory that is no file (swap) and {} stores that asked \
             the file system for permission (mmap-file-write)",
            duration(slept_ns),
            percent(linker_ns, kept_ns),
            percent(anonymous_ns, sleeps.ns),
            percent(stores, slept_ns)
        )));
    }
    let files = files(case);
    let kept = !kept.is_empty();
    let programs = case.run.processes.iter().map(|process| process.exe.as_str()).collect();
    Ok(Faults {
        slept_ns,
        claimed_ns,
        sleeps,
        kept,
        kept_ns,
        linker_ns,
        anonymous_ns,
        files,
        programs,
    })
}

fn examine(case: &Case) -> Verdict {
    let faults = measure(case)?;
    let file = faults.main_file().unwrap_or("mapped files");
    let process = case.main_process(|a| a == MAJOR).unwrap_or(0);
    let title = format!("{} waits for the disk to page in {file}", case.process_name(process));
    // The fault also takes CPU time: to find a page, to ask the disk for it, to map it.
    let on_cpu = case.faults_through(&READS, |_| true);
    let mut lost: Accounts = [(MAJOR, faults.claimed_ns)].into_iter().collect();
    for (account, ns) in on_cpu.accounts.iter() {
        lost.add(account, part_of(ns, faults.claimed_ns, faults.slept_ns));
    }
    let all = faults.sleeps;
    let mut claim = Claim::new(title, lost, all.count);
    claim.mechanism(format!(
        "touching a page of a mapped file that is not in memory reads the disk within the page \
         fault: {}, mean {}, longest {}",
        counted(all.count, "such sleep"),
        mean(all.ns, all.count),
        duration(all.max_ns)
    ));
    claim.saw_if(
        (on_cpu.samples > 0).then(|| {
            let n = counted(on_cpu.samples, "sample");
            format!("CPU time of such faults: {} ({n})", duration(on_cpu.ns()))
        }),
        "on-CPU samples under filemap_fault",
    );
    claim.trigger(format!("pages of {file} were not in the page cache when they were touched"));
    evidence(case, &faults, &mut claim);
    rule_out(case, &faults, &mut claim);
    Ok(claim)
}

fn evidence(case: &Case, faults: &Faults, claim: &mut Claim) {
    for (name, n, ns) in faults.files.iter().take(FILES_SHOWN) {
        claim.saw(
            format!("{name}: {} asleep in {}", duration(*ns), counted(*n, "fault")),
            "page_fault_user, mapping of the faulting address",
        );
    }
    let others = case.run.sums.others.iter().map(|others| others.major_faults);
    let threads = case.run.threads.iter().map(|thread| thread.major_faults);
    let counted_by_kernel = threads.chain(others).fold(0, u64::saturating_add);
    if counted_by_kernel > 0 {
        claim.saw(
            format!(
                "the kernel counted {} major faults of these threads",
                count(counted_by_kernel)
            ),
            "maj_flt of each thread",
        );
    }
    let disk = case.merged(|metric| matches!(metric, Metric::BlockIo(_)));
    claim.saw_if(
        disk.map(|h| format!("disk requests of the host: {}", quantiles(&h))),
        "block_rq_issue, block_rq_complete",
    );
    claim.saw_if(case.worst(MAJOR).map(|o| in_words(case, o)), "longest such fault");
    let (kernel, user) = stacks(case, MAJOR, |_| true, "filemap_fault");
    claim.saw_if(user.map(|s| format!("touched in {s}")), "user stack");
    claim.saw_if(kernel.map(|s| format!("asleep in {s}")), "kernel stack");
}

fn rule_out(case: &Case, faults: &Faults, claim: &mut Claim) {
    if faults.kept {
        let part = percent(faults.linker_ns, faults.kept_ns);
        claim.rule_out(
            ids::LAZY_BINDING,
            format!("{part} of the longest were in the dynamic linker"),
        );
    } else if faults.of_data_ns() > faults.sleeps.ns / 2 {
        // The dynamic linker reads nothing else.
        let part = percent(faults.of_data_ns(), faults.sleeps.ns);
        let because = format!("{part} of it was on files that are no program and no library");
        claim.rule_out(ids::LAZY_BINDING, because);
    } else {
        claim.doubt(0.8, "which instruction faulted is not known: lazy-binding looks the same");
    }
    if faults.files.is_empty() {
        claim.doubt(0.8, "which file was not recorded: memory swapped out looks the same");
    } else {
        let because = format!("{} on memory that is no file", duration(faults.anonymous_ns));
        claim.exclude("reading pages back from swap", because);
    }
    claim.exclude(
        "disk reads of system calls",
        format!(
            "waiting for the disk in system calls is an account of its own: {}",
            duration(case.accounts.get(Account::Blocked(Blocked::Disk)))
        ),
    );
}

/// What it faulted on comes back from swap.
fn is_anonymous(wait: &WaitSum) -> bool {
    matches!(wait.name, Some(ObjectName::Anonymous(_)))
}

/// Path of the file that it faulted on.
fn file(wait: &WaitSum) -> Option<&str> {
    match &wait.name {
        Some(ObjectName::File(path)) => Some(path),
        _ => None,
    }
}

/// (name, faults, time) of each file, longest first.
fn files<'a>(case: &Case<'a>) -> Vec<(&'a str, u64, u64)> {
    let mut files: Vec<(&str, u64, u64)> = Vec::new();
    for (wait, name) in case.waits(MAJOR).filter_map(|wait| Some((wait, file(wait)?))) {
        match files.iter_mut().find(|(seen, ..)| *seen == name) {
            Some((_, n, ns)) => {
                *n = n.saturating_add(wait.count);
                *ns = ns.saturating_add(wait.ns);
            }
            None => files.push((name, wait.count, wait.ns)),
        }
    }
    files.sort_by_key(|(_, _, ns)| std::cmp::Reverse(*ns));
    files
}

/// The faulting instruction is the dynamic linker's: the innermost user frame is in its file.
fn is_in_dynamic_linker(case: &Case, outlier: &Outlier) -> bool {
    let stack = outlier.user_stack.and_then(|id| case.run.stacks.get(&id));
    stack.and_then(|stack| stack.frames.first()).is_some_and(|frame| {
        let module = frame.module_name();
        module.starts_with("ld-") || module.starts_with("ld.so")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RunBuilder, SECOND, USER, wait};

    fn faults(name: Option<&str>) -> RunBuilder {
        let name = name.map(|name| ObjectName::of_mapping(name.to_owned()));
        let sum = WaitSum { name, ..wait(10, MAJOR, 0, 900, 3 * SECOND) };
        RunBuilder::new().thread(10, 10, &[(USER, SECOND), (MAJOR, 3 * SECOND)]).wait(sum)
    }

    #[test]
    fn claimed_with_the_name_of_the_file() {
        let run =
            faults(Some("/data/prices.bin")).user_outlier(MAJOR, SECOND, "/bin/reader").build();
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!(claim.lost.get(MAJOR), 3 * SECOND);
        assert!(claim.title.ends_with("/data/prices.bin"), "{}", claim.title);
        assert!(claim.doubts.is_empty());
        let excluded: Vec<_> = claim.ruled_out.iter().map(|r| r.cause.as_str()).collect();
        assert_eq!(excluded, ["lazy-binding"]);
        let in_words: Vec<_> = claim.excluded.iter().map(|e| e.what.as_str()).collect();
        assert_eq!(in_words, ["reading pages back from swap", "disk reads of system calls"]);
    }

    #[test]
    fn a_file_of_little_of_the_time_gives_no_name_to_it() {
        let few = Some(ObjectName::of_mapping("/usr/lib/libz.so.1".to_owned()));
        let few = WaitSum { name: few, ..wait(10, MAJOR, 1, 2, SECOND) };
        let run = faults(None).wait(few).user_outlier(MAJOR, SECOND, "/bin/reader").build();
        let claim = examine(&Case::new(&run)).unwrap();
        assert!(claim.title.ends_with("page in mapped files"), "{}", claim.title);
    }

    #[test]
    fn not_claimed_when_the_dynamic_linker_faults() {
        let ld = "/usr/lib/ld-linux-x86-64.so.2";
        let run = faults(Some(ld)).user_outlier(MAJOR, SECOND, ld).build();
        assert!(examine(&Case::new(&run)).unwrap_err().0.contains("lazy-binding"));
    }

    #[test]
    fn not_claimed_for_memory_that_was_swapped_out() {
        let run = faults(Some("[heap]")).build();
        assert!(examine(&Case::new(&run)).unwrap_err().0.contains("swap"));
    }

    #[test]
    fn without_a_kept_interval_the_files_tell_the_dynamic_linker_apart() {
        let examined = |name| examine(&Case::new(&faults(Some(name)).build())).unwrap();
        let claim = examined("/data/prices.bin");
        assert_eq!(claim.ruled_out[0].cause, "lazy-binding");
        assert!(claim.ruled_out[0].because.starts_with("100 % of it"), "{:?}", claim.ruled_out);
        assert!(claim.doubts.is_empty());
        for library in ["/usr/lib/libm.so.6", "/opt/plugin.so (deleted)"] {
            let claim = examined(library);
            assert!(claim.ruled_out.is_empty() && claim.doubts.len() == 1, "{library}");
        }
    }

    #[test]
    fn without_a_name_swap_remains_a_doubt() {
        let run = faults(None).user_outlier(MAJOR, SECOND, "/bin/reader").build();
        assert_eq!(examine(&Case::new(&run)).unwrap().doubts.len(), 1);
    }
}
