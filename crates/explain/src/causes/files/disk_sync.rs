//! disk-sync: a thread sleeps until a disk has what it wrote.
//!
//! fsync() and fdatasync() return when the disk has the data, so do writes with O_SYNC or O_DIRECT:
//! each costs at least one answer of the device, however few bytes it is about, and those of one
//! file come one after the other. Waiting for the journal of the whole file system is another cause
//! (fsync-journal).
//!
//! # Evidence
//!
//! Sleeps for a disk within calls that write or sync, without those whose kernel stack passes the
//! wait for a commit of a journal, reclaim of memory, the throttle of writes in the background, or
//! the reading of a page that is written in part. Sleeps too short for a stack are divided as those
//! with one. The CPU time of calls that do nothing but sync is claimed, too, in the same parts: it is
//! spent on handing the data to the disk. The answers of the disks are shown beside them.
//!
//! # Without whylag
//!
//!     strace -f -T -e trace=fsync,fdatasync,pwrite64,write -p PID
//!     iostat -x 1                                # w_await, f_await
//!     perf trace -s -e fsync,fdatasync -p PID
//!
//! # Sources
//!
//! fsync(2); open(2), O_SYNC and O_DIRECT; mm/filemap.c (file_write_and_wait_range);
//! fs/iomap/direct-io.c.

use model::{Account, Accounts, RecorderPart, Syscall, part_of};

use crate::case::Case;
use crate::case::kernel_paths::PathTime;
use crate::cause::{Absent, Cause, Claim, LookAlike, Needs, Verdict};
use crate::causes::files::disk_waits::{Asked, DISK, DiskWaits, FIX_OF_REMOTE};
use crate::causes::files::fsync_journal::JOURNAL;
use crate::causes::ids;
use crate::text::{counted, duration, mean, percent};

pub const CAUSE: Cause = Cause {
    id: ids::DISK_SYNC,
    title: "a thread sleeps until the disk has what it wrote",
    fix: "Sync less often: once for many records (group commit), in a thread of its own, outside of \
          what others wait for. Leave it out where the data need not survive a power cut. A disk \
          with a protected cache answers in microseconds.",
    reproduce: "mysteries/bin/disk-sync-faulty 5",
    needs: Needs::parts(&[RecorderPart::Threads]),
    look_alikes: &[
        LookAlike {
            cause: ids::FSYNC_JOURNAL,
            tell_apart: "see the kernel stack of the sleep ('cat /proc/PID/task/TID/stack' as \
                         root): jbd2_log_wait_commit is the journal, folio_wait_writeback or \
                         __iomap_dio_rw the file's own data",
            mutual: true,
        },
        LookAlike {
            cause: ids::DIRTY_THROTTLE,
            tell_apart: "see the call: a plain write() that sleeps in balance_dirty_pages is \
                         throttled, fsync and fdatasync wait for the disk",
            mutual: false,
        },
    ],
    symptom: false,
    examine,
};

/// Calls that do nothing but sync.
const SYNCS: [&str; 6] = ["fsync", "fdatasync", "msync", "sync", "syncfs", "sync_file_range"];

/// Calls that sync, beyond their sleeps.
#[derive(Default)]
struct Syncs {
    calls: u64,
    /// From entry to exit.
    ns: u64,
    /// Sleeps for the data in them.
    sleeps: u64,
    on_cpu: Accounts,
}

impl Syncs {
    fn of(case: &Case, waits: &DiskWaits) -> Syncs {
        let mut syncs = Syncs::default();
        for (name, sleeps, slept_ns) in &waits.calls {
            let call = Syscall::named(name).filter(|_| SYNCS.contains(&name.as_str()));
            let Some(call) = call else { continue };
            let (calls, ns) = case.calls(name);
            let is_in_it = |path: &model::PathSum| path.account == DISK && path.call == Some(call);
            let all = case.time_through(&[], |path| !path.sampled && is_in_it(path)).ns();
            let account = Account::Syscall(call);
            let on_cpu = part_of(case.accounts.get(account), *slept_ns, all.max(*slept_ns));
            syncs.calls = syncs.calls.saturating_add(calls);
            syncs.ns = syncs.ns.saturating_add(ns);
            syncs.sleeps = syncs.sleeps.saturating_add(*sleeps);
            syncs.on_cpu.add(account, on_cpu);
        }
        syncs
    }

