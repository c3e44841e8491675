//! Which parts of the recorder work on this host: facts, then a decision, then text for the user.
//!
//! The three steps are kept apart so that each can be tested on its own.

use std::collections::BTreeMap;
use std::fs;

use model::{Capability, RecorderPart};

use crate::kernel_btf::{self, KernelTypes};
use crate::namespace;
use crate::parts::{Probe, part_of_program, probes};
use crate::prototype::Prototype;
use crate::socket_walk::{self, SocketWalk};

/// What the host offers.
#[derive(Clone, Debug)]
pub struct HostFacts {
    /// Effective capabilities (bits as in linux/capability.h).
    pub capabilities: u64,
    /// `None` if the kernel does not show them (/sys/kernel/btf/vmlinux).
    pub kernel_types: Option<KernelTypes>,
    /// In a user namespace below the first, such as a rootless container's.
    pub in_user_namespace: bool,
    /// The kernel keeps even root from reading its memory (lockdown=confidentiality).
    pub is_confidential: bool,
    /// How sockets can be reached.
    pub socket_walk: SocketWalk,
}

const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;
const CAP_BPF: u32 = 39;

impl HostFacts {
    /// Reads them.
    pub fn of_this_host() -> HostFacts {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
        let capabilities = effective.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
        let lockdown = fs::read_to_string("/sys/kernel/security/lockdown").unwrap_or_default();
        let kernel_types = kernel_btf::kernel_types();
        HostFacts {
            capabilities: capabilities.unwrap_or(0),
            socket_walk: socket_walk::of_this_kernel(kernel_types.as_ref()),
            kernel_types,
            in_user_namespace: namespace::is_inner_user(),
            is_confidential: lockdown.contains("[confidentiality]"),
        }
    }

    fn has(&self, capability: u32) -> bool {
        self.capabilities >> capability & 1 == 1
    }
}

/// How to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// With eBPF.
    Record(Recording),
    /// Only samples from /proc, and why.
    Sample(String),
}

/// What is recorded with eBPF.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    /// The programs to load: those that fit this kernel, of the parts that are on.
    pub probes: Vec<&'static Probe>,
    /// The parts that are off, and why.
    pub off: Vec<(RecorderPart, String)>,
    /// Hash maps get all their memory at the start (50 MB). Before 6.1 they would allocate from the
    /// kernel at large, which is not safe where the scheduler calls a program, and which programs on
    /// perf events may not do.
    pub preallocated: bool,
    /// From a CPU's run queue to its preempt count, in bytes, as its types say; `None` if they do not.
    pub preempt_count_from_rq: Option<i64>,
    /// How sockets are reached.
    pub socket_walk: SocketWalk,
}

impl Recording {
    /// The same without a part.
    #[must_use]
    pub fn without(mut self, part: RecorderPart, because: String) -> Recording {
        self.probes.retain(|probe| probe.part != part);
        self.off.push((part, because));
        self
    }

    /// The same without what runs several times for each request of a server, and so costs it most: the
    /// two ends of each call, the three steps of each request, the begin and end of softirqs. What is left
    /// of that when the programs do nothing is the floor in docs/cost.md. `unsampled` is why calls are not
    /// even sampled, if they are not.
    #[must_use]
    pub fn cheap(mut self, unsampled: Option<String>) -> Recording {
        if let Some(because) = unsampled.filter(|_| self.has(RecorderPart::SampledCalls)) {
            self = self.without(RecorderPart::SampledCalls, because);
        }
        let mut left_out = vec![RecorderPart::SystemCalls, RecorderPart::Requests];
        // Or nobody would know whether one is served, who then wakes others.
        if self.preempt_count_from_rq.is_some() {
            left_out.push(RecorderPart::Softirqs);
        }
        left_out.retain(|part| self.has(*part));
        let are_sampled = self.has(RecorderPart::SampledCalls);
        let because = |part| match part {
            RecorderPart::SystemCalls if are_sampled => {
                "left out by --cheap; 'whylag show' estimates how many there are"
            }
            _ => "left out by --cheap",
        };
        left_out.into_iter().fold(self, |less, part| less.without(part, because(part).to_owned()))
    }

