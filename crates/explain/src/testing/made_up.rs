//! Runs of causes of which there is no recording with all that they look at: what not every host can
//! show.

use model::{Account, Blocked, Metric, Run};

use super::{FUTEX, RunBuilder, SECOND, USER, interval};

const MAJOR: Account = Account::Blocked(Blocked::FaultMajor);
const MINOR: Account = Account::Blocked(Blocked::FaultMinor);

/// A run with the cause of this id; `None` if a recording of its mystery will do.
pub fn made_up(id: &str) -> Option<Run> {
    Some(match id {
        "cpu-steal" => stolen(),
        "direct-compaction" => on_cpu(&["compact_zone", "do_huge_pmd_anonymous_page"]),
        "direct-reclaim" => reclaim(),
        "gc-cpu" => assists(),
        "irq-interference" => interrupted(),
        "jvm-gc" => collection(),
        "ksm-cow" => merged_pages(),
        "safepoint-late" => late_safepoint(),
        "numa-balancing" => on_cpu(&["migrate_misplaced_folio", "do_numa_page"]),
        "swap-in" => swapped(),
        _ => return None,
    })
}

/// A second on a CPU in this kernel path, and one elsewhere.
fn on_cpu(path: &[&str]) -> Run {
    RunBuilder::new()
        .thread(10, 10, &[(USER, 2 * SECOND)])
        .sampled_path(10, USER, path, 1000)
        .sampled_path(10, USER, &[], 1000)
        .build()
}

fn stolen() -> Run {
    RunBuilder::new()
        .thread(10, 10, &[(USER, SECOND), (Account::Stolen, SECOND)])
        .cpus(2, SECOND, SECOND)
        .build()
}

/// Half by a device, half by the timer.
fn interrupted() -> Run {
    RunBuilder::new()
        .thread(10, 10, &[(USER, SECOND), (Account::HardIrq, SECOND)])
        .values(Metric::HardIrq("eth0".into()), 5, &[10_000; 50_000])
        .values(Metric::HardIrq("local_timer".into()), 5, &[10_000; 50_000])
        .build()
}

/// Mostly on a CPU, as of clean pages of files.
fn reclaim() -> Run {
    let path = ["shrink_node", "try_to_free_pages", "do_anonymous_page"];
    RunBuilder::new()
        .thread(10, 10, &[(USER, 2 * SECOND), (MINOR, SECOND / 10)])
        .slept_path(10, MINOR, "", &path, 20, SECOND / 10)
        .sampled_path(10, USER, &path, 1000)
        .sampled_path(10, USER, &[], 1000)
        .build()
}

fn swapped() -> Run {
    RunBuilder::new()
        .thread(10, 10, &[(USER, SECOND), (MAJOR, SECOND)])
        .slept_path(10, MAJOR, "", &["folio_wait_bit_common", "do_swap_page"], 1000, SECOND)
        .build()
}

fn merged_pages() -> Run {
    let fault = ["wp_page_copy", "do_wp_page", "handle_mm_fault", "asm_exc_page_fault"];
    RunBuilder::new()
        .thread(10, 10, &[(USER, 2 * SECOND)])
        .sampled_path(10, USER, &fault, 1000)
        .counter("process.ksm_merging_pages", 0, 16_000)
        .build()
}

/// Half of the CPU time in goroutines that help Go's collector.
fn assists() -> Run {
    RunBuilder::new()
        .thread(10, 10, &[(USER, 2 * SECOND)])
        .sampled_in_user(10, USER, &["runtime.gcAssistAlloc", "main.main"], 1000)
        .sampled_in_user(10, USER, &["main.main"], 1000)
        .build()
}

/// The same, but for what its threads did.
fn late_safepoint() -> Run {
    let mut run = collection();
    let late = RunBuilder::new().thread(12, 10, &[(USER, 4 * SECOND)]).build();
    run.threads[0].accounts =
        [(Account::Blocked(Blocked::TimerSleep), SECOND)].into_iter().collect();
    run.threads.extend(late.threads.iter().cloned());
    run
}

fn collection() -> Run {
    let mut stop = interval(11, FUTEX, SECOND, SECOND / 10, Some(5));
    stop.waker.as_mut().unwrap().comm = "VM Thread".to_owned();
    let run = RunBuilder::new()
        .thread(5, 10, &[(USER, SECOND / 10)])
        .thread(11, 10, &[(FUTEX, 3 * SECOND)])
        .kept(stop);
    let mut run = run.build();
    run.threads[0].comm = "VM Thread".to_owned();
    run
}
