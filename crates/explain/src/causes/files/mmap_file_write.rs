//! mmap-file-write: a store into a mapped file faults, and must ask the file system for permission.
//!
//! Each time a page was written out it is write-protected again. The next store finds that, in the
//! middle of the program's own code, and waits: until the page is on the disk, for the journal, or
//! for a block.
//!
//! # Evidence
//!
//! Sleeps in page faults within do_page_mkwrite, where the kernel asks the file system for
//! permission to change a page, with what they waited for (the page to be on the disk, the journal,
//! a lock of the page); CPU samples of such faults; the file, by the faulting address.
//!
//! # Without whylag
//!
//!     perf trace -F all --no-syscalls -p PID     # faults: the code, and the address
//!     # with CONFIG_KPROBES:
//!     bpftrace -e 'kprobe:do_page_mkwrite { @t[tid] = nsecs; }
//!         kretprobe:do_page_mkwrite /@t[tid]/ { @us[comm] = hist((nsecs - @t[tid]) / 1000); delete(@t[tid]); }'
//!     grep -l rw-s /proc/[0-9]*/maps             # who has shared mappings to write to
//!
//! # Sources
//!
//! mm/memory.c (do_page_mkwrite, if it is not inlined); fs/ext4/inode.c (ext4_page_mkwrite).

use model::{Account, Accounts, Blocked, ObjectName, RecorderPart, WaitSum, part_of};

use crate::case::Case;
use crate::case::kernel_paths::PathTime;
use crate::cause::{Absent, Cause, Claim, LookAlike, Needs, Verdict};
use crate::causes::ids;
use crate::text::{counted, duration, mean, percent};

pub const CAUSE: Cause = Cause {
    id: ids::MMAP_FILE_WRITE,
    title: "stores into a mapped file wait for the file system",
    fix: "Keep files that are written through a mapping in memory (tmpfs, /dev/shm; for the JVM \
          -XX:+PerfDisableSharedMem or hsperfdata on tmpfs), or count in ordinary memory and write \
          the file from another thread.",
    reproduce: "mysteries/bin/mmap-file-write-faulty 5",
    needs: Needs::parts(&[RecorderPart::Threads, RecorderPart::Samples]).and_kernel_symbols(),
    look_alikes: &[
        LookAlike {
            cause: ids::MEMCG_RECLAIM,
            tell_apart: "see the kernel stack of the sleep ('cat /proc/PID/task/TID/stack' as \
                         root): try_to_free_mem_cgroup_pages is reclaim, do_page_mkwrite without \
                         it is the file system",
            mutual: true,
        },
        LookAlike {
            cause: ids::FILE_MAJOR_FAULT,
            tell_apart: "see the kernel stack of the fault ('cat /proc/PID/task/TID/stack' as \
                         root): do_page_mkwrite is a store into a page that is in memory, \
                         filemap_fault without it reads the disk",
            mutual: true,
        },
    ],
    symptom: false,
    examine,
};

/// The file system is asked for permission to write to a page.
const LEAVE: [&str; 1] = ["do_page_mkwrite"];
/// All of such a fault that can be recognised on the CPU; and a copy of private memory, which cannot be
/// distinguished from it before.
const WRITE_FAULT: [&str; 4] =
    ["do_wp_page", "do_page_mkwrite", "finish_mkwrite_fault", "fault_dirty_shared_page"];
const COPY: [&str; 2] = ["wp_page_copy", "do_cow_fault"];
/// Where a fault is known to be of some kind.
const KINDS: [&str; 10] = [
    "do_wp_page",
    "do_page_mkwrite",
    "finish_mkwrite_fault",
    "fault_dirty_shared_page",
    "do_anonymous_page",
    "do_swap_page",
    "do_numa_page",
    "do_cow_fault",
    "filemap_fault",
    "filemap_map_pages",
];
/// What it waits for there.
const REASONS: [(&str, &[&str]); 3] = [
    ("the page to be on the disk", &["folio_wait_writeback", "folio_wait_stable"]),
    (
        "the journal",
        &["start_this_handle", "do_get_write_access", "jbd2_log_wait_commit", "xfs_log_reserve"],
    ),
    ("somebody else's lock on the page", &["__folio_lock"]),
];
const MAJOR: Account = Account::Blocked(Blocked::FaultMajor);

