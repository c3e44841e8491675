//! fsync-journal: fsync() waits until the file system's journal has committed.
//!
//! A journal commits for the whole file system at once: who asks for one small file waits for what
//! everybody else has changed meanwhile. The stack of the wait distinguishes it from waiting for the
//! file's own data.
//!
//! # Evidence
//!
//! Sleeps within a sync of a file (fsync, fdatasync, msync, a write with O_SYNC) whose kernel stack
//! passes the wait for a commit of the journal: of ext4, XFS or Btrfs. Waiting for the file's own
//! data is not claimed (disk-sync). With ext4 the commits of the host are listed, each with its
//! length.
//!
//! # Without whylag
//!
//!     strace -f -T -e trace=fsync,fdatasync,msync -p PID
//!     cat /proc/fs/jbd2/*/info                   # mean length of a commit
//!     perf trace -a -e jbd2:jbd2_run_stats
//!
//! # Sources
//!
//! fsync(2); fs/jbd2/commit.c; Documentation/filesystems/ext4/journal.rst.

use model::{Account, Blocked, EventKind, PathSum, RecorderPart, Syscall, part_of};

use crate::case::Case;
use crate::case::kernel_paths::PathTime;
use crate::cause::{Absent, Cause, Claim, LookAlike, Needs, Verdict};
use crate::causes::ids;
use crate::text::{count, counted, duration, mean, percent};

pub const CAUSE: Cause = Cause {
    id: ids::FSYNC_JOURNAL,
    title: "making a file durable waits for the journal of the whole file system",
    fix: "Change no metadata on the path that waits: write the file to its full size once, then \
          overwrite it and use fdatasync(). Or sync once for many requests (group commit), outside \
          the request's own path; or keep the file on a file system that the other writers do not \
          use.",
    reproduce: "mysteries/bin/fsync-journal-faulty 5",
    needs: Needs::parts(&[RecorderPart::Threads]).and_kernel_symbols(),
    look_alikes: &[
        LookAlike {
            cause: ids::MMAP_FILE_WRITE,
            tell_apart: "see the call: fsync is a system call, a store into a mapping is a page \
                         fault",
            mutual: true,
        },
        LookAlike {
            cause: ids::MEMCG_RECLAIM,
            tell_apart: "see the kernel stack of the sleep ('cat /proc/PID/task/TID/stack' as \
                         root): jbd2_log_wait_commit, xfs_log_force or btrfs_sync_log is the \
                         journal, try_to_free_mem_cgroup_pages is reclaim",
            mutual: true,
        },
        LookAlike {
            cause: ids::FILE_MAJOR_FAULT,
            tell_apart: "read /proc/PID/task/TID/syscall while the thread sleeps: the number of \
                         fsync or fdatasync is the journal, -1 is a page fault",
            mutual: false,
        },
    ],
    symptom: false,
    examine,
};

/// Where ext4, XFS and Btrfs wait for their journals.
pub(super) const JOURNAL: [&str; 8] = [
    "jbd2_log_wait_commit",
    "__jbd2_log_wait_for_space",
    "jbd2_fc_begin_commit",
    "wait_transaction_locked",
    "xfs_log_force",
    "xfs_log_force_seq",
    "btrfs_sync_log",
    "btrfs_commit_transaction",
];
/// A file is made durable: by a call, or by a write to a file opened with O_SYNC.
const SYNC: [&str; 9] = [
    "vfs_fsync_range",
    "do_fsync",
    "ext4_sync_file",
    "xfs_file_fsync",
    "btrfs_sync_file",
    "generic_write_sync",
    "ksys_sync",
    "__x64_sys_syncfs",
    "__arm64_sys_syncfs",
];
/// Calls that do nothing else.
const CALLS: [&str; 4] = ["fsync", "fdatasync", "msync", "syncfs"];
/// A sync waits for the data of its own file.
const OWN_DATA: [&str; 2] = ["file_write_and_wait_range", "filemap_write_and_wait_range"];

/// Where the time of syncs went.
struct Syncs {
    /// The process that waited longest for a journal.
    waiter: Option<u32>,
    all_ns: u64,
    journal: PathTime,
    /// Waiting for the data of the files themselves.
    data_ns: u64,
    /// Sleeps in calls that sync, too short for a stack.
    short: PathTime,
    /// Sleeps with a stack: all, and those for a journal.
    asleep_ns: u64,
    for_journal_ns: u64,
}