    /// True if the part is recorded.
    pub fn has(&self, part: RecorderPart) -> bool {
        self.probes.iter().any(|probe| probe.part == part)
    }
}

/// What can be done with these facts.
pub fn decide(facts: &HostFacts) -> Plan {
    let privileged = facts.has(CAP_SYS_ADMIN) || (facts.has(CAP_BPF) && facts.has(CAP_PERFMON));
    if !privileged {
        return Plan::Sample(
            "no privilege for eBPF: run it as root, or with CAP_BPF and CAP_PERFMON".to_owned(),
        );
    }
    if facts.is_confidential {
        return Plan::Sample(
            "the kernel is locked down (lockdown=confidentiality in \
             /sys/kernel/security/lockdown): no program may read its memory; it allows that when \
             booted with lockdown=integrity, or without"
                .to_owned(),
        );
    }
    if facts.in_user_namespace {
        return Plan::Sample(
            "whylag is in a user namespace (a rootless container, or 'unshare --user'), where \
             capabilities do not count for eBPF: run it on the host"
                .to_owned(),
        );
    }
    let Some(types) = &facts.kernel_types else {
        return Plan::Sample(
            "/sys/kernel/btf/vmlinux cannot be read: the kernel was built without \
             CONFIG_DEBUG_INFO_BTF, or /sys is not mounted here"
                .to_owned(),
        );
    };
    let mut recording = Recording {
        preallocated: !types.has_map_allocator,
        preempt_count_from_rq: types.preempt_count_from_rq,
        socket_walk: facts.socket_walk,
        ..Recording::default()
    };
    for part in RecorderPart::ALL {
        match fitting(part, &types.tracepoints) {
            Ok(mut probes) => recording.probes.append(&mut probes),
            Err(because) if part == RecorderPart::Threads => return Plan::Sample(because),
            Err(because) => recording.off.push((part, because)),
        }
    }
    Plan::Record(recording)
}

/// For each tracepoint of a part the program that fits it, or why the part cannot work.
fn fitting(
    part: RecorderPart,
    tracepoints: &BTreeMap<String, Prototype>,
) -> Result<Vec<&'static Probe>, String> {
    if part == RecorderPart::Samples {
        return Ok(probes(part).collect());
    }
    let mut fitting: Vec<&Probe> = Vec::new();
    let mut missing = Vec::new();
    for probe in probes(part) {
        let name = probe.tracepoint;
        if fitting.iter().any(|other| other.tracepoint == name) {
            continue;
        }
        let mut variants = probes(part).filter(|other| other.tracepoint == name);
        match tracepoints.get(name) {
            None => missing.push(format!("this kernel has no tracepoint {name}")),
            Some(passed) => match variants.find(|one| one.prototype().fits(passed)) {
                Some(probe) => fitting.push(probe),
                None => missing.push(format!(
                    "tracepoint {name} passes {passed} on this kernel, and {} was expected",
                    probe.prototype()
                )),
            },
        }
    }
    missing.dedup();
    if missing.is_empty() { Ok(fitting) } else { Err(missing.join("; ")) }
}

/// The kernel's answer to a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The program that it refused, if it named one.
    pub program: Option<String>,
    /// Its reason.
    pub because: String,
}

/// What to try when the kernel refuses a plan: without the part of the refused program; where none
/// is named, first the essential parts alone, then samples from /proc.
pub fn retreat(recording: Recording, refusal: &Refusal) -> Plan {
    const ESSENTIAL: [RecorderPart; 2] = [RecorderPart::Threads, RecorderPart::SystemCalls];
    let because = &refusal.because;
    match refusal.program.as_deref().map(part_of_program) {
        Some(RecorderPart::Threads) => Plan::Sample(because.clone()),
        Some(part) if recording.has(part) => Plan::Record(recording.without(part, because.clone())),
        _ => {
            let is_spare = |part: &RecorderPart| !ESSENTIAL.contains(part) && recording.has(*part);
            let spare: Vec<_> = RecorderPart::ALL.into_iter().filter(is_spare).collect();
            if spare.is_empty() {
                return Plan::Sample(because.clone());
            }
            let less =
                spare.into_iter().fold(recording, |less, part| less.without(part, because.clone()));
            Plan::Record(less)
        }
    }
}

