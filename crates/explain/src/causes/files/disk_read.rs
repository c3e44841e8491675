//! disk-read: a thread sleeps until a disk has delivered what it reads.
//!
//! What is not in the page cache is read from the disk, in the call that asks for it: read() and
//! its kin, sendfile(), and what looks for a file (open, stat, readdir). A program that reads one
//! block after the other waits for the disk's answer each time. Page faults on mapped files are
//! another cause (file-major-fault).
//!
//! # Evidence
//!
//! Sleeps for a disk within calls that do not write, without those whose kernel stack passes the
//! wait for a journal, reclaim of memory, or the freeing of blocks. The answers of the disks are
//! shown beside them.
//!
//! # Without whylag
//!
//!     strace -f -T -e trace=read,pread64,sendfile,openat -p PID
//!     iostat -x 1                                # r_await
//!     perf trace -s -e pread64 -p PID
//!
//! # Sources
//!
//! mm/filemap.c (filemap_read, filemap_update_page); posix_fadvise(2); readahead(2).

use model::{Account, Blocked, RecorderPart};

use crate::case::Case;
use crate::cause::{Absent, Cause, Claim, LookAlike, Needs, Verdict};
use crate::causes::files::disk_waits::{Asked, DISK, DiskWaits, FIX_OF_REMOTE};
use crate::causes::files::rereads::Rereads;
use crate::causes::ids;
use crate::text::{count, counted, duration, mean};

pub const CAUSE: Cause = Cause {
    id: ids::DISK_READ,
    title: "a thread sleeps until the disk has delivered what it reads",
    fix: "Have the data in memory before it is needed: read ahead (posix_fadvise with \
          POSIX_FADV_WILLNEED, readahead), in larger pieces, or with several requests at once \
          (threads, io_uring).",
    reproduce: "mysteries/bin/disk-read-faulty 5",
    needs: Needs::parts(&[RecorderPart::Threads]).and_kernel_symbols(),
    look_alikes: &[
        LookAlike {
            cause: ids::FILE_MAJOR_FAULT,
            tell_apart: "read /proc/PID/task/TID/syscall while the thread sleeps: the number of \
                         read or pread64 is a call, -1 is a page fault",
            mutual: true,
        },
        LookAlike {
            cause: ids::DISK_SYNC,
            tell_apart: "see the call that sleeps ('strace -f -T -p PID'): fsync, fdatasync and \
                         writes wait for what was written, all others for what is read",
            mutual: true,
        },
    ],
    symptom: false,
    examine,
};

fn examine(case: &Case) -> Verdict {
    let waits = DiskWaits::of(case, Asked::Read);
    let Some((call, ..)) = waits.calls.first() else {
        return Err(Absent("no thread slept for a disk in a call that reads".to_owned()));
    };
    let process = case.process_name(waits.waiter);
    let device = waits.device();
    let title = format!("{process} sleeps in {call} until {device} has delivered");
    // What was read again is page-cache-evicted's.
    let rereads = Rereads::of(case);
    let (ns, count) =
        (waits.ns - rereads.part_of(waits.ns), waits.count - rereads.part_of(waits.count));
    let mut claim = Claim::new(title, [(DISK, ns)].into_iter().collect(), count);
    claim.is_stall = true;
    claim.fix = waits.remote.map(|_| FIX_OF_REMOTE);
    claim.mechanism(format!(
        "{} until {device} had delivered, {}: mean {}, longest {}",
        counted(count, "sleep"),
        duration(ns),
        mean(ns, count),
        duration(waits.max_ns)
    ));
    claim.trigger("what it reads was not in the page cache, or is read around it".to_owned());
    waits.evidence(case, Asked::Read, &mut claim);
    rule_out_faults(case, &waits, &mut claim);
    rule_out_rereads(&rereads, &mut claim);
    Ok(claim)
}

fn rule_out_rereads(rereads: &Rereads, claim: &mut Claim) {
    if rereads.pages > 0 && !rereads.is_most() {
        let because = format!(
            "of {} that were read from a disk, {} had been put out of the page cache since recording \
             began",
            counted(rereads.pages, "page"),
            count(rereads.again)
        );
        claim.rule_out(ids::PAGE_CACHE_EVICTED, because);
    }
}

fn rule_out_faults(case: &Case, waits: &DiskWaits, claim: &mut Claim) {
    let faults = case.accounts.get(Account::Blocked(Blocked::FaultMajor));
    if faults < waits.ns / 5 {
        let because = format!(
            "page faults that wait for a disk are an account of their own: {} against {}",
            duration(faults),
            duration(waits.ns)
        );
        claim.rule_out(ids::FILE_MAJOR_FAULT, because);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RunBuilder, SECOND};

    #[test]
    fn claimed_is_what_reads_and_not_what_syncs_or_reclaims() {
        let run = RunBuilder::new()
            .thread(10, 10, &[(DISK, 4 * SECOND)])
            .slept_path(
                10,
                DISK,
                "pread64",
                &["folio_wait_bit_common", "filemap_read"],
                100,
                SECOND,
            )
            .slept_path(
                10,
                DISK,
                "openat",
                &["__wait_on_buffer", "ext4_find_entry"],
                10,
                SECOND / 2,
            )
            .slept_path(10, DISK, "fsync", &["folio_wait_writeback"], 10, SECOND)
            .slept_path(
                10,
                DISK,
                "read",
                &["folio_wait_writeback", "try_to_free_pages"],
                10,
                SECOND,
            )
            .build();
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!((claim.lost.get(DISK), claim.waits), (SECOND + SECOND / 2, 110));
        assert!(claim.title.contains("sleeps in pread64"), "{}", claim.title);
        assert!(claim.ruled_out.iter().any(|r| r.cause == "file-major-fault"));
    }

    /// It may as well write what is new.
    #[test]
    fn a_short_sleep_in_a_call_that_changes_files_is_no_read() {
        let claimed = |call, frames: &[&str]| {
            let run = RunBuilder::new().thread(10, 10, &[(DISK, SECOND)]);
            let run = run.slept_path(10, DISK, call, frames, 100, SECOND).build();
            examine(&Case::new(&run)).is_ok()
        };
        assert!(!claimed("rename", &[]));
        assert!(claimed("rename", &["__wait_on_buffer", "ext4_find_entry"]));
        assert!(claimed("read", &[]));
    }

    #[test]
    fn a_file_system_without_a_disk_here_is_said_to_be_one() {
        let reads = |server: &str, ns| {
            let frames = ["folio_wait_bit_common", "filemap_read", server];
            let run = RunBuilder::new().thread(10, 10, &[(DISK, 2 * SECOND)]);
            run.slept_path(10, DISK, "read", &frames, 100, ns).slept_path(
                10,
                DISK,
                "read",
                &["folio_wait_bit_common", "filemap_read", "ext4_file_read_iter"],
                100,
                SECOND / 2,
            )
        };
        let run = reads("nfs_file_read", SECOND).build();
        let claim = examine(&Case::new(&run)).unwrap();
        assert!(claim.title.ends_with("until the NFS server has delivered"), "{}", claim.title);
        assert_eq!(claim.fix, Some(FIX_OF_REMOTE));
        let run = reads("nfs_file_read", SECOND / 4).build();
        assert!(examine(&Case::new(&run)).unwrap().title.ends_with("until the disk has delivered"));
    }

    #[test]
    fn not_claimed_without_a_disk() {
        let run = RunBuilder::new().thread(10, 10, &[(DISK, SECOND)]).build();
        assert!(examine(&Case::new(&run)).unwrap_err().0.contains("no thread slept"));
    }
}
