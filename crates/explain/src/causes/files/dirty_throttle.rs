//! dirty-throttle: writers are made to pause because too many pages wait to be written.
//!
//! A write() only fills the page cache, until as many pages are dirty as may be: of the host, or
//! of one slow device or file system. From then on the kernel makes each writer pause, so that
//! pages become dirty no faster than they are written.
//!
//! # Evidence
//!
//! Pauses in balance_dirty_pages: an account of its own, known by the kernel stack of the sleep;
//! how many the kernel reported itself; dirty pages of the host against its thresholds, which shows
//! whether the host or one device is at its limit. Waits for locks that a paused writer held are
//! counted with it.
//!
//! # Without whylag
//!
//!     grep -E 'nr_dirty|nr_writeback' /proc/vmstat   # with nr_dirty_threshold
//!     sysctl vm.dirty_ratio vm.dirty_background_ratio
//!     perf trace -a -e writeback:balance_dirty_pages
//!
//! # Sources
//!
//! mm/page-writeback.c; Documentation/admin-guide/sysctl/vm.rst.

use model::{Account, Blocked, EventKind, RecorderPart};

use crate::case::Case;
use crate::cause::{Absent, Cause, Claim, LookAlike, Needs, Verdict};
use crate::causes::ids;
use crate::text::{count, counted, duration, mean, percent};

pub const CAUSE: Cause = Cause {
    id: ids::DIRTY_THROTTLE,
    title: "writers are throttled: too many dirty pages wait to be written",
    fix: "Write less than the file system behind can take (log less, compress), or keep the write \
          off the path that waits (another thread with a bounded queue). Start writing earlier \
          (sync_file_range, vm.dirty_background_bytes): a higher vm.dirty_bytes only postpones it.",
    reproduce: "mysteries/bin/dirty-throttle-faulty 5",
    needs: Needs::parts(&[RecorderPart::Threads, RecorderPart::Writeback]),
    look_alikes: &[
        LookAlike {
            cause: ids::FSYNC_JOURNAL,
            tell_apart: "see the call: fsync waits for the journal, write() is paused in \
                         balance_dirty_pages",
            mutual: true,
        },
        LookAlike {
            cause: ids::MEMCG_RECLAIM,
            tell_apart: "see the kernel stack of the sleep ('cat /proc/PID/task/TID/stack' as \
                         root): balance_dirty_pages is a pause of a writer, \
                         try_to_free_mem_cgroup_pages is reclaim",
            mutual: true,
        },
        LookAlike {
            cause: ids::MMAP_FILE_WRITE,
            tell_apart: "see the kernel stack of the sleep ('cat /proc/PID/task/TID/stack' as \
                         root): balance_dirty_pages is a pause of a writer, do_page_mkwrite is a \
                         store that waits for the file system",
            mutual: true,
        },
        LookAlike {
            cause: ids::BLOCKED_LOG_PIPE,
            tell_apart: "see what is written to ('ls -l /proc/PID/fd'): a pipe waits for its \
                         reader, a file for the disk",
            mutual: true,
        },
    ],
    symptom: false,
    examine,
};

const PAUSED: Account = Account::Blocked(Blocked::DirtyThrottle);
const THROTTLE: [&str; 2] = ["balance_dirty_pages", "balance_dirty_pages_ratelimited_flags"];

