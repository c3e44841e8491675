//! Who had put out of the page cache what is read from a disk: against a program that knows, and the
//! kernel's own count of blocks read.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::Lab;
use common::programs::program;
use common::values::Values;
use model::{PageRead, Syscall};

const PAGES: u64 = 2_048;
/// Blocks of 512 bytes in a page.
const BLOCKS: u64 = 8;

#[test]
fn a_page_that_is_read_again_has_who_put_it_out() {
    let Some(lab) = Lab::new() else { return };
    // In a place of its own on a disk: a tmpfs has no reads.
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let file = folder.path().join("pages.bin");
    let recorded = lab.record(&[], [program("page_cache").as_os_str(), file.as_os_str()]);
    let truth = Values::of(recorded.stdout());
    let told = ["first", "again", "third"].map(|name| truth.get(name) / BLOCKS);
    println!("pages by the kernel's count: {told:?}");
    if told[0] == 0 {
        println!("skipped: /var/tmp is not on a disk");
        return;
    }
    assert_eq!(told, [PAGES; 3], "each was read from the disk three times");

    let reads = &recorded.run.sums.page_reads;
    let pread = Syscall::named("pread64");
    let of = |which: &dyn Fn(&PageRead) -> bool| -> u64 {
        reads.iter().filter(|read| read.call == pread && which(read)).map(|read| read.pages).sum()
    };
    let by = |tgid: u64| {
        of(&|read| {
            read.evictor.as_ref().is_some_and(|by| u64::from(by.tgid) == tgid && !by.reclaim)
        })
    };
    // Reclaim of this machine may put out some of them too, at any time (DAMON does so without need).
    let reclaimed: u64 = reads
        .iter()
        .filter(|read| read.evictor.as_ref().is_some_and(|by| by.reclaim))
        .map(|read| read.pages)
        .sum();
    println!("pages that reclaim had put out: {reclaimed}");
    assert_eq!(of(&|_| true), told.iter().sum::<u64>(), "{reads:#?}");
    let itself = u64::from(recorded.run.threads[0].tgid);
    for (who, told, met) in [
        ("nobody", of(&|read| read.evictor.is_none()), PAGES),
        ("evictor", by(truth.get("evictor")), truth.get("evictor_pages")),
        ("other", by(truth.get("other")), truth.get("other_pages")),
        ("the reader", by(itself), PAGES),
    ] {
        assert!(told <= met, "{who} put out {met} pages at most: {reads:#?}");
        assert!(told + reclaimed >= met, "{who} put out {met} pages: {reads:#?}");
    }
    let evictors = reads.iter().filter_map(|read| read.evictor.as_ref()).filter(|by| !by.reclaim);
    assert!(evictors.clone().all(|by| by.call == Syscall::named("fadvise64")), "{reads:#?}");
    assert!(evictors.clone().any(|by| by.comm == "evictor"), "{reads:#?}");
    assert!(reads.iter().filter(|read| read.call == pread).all(|read| read.file == "pages.bin"));
}
