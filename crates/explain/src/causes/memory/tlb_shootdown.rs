//! tlb-shootdown: changing a mapping interrupts all CPUs that run the process, and waits for them.
//!
//! Each CPU remembers translations of addresses (the TLB). When a thread takes a page or a right
//! away from its address space (munmap, mprotect, madvise), every other CPU that runs a thread of
//! the process has to forget them: an interrupt to each, and a wait until the last has answered.
//! On a virtual machine a CPU that is not scheduled makes the wait long.
//!
//! # Evidence
//!
//! CPU samples that wait in smp_call_function_many_cond below a flush of the TLB
//! (flush_tlb_mm_range and others), scaled to the exact time of the calls; the interrupts that
//! asked the CPUs of watched threads; and the host's count of flushes on other CPUs.
//!
//! # Without whylag
//!
//!     grep -E 'TLB|CAL' /proc/interrupts         # read it twice
//!     perf stat -e tlb:tlb_flush -a -- sleep 5
//!     perf record -g -p PID -- sleep 5           # CPU time under flush_tlb_mm_range
//!
//! # Sources
//!
//! arch/x86/mm/tlb.c; kernel/smp.c; Documentation/arch/x86/tlb.rst.

use model::{Metric, PathSum, RecorderPart};

use crate::case::Case;
use crate::case::mmap_holders::is_mmap_lock;
use crate::cause::{Absent, Cause, Claim, LookAlike, Needs, Verdict};
use crate::causes::ids;
use crate::text::{counted, duration, quantiles};

pub const CAUSE: Cause = Cause {
    id: ids::TLB_SHOOTDOWN,
    title: "changes of mappings interrupt other CPUs and wait for them",
    fix: "Change mappings less often: keep buffers instead of munmap and madvise per request, \
          change many pages in one call, raise the allocator's thresholds; split the work over \
          processes, whose address spaces do not concern each other.",
    reproduce: "mysteries/bin/tlb-shootdown-faulty 5",
    needs: Needs::parts(&[RecorderPart::Threads, RecorderPart::Samples]).and_kernel_symbols(),
    look_alikes: &[
        LookAlike {
            cause: ids::MMAP_LOCK,
            tell_apart: "read the rows TLB and CAL of /proc/interrupts before and after: \
                         shootdowns count there, threads that sleep for the lock do not",
            mutual: true,
        },
        LookAlike {
            cause: ids::MALLOC_TRIM,
            tell_apart: "keep the program on one CPU ('taskset -c 0') and record again: then \
                         nothing is shot down, and what giving memory back and taking it again \
                         costs stays",
            mutual: true,
        },
    ],
    symptom: false,
    examine,
};

/// Where a CPU asks others to do something and waits for it ...
const ASKS: [&str; 3] =
    ["smp_call_function_many_cond", "on_each_cpu_cond_mask", "native_flush_tlb_multi"];
/// ... and this is what it asks for.
const FLUSHES: [&str; 5] = [
    "flush_tlb_mm_range",
    "native_flush_tlb_multi",
    "kvm_flush_tlb_multi",
    "hyperv_flush_tlb_multi",
    "arch_tlbbatch_flush",
];
/// Names of the interrupts that ask (irq_vectors).
const ASKED: [&str; 2] = ["call_function", "call_function_single"];

fn examine(case: &Case) -> Verdict {
    let flushes = |path: &PathSum| path.sampled && case.passes(path, &FLUSHES);
    let time = case.time_through(&ASKS, flushes);
    if time.samples == 0 {
        return Err(Absent("no sample waited for other CPUs to flush their TLBs".to_owned()));
    }

    let process = case.main_of(&ASKS, flushes).unwrap_or(0);
    let title = format!(
        "{} waits for other CPUs to forget mappings that it changes",
        case.process_name(process)
    );
    let mut claim = Claim::new(title, time.accounts.clone(), time.samples);
    claim.mechanism(format!(
        "each change of a mapping interrupts the CPUs that run threads of the same process, and \
         waits until all have flushed their TLB: {} on a CPU",
        duration(time.ns())
    ));
    let largest = time.accounts.largest_first();
    let calls: Vec<String> = largest
        .iter()
        .map(|(account, ns)| format!("{account} {}", duration(*ns)))
        .take(3)
        .collect();
    claim.trigger(format!("mappings change while its threads run elsewhere: {}", calls.join(", ")));
    claim.saw(
        format!("{} waited for TLB flushes: {}", case.samples_in_words(&time), duration(time.ns())),
        "on-CPU samples under smp_call_function_many_cond and flush_tlb_mm_range",
    );
    let asked = |m: &Metric| matches!(m, Metric::HardIrq(name) if ASKED.contains(&name.as_str()));
    if let Some(interrupts) = case.merged(asked) {
        claim.saw(
            format!("interrupts that asked watched threads' CPUs: {}", quantiles(&interrupts)),
            "irq_vectors",
        );
    }
    if let Some(flushes) = case.run.counter("vm.tlb_remote_flushes").filter(|c| c.growth() > 0) {
        claim.saw(counted(flushes.growth(), "flush on other CPUs"), &flushes.source);
    }
    let path = case.path_in_words(&ASKS, flushes);
    claim.saw_if(path.map(|p| format!("waits in {p}")), "most frequent sampled path");

    let barrier = case.time_through(&["sys_membarrier", "__x64_sys_membarrier"], |_| true);
    claim.rule_out(
        ids::MEMBARRIER_GLOBAL,
        format!("membarrier took {} in all", duration(barrier.ns())),
    );
    let waited = case.accounts.sum_of(is_mmap_lock);
    if waited < time.ns() {
        claim.rule_out(
            ids::MMAP_LOCK,
            format!("waiting for the mmap_lock took {} in all", duration(waited)),
        );
    }
    Ok(claim)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RunBuilder, SECOND};
    use model::{Account, Syscall};

    fn run(frames: &[&str]) -> model::Run {
        let mprotect = Account::Syscall(Syscall::named("mprotect").unwrap());
        RunBuilder::new()
            .thread(10, 10, &[(mprotect, SECOND)])
            .sampled_path(10, mprotect, frames, 800)
            .sampled_path(10, mprotect, &["mprotect_fixup", "do_mprotect_pkey"], 200)
            .build()
    }

    #[test]
    fn claimed_for_waiting_in_flushes() {
        let run = run(&["smp_call_function_many_cond", "flush_tlb_mm_range", "change_protection"]);
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!(claim.lost.total(), SECOND * 8 / 10);
        assert!(claim.ruled_out.iter().any(|r| r.cause == "membarrier-global"));
    }

    #[test]
    fn other_questions_to_all_cpus_are_not_this() {
        let run = run(&["smp_call_function_many_cond", "membarrier_global_expedited"]);
        assert!(examine(&Case::new(&run)).is_err());
    }

    #[test]
    fn a_flush_of_the_own_cpu_is_not_this() {
        let run = run(&["flush_tlb_func", "flush_tlb_mm_range", "change_protection"]);
        assert!(examine(&Case::new(&run)).is_err());
    }
}
