//! What of the recorder works on this host: facts, then a decision, then words for the user.
//!
//! The three steps are kept apart so that each can be tested on its own.

use std::fs;
use std::path::Path;

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{FuncProto, Typedef};
use model::Capability;

/// A group of probes that is on or off as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// On and off the CPU, asleep, woken, born, dead.
    Threads,
    /// Which system call, for how long.
    SystemCalls,
    /// Contended kernel locks.
    Locks,
    /// Who holds mmap_lock.
    MmapLock,
    /// Page faults.
    Faults,
    /// Device interrupts and softirqs.
    Interrupts,
    /// Inter-processor and timer interrupts.
    Vectors,
    /// Block I/O.
    BlockIo,
    /// Signals.
    Signals,
    /// Direct reclaim and compaction.
    Reclaim,
    /// Dirty page throttling and journal commits.
    Writeback,
    /// What runs on the CPUs, by a timer.
    Samples,
    /// Which timer ended a sleep, and when it should have.
    Timers,
    /// Queues of sockets, what was dropped at them, and what TCP sent once more.
    Sockets,
}

impl Part {
    /// Every part.
    pub const ALL: [Part; 14] = [
        Part::Threads,
        Part::SystemCalls,
        Part::Locks,
        Part::MmapLock,
        Part::Faults,
        Part::Interrupts,
        Part::Vectors,
        Part::BlockIo,
        Part::Signals,
        Part::Reclaim,
        Part::Writeback,
        Part::Samples,
        Part::Timers,
        Part::Sockets,
    ];

    /// Its name, as reports show it.
    pub fn name(self) -> &'static str {
        match self {
            Part::Threads => "threads",
            Part::SystemCalls => "system calls",
            Part::Locks => "kernel locks",
            Part::MmapLock => "mmap_lock holders",
            Part::Faults => "page faults",
            Part::Interrupts => "interrupts",
            Part::Vectors => "interrupt vectors",
            Part::BlockIo => "block I/O",
            Part::Signals => "signals",
            Part::Reclaim => "reclaim and compaction",
            Part::Writeback => "writeback and journal",
            Part::Samples => "on-CPU samples",
            Part::Timers => "timers",
            Part::Sockets => "sockets",
        }
    }

    /// Its programs (names in bpf/) and the tracepoints (or the clock) that they need, in the order in which they
    /// are attached: the end of an interrupt or lock before its begin, so that no begin is seen
    /// whose end is not.
    pub fn probes(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Part::Threads => &[
                ("on_switch", "sched_switch"),
                ("on_waking", "sched_waking"),
                ("on_migrate", "sched_migrate_task"),
                ("on_fork", "sched_process_fork"),
                ("on_exec", "sched_process_exec"),
                ("on_exit", "sched_process_exit"),
            ],
            Part::SystemCalls => &[("on_sys_exit", "sys_exit"), ("on_sys_enter", "sys_enter")],
            Part::Locks => &[
                ("on_contention_end", "contention_end"),
                ("on_contention_begin", "contention_begin"),
            ],
            Part::MmapLock => &[
                ("on_mmap_released", "mmap_lock_released"),
                ("on_mmap_acquired", "mmap_lock_acquire_returned"),
                ("on_mmap_start", "mmap_lock_start_locking"),
            ],
            Part::Faults => {
                &[("on_fault_user", "page_fault_user"), ("on_fault_kernel", "page_fault_kernel")]
            }
            Part::Interrupts => &[
                ("on_irq_exit", "irq_handler_exit"),
                ("on_irq_entry", "irq_handler_entry"),
                ("on_softirq_exit", "softirq_exit"),
                ("on_softirq_entry", "softirq_entry"),
            ],
            Part::Vectors => &[
                ("on_local_timer_exit", "local_timer_exit"),
                ("on_local_timer_entry", "local_timer_entry"),
                ("on_reschedule_exit", "reschedule_exit"),
                ("on_reschedule_entry", "reschedule_entry"),
                ("on_call_function_exit", "call_function_exit"),
                ("on_call_function_entry", "call_function_entry"),
                ("on_call_function_single_exit", "call_function_single_exit"),
                ("on_call_function_single_entry", "call_function_single_entry"),
                ("on_irq_work_exit", "irq_work_exit"),
                ("on_irq_work_entry", "irq_work_entry"),
            ],
            Part::BlockIo => {
                &[("on_block_complete", "block_rq_complete"), ("on_block_issue", "block_rq_issue")]
            }
            Part::Signals => &[("on_signal", "signal_generate")],
            Part::Reclaim => &[
                ("on_reclaim_end", "mm_vmscan_direct_reclaim_end"),
                ("on_reclaim_begin", "mm_vmscan_direct_reclaim_begin"),
                ("on_compaction_end", "mm_compaction_end"),
                ("on_compaction_begin", "mm_compaction_begin"),
            ],
            Part::Writeback => &[
                ("on_dirty_pause", "balance_dirty_pages"),
                ("on_journal_commit", "jbd2_run_stats"),
            ],
            Part::Samples => &[("on_sample", "cpu_clock")],
            Part::Timers => &[
                ("on_hrtimer_exit", "hrtimer_expire_exit"),
                ("on_hrtimer_entry", "hrtimer_expire_entry"),
                ("on_timer_exit", "timer_expire_exit"),
                ("on_timer_entry", "timer_expire_entry"),
            ],
            Part::Sockets => &[("on_drop", "kfree_skb"), ("on_retransmit", "tcp_retransmit_skb")],
        }
    }
}