/// The plan, for the report; parts that nobody asked for are not mentioned, nor samples of system calls
/// where all of them are recorded.
pub fn describe(plan: &Plan, unasked: &[RecorderPart]) -> Vec<Capability> {
    let are_all_recorded = |part| match (part, plan) {
        (RecorderPart::SampledCalls, Plan::Record(plan)) => plan.has(RecorderPart::SystemCalls),
        (RecorderPart::SampledCalls, Plan::Sample(_)) => true,
        _ => false,
    };
    let asked = RecorderPart::ALL.into_iter().filter(|part| !unasked.contains(part));
    let asked = asked.filter(|part| !are_all_recorded(*part));
    asked
        .map(|part| {
            let because = match plan {
                Plan::Sample(why) => why.clone(),
                Plan::Record(Recording { off, .. }) => {
                    off.iter().find(|(p, _)| *p == part).map_or(String::new(), |(_, w)| w.clone())
                }
            };
            Capability { part, on: because.is_empty(), because }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::PROBES;

    /// Every tracepoint as the first of its programs wants it.
    fn root() -> HostFacts {
        let first = PROBES.iter().rev();
        let tracepoints = first.map(|probe| (probe.tracepoint.to_owned(), probe.prototype()));
        let tracepoints = tracepoints.collect();
        HostFacts {
            kernel_types: Some(KernelTypes {
                tracepoints,
                preempt_count_from_rq: Some(8),
                has_map_allocator: true,
                socket_storage_walk: Some(1),
            }),
            capabilities: u64::MAX,
            in_user_namespace: false,
            is_confidential: false,
            socket_walk: SocketWalk::Storage,
        }
    }

    fn passing(tracepoint: &str, arguments: &[&str]) -> HostFacts {
        let mut facts = root();
        let passed = Prototype(arguments.iter().map(|&argument| argument.to_owned()).collect());
        facts.kernel_types.as_mut().unwrap().tracepoints.insert(tracepoint.to_owned(), passed);
        facts
    }

    fn without(tracepoint: &str) -> HostFacts {
        let mut facts = root();
        facts.kernel_types.as_mut().unwrap().tracepoints.remove(tracepoint);
        facts
    }

    fn recording(facts: &HostFacts) -> Recording {
        match decide(facts) {
            Plan::Record(recording) => recording,
            Plan::Sample(because) => panic!("{because}"),
        }
    }

    fn programs(facts: &HostFacts, part: RecorderPart) -> Vec<&'static str> {
        let probes = recording(facts).probes;
        probes.iter().filter(|probe| probe.part == part).map(|probe| probe.program).collect()
    }

    #[test]
    fn a_full_host_records_everything() {
        assert_eq!(recording(&root()).off, []);
        assert!(describe(&decide(&root()), &[]).iter().all(|capability| capability.on));
    }

    #[test]
    fn without_privilege_or_types_it_samples_and_says_why() {
        let plan = decide(&HostFacts { capabilities: 0, ..root() });
        assert!(matches!(&plan, Plan::Sample(why) if why.contains("CAP_BPF")), "{plan:?}");
        assert!(describe(&plan, &[]).iter().all(|c| !c.on && c.because.contains("CAP_BPF")));
        let plan = decide(&HostFacts { kernel_types: None, ..root() });
        assert!(matches!(&plan, Plan::Sample(why) if why.contains("BTF")), "{plan:?}");
        let plan = decide(&HostFacts { in_user_namespace: true, ..root() });
        assert!(matches!(&plan, Plan::Sample(why) if why.contains("user namespace")), "{plan:?}");
        let plan = decide(&HostFacts { is_confidential: true, ..root() });
        assert!(matches!(&plan, Plan::Sample(why) if why.contains("lockdown")), "{plan:?}");
    }

    #[test]
    fn what_nobody_asked_for_is_not_mentioned() {
        let described = |plan: &Plan| {
            let described = describe(plan, &[RecorderPart::Timers]).into_iter();
            described.map(|capability| capability.part).collect::<Vec<_>>()
        };
        let all = described(&decide(&root()));
        let hidden = [RecorderPart::Timers, RecorderPart::SampledCalls];
        assert_eq!(all.len(), RecorderPart::ALL.len() - hidden.len());
        assert!(hidden.iter().all(|part| !all.contains(part)), "{all:?}");
        // Where not all calls are recorded samples are taken.
        let cheap = described(&Plan::Record(recording(&root()).cheap(None)));
        assert!(cheap.contains(&RecorderPart::SampledCalls), "{cheap:?}");
    }

    #[test]
    fn two_capabilities_are_enough() {
        let capabilities = 1 << CAP_BPF | 1 << CAP_PERFMON;
        assert_eq!(recording(&HostFacts { capabilities, ..root() }).off, []);
    }

    #[test]
    fn maps_allocate_only_where_the_kernel_has_an_allocator_for_them() {
        let mut facts = root();
        assert!(!recording(&facts).preallocated);
        facts.kernel_types.as_mut().unwrap().has_map_allocator = false;
        assert!(recording(&facts).preallocated);
        // As this host's own types say.
        assert!(kernel_btf::kernel_types().unwrap().has_map_allocator);
    }

    #[test]
    fn a_missing_tracepoint_turns_its_own_part_off() {
        let off = recording(&without("jbd2_run_stats")).off;
        assert_eq!(off.len(), 1);
        assert_eq!(off[0].0, RecorderPart::Journal);
        assert!(off[0].1.contains("no tracepoint jbd2_run_stats"));
    }

    #[test]
    fn other_arguments_choose_the_variant_or_turn_the_part_off() {
        let exit = |facts: &HostFacts| programs(facts, RecorderPart::Threads)[5];
        assert_eq!(exit(&root()), "on_exit");
        assert_eq!(exit(&passing("sched_process_exit", &["task_struct *"])), "on_exit_late");
        let strange = passing("balance_dirty_pages", &["u64", "u64"]);
        let off = recording(&strange).off;
        assert_eq!(off.len(), 1);
        assert!(off[0].1.contains("passes (u64, u64) on this kernel"), "{off:?}");
        let strange = passing("sched_switch", &["u8"]);
        assert!(matches!(decide(&strange), Plan::Sample(why) if why.contains("sched_switch")));
    }

    #[test]
    fn cheap_times_softirqs_where_the_kernel_does_not_tell_that_one_is_served() {
        let mut facts = root();
        let off = |facts: &HostFacts| -> Vec<_> {
            recording(facts).cheap(None).off.into_iter().map(|(part, _)| part).collect()
        };
        let without = [RecorderPart::SystemCalls, RecorderPart::Requests, RecorderPart::Softirqs];
        assert_eq!(off(&facts), without);
        facts.kernel_types.as_mut().unwrap().preempt_count_from_rq = None;
        assert_eq!(off(&facts), without[..2]);
        // As this host's own types say.
        assert!(kernel_btf::kernel_types().unwrap().preempt_count_from_rq.is_some());
    }

    fn refused(program: Option<&str>) -> Refusal {
        Refusal { program: program.map(str::to_owned), because: "too large".to_owned() }
    }

    #[test]
    fn a_refused_program_turns_its_part_off() {
        let less = retreat(recording(&root()), &refused(Some("on_journal_commit")));
        let Plan::Record(less) = less else { panic!("{less:?}") };
        assert_eq!(less.off, [(RecorderPart::Journal, "too large".to_owned())]);
        assert!(!less.has(RecorderPart::Journal) && less.has(RecorderPart::Writeback));
        let threads = retreat(recording(&root()), &refused(Some("dump_threads")));
        assert_eq!(threads, Plan::Sample("too large".to_owned()));
        let sockets = retreat(recording(&root()), &refused(Some("find_sockets")));
        assert!(matches!(sockets, Plan::Record(r) if !r.has(RecorderPart::Sockets)));
    }

    #[test]
    fn a_refusal_without_a_name_retreats_to_the_essential_parts_and_then_to_samples() {
        let less = retreat(recording(&root()), &refused(None));
        let Plan::Record(less) = less else { panic!("{less:?}") };
        assert_eq!(less.off.len(), RecorderPart::ALL.len() - 2);
        assert!(less.has(RecorderPart::Threads));
        assert!(matches!(retreat(less, &refused(None)), Plan::Sample(_)));
    }
}
