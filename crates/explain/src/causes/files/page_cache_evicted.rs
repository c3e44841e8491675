//! page-cache-evicted: a thread waits for the disk to read again what was in the page cache before.
//!
//! What is read from a file stays in the page cache as long as nobody needs the memory. A limit of a
//! cgroup, a host short of memory, a backup that says it is done with what it read
//! (POSIX_FADV_DONTNEED), `echo 1 > /proc/sys/vm/drop_caches` or a write around the cache (O_DIRECT)
//! puts it out, and whoever reads it next waits for the disk. The disk is not at fault, and a faster
//! one only makes it less bad.
//!
//! # Evidence
//!
//! Each page that goes out of the page cache, by file and by who put it out, and each page that a
//! recorded thread reads into it. A page that is read of a file out of which more had been put than
//! were read since counts as read again. These are more than half of the pages that were read, or
//! disk-read is the cause. Of the time asleep for the disk in calls that read, this cause has the
//! part that they are of the pages. Pages that went out before the recording are not known. Where
//! several put out pages of one file, a page that is read again is taken for one of whoever put out
//! most that were not read since. Page faults on mapped files are file-major-fault.
//!
//! # Without whylag
//!
//!     bpftrace -e 'tracepoint:filemap:mm_filemap_delete_from_page_cache { @[comm, args.i_ino] = count(); }'
//!     grep workingset_refault_file /proc/vmstat   # grows with what reclaim had put out; not the rest
//!     cat /sys/fs/cgroup/.../memory.events        # max, high: the cgroup is at its limit
//!     fincore FILE                                # how much of it is in the page cache
//!
//! # Sources
//!
//! mm/filemap.c (__filemap_remove_folio, __filemap_add_folio); mm/vmscan.c; posix_fadvise(2).

use model::{Evictor, PageRead, RecorderPart};

use crate::case::Case;
use crate::cause::{Absent, Cause, Claim, LookAlike, Needs, Verdict};
use crate::causes::files::disk_waits::{Asked, DISK, DiskWaits};
use crate::causes::files::rereads::Rereads;
use crate::causes::ids;
use crate::text::{count, counted, duration, mean, percent};

pub const CAUSE: Cause = Cause {
    id: ids::PAGE_CACHE_EVICTED,
    title: "what was in the page cache has to be read from the disk again",
    fix: FIX_OF_CALL,
    reproduce: "mysteries/bin/page-cache-evicted-faulty 5",
    needs: Needs::parts(&[RecorderPart::Threads, RecorderPart::PageCache]).and_kernel_symbols(),
    look_alikes: &[LookAlike {
        cause: ids::DISK_READ,
        tell_apart: "read all of the file once ('cat FILE > /dev/null') and record again: what was \
                     never in the page cache is read from memory then, what is put out again is not",
        mutual: true,
    }],
    symptom: false,
    examine,
};

const FIX_OF_CALL: &str = "Let whoever puts the file out of the page cache do so only with files that nobody \
                           else reads (no POSIX_FADV_DONTNEED on them, no drop_caches, no writes with \
                           O_DIRECT beside it). Or keep the data in the program's own memory, or locked \
                           (mlock of a mapping, vmtouch -l).";
const FIX_OF_RECLAIM: &str = "Give the page cache more memory: raise the cgroup's limit (memory.max, memory.high) or \
                              protect it (memory.low), or have others use less of it (a backup or a copy can drop what \
                              it has read behind itself, or read with O_DIRECT).";

/// Memory is not what is wanting where reclaim has put out no more than so small a part, one of this many.
const FEW: u64 = 20;
/// Who puts pages out: so many get a line.
const EVICTORS_SHOWN: usize = 3;

fn examine(case: &Case) -> Verdict {
    let waits = DiskWaits::of(case, Asked::Read);
    if waits.ns == 0 {
        return Err(Absent("no thread slept for a disk in a call that reads".to_owned()));
    }
    let rereads = Rereads::of(case);
    if rereads.pages == 0 {
        return Err(Absent(
            "what was read came around the page cache (or the run is of an older whylag)"
                .to_owned(),
        ));
    }
    let Some((read, evictor)) = rereads.evictors.first().filter(|_| rereads.is_most()) else {
        return Err(Absent(format!(
            "of {} that were read from a disk, {} had been put out of the page cache before",
            counted(rereads.pages, "page"),
            count(rereads.again)
        )));
    };
    let claimed = rereads.part_of(waits.ns);
    let process = case.process_name(waits.waiter);
    let by = by_whom(case, read, evictor);
    let title = format!("{process} waits for the disk to read again what {by}");
    let lost = [(DISK, claimed)].into_iter().collect();
    let sleeps = rereads.part_of(waits.count);
    let mut claim = Claim::new(title, lost, sleeps);
    claim.is_stall = true;
    claim.fix = Some(if evictor.reclaim { FIX_OF_RECLAIM } else { FIX_OF_CALL });
    claim.mechanism(format!(
        "{} until the disk had delivered, {}: mean {}",
        counted(sleeps, "sleep"),
        duration(claimed),
        mean(claimed, sleeps)
    ));
    claim.trigger(format!(
        "{} of {} that were read had been put out of the page cache before ({})",
        count(rereads.again),
        counted(rereads.pages, "page"),
        percent(rereads.again, rereads.pages)
    ));
    for (read, evictor) in rereads.evictors.iter().take(EVICTORS_SHOWN) {
        let text = evicted_in_words(case, read, evictor);
        claim.saw(text, "mm_filemap_delete_from_page_cache and mm_filemap_add_to_page_cache");
    }
    waits.evidence(case, Asked::Read, &mut claim);
    rule_out(&rereads, &mut claim);
    Ok(claim)
}