/// What the host offers.
#[derive(Clone, Debug)]
pub struct HostFacts {
    /// /sys/kernel/btf/vmlinux can be read.
    pub btf: bool,
    /// Effective capabilities (bits as in linux/capability.h).
    pub capabilities: u64,
    /// Tracepoints that some part needs and the kernel does not have.
    pub missing_tracepoints: Vec<&'static str>,
}

/// Its last argument, the socket that the packet was for, is there since 6.11.
const DROP: &str = "kfree_skb";

fn tells_the_socket(kernel: &Btf<'_>) -> bool {
    /// What the kernel passes first, the packet, where, why, and the socket.
    const ARGUMENTS: usize = 5;
    let tracepoint = kernel.type_by_name::<Typedef<'_>>("btf_trace_kfree_skb");
    let function = tracepoint.and_then(|typedef| typedef.next_type()?.next_type());
    function
        .and_then(|function| FuncProto::try_from(function).ok())
        .is_none_or(|function| function.len() >= ARGUMENTS)
}

const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;
const CAP_BPF: u32 = 39;

impl HostFacts {
    /// Reads them.
    pub fn of_this_host() -> HostFacts {
        let capabilities = fs::read_to_string("/proc/self/status")
            .ok()
            .and_then(|status| {
                let line = status.lines().find_map(|l| l.strip_prefix("CapEff:"))?.trim();
                u64::from_str_radix(line, 16).ok()
            })
            .unwrap_or(0);
        let btf = fs::File::open(Path::new("/sys/kernel/btf/vmlinux")).is_ok();
        let mut missing_tracepoints = Vec::new();
        if btf && let Ok(kernel) = Btf::from_vmlinux() {
            if !tells_the_socket(&kernel) {
                missing_tracepoints.push(DROP);
            }
            let parts = Part::ALL.iter().filter(|part| **part != Part::Samples);
            for (_, tracepoint) in parts.flat_map(|part| part.probes()) {
                if kernel.type_by_name::<Typedef<'_>>(&format!("btf_trace_{tracepoint}")).is_none()
                {
                    missing_tracepoints.push(*tracepoint);
                }
            }
        }
        HostFacts { btf, capabilities, missing_tracepoints }
    }

    fn has(&self, capability: u32) -> bool {
        self.capabilities >> capability & 1 == 1
    }
}

/// How to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// With eBPF; the parts that are off, and why.
    Record(Vec<(Part, String)>),
    /// Only samples from /proc, and why.
    Sample(String),
}

/// What can be done with these facts.
pub fn decide(facts: &HostFacts) -> Plan {
    let privileged = facts.has(CAP_SYS_ADMIN) || (facts.has(CAP_BPF) && facts.has(CAP_PERFMON));
    if !privileged {
        return Plan::Sample(
            "no privilege for eBPF: needs root, or CAP_BPF and CAP_PERFMON".to_owned(),
        );
    }
    if !facts.btf {
        return Plan::Sample(
            "/sys/kernel/btf/vmlinux cannot be read: the kernel was built without \
             CONFIG_DEBUG_INFO_BTF"
                .to_owned(),
        );
    }
    let missing = |part: Part| -> Vec<&str> {
        let needed = part.probes().iter().map(|(_, tracepoint)| *tracepoint);
        let missing = needed.filter(|tracepoint| facts.missing_tracepoints.contains(tracepoint));
        missing.map(in_words).collect()
    };
    if let [first, ..] = missing(Part::Threads)[..] {
        return Plan::Sample(format!("this kernel has no tracepoint {first}"));
    }
    let off = Part::ALL.into_iter().filter_map(|part| match missing(part)[..] {
        [] => None,
        ref list => Some((part, format!("this kernel has no tracepoint {}", list.join(", ")))),
    });
    Plan::Record(off.collect())
}