fn measure(case: &Case) -> Result<Syncs, Absent> {
    let in_sync = |path: &PathSum| case.passes(path, &SYNC);
    let journal = case.time_through(&JOURNAL, in_sync);
    let all_ns = case.time_through(&SYNC, |_| true).ns();
    if journal.ns() == 0 || journal.sleeps == 0 {
        return Err(Absent(format!(
            "no sync of a file waited for a journal; syncs took {} in all",
            duration(all_ns)
        )));
    }
    let waits = |path: &PathSum| waits_in_sync(case, path);
    let waiter = case.main_of(&JOURNAL, waits);
    // A neighbour that writes much and waits for that does not speak for others.
    let of_waiter = |path: &PathSum| in_sync(path) && waiter.is_none_or(|tgid| path.tgid == tgid);
    let own_ns = case.time_through(&JOURNAL, of_waiter).ns();
    let for_data = |path: &PathSum| of_waiter(path) && !case.passes(path, &JOURNAL);
    let data_ns = case.time_through(&OWN_DATA, for_data).ns();
    if own_ns < data_ns {
        return Err(Absent(format!(
            "syncs waited for the data of their own files, {}, rather than for the journal, {}",
            duration(data_ns),
            duration(own_ns)
        )));
    }
    let short = case.time_through(&[], |path| {
        !path.sampled && path.kernel.is_none() && path.call.is_some_and(is_sync)
    });
    let asleep_ns = case.time_through(&SYNC, |path| !path.sampled).ns();
    let for_journal_ns = case.time_through(&JOURNAL, waits).ns();
    Ok(Syncs { waiter, all_ns, journal, data_ns, short, asleep_ns, for_journal_ns })
}

fn waits_in_sync(case: &Case, path: &PathSum) -> bool {
    !path.sampled && case.passes(path, &SYNC)
}

fn examine(case: &Case) -> Verdict {
    let syncs = measure(case)?;
    let journal = &syncs.journal;
    let process = syncs.waiter.map_or("a process".to_owned(), |tgid| case.process_name(tgid));
    let title = format!("{process} waits for the journal when it makes a file durable");
    let mut lost = journal.accounts.clone();
    // The stack of a short sleep is not walked: they are divided as the others are.
    for (account, ns) in syncs.short.accounts.iter() {
        lost.add(account, part_of(ns, syncs.for_journal_ns, syncs.asleep_ns));
    }
    let mut claim = Claim::new(title, lost, journal.sleeps);
    claim.is_stall = true;
    claim.mechanism(format!(
        "{} asleep until the journal had committed: {}, mean {}, longest {}",
        counted(journal.sleeps, "sync"),
        duration(journal.ns()),
        mean(journal.ns(), journal.sleeps),
        duration(journal.max_ns)
    ));
    claim.trigger(
        "a commit writes what everybody changed on that file system since the last one, and a \
         file that grew (or is new) cannot be durable without it"
            .to_owned(),
    );
    evidence(case, &syncs, &mut claim);
    rule_out(case, &syncs, &mut claim);
    Ok(claim)
}

fn evidence(case: &Case, syncs: &Syncs, claim: &mut Claim) {
    for name in CALLS {
        let (calls, ns) = case.calls(name);
        if calls > 0 {
            let text =
                format!("{name}: {}, mean {}", case.calls_in_words(calls, "call"), mean(ns, calls));
            claim.saw(text, "system call histogram (sys_enter, sys_exit)");
        }
    }
    if syncs.short.sleeps > 0 {
        claim.saw(
            format!(
                "{} too short for a stack, {}, divided as the others: {} for the journal",
                counted(syncs.short.sleeps, "sleep"),
                duration(syncs.short.ns()),
                percent(syncs.for_journal_ns, syncs.asleep_ns)
            ),
            "sleeps by system call",
        );
    }
    let path = case.path_in_words(&JOURNAL, |path| waits_in_sync(case, path));
    claim.saw_if(path.map(|p| format!("asleep in {p}")), "kernel stack of the sleeps");
    claim.saw_if(commits(case), "jbd2_run_stats of the host");
    let elsewhere = case.time_through(&JOURNAL, |path| !case.passes(path, &SYNC)).ns();
    if elsewhere > 0 {
        let text = format!("other calls and faults waited {} for a journal", duration(elsewhere));
        claim.saw(text, "kernel stacks of sleeps and samples");
    }
}

