//! file-major-fault: a mapped file is touched, its page is not in memory, the disk must be read.
//!
//! The thread sleeps in the middle of its own code, with no system call to be seen.

use model::{
    Account, Accounts, Blocked, Metric, ObjectName, Outlier, RecorderPart, WaitSum, part_of,
};

use crate::case::in_words::{in_words, stacks};
use crate::case::{Case, sum_of};
use crate::cause::{Absent, Cause, Claim, Verdict};
use crate::causes::ids;
use crate::text::{count, counted, duration, mean, percent, quantiles};

pub const CAUSE: Cause = Cause {
    id: ids::FILE_MAJOR_FAULT,
    title: "page faults on a mapped file wait for the disk",
    fix: "Have the pages in memory before they are needed: mlock(), MAP_POPULATE or \
          madvise(MADV_WILLNEED) outside the critical path; or read with pread() where a wait can \
          be seen and planned for. Look for what evicts the file: memory limits, other readers.",
    reproduce: "mysteries/bin/file-major-fault-faulty 5",
    needs: &[RecorderPart::Threads, RecorderPart::Faults],
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

fn examine(case: &Case) -> Verdict {
    let slept = case.accounts.get(MAJOR);
    if slept == 0 {
        return Err(Absent("no page fault waited for a disk".to_owned()));
    }
    let outliers: Vec<&Outlier> = case.outliers_in(MAJOR).collect();
    let seen_ns = outliers.iter().fold(0u64, |sum, o| sum.saturating_add(o.breakdown.get(MAJOR)));
    let by_linker = outliers
        .iter()
        .filter(|o| is_in_dynamic_linker(case, o))
        .fold(0u64, |sum, o| sum.saturating_add(o.breakdown.get(MAJOR)));
    let anonymous = sum_of(case.waits(MAJOR).filter(|w| is_anonymous(w)));
    let named = sum_of(case.waits(MAJOR).filter(|w| file(w).is_some()));
    let all = case.wait_total(MAJOR);

    let not_linker = slept - part_of(slept, by_linker, seen_ns);
    let stores = case.time_through(&STORES, |path| !path.sampled && path.account == MAJOR).ns();
    let claimed = (not_linker - part_of(not_linker, anonymous.ns, all.ns)).saturating_sub(stores);
    if claimed < slept / 2 {
        return Err(Absent(format!(
            "of {} in page faults that waited for a disk, {} of the longest were in the dynamic \
             linker (lazy-binding), {} on memory that is no file (swap) and {} stores that asked \
             the file system for leave (mmap-file-write)",
            duration(slept),
            percent(by_linker, seen_ns),
            percent(anonymous.ns, all.ns),
            percent(stores, slept)
        )));
    }

    let files = files(case);
    let file = files.first().map_or("a mapped file".to_owned(), |(name, ..)| (*name).to_owned());
    let process = case.main_process(|a| a == MAJOR).unwrap_or(0);
    let title = format!("{} waits for the disk to page in {file}", case.process_name(process));
    // The fault also takes CPU time: to find a page, to ask the disk for it, to map it.
    let on_cpu = case.faults_through(&READS, |_| true);
    let mut lost: Accounts = [(MAJOR, claimed)].into_iter().collect();
    for (account, ns) in on_cpu.accounts.iter() {
        lost.add(account, part_of(ns, claimed, slept));
    }
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
    for (name, n, ns) in files.iter().take(FILES_SHOWN) {
        claim.saw(
            format!("{name}: {} asleep in {}", duration(*ns), counted(*n, "fault")),
            "page_fault_user, mapping of the faulting address",
        );
    }
    let counted_by_kernel =
        case.run.threads.iter().fold(0u64, |sum, thread| sum.saturating_add(thread.major_faults));
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

    let linker =
        format!("{} of the longest were in the dynamic linker", percent(by_linker, seen_ns));
    if outliers.is_empty() {
        claim.doubt(0.8, "which instruction faulted is not known: lazy-binding looks the same");
    } else {
        claim.rule_out(ids::LAZY_BINDING, linker);
    }
    if named.count > 0 {
        let because = format!("{} on memory that is no file", duration(anonymous.ns));
        claim.exclude("reading pages back from swap", because);
    } else {
        claim.doubt(0.8, "which file was not recorded: memory swapped out looks the same");
    }
    claim.exclude(
        "disk reads of system calls",
        format!(
            "waiting for the disk in system calls is an account of its own: {}",
            duration(case.accounts.get(Account::Blocked(Blocked::Disk)))
        ),
    );
    Ok(claim)
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
    fn without_a_name_swap_remains_a_doubt() {
        let run = faults(None).user_outlier(MAJOR, SECOND, "/bin/reader").build();
        assert_eq!(examine(&Case::new(&run)).unwrap().doubts.len(), 1);
    }
}