fn in_words(tracepoint: &'static str) -> &'static str {
    match tracepoint {
        DROP => "kfree_skb that tells the socket (since 6.11)",
        other => other,
    }
}

/// What to try when the kernel refuses a plan: first the essential parts alone, then samples.
pub fn retreat(plan: &Plan, refusal: &str) -> Plan {
    const ESSENTIAL: [Part; 2] = [Part::Threads, Part::SystemCalls];
    let because = format!("the kernel refused it: {refusal}");
    let Plan::Record(off) = plan else { return Plan::Sample(because) };
    let more = Part::ALL
        .into_iter()
        .filter(|part| !ESSENTIAL.contains(part) && off.iter().all(|(known, _)| known != part));
    let more: Vec<_> = more.map(|part| (part, because.clone())).collect();
    if more.is_empty() {
        return Plan::Sample(because);
    }
    Plan::Record(off.iter().cloned().chain(more).collect())
}

/// The plan, for the report; parts that nobody asked for are not mentioned.
pub fn describe(plan: &Plan, unasked: &[Part]) -> Vec<Capability> {
    let asked = Part::ALL.into_iter().filter(|part| !unasked.contains(part));
    asked
        .map(|part| {
            let because = match plan {
                Plan::Sample(why) => why.clone(),
                Plan::Record(off) => {
                    off.iter().find(|(p, _)| *p == part).map_or(String::new(), |(_, w)| w.clone())
                }
            };
            Capability { part: part.name().to_owned(), on: because.is_empty(), because }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> HostFacts {
        HostFacts { btf: true, capabilities: u64::MAX, missing_tracepoints: Vec::new() }
    }

    #[test]
    fn a_full_host_records_everything() {
        assert_eq!(decide(&root()), Plan::Record(Vec::new()));
        assert!(describe(&decide(&root()), &[]).iter().all(|capability| capability.on));
    }

    #[test]
    fn without_privilege_or_btf_it_samples_and_says_why() {
        let plan = decide(&HostFacts { capabilities: 0, ..root() });
        assert!(matches!(&plan, Plan::Sample(why) if why.contains("CAP_BPF")), "{plan:?}");
        assert!(describe(&plan, &[]).iter().all(|c| !c.on && c.because.contains("CAP_BPF")));
        let plan = decide(&HostFacts { btf: false, ..root() });
        assert!(matches!(&plan, Plan::Sample(why) if why.contains("BTF")), "{plan:?}");
    }

    #[test]
    fn what_nobody_asked_for_is_not_mentioned() {
        let told = describe(&decide(&root()), &[Part::Timers]);
        assert_eq!(told.len(), Part::ALL.len() - 1);
        assert!(told.iter().all(|capability| capability.part != "timers"));
    }

    #[test]
    fn two_capabilities_are_enough() {
        let capabilities = 1 << CAP_BPF | 1 << CAP_PERFMON;
        assert_eq!(decide(&HostFacts { capabilities, ..root() }), Plan::Record(Vec::new()));
    }

    #[test]
    fn a_missing_tracepoint_turns_one_part_off() {
        let plan = decide(&HostFacts { missing_tracepoints: vec!["jbd2_run_stats"], ..root() });
        let Plan::Record(off) = &plan else { panic!("{plan:?}") };
        assert_eq!(off.len(), 1);
        assert_eq!(off[0].0, Part::Writeback);
        assert!(off[0].1.contains("jbd2_run_stats"));
    }

    #[test]
    fn a_refused_plan_retreats_to_the_essential_parts_and_then_to_samples() {
        let less = retreat(&Plan::Record(Vec::new()), "too large");
        let Plan::Record(off) = &less else { panic!("{less:?}") };
        assert_eq!(off.len(), Part::ALL.len() - 2);
        assert!(off.iter().all(|(part, _)| *part != Part::Threads));
        assert!(matches!(retreat(&less, "again"), Plan::Sample(why) if why.contains("again")));
    }

    #[test]
    fn every_program_of_the_kernel_side_belongs_to_a_part() {
        let mut sources = String::new();
        for entry in fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/bpf")).unwrap() {
            sources.push_str(&fs::read_to_string(entry.unwrap().path()).unwrap());
        }
        assert!(sources.contains("SEC(\"perf_event\")\nint on_sample("));
        let parts = Part::ALL.iter().filter(|part| **part != Part::Samples);
        for (program, tracepoint) in parts.flat_map(|part| part.probes()) {
            let generated = sources.contains(&format!(
                "VECTOR({}",
                tracepoint.trim_end_matches("_entry").trim_end_matches("_exit")
            ));
            assert!(
                generated
                    || (sources.contains(&format!("SEC(\"tp_btf/{tracepoint}\")"))
                        && sources.contains(&format!("BPF_PROG({program}"))),
                "{program} on {tracepoint}"
            );
        }
    }
}