fn rule_out(case: &Case, syncs: &Syncs, claim: &mut Claim) {
    let journal_ns = syncs.journal.ns();
    claim.exclude(
        "waiting for the file's own data",
        format!(
            "of {} in syncs {} were for the journal and {} for the files' own data",
            duration(syncs.all_ns),
            percent(journal_ns, syncs.all_ns),
            percent(syncs.data_ns, syncs.all_ns)
        ),
    );
    let throttled = case.accounts.get(Account::Blocked(Blocked::DirtyThrottle));
    if throttled < journal_ns / 5 {
        let because = format!(
            "pauses of writers are an account of their own: {} against {} for the journal",
            duration(throttled),
            duration(journal_ns)
        );
        claim.rule_out(ids::DIRTY_THROTTLE, because);
    }
}

fn is_sync(call: Syscall) -> bool {
    CALLS.iter().any(|name| Syscall::named(name) == Some(call))
}

/// What the journals of the host did, if they are journals that tell.
fn commits(case: &Case) -> Option<String> {
    let events = || case.run.events.iter().filter(|e| e.kind == EventKind::JournalCommit);
    let longest = events().max_by_key(|event| event.value)?;
    Some(format!(
        "{} commits reported, the longest took {} ({})",
        count(events().count() as u64),
        duration(longest.value),
        longest.detail
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RunBuilder, SECOND};

    const DISK: Account = Account::Blocked(Blocked::Disk);
    const COMMIT: [&str; 3] = ["jbd2_log_wait_commit", "ext4_sync_file", "do_fsync"];
    const DATA: [&str; 4] =
        ["folio_wait_writeback", "file_write_and_wait_range", "ext4_sync_file", "do_fsync"];

    fn run(journal_ns: u64, data_ns: u64) -> RunBuilder {
        RunBuilder::new()
            .thread(10, 10, &[(DISK, journal_ns + data_ns)])
            .slept_path(10, DISK, "fsync", &COMMIT, 300, journal_ns)
            .slept_path(10, DISK, "fsync", &DATA, 300, data_ns)
    }

    #[test]
    fn claimed_is_the_wait_for_the_commit_alone() {
        let run = run(2 * SECOND, SECOND).build();
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!(claim.lost.get(DISK), 2 * SECOND);
        assert_eq!(claim.waits, 300);
        let excluded: Vec<_> = claim.ruled_out.iter().map(|r| r.cause.as_str()).collect();
        assert_eq!(excluded, ["dirty-throttle"]);
        assert_eq!(claim.excluded[0].what, "waiting for the file's own data");
        assert!(claim.evidence.iter().any(|e| e.text.contains("jbd2_log_wait_commit")));
    }

    #[test]
    fn sleeps_without_a_stack_are_divided_as_the_others() {
        let run = run(2 * SECOND, SECOND)
            .slept_path(10, DISK, "fsync", &[], 1000, 300_000_000)
            .slept_path(10, DISK, "pread64", &[], 1000, 300_000_000)
            .build();
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!(claim.lost.get(DISK), 2_200_000_000);
    }

    #[test]
    fn not_claimed_when_the_data_itself_is_waited_for() {
        let run = run(SECOND, 2 * SECOND).build();
        assert!(examine(&Case::new(&run)).unwrap_err().0.contains("their own files"));
    }

    #[test]
    fn a_neighbour_that_waits_for_its_data_does_not_speak_for_others() {
        let run = run(2 * SECOND, SECOND)
            .thread(20, 20, &[(DISK, 3 * SECOND)])
            .slept_path(20, DISK, "fsync", &DATA, 300, 3 * SECOND)
            .build();
        assert_eq!(examine(&Case::new(&run)).unwrap().lost.get(DISK), 2 * SECOND);
    }

    #[test]
    fn not_claimed_for_a_store_that_waits_for_the_journal() {
        let major = Account::Blocked(Blocked::FaultMajor);
        let frames = ["wait_transaction_locked", "ext4_page_mkwrite", "do_page_mkwrite"];
        let run = RunBuilder::new()
            .thread(10, 10, &[(major, SECOND)])
            .slept_path(10, major, "", &frames, 30, SECOND)
            .build();
        assert!(examine(&Case::new(&run)).unwrap_err().0.contains("no sync"));
    }
}
