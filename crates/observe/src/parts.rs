//! The programs of each part of the recorder.

use model::RecorderPart as Part;

use crate::prototype::Prototype;
use crate::socket_walk::SocketWalk;
use crate::wire::Program;

/// A program of bpf/ and what it is attached to.
#[derive(Debug, PartialEq, Eq)]
pub struct Probe {
    /// The part that it belongs to.
    pub part: Part,
    /// Name of the program.
    pub program: &'static str,
    /// The tracepoint; for samples the perf event.
    pub tracepoint: &'static str,
    /// Where its runs are counted, and its name in the cost.
    pub counted: Program,
}

impl Probe {
    /// The arguments that the program was written for.
    pub fn prototype(&self) -> Prototype {
        Prototype::of_program(self.program)
    }
}

const fn probe(
    part: Part,
    program: &'static str,
    tracepoint: &'static str,
    counted: Program,
) -> Probe {
    Probe { part, program, tracepoint, counted }
}

/// The programs of each part in the order in which they are attached: the end of an interrupt or lock
/// before its begin, so that no begin is seen whose end is not. Several on one tracepoint are
/// variants for kernels that pass other arguments; the first that fits is taken.
pub const PROBES: &[Probe] = &[
    probe(Part::Threads, "on_switch", "sched_switch", Program::SchedSwitch),
    probe(Part::Threads, "on_switch_state_second", "sched_switch", Program::SchedSwitch),
    probe(Part::Threads, "on_switch_no_state", "sched_switch", Program::SchedSwitch),
    probe(Part::Threads, "on_waking", "sched_waking", Program::SchedWaking),
    probe(Part::Threads, "on_migrate", "sched_migrate_task", Program::SchedMigrateTask),
    probe(Part::Threads, "on_fork", "sched_process_fork", Program::SchedProcessFork),
    probe(Part::Threads, "on_exec", "sched_process_exec", Program::SchedProcessExec),
    probe(Part::Threads, "on_exit", "sched_process_exit", Program::SchedProcessExit),
    probe(Part::Threads, "on_exit_late", "sched_process_exit", Program::SchedProcessExit),
    probe(Part::SystemCalls, "on_sys_exit", "sys_exit", Program::SysExit),
    probe(Part::SystemCalls, "on_sys_enter", "sys_enter", Program::SysEnter),
    probe(Part::SampledCalls, "on_sampled_exit", "sys_exit", Program::SysExit),
    probe(Part::SampledCalls, "on_sampled_enter", "sys_enter", Program::SysEnter),
    probe(Part::Locks, "on_contention_end", "contention_end", Program::ContentionEnd),
    probe(Part::Locks, "on_contention_begin", "contention_begin", Program::ContentionBegin),
    probe(Part::MmapLock, "on_mmap_released", "mmap_lock_released", Program::MmapLockReleased),
    probe(Part::MmapLock, "on_mmap_released_path", "mmap_lock_released", Program::MmapLockReleased),
    probe(
        Part::MmapLock,
        "on_mmap_acquired",
        "mmap_lock_acquire_returned",
        Program::MmapLockAcquireReturned,
    ),
    probe(
        Part::MmapLock,
        "on_mmap_acquired_path",
        "mmap_lock_acquire_returned",
        Program::MmapLockAcquireReturned,
    ),
    probe(
        Part::MmapLock,
        "on_mmap_start",
        "mmap_lock_start_locking",
        Program::MmapLockStartLocking,
    ),
    probe(
        Part::MmapLock,
        "on_mmap_start_path",
        "mmap_lock_start_locking",
        Program::MmapLockStartLocking,
    ),
    probe(Part::Faults, "on_fault_user", "page_fault_user", Program::PageFaultUser),
    probe(Part::Faults, "on_fault_kernel", "page_fault_kernel", Program::PageFaultKernel),
    probe(Part::Interrupts, "on_irq_exit", "irq_handler_exit", Program::IrqHandler),
    probe(Part::Interrupts, "on_irq_entry", "irq_handler_entry", Program::IrqHandler),
    probe(Part::Softirqs, "on_softirq_exit", "softirq_exit", Program::Softirq),
    probe(Part::Softirqs, "on_softirq_entry", "softirq_entry", Program::Softirq),
    probe(Part::Vectors, "on_local_timer_exit", "local_timer_exit", Program::IrqVectors),
    probe(Part::Vectors, "on_local_timer_entry", "local_timer_entry", Program::IrqVectors),
    probe(Part::Vectors, "on_reschedule_exit", "reschedule_exit", Program::IrqVectors),
    probe(Part::Vectors, "on_reschedule_entry", "reschedule_entry", Program::IrqVectors),
    probe(Part::Vectors, "on_call_function_exit", "call_function_exit", Program::IrqVectors),
    probe(Part::Vectors, "on_call_function_entry", "call_function_entry", Program::IrqVectors),
    probe(
        Part::Vectors,
        "on_call_function_single_exit",
        "call_function_single_exit",
        Program::IrqVectors,
    ),
    probe(
        Part::Vectors,
        "on_call_function_single_entry",
        "call_function_single_entry",
        Program::IrqVectors,
    ),
    probe(Part::Vectors, "on_irq_work_exit", "irq_work_exit", Program::IrqVectors),
    probe(Part::Vectors, "on_irq_work_entry", "irq_work_entry", Program::IrqVectors),
    probe(Part::BlockIo, "on_block_complete", "block_rq_complete", Program::BlockRq),
    probe(Part::BlockIo, "on_block_issue", "block_rq_issue", Program::BlockRq),
    probe(Part::Signals, "on_signal", "signal_generate", Program::SignalGenerate),
    probe(
        Part::Reclaim,
        "on_reclaim_end",
        "mm_vmscan_direct_reclaim_end",
        Program::ReclaimCompaction,
    ),
    probe(
        Part::Reclaim,
        "on_reclaim_begin",
        "mm_vmscan_direct_reclaim_begin",
        Program::ReclaimCompaction,
    ),
    probe(Part::Reclaim, "on_compaction_end", "mm_compaction_end", Program::ReclaimCompaction),
    probe(Part::Reclaim, "on_compaction_begin", "mm_compaction_begin", Program::ReclaimCompaction),
    probe(Part::Writeback, "on_dirty_pause", "balance_dirty_pages", Program::Writeback),
    probe(Part::Writeback, "on_dirty_pause_limits", "balance_dirty_pages", Program::Writeback),
    probe(Part::Journal, "on_journal_commit", "jbd2_run_stats", Program::Writeback),
    probe(Part::PageCache, "on_page_in", "mm_filemap_add_to_page_cache", Program::PageCache),
    probe(Part::PageCache, "on_page_out", "mm_filemap_delete_from_page_cache", Program::PageCache),
    probe(Part::Samples, "on_sample", "cpu_clock", Program::CpuClock),
    probe(Part::Timers, "on_hrtimer_exit", "hrtimer_expire_exit", Program::Timers),
    probe(Part::Timers, "on_hrtimer_entry", "hrtimer_expire_entry", Program::Timers),
    probe(Part::Timers, "on_timer_exit", "timer_expire_exit", Program::Timers),
    probe(Part::Timers, "on_timer_entry", "timer_expire_entry", Program::Timers),
    probe(Part::Drops, "on_drop", "kfree_skb", Program::KfreeSkb),
    probe(Part::Sockets, "on_retransmit", "tcp_retransmit_skb", Program::TcpRetransmitSkb),
    probe(Part::Requests, "on_data_ready", "sk_data_ready", Program::SkDataReady),
    probe(Part::Requests, "on_received", "sock_recv_length", Program::SockRecvLength),
    probe(Part::Requests, "on_sent", "sock_send_length", Program::SockSendLength),
    probe(Part::Requests, "on_state", "inet_sock_set_state", Program::InetSockSetState),
];