/// Time of stores that asked a file system.
struct Stores {
    asleep: PathTime,
    on_cpu: PathTime,
    lost: Accounts,
}

fn measure(case: &Case) -> Result<Stores, Absent> {
    let asleep = case.time_through(&LEAVE, |path| !path.sampled);
    let on_cpu = on_cpu(case);
    if asleep.ns().saturating_add(on_cpu.ns()) == 0 {
        return Err(Absent("no store into a mapped file had to ask a file system".to_owned()));
    }
    let mut lost = asleep.accounts.clone();
    lost.merge(&on_cpu.accounts);
    let total = lost.total();
    // Memory shared without a file system (tmpfs, anonymous) is written to in such faults, too.
    let asked = case.time_through(&LEAVE, |_| true).ns();
    if asked < total / 10 {
        return Err(Absent(format!(
            "of {} in faults of stores to shared pages a file system was asked in {}",
            duration(total),
            duration(asked)
        )));
    }
    Ok(Stores { asleep, on_cpu, lost })
}

fn examine(case: &Case) -> Verdict {
    let stores = measure(case)?;
    let (asleep, on_cpu) = (&stores.asleep, &stores.on_cpu);
    let process = case
        .main_of(&LEAVE, |_| true)
        .map_or("a process".to_owned(), |tgid| case.process_name(tgid));
    let file = most_expensive_file(case);
    let title = format!(
        "stores of {process} into {} wait for the file system",
        file.unwrap_or("a mapped file")
    );
    let waits = asleep.sleeps.saturating_add(on_cpu.samples);
    let mut claim = Claim::new(title, stores.lost.clone(), waits);
    claim.mechanism(format!(
        "a store into a page of a file that was just written out faults and asks the file system \
         again: {} asleep ({}, mean {}, longest {}) and {} on a CPU",
        duration(asleep.ns()),
        counted(asleep.sleeps, "sleep"),
        mean(asleep.ns(), asleep.sleeps),
        duration(asleep.max_ns),
        duration(on_cpu.ns())
    ));
    let reasons = reasons(case, asleep.ns());
    if reasons.is_empty() {
        claim.trigger("something writes the file out again and again".to_owned());
    } else {
        claim.trigger(format!(
            "something writes the file out again and again; of the sleeps {}",
            reasons.join(", ")
        ));
    }
    let path = case.path_in_words(&LEAVE, |path| !path.sampled);
    claim.saw_if(path.map(|p| format!("asleep in {p}")), "kernel stack of the sleeps");
    if let Some(file) = file {
        claim
            .saw(format!("stores into {file}"), "page_fault_user, mapping of the faulting address");
    }
    rule_out(case, &stores, &mut claim);
    Ok(claim)
}

/// What the sleeps were for: `80 % for the journal`.
fn reasons(case: &Case, asleep_ns: u64) -> Vec<String> {
    let asks = |path: &model::PathSum| !path.sampled && case.passes(path, &LEAVE);
    let each = REASONS.iter().map(|(what, through)| (what, case.time_through(through, asks).ns()));
    each.filter(|(_, ns)| *ns > 0)
        .map(|(what, ns)| format!("{} for {what}", percent(ns, asleep_ns)))
        .collect()
}