    /// What one waits for at a time: a call that syncs, with all its sleeps, or another sleep.
    fn waits(&self, sleeps: u64) -> u64 {
        match self.calls {
            0 => sleeps,
            calls => sleeps.saturating_sub(self.sleeps).saturating_add(calls.min(self.sleeps)),
        }
    }
}

fn examine(case: &Case) -> Verdict {
    let waits = DiskWaits::of(case, Asked::Write);
    let Some((call, ..)) = waits.calls.first() else {
        return Err(Absent("no thread slept for a disk in a call that writes or syncs".to_owned()));
    };
    let process = case.process_name(waits.waiter);
    let device = waits.device();
    let title = format!("{process} sleeps in {call} until {device} has what it wrote");
    let syncs = Syncs::of(case, &waits);
    let mut lost = waits.accounts();
    lost.merge(&syncs.on_cpu);
    let mut claim = Claim::new(title, lost, syncs.waits(waits.count));
    claim.is_stall = true;
    claim.fix = waits.remote.map(|_| FIX_OF_REMOTE);
    claim.mechanism(format!(
        "{} until {device} had the data, {}: mean {}, longest {}",
        counted(waits.count, "sleep"),
        duration(waits.ns),
        mean(waits.ns, waits.count),
        duration(waits.max_ns)
    ));
    claim.trigger(format!("{process} asks for it: each {call} returns when the disk has answered"));
    claim.saw_if(
        (syncs.calls > 0).then(|| {
            format!(
                "{} took {}, {} on average; {} of it on a CPU",
                counted(syncs.calls, "syncing call"),
                duration(syncs.ns),
                mean(syncs.ns, syncs.calls),
                duration(syncs.on_cpu.total())
            )
        }),
        "from entry to exit of fsync, fdatasync, msync and sync",
    );
    waits.evidence(case, Asked::Write, &mut claim);
    rule_out_journal(&waits, &case.time_through(&JOURNAL, |path| !path.sampled), &mut claim);
    waits.rule_out_throttle(case, &mut claim);
    if let Some(why) = case.not_looked_at(Needs::parts(&[]).and_kernel_symbols()) {
        claim.doubt(0.6, &format!("waits for a journal may be in it: {why}"));
    }
    Ok(claim)
}