/// The walks over tasks and sockets, which are on no tracepoint; and those that are of one way alone.
const WALKS: [(&str, Part, Option<SocketWalk>); 10] = [
    ("learn_namespace", Part::Threads, None),
    ("start_watching", Part::Threads, None),
    ("dump_threads", Part::Threads, None),
    ("show_symbols", Part::Threads, None),
    ("find_sockets", Part::Sockets, None),
    ("dump_queues", Part::Sockets, Some(SocketWalk::Storage)),
    ("dump_queues_of_files", Part::Sockets, Some(SocketWalk::Files)),
    ("end_answers", Part::Requests, Some(SocketWalk::Storage)),
    ("end_answers_of_files", Part::Requests, Some(SocketWalk::Files)),
    ("find_open_of_peers", Part::Requests, None),
];

/// The walks that a part needs.
pub fn walks(part: Part, over: SocketWalk) -> impl Iterator<Item = &'static str> {
    let is_needed = move |walk: Option<SocketWalk>| walk.is_none_or(|walk| walk == over);
    WALKS.iter().filter(move |walk| walk.1 == part && is_needed(walk.2)).map(|walk| walk.0)
}

/// The part that a program belongs to; nothing can be recorded without one that is not known.
pub fn part_of_program(program: &str) -> Part {
    let probe = PROBES.iter().find(|probe| probe.program == program).map(|probe| probe.part);
    let walk = || WALKS.iter().find(|walk| walk.0 == program).map(|walk| walk.1);
    probe.or_else(walk).unwrap_or(Part::Threads)
}

