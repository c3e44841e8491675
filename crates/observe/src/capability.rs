//! Which parts of the recorder work on this host: facts, then a decision, then text for the user.
//!
//! The three steps are kept apart so that each can be tested on its own.

use std::fs;
use std::path::Path;

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{FuncProto, Typedef};
use model::{Capability, RecorderPart};

use crate::parts::{PROBES, probes};

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
            let is_there = |tracepoint: &str| {
                kernel.type_by_name::<Typedef<'_>>(&format!("btf_trace_{tracepoint}")).is_some()
            };
            let needed = PROBES.iter().filter(|probe| probe.part != RecorderPart::Samples);
            let needed = needed.map(|probe| probe.tracepoint);
            missing_tracepoints.extend(needed.filter(|tracepoint| !is_there(tracepoint)));
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
    Record(Vec<(RecorderPart, String)>),
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
    let missing = |part: RecorderPart| -> Vec<&str> {
        let needed = probes(part).map(|probe| probe.tracepoint);
        let missing = needed.filter(|tracepoint| facts.missing_tracepoints.contains(tracepoint));
        missing.map(in_words).collect()
    };
    if let [first, ..] = missing(RecorderPart::Threads)[..] {
        return Plan::Sample(format!("this kernel has no tracepoint {first}"));
    }
    let off = RecorderPart::ALL.into_iter().filter_map(|part| match missing(part)[..] {
        [] => None,
        ref list => Some((part, format!("this kernel has no tracepoint {}", list.join(", ")))),
    });
    Plan::Record(off.collect())
}

fn in_words(tracepoint: &'static str) -> &'static str {
    match tracepoint {
        DROP => "kfree_skb that names the socket (since 6.11)",
        other => other,
    }
}

/// What to try when the kernel refuses a plan: first the essential parts alone, then samples.
pub fn retreat(plan: &Plan, refusal: &str) -> Plan {
    const ESSENTIAL: [RecorderPart; 2] = [RecorderPart::Threads, RecorderPart::SystemCalls];
    let because = format!("the kernel refused it: {refusal}");
    let Plan::Record(off) = plan else { return Plan::Sample(because) };
    let more = RecorderPart::ALL
        .into_iter()
        .filter(|part| !ESSENTIAL.contains(part) && off.iter().all(|(known, _)| known != part));
    let more: Vec<_> = more.map(|part| (part, because.clone())).collect();
    if more.is_empty() {
        return Plan::Sample(because);
    }
    Plan::Record(off.iter().cloned().chain(more).collect())
}

/// The plan, for the report; parts that nobody asked for are not mentioned.
pub fn describe(plan: &Plan, unasked: &[RecorderPart]) -> Vec<Capability> {
    let asked = RecorderPart::ALL.into_iter().filter(|part| !unasked.contains(part));
    asked
        .map(|part| {
            let because = match plan {
                Plan::Sample(why) => why.clone(),
                Plan::Record(off) => {
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
        let described = describe(&decide(&root()), &[RecorderPart::Timers]);
        assert_eq!(described.len(), RecorderPart::ALL.len() - 1);
        assert!(described.iter().all(|capability| capability.part != RecorderPart::Timers));
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
        assert_eq!(off[0].0, RecorderPart::Writeback);
        assert!(off[0].1.contains("jbd2_run_stats"));
    }

    #[test]
    fn a_refused_plan_retreats_to_the_essential_parts_and_then_to_samples() {
        let less = retreat(&Plan::Record(Vec::new()), "too large");
        let Plan::Record(off) = &less else { panic!("{less:?}") };
        assert_eq!(off.len(), RecorderPart::ALL.len() - 2);
        assert!(off.iter().all(|(part, _)| *part != RecorderPart::Threads));
        assert!(matches!(retreat(&less, "again"), Plan::Sample(why) if why.contains("again")));
    }
}
