//! mm-reader: another process reads the address space and holds its mmap_lock meanwhile.
//!
//! Monitors that read /proc/PID/smaps walk the page tables of the process they watch under its
//! mmap_lock; its own mmap, munmap and, behind those, page faults wait.
//!
//! # Evidence
//!
//! Sleeps for an mmap_lock while another process held it: which one, in which call, how long (the
//! mmap_lock tracepoints). Where the waits come at regular times the period is given, as monitors
//! read at regular times.
//!
//! # Without whylag
//!
//!     # with CONFIG_KPROBES:
//!     bpftrace -e 'kprobe:show_smap, kprobe:show_smaps_rollup { @[comm, pid] = count(); }'
//!     bpftrace -e 'tracepoint:syscalls:sys_enter_openat {
//!         @[comm, str(args->filename)] = count(); }'
//!
//! # Sources
//!
//! fs/proc/task_mmu.c; proc_pid_smaps(5).

use model::{HoldSum, Outlier, RecorderPart};

use crate::case::Case;
use crate::case::in_words::in_words;
use crate::case::mmap_holders::{READ, WRITE, holders, is_foreign, is_mmap_lock, place, split};
use crate::cause::{Absent, Cause, Claim, LookAlike, Needs, Verdict};
use crate::causes::ids;
use crate::text::{count, counted, duration, percent};

pub const CAUSE: Cause = Cause {
    id: ids::MM_READER,
    title: "another process holds the mmap_lock of the address space that it reads",
    fix: "Stop the reader or let it read less often. What it wants is often in \
          /proc/PID/statm, which takes no lock; smaps and smaps_rollup both walk all page tables.",
    reproduce: "mysteries/bin/mm-reader-faulty 5",
    needs: Needs::parts(&[RecorderPart::Threads, RecorderPart::MmapLock]),
    look_alikes: &[LookAlike {
        cause: ids::MMAP_LOCK,
        tell_apart: "stop whatever reads /proc/PID/smaps or maps of the process and record \
                         again: waiting for mmap_lock that stays is the program's own",
        mutual: true,
    }],
    symptom: false,
    examine,
};

/// Waits closer together than this are behind one and the same reading.
const SAME_READING_NS: u64 = 20_000_000;
/// Fewer gaps than this show no period.
const GAPS_NEEDED: usize = 3;

fn examine(case: &Case) -> Verdict {
    let waited = case.accounts.sum_of(is_mmap_lock);
    if waited == 0 {
        return Err(Absent("no thread waited for an mmap_lock".to_owned()));
    }
    let split = split(case);
    let foreign = split.foreign.total();
    let holders = holders(case, is_foreign);
    let Some(first) = holders.first().filter(|_| foreign > 0) else {
        return Err(Absent(format!(
            "threads waited {} for an mmap_lock, but never while another process held it",
            duration(waited)
        )));
    };

    let reader = format!("{} (pid {})", first.holder_comm, first.holder_tgid);
    let title = format!(
        "{reader} holds the mmap_lock of {} while it reads its memory map",
        case.process_name(first.tgid)
    );
    let overlaps = holders.iter().fold(0u64, |sum, hold| sum.saturating_add(hold.count));
    let mut claim = Claim::new(title, split.foreign.clone(), overlaps);
    claim.mechanism(format!(
        "threads waited {} to change their address space and {} to fault pages in, while another \
         process held the mmap_lock that both need",
        duration(split.foreign.get(WRITE)),
        duration(split.foreign.get(READ))
    ));
    let of_reader = |o: &&Outlier| {
        o.kind.is_own_time() && o.holder.as_ref().is_some_and(|h| h.tgid == first.holder_tgid)
    };
    let waits: Vec<&Outlier> = case.run.outliers.iter().filter(of_reader).collect();
    let period = period(waits.iter().map(|o| (o.start_ns, o.duration_ns)));
    claim.trigger(match &period {
        Some(period) => format!("{reader} holds it in {}, {period}", place(first)),
        None => format!("{reader} holds it in {}", place(first)),
    });
    evidence(&holders, &mut claim);
    claim.saw(split.in_words(), "mmap_lock_acquire_returned, mmap_lock_released");
    let longest = waits.iter().max_by_key(|o| o.duration_ns);
    claim.saw_if(longest.map(|o| in_words(case, o)), "longest wait of the run");
    let own = split.own.total();
    claim.saw(
        format!(
            "its own threads held the lock for {} of the waiting ({}), which is not counted here",
            duration(own),
            percent(own, waited)
        ),
        "mmap_lock_acquire_returned, mmap_lock_released",
    );
    Ok(claim)
}