/// The programs of a part.
pub fn probes(part: Part) -> impl Iterator<Item = &'static Probe> {
    PROBES.iter().filter(move |probe| probe.part == part)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::mem::MaybeUninit;

    use libbpf_rs::skel::{OpenSkel, SkelBuilder};

    use super::*;
    use crate::bpf::WhylagSkelBuilder;

    /// (program, section) as they are in the BPF object.
    fn in_the_object() -> BTreeSet<(String, String)> {
        let mut storage = MaybeUninit::uninit();
        let open = WhylagSkelBuilder::default().open(&mut storage).unwrap();
        let text = |text: &std::ffi::OsStr| text.to_str().unwrap().to_owned();
        let programs = open.open_object().progs();
        let programs = programs.map(|program| (text(program.name()), text(program.section())));
        programs.collect()
    }

    #[test]
    fn the_programs_are_those_of_the_bpf_object_on_the_same_tracepoints() {
        let section = |probe: &Probe| match probe.counted {
            Program::CpuClock => "perf_event".to_owned(),
            _ => format!("tp_btf/{}", probe.tracepoint),
        };
        let here: BTreeSet<_> =
            PROBES.iter().map(|probe| (probe.program.to_owned(), section(probe))).collect();
        let (walks, others): (BTreeSet<_>, BTreeSet<_>) =
            in_the_object().into_iter().partition(|(_, section)| section.starts_with("iter/"));
        assert_eq!(here, others);
        assert_eq!(here.len(), PROBES.len(), "each program once");
        let walks: BTreeSet<_> = walks.into_iter().map(|(program, _)| program).collect();
        assert_eq!(walks, WALKS.iter().map(|walk| walk.0.to_owned()).collect());
    }

    #[test]
    fn sockets_are_reached_by_one_way_alone() {
        let of = |over| {
            let walks = Part::ALL.into_iter().flat_map(move |part| walks(part, over));
            walks.collect::<BTreeSet<_>>()
        };
        let (storage, files) = (of(SocketWalk::Storage), of(SocketWalk::Files));
        let only: Vec<_> = storage.difference(&files).collect();
        assert_eq!(only, [&"dump_queues", &"end_answers"]);
        let only: Vec<_> = files.difference(&storage).collect();
        assert_eq!(only, [&"dump_queues_of_files", &"end_answers_of_files"]);
    }

    #[test]
    fn every_part_has_programs_and_every_counter_is_that_of_one() {
        assert!(Part::ALL.into_iter().all(|part| probes(part).count() > 0));
        let counted: BTreeSet<_> = PROBES.iter().map(|probe| probe.counted).collect();
        assert_eq!(counted.len(), Program::ALL.len());
    }
}
