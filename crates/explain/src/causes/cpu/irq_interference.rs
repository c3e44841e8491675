//! irq-interference: a thread's CPU serves hardware interrupts between the thread's instructions.
//!
//! Devices, timers and other CPUs interrupt whoever is on the CPU, and the handler runs in that
//! thread's time: a network card whose queue is bound to this CPU, a profiler that samples often, timers
//! of others, CPUs that ask this one for something. Thousands of interrupts a second are ordinary; tens
//! of thousands, or long handlers, take a part of the CPU that no tool counts as used by anybody. What
//! the handlers leave for later is another cause (softirq-interference), and so is what a process's own
//! changes of its mappings ask of its own CPUs, which their initiator waits for (tlb-shootdown).
//!
//! # Evidence
//!
//! Time of the account `hard_irq`: interrupts served on the CPU of a watched thread while it ran, at
//! least a twentieth of its time on a CPU (ordinary ticks take less), by kind, with histograms
//! (irq_handler_entry and irq_handler_exit for devices, irq_vectors for timers and other CPUs).
//! Non-maskable interrupts are not among them (a profiler that uses the CPU's counters): they have no
//! tracepoint that says when they begin. Nor can be seen whose timer it was. Of a part of a run the
//! kinds are not known, and nothing is claimed.
//!
//! # Without whylag
//!
//!     cat /proc/interrupts                       # by CPU; read it twice
//!     mpstat -I CPU -P ALL 1; mpstat -P ALL 1    # by number and CPU; %irq
//!     ls -l /proc/*/fd | grep perf_event         # who samples
//!
//! # Sources
//!
//! kernel/irq/handle.c; arch/x86/kernel/apic/apic.c; Documentation/core-api/irq/irq-affinity.rst;
//! perf_event_open(2).

use std::cmp::Reverse;

use model::{Account, Metric, RecorderPart};

use crate::case::Case;
use crate::cause::{Absent, Cause, Claim, Needs, Verdict};
use crate::causes::ids;
use crate::text::{count, counted, duration, percent, quantiles};

pub const CAUSE: Cause = Cause {
    id: ids::IRQ_INTERFERENCE,
    title: "the CPU serves hardware interrupts in the thread's time",
    fix: "Keep them and the thread on different CPUs: smp_affinity of the device's interrupts \
          (/proc/irq, irqbalance), fewer and larger interrupts (ethtool -C: coalescing), isolcpus and \
          nohz_full for timers. A profiler that samples every few microseconds: let it sample more \
          rarely.",
    reproduce: "mysteries/bin/irq-interference-faulty 5",
    needs: Needs::parts(&[RecorderPart::Threads, RecorderPart::Interrupts, RecorderPart::Vectors])
        .and_histograms(),
    look_alikes: &[],
    symptom: false,
    examine,
};

/// Other CPUs ask for something.
const ASKED: [&str; 2] = ["call_function", "call_function_single"];
/// Calls by which a process makes its own CPUs be asked.
const ASKING: [&str; 5] = ["munmap", "mprotect", "madvise", "mremap", "membarrier"];
/// Ticks of the scheduler, of the recorder and of other timers take less than this part of a CPU.
const ORDINARY: u64 = 20;
/// Kinds worth a line.
const KINDS_SHOWN: usize = 3;

/// Interrupts of one kind, served in the time of watched threads.
struct Kind {
    name: String,
    number: u64,
    ns: u64,
    quantiles: String,
}

fn examine(case: &Case) -> Verdict {
    let served = case.accounts.get(Account::HardIrq);
    let Some(process) = case.main_process(|account| account == Account::HardIrq) else {
        return Err(Absent("no interrupt was served in the time of the threads".to_owned()));
    };
    let kinds = kinds(case);
    let Some(first) = kinds.first() else {
        return Err(Absent(format!(
            "interrupts took {}; which ones is not known here",
            duration(served)
        )));
    };
    let number = kinds.iter().fold(0u64, |sum, kind| sum.saturating_add(kind.number));
    let on_cpu = case.accounts.sum_of(|account| account.is_running()).saturating_add(served);
    if served < on_cpu / ORDINARY {
        return Err(Absent(format!(
            "interrupts took {}, {} of the time on a CPU: no more than ticks ordinarily do",
            duration(served),
            percent(served, on_cpu)
        )));
    }
    let what = described(&first.name);
    let title = format!("{what} take CPU time from {}", case.process_name(process));
    let lost = [(Account::HardIrq, served)].into_iter().collect();
    let mut claim = Claim::new(title, lost, number.max(1));
    claim.mechanism(format!(
        "handlers of interrupts took {} out of the threads' time on a CPU, {} of it: {}, {} a second \
         of that time",
        duration(served),
        percent(served, on_cpu),
        counted(number, "interrupt"),
        count(per_second(number, on_cpu))
    ));
    claim.trigger(format!(
        "{} of it was {what} ({})",
        percent(first.ns, kinds.iter().fold(0u64, |sum, kind| sum.saturating_add(kind.ns))),
        first.name
    ));
    for kind in kinds.iter().take(KINDS_SHOWN) {
        claim.saw(
            format!("{}: {} in all, {}", kind.name, duration(kind.ns), kind.quantiles),
            "interrupt histogram (irq_handler_entry, irq_vectors)",
        );
    }
    rule_out(case, &kinds, &mut claim);
    Ok(claim)
}