fn evidence(holders: &[HoldSum], claim: &mut Claim) {
    for hold in holders.iter().take(3) {
        claim.saw(
            format!(
                "{} (pid {}) held it in {} for {} of the waiting: {}, longest {}",
                hold.holder_comm,
                hold.holder_tgid,
                place(hold),
                duration(hold.ns),
                counted(hold.count, "overlap"),
                duration(hold.max_ns)
            ),
            "mmap_lock_acquire_returned, mmap_lock_released",
        );
    }
}

/// `every 1.00 s (median of 9 gaps)` if the readings behind these (start, duration) are regular:
/// at least three in four gaps within a fifth of their median.
fn period(waits: impl Iterator<Item = (u64, u64)>) -> Option<String> {
    let mut waits: Vec<_> = waits.collect();
    waits.sort_unstable();
    let mut starts: Vec<u64> = Vec::new();
    let mut last_end = 0u64;
    for (start, duration) in waits {
        if starts.is_empty() || start > last_end.saturating_add(SAME_READING_NS) {
            starts.push(start);
        }
        last_end = last_end.max(start.saturating_add(duration));
    }
    let mut gaps: Vec<u64> = starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
    if gaps.len() < GAPS_NEEDED {
        return None;
    }
    gaps.sort_unstable();
    let median = gaps[gaps.len() / 2];
    let regular = gaps.iter().filter(|gap| gap.abs_diff(median) <= median / 5).count();
    (regular * 4 >= gaps.len() * 3).then(|| {
        format!("every {} (median of {} gaps)", duration(median), count(gaps.len() as u64))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RunBuilder, SECOND, USER, hold};

    #[test]
    fn claimed_and_named_when_another_process_holds_the_lock() {
        let run = RunBuilder::new()
            .thread(10, 10, &[(USER, SECOND), (WRITE, SECOND)])
            .hold(hold(10, 99, false, SECOND))
            .build();
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!(claim.lost.get(WRITE), SECOND);
        assert!(claim.title.starts_with("holder-99 (pid 99)"), "{}", claim.title);
    }

    #[test]
    fn not_claimed_for_its_own_threads_nor_for_khugepaged() {
        let mut daemon = hold(10, 30, true, SECOND);
        daemon.holder_comm = "khugepaged".to_owned();
        for holds in [hold(10, 10, true, SECOND), daemon] {
            let run = RunBuilder::new().thread(10, 10, &[(WRITE, SECOND)]).hold(holds).build();
            assert!(examine(&Case::new(&run)).is_err());
        }
    }

    #[test]
    fn a_period_is_said_only_when_the_readings_are_regular() {
        let every_second = (1..8u64).flat_map(|s| {
            // Three threads wait behind each reading.
            (0..3u64).map(move |i| (s * SECOND + i * 1_000_000, 15_000_000))
        });
        assert_eq!(period(every_second).unwrap(), "every 1.00 s (median of 6 gaps)");
        let irregular = [1u64, 2, 5, 6, 11, 19].into_iter().map(|s| (s * SECOND, 15_000_000));
        assert_eq!(period(irregular), None);
        assert_eq!(period([(SECOND, 1), (3 * SECOND, 1)].into_iter()), None);
    }
}