fn rule_out(case: &Case, stores: &Stores, claim: &mut Claim) {
    let major = case.accounts.get(MAJOR);
    let asking = stores.asleep.accounts.get(MAJOR);
    if asking >= major.saturating_sub(asking) {
        claim.rule_out(
            ids::FILE_MAJOR_FAULT,
            format!(
                "of {} asleep in faults that waited for a disk {} were stores asking for permission, \
                 of pages that were in memory",
                duration(major),
                percent(asking, major)
            ),
        );
    }
    let (calls, ns) = ["fsync", "fdatasync", "msync"]
        .iter()
        .map(|name| case.calls(name))
        .fold((0u64, 0u64), |sum, (n, ns)| (sum.0.saturating_add(n), sum.1.saturating_add(ns)));
    if ns < stores.lost.total() {
        claim.rule_out(
            ids::FSYNC_JOURNAL,
            format!("{} of these threads, {}", case.calls_in_words(calls, "sync"), duration(ns)),
        );
    }
}

/// CPU time of such faults, with their part of what all faults have in common: entry, look-up of
/// the mapping, the lock of the page table, exit.
fn on_cpu(case: &Case) -> PathTime {
    let faults = case.time_through(&["asm_exc_page_fault"], |path| path.sampled);
    let kinds = case.time_through(&KINDS, |path| path.sampled).ns();
    let stores = case.time_through(&WRITE_FAULT, |path| path.sampled && !case.passes(path, &COPY));
    let part = stores.ns().min(kinds);
    let accounts =
        faults.accounts.iter().map(|(account, ns)| (account, part_of(ns, part, kinds))).collect();
    PathTime { accounts, ..stores }
}

/// The mapped file with the longest sleeps in faults.
fn most_expensive_file<'a>(case: &Case<'a>) -> Option<&'a str> {
    let of_file = |wait: &'a WaitSum| match &wait.name {
        Some(ObjectName::File(path)) => Some((wait.ns, path.as_str())),
        _ => None,
    };
    case.waits(MAJOR).filter_map(of_file).max_by_key(|(ns, _)| *ns).map(|(_, path)| path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RunBuilder, SECOND, USER, wait};

    const STORE: [&str; 4] =
        ["folio_wait_writeback", "ext4_page_mkwrite", "do_page_mkwrite", "handle_mm_fault"];

    fn run() -> RunBuilder {
        let fault = ["do_page_mkwrite", "handle_mm_fault", "asm_exc_page_fault"];
        let file = Some(ObjectName::File("/tmp/hsperfdata_app/7".to_owned()));
        RunBuilder::new()
            .thread(10, 10, &[(USER, SECOND), (MAJOR, 2 * SECOND)])
            .slept_path(10, MAJOR, "", &STORE, 100, 2 * SECOND)
            .sampled_path(10, USER, &fault, 100)
            .sampled_path(10, USER, &fault[2..], 100)
            .sampled_path(10, USER, &[], 800)
            .wait(WaitSum { name: file, ..wait(10, MAJOR, 0, 100, 2 * SECOND) })
    }

    #[test]
    fn claimed_with_the_file_and_what_it_waits_for() {
        let run = run().build();
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!((claim.lost.get(MAJOR), claim.lost.get(USER)), (2 * SECOND, SECOND / 5));
        assert!(claim.title.contains("/tmp/hsperfdata_app/7"), "{}", claim.title);
        assert!(
            claim.chain.iter().any(|l| l.text.contains("100 % for the page to be on the disk"))
        );
        let excluded: Vec<_> = claim.ruled_out.iter().map(|r| r.cause.as_str()).collect();
        assert_eq!(excluded, ["file-major-fault", "fsync-journal"]);
    }

    #[test]
    fn file_major_fault_is_not_claimed_for_stores() {
        let run = run().build();
        let file_major = crate::causes::memory::file_major_fault::CAUSE;
        assert!((file_major.examine)(&Case::new(&run)).unwrap_err().0.contains("mmap-file-write"));
    }

    #[test]
    fn not_claimed_for_pages_read_from_the_disk() {
        let run = RunBuilder::new()
            .thread(10, 10, &[(MAJOR, SECOND)])
            .slept_path(10, MAJOR, "", &["folio_wait_bit_common", "filemap_fault"], 9, SECOND)
            .build();
        assert!(examine(&Case::new(&run)).unwrap_err().0.contains("no store"));
    }
}