fn per_second(number: u64, ns: u64) -> u64 {
    (u128::from(number) * 1_000_000_000 / u128::from(ns.max(1))) as u64
}

fn rule_out(case: &Case, kinds: &[Kind], claim: &mut Claim) {
    let soft = case.accounts.get(Account::SoftIrq);
    claim.rule_out(
        ids::SOFTIRQ_INTERFERENCE,
        format!("what interrupts leave for later is an account of its own: {}", duration(soft)),
    );
    claim.rule_out(
        ids::CPU_RUNQUEUE,
        format!(
            "the threads were on their CPU meanwhile; waiting for one came to {}",
            duration(case.accounts.sum_of(Account::is_runnable))
        ),
    );
    let asked = kinds.iter().filter(|kind| ASKED.contains(&kind.name.as_str()));
    let asked = asked.fold(0u64, |sum, kind| sum.saturating_add(kind.number));
    let asking = ASKING.iter().fold(0u64, |sum, name| sum.saturating_add(case.calls(name).0));
    if asked > 0 && asking >= asked / 10 {
        claim.doubt(
            0.7,
            "part of what other CPUs asked for may be due to the program's own munmap, mprotect, \
             madvise, mremap or membarrier",
        );
    }
    let stolen = case.accounts.get(Account::Stolen);
    claim.exclude(
        "CPU time stolen by the hypervisor",
        format!("{} stolen from the threads", duration(stolen)),
    );
}

/// The longest first.
fn kinds(case: &Case) -> Vec<Kind> {
    let mut names: Vec<&str> = Vec::new();
    for second in &case.run.seconds {
        if let Metric::HardIrq(name) = &second.metric
            && !names.contains(&name.as_str())
        {
            names.push(name);
        }
    }
    let kind = |name: &str| {
        let histogram = case.histogram(&Metric::HardIrq(name.to_owned()))?;
        let (number, ns) = (histogram.count(), histogram.sum());
        Some(Kind { name: name.to_owned(), number, ns, quantiles: quantiles(&histogram) })
    };
    let mut kinds: Vec<Kind> = names.into_iter().filter_map(kind).collect();
    kinds.sort_by_key(|kind| Reverse(kind.ns));
    kinds
}

/// A kind of interrupt in words.
fn described(name: &str) -> String {
    match name {
        "local_timer" => "interrupts of the CPU's timer".to_owned(),
        "reschedule" => "interrupts by CPUs that wake threads here".to_owned(),
        "call_function" | "call_function_single" => {
            "interrupts by CPUs that ask for something".to_owned()
        }
        "irq_work" => "interrupts by the kernel's own work".to_owned(),
        device => format!("interrupts of {device}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RunBuilder, SECOND, USER};
    use model::Syscall;

    const HARDIRQ: Account = Account::HardIrq;

    fn served(kind: &str) -> RunBuilder {
        RunBuilder::new()
            .thread(10, 10, &[(USER, 3 * SECOND), (HARDIRQ, SECOND)])
            .values(Metric::HardIrq(kind.into()), 5, &[10_000; 10_000])
            .values(Metric::HardIrq("reschedule".into()), 5, &[1000; 10])
    }

    #[test]
    fn claimed_with_the_kind_that_took_most() {
        let claim = examine(&Case::new(&served("eth0-rx-0").build())).unwrap();
        assert_eq!((claim.lost.get(HARDIRQ), claim.waits), (SECOND, 10_010));
        assert!(claim.title.starts_with("interrupts of eth0-rx-0 take"), "{}", claim.title);
        assert!(claim.chain[0].text.contains("25 % of it: 10,010 interrupts, 2,502 a second"));
        assert!(claim.doubts.is_empty());
    }

    #[test]
    fn what_the_program_may_have_asked_its_own_cpus_for_is_a_doubt() {
        let unmap = Metric::Syscall(Syscall::named("munmap").unwrap());
        let run = served("call_function").values(unmap, 5, &[1000; 2000]).build();
        assert_eq!(examine(&Case::new(&run)).unwrap().doubts.len(), 1);
        let run = served("call_function").build();
        assert!(examine(&Case::new(&run)).unwrap().doubts.is_empty(), "asked for by others");
    }

    #[test]
    fn not_claimed_without_interrupts() {
        let run = RunBuilder::new().thread(10, 10, &[(USER, SECOND)]).build();
        assert!(examine(&Case::new(&run)).unwrap_err().0.starts_with("no interrupt"));
    }

    #[test]
    fn ticks_are_ordinary_and_interrupts_of_no_known_kind_are_no_evidence() {
        let ticks = |ns| {
            RunBuilder::new()
                .thread(10, 10, &[(USER, SECOND), (HARDIRQ, ns)])
                .values(Metric::HardIrq("local_timer".into()), 5, &[10_000; 1000])
                .build()
        };
        assert!(examine(&Case::new(&ticks(SECOND / 100))).unwrap_err().0.contains("ordinarily"));
        assert!(examine(&Case::new(&ticks(SECOND / 10))).is_ok());
        let unknown = RunBuilder::new().thread(10, 10, &[(USER, SECOND), (HARDIRQ, SECOND)]);
        assert!(examine(&Case::new(&unknown.build())).unwrap_err().0.contains("not known here"));
    }
}