fn rule_out_journal(waits: &DiskWaits, journal: &PathTime, claim: &mut Claim) {
    if journal.ns() < waits.ns / 5 {
        let because = format!(
            "of {} {} passed the wait for a journal",
            duration(waits.ns.saturating_add(journal.ns())),
            percent(journal.ns(), waits.ns.saturating_add(journal.ns()))
        );
        claim.rule_out(ids::FSYNC_JOURNAL, because);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::causes::files::disk_waits::DISK;
    use crate::testing::requests::{MS, request, served};
    use crate::testing::{RunBuilder, SECOND, USER, queue};
    use model::{Blocked, Metric, QueueSecond, Socket, SocketKind};

    /// On a CPU in fsync.
    const SYNC: Account = Account::Syscall(Syscall(74));
    const DATA: [&str; 3] = ["folio_wait_writeback", "file_write_and_wait_range", "do_fsync"];
    const COMMIT: [&str; 2] = ["jbd2_log_wait_commit", "do_fsync"];

    fn run() -> RunBuilder {
        RunBuilder::new()
            .thread(10, 10, &[(DISK, 4 * SECOND)])
            .slept_path(10, DISK, "fdatasync", &DATA, 100, SECOND)
            .slept_path(10, DISK, "fdatasync", &COMMIT, 10, SECOND / 4)
            .slept_path(10, DISK, "pread64", &["folio_wait_bit_common"], 50, SECOND)
    }

    #[test]
    fn claimed_is_the_wait_for_the_data_and_not_for_a_journal_or_a_read() {
        let claim = examine(&Case::new(&run().build())).unwrap();
        assert_eq!((claim.lost.get(DISK), claim.waits), (SECOND, 100));
        assert!(claim.title.contains("fdatasync"), "{}", claim.title);
        assert!(claim.evidence.iter().any(|e| e.text.contains("folio_wait_writeback")));
    }

    #[test]
    fn sleeps_without_a_stack_are_divided_as_the_others() {
        let run = run().slept_path(10, DISK, "fdatasync", &[], 500, SECOND).build();
        assert_eq!(examine(&Case::new(&run)).unwrap().lost.get(DISK), SECOND + SECOND / 5 * 4);
    }

    /// Of 42 s of eleven threads one syncs for 480 ms, in waits that are short for a lock.
    #[test]
    fn short_waits_of_a_busy_process_are_named() {
        let idle = [(Account::Blocked(Blocked::Poll), 4 * SECOND)];
        let busy = [(USER, 17 * SECOND / 10), (DISK, 480 * MS)];
        let run = (11..21).fold(RunBuilder::new(), |run, tid| run.thread(tid, 10, &idle));
        let run = run
            .thread(10, 10, &busy)
            .slept_path(10, DISK, "fdatasync", &DATA, 6_000, 480 * MS)
            .build();
        assert_eq!(crate::explain(&run).findings[0].cause, "disk-sync");
    }

    /// One thread that has little to do, and does it for 140 ms in 28 stalls.
    #[test]
    fn stalls_of_the_thread_of_a_server_are_named() {
        let idle = (Account::Blocked(Blocked::Poll), 32 * SECOND / 10);
        let run = || {
            RunBuilder::new()
                .thread(11, 10, &[(USER, 66 * SECOND / 100), (DISK, 140 * MS), idle])
                .slept_path(10, DISK, "fsync", &DATA, 28, 140 * MS)
                .build()
        };
        assert!(crate::explain(&run()).findings.is_empty(), "nobody waits for it");
        let quick = (0..20).map(|n| request(1, 11, 100 * n, 0, 1)).collect();
        let found = crate::explain(&served(run(), quick));
        assert_eq!(found.findings[0].cause, "disk-sync");
    }

    /// Ten calls of 12 ms, each in many short sleeps; the rest of the call is work to hand the data over.
    fn saves() -> RunBuilder {
        let fsync = Syscall::named("fsync").unwrap();
        let idle = (Account::Blocked(Blocked::Poll), 3 * SECOND);
        RunBuilder::new()
            .thread(10, 10, &[(USER, SECOND / 2), (DISK, 80 * MS), (SYNC, 40 * MS), idle])
            .slept_path(10, DISK, "fsync", &DATA, 400, 80 * MS)
            .values(Metric::Syscall(fsync), 5, &[12 * MS; 10])
    }

    #[test]
    fn a_call_that_syncs_is_one_wait_with_what_it_computes() {
        let claim = examine(&Case::new(&saves().build())).unwrap();
        assert_eq!((claim.lost.get(DISK), claim.lost.get(SYNC)), (80 * MS, 40 * MS));
        assert_eq!(claim.waits, 10);
        assert!(claim.evidence[0].text.starts_with("10 syncing calls took 120 ms"), "{claim:?}");
        // Half of the sleeps are the journal's, and so is half of the work.
        let run = saves().slept_path(10, DISK, "fsync", &COMMIT, 10, 80 * MS).build();
        assert_eq!(examine(&Case::new(&run)).unwrap().lost.get(SYNC), 20 * MS);
    }

    /// What is sent to a broker has no answer: it is no request, and waits all the same.
    #[test]
    fn stalls_of_whoever_others_may_connect_to_are_named() {
        let listening = QueueSecond {
            socket: Socket { tgid: 10, ..queue(SocketKind::TcpListening, 0, 100, 0).socket },
            ..queue(SocketKind::TcpListening, 0, 100, 0)
        };
        assert!(crate::explain(&saves().build()).findings.is_empty());
        let found = crate::explain(&saves().queue(listening).build()).findings;
        assert_eq!(found[0].cause, "disk-sync");
    }

    #[test]
    fn a_page_that_is_written_in_part_is_read_first() {
        let run = RunBuilder::new()
            .thread(10, 10, &[(DISK, SECOND)])
            .slept_path(10, DISK, "write", &["ext4_block_write_begin"], 10, SECOND)
            .build();
        assert!(examine(&Case::new(&run)).is_err());
        assert_eq!(DiskWaits::of(&Case::new(&run), Asked::Read).ns, SECOND);
    }
}