/// `backup (pid 7) had put out of the page cache`.
fn by_whom(case: &Case, read: &PageRead, evictor: &Evictor) -> String {
    let who = match evictor.tgid == read.tgid {
        true => "it had itself".to_owned(),
        false => format!("{} had", case.runner_name(evictor.tgid, &evictor.comm)),
    };
    let what = if evictor.reclaim { "reclaimed from" } else { "put out of" };
    format!("{who} {what} the page cache")
}

/// `db (pid 5) read 3,900 pages, of index.db among others: put out by backup (pid 7) in fadvise64`.
fn evicted_in_words(case: &Case, read: &PageRead, evictor: &Evictor) -> String {
    let pages = format!("{} read {}", case.process_name(read.tgid), counted(read.pages, "page"));
    let file = match read.file.as_str() {
        "" => String::new(),
        file => format!(", of {file} among others"),
    };
    let who = case.runner_name(evictor.tgid, &evictor.comm);
    let call = evictor.call.map_or(String::new(), |call| format!(" in {call}"));
    match evictor.reclaim {
        true => format!("{pages}{file}: reclaimed by {who}{call}, which needed the memory"),
        false => format!("{pages}{file}: put out by {who}{call}"),
    }
}

fn rule_out(rereads: &Rereads, claim: &mut Claim) {
    let first = rereads.pages - rereads.again;
    claim.rule_out(
        ids::DISK_READ,
        format!(
            "{} of {} were read for the first time since recording began",
            count(first),
            counted(rereads.pages, "page")
        ),
    );
    let by_reclaim = rereads.evictors.iter().filter(|(_, evictor)| evictor.reclaim);
    let reclaimed = by_reclaim.fold(0u64, |sum, (read, _)| sum.saturating_add(read.pages));
    if reclaimed <= rereads.again / FEW {
        let because = format!(
            "{} of these {} were put out by reclaim",
            count(reclaimed),
            counted(rereads.again, "page")
        );
        claim.exclude("want of memory", because);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::causes::files::disk_read;
    use crate::testing::{RunBuilder, SECOND};
    use model::{Run, Syscall};

    /// Process 10 reads with pread64, 400 pages in 4 s.
    fn reading(reads: &[(Option<(u32, bool)>, u64)]) -> Run {
        let frames = ["folio_wait_bit_common", "filemap_read"];
        let mut run = RunBuilder::new()
            .thread(10, 10, &[(DISK, 4 * SECOND)])
            .slept_path(10, DISK, "pread64", &frames, 400, 4 * SECOND)
            .build();
        let read = |(evictor, pages): &(Option<(u32, bool)>, u64)| PageRead {
            tgid: 10,
            call: Syscall::named("pread64"),
            evictor: evictor.map(|(tgid, reclaim)| Evictor {
                tgid,
                comm: "backup".to_owned(),
                call: Syscall::named("fadvise64"),
                reclaim,
            }),
            file: "index.db".to_owned(),
            pages: *pages,
        };
        run.sums.page_reads = reads.iter().map(read).collect();
        // What it writes to a new file comes into the page cache, too.
        run.sums.page_reads.push(PageRead {
            tgid: 10,
            call: Syscall::named("write"),
            evictor: None,
            file: "log".to_owned(),
            pages: 100_000,
        });
        run
    }

    #[test]
    fn the_time_is_divided_by_what_had_been_put_out_before() {
        let run = reading(&[(Some((77, false)), 300), (None, 100)]);
        let case = Case::new(&run);
        let claim = examine(&case).unwrap();
        assert_eq!((claim.lost.get(DISK), claim.waits), (3 * SECOND, 300));
        assert!(
            claim.title.contains("read again what") && claim.title.contains("put out of"),
            "{}",
            claim.title
        );
        assert_eq!(claim.fix, Some(FIX_OF_CALL));
        assert!(
            claim
                .evidence
                .iter()
                .any(|e| e.text.contains("index.db") && e.text.contains("fadvise64"))
        );
        let rest = (disk_read::CAUSE.examine)(&case).unwrap();
        assert_eq!(rest.lost.get(DISK), SECOND, "no nanosecond twice");
    }

    #[test]
    fn reclaim_by_the_reader_itself_is_told_from_what_somebody_else_does() {
        let run = reading(&[(Some((10, true)), 400)]);
        let claim = examine(&Case::new(&run)).unwrap();
        assert!(
            claim.title.ends_with("it had itself reclaimed from the page cache"),
            "{}",
            claim.title
        );
        assert_eq!(claim.fix, Some(FIX_OF_RECLAIM));
    }

    #[test]
    fn what_is_read_for_the_first_time_is_left_to_disk_read() {
        let run = reading(&[(Some((77, false)), 100), (None, 300)]);
        let case = Case::new(&run);
        assert!(examine(&case).unwrap_err().0.contains("of 400 pages"));
        assert_eq!((disk_read::CAUSE.examine)(&case).unwrap().lost.get(DISK), 4 * SECOND);
    }
}