fn examine(case: &Case) -> Verdict {
    let paused = case.accounts.get(PAUSED);
    if paused == 0 {
        return Err(Absent("no writer was made to pause".to_owned()));
    }
    let pauses = case.time_through(&THROTTLE, |path| path.account == PAUSED);
    let behind = case.behind_holders(|o| o.blocked.is_some(), |_, account| account == PAUSED);
    let mut lost = behind.accounts.clone();
    lost.add(PAUSED, paused);
    let process = case.main_process(|account| account == PAUSED).unwrap_or(0);
    let title = format!("{} is made to pause when it writes", case.process_name(process));
    let mut claim = Claim::new(title, lost, pauses.sleeps.max(1).saturating_add(behind.count));

    let threads = case.threads_in(|account| account == PAUSED).count() as u64;
    claim.mechanism(format!(
        "{} paused {} times in balance_dirty_pages for {}: mean {}, longest {}",
        counted(threads, "thread"),
        count(pauses.sleeps),
        duration(paused),
        mean(pauses.ns(), pauses.sleeps),
        duration(pauses.max_ns)
    ));
    claim.trigger(limit_in_words(case));
    if let Some(longest_chain) = &behind.longest_chain {
        claim.saw(format!("and behind them: {longest_chain}"), "waker of the wait");
    }
    let path = case.path_in_words(&THROTTLE, |path| path.account == PAUSED);
    claim.saw_if(path.map(|p| format!("asleep in {p}")), "kernel stack of the sleeps");
    let reported =
        case.run.events.iter().filter(|e| e.kind == EventKind::DirtyThrottle).count() as u64;
    if reported > 0 {
        claim.saw(
            format!("{} reported by the kernel", counted(reported, "pause")),
            "balance_dirty_pages",
        );
    }

    let disk = case.accounts.get(Account::Blocked(Blocked::Disk));
    if disk < paused / 5 {
        let because = format!(
            "waiting for the disk itself is an account of its own: {} against {} in pauses",
            duration(disk),
            duration(paused)
        );
        claim.rule_out(ids::FSYNC_JOURNAL, because.clone());
        claim.exclude("waiting for the disk", because);
    }
    Ok(claim)
}

/// Whether the host has too many dirty pages, or the file system written to alone.
fn limit_in_words(case: &Case) -> String {
    let dirty = case.run.counter("vm.nr_dirty_pages");
    let background = case.run.counter("vm.dirty_background_threshold_pages");
    let (Some(dirty), Some(background)) = (dirty, background) else {
        return "as many pages are dirty as may be".to_owned();
    };
    let most = dirty.first.max(dirty.last);
    let whose = if most < background.last {
        "so it is the file system or device written to that has as many as it may have (a strict \
         limit of its own, as with FUSE, or its share by speed)"
    } else {
        "so the host has as many as it may have"
    };
    format!(
        "{} pages of the host were dirty at most when read, {} of its background threshold: {whose}",
        count(most),
        percent(most, background.last)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RunBuilder, SECOND, USER};

    const DISK: Account = Account::Blocked(Blocked::Disk);

    fn run(disk: u64) -> RunBuilder {
        let frames = ["balance_dirty_pages", "iomap_file_buffered_write", "vfs_write"];
        RunBuilder::new()
            .thread(10, 10, &[(USER, SECOND), (PAUSED, 2 * SECOND), (DISK, disk)])
            .slept_path(10, PAUSED, "write", &frames, 100, 2 * SECOND)
    }

    #[test]
    fn claimed_with_the_limit_that_was_reached() {
        let run = run(0)
            .counter("vm.nr_dirty_pages", 100, 9000)
            .counter("vm.dirty_background_threshold_pages", 500_000, 500_000)
            .build();
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!(claim.lost.get(PAUSED), 2 * SECOND);
        assert_eq!(claim.waits, 100);
        assert!(claim.chain.iter().any(|l| l.text.contains("1.8 %") && l.text.contains("FUSE")));
        assert!(claim.ruled_out.iter().any(|r| r.cause == "fsync-journal"));
    }

    #[test]
    fn waiting_for_the_disk_is_not_ruled_out_when_there_is_much_of_it() {
        let run = run(2 * SECOND).build();
        assert!(examine(&Case::new(&run)).unwrap().ruled_out.is_empty());
    }

    #[test]
    fn no_pause_no_claim() {
        let run = RunBuilder::new().thread(10, 10, &[(DISK, SECOND)]).build();
        assert!(examine(&Case::new(&run)).is_err());
    }
}
