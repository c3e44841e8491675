//! softirq-interference: a thread's CPU serves softirqs between the thread's instructions.
//!
//! Packets of others, timers, RCU callbacks: whoever raises a softirq, the CPU that it is raised on
//! does the work, at once and in the time of the thread that happens to be there; what is too much
//! goes to ksoftirqd, which then takes the CPU like any thread. Softirqs that a thread raises with
//! its own system calls (a packet that it sends over the loopback) are its own doing and no
//! interference: their kernel stack passes the end of a section with bottom halves off. Nor are RCU
//! callbacks that it has queued itself (it closes files and sockets): they are called on the CPU that
//! they were queued on, so they are the threads' own as far as these CPUs were.
//!
//! # Evidence
//!
//! Time of the account softirq: softirqs served on the CPU of a watched thread while it ran, by
//! kind, with histograms (softirq_entry, softirq_exit); and waiting for a CPU that ksoftirqd had.
//! CPU samples within softirqs say which of them the thread raised itself: those are left out. Of the
//! RCU callbacks as large a share is left out as the threads had of all CPU time of the host.
//!
//! # Without whylag
//!
//!     cat /proc/softirqs                      # by kind and CPU; read it twice
//!     mpstat -I SCPU 1
//!     bpftrace -e 'tracepoint:irq:softirq_entry { @[cpu, args->vec] = count(); }'
//!
//! # Sources
//!
//! kernel/softirq.c; Documentation/networking/scaling.rst (RPS and interrupt affinity).

mod own;

use model::{Account, Accounts, Metric, PathSum, RecorderPart, part_of};

use self::own::{Own, on_cpu};
use crate::case::Case;
use crate::cause::{Absent, Cause, Claim, Needs, Verdict};
use crate::causes::ids;
use crate::text::{count, counted, duration, percent, quantiles};

pub const CAUSE: Cause = Cause {
    id: ids::SOFTIRQ_INTERFERENCE,
    title: "the CPU serves softirqs in the thread's time",
    fix: "Keep packets and latency-critical threads on different CPUs: set rps_cpus of the receive \
          queues and smp_affinity of the device's interrupts, or move the threads (taskset, \
          cpuset). For timers and RCU: isolcpus, nohz_full, rcu_nocbs.",
    reproduce: "mysteries/bin/softirq-interference-faulty 5",
    needs: Needs::parts(&[RecorderPart::Threads, RecorderPart::Softirqs]),
    look_alikes: &[],
    symptom: false,
    examine,
};

/// Kernel threads that serve softirqs.
const DAEMON: &str = "ksoftirqd/";
/// Kinds worth a line.
const KINDS_SHOWN: usize = 3;

fn examine(case: &Case) -> Verdict {
    let served = case.accounts.get(Account::SoftIrq);
    let Some(process) = case.main_process(|account| account == Account::SoftIrq) else {
        return Err(Absent("no softirq was served in the time of the threads".to_owned()));
    };
    let in_softirq = |path: &PathSum| path.sampled && path.account == Account::SoftIrq;
    let own = Own::of(case, served);
    let foreign = served - own.ns(served);
    let behind = behind_daemon(case);
    if foreign == 0 {
        return Err(Absent(format!(
            "all softirqs served in the time of the threads, {}, were raised by themselves, or may \
             have been for their own packets, or for what they had closed",
            duration(served)
        )));
    }
    let kinds = kinds(case);
    let number = kinds.iter().fold(0u64, |sum, kind| sum.saturating_add(kind.number));
    let mut lost = behind.clone();
    lost.add(Account::SoftIrq, foreign);
    let name = case.process_name(process);
    let what = kinds.first().map_or("serving softirqs", |kind| described(&kind.name));
    let title = format!("{what} for others takes CPU time from {name}");
    let mut claim = Claim::new(title, lost, number);

    claim.mechanism(format!(
        "softirqs took {} out of the threads' time on a CPU, {} of it; while ksoftirqd had the CPU \
         they waited {} more",
        duration(foreign),
        percent(foreign, on_cpu(case)),
        duration(behind.total())
    ));
    let most_expensive = case.path_in_words(&[], in_softirq);
    claim.trigger(match kinds.first() {
        Some(kind) => format!(
            "{} of it was {} ({}): {}",
            percent(kind.ns, kinds.iter().fold(0u64, |sum, k| sum.saturating_add(k.ns))),
            described(&kind.name),
            kind.name,
            counted(kind.number, "time")
        ),
        None => "which softirqs they were was not recorded".to_owned(),
    });
    for kind in kinds.iter().take(KINDS_SHOWN) {
        claim.saw(
            format!("{}: {} in all, {}", kind.name, duration(kind.ns), kind.quantiles),
            "softirq histogram (softirq_entry, softirq_exit)",
        );
    }
    claim
        .saw_if(most_expensive.map(|path| format!("most of all in {path}")), "samples in softirqs");
    let counter = kinds.first().and_then(|k| case.run.counter(&format!("softirq.{}", k.name)));
    claim.saw_if(
        counter.map(|c| format!("{} of them on all CPUs of the host", count(c.growth()))),
        "/proc/softirqs",
    );
    rule_out(case, &own, served, &mut claim);
    Ok(claim)
}

fn rule_out(case: &Case, own: &Own, served: u64, claim: &mut Claim) {
    let samples = case.time_through(&[], |path| path.account == Account::SoftIrq).samples;
    if samples > 0 {
        claim.exclude(
            "packets of the threads' own",
            format!(
                "{} of {} in softirqs was raised by the threads' own system calls ({}), {} by \
                 packets that may have been their own ({} of sockets); the larger is not counted \
                 here, nor are {} of RCU callbacks, the threads' part of all that ran",
                duration(own.raised_ns),
                duration(served),
                counted(samples, "sample"),
                duration(own.packets_ns),
                counted(own.calls, "call"),
                duration(own.freed_ns)
            ),
        );
    } else {
        claim.doubt(
            0.7,
            "without samples it is not known whether the threads' own packets were served",
        );
    }
    claim.exclude_by(
        Needs::parts(&[RecorderPart::Vectors]),
        "hardware interrupts",
        format!(
            "hardware interrupts are an account of their own: {}",
            duration(case.accounts.get(Account::HardIrq))
        ),
    );
    claim.rule_out(
        ids::CPU_RUNQUEUE,
        format!(
            "the threads were on their CPU meanwhile; waiting for one came to {}",
            duration(case.accounts.sum_of(Account::is_runnable))
        ),
    );
    if let Some(cpus) = case.cpus() {
        let stolen = case.accounts.get(Account::Stolen);
        let because = format!(
            "{} stolen from the threads, {} from all CPUs of the host",
            duration(stolen),
            duration(cpus.stolen_ns)
        );
        claim.exclude("CPU time stolen by the hypervisor", because);
    }
}

/// Softirqs of one kind, served in the time of watched threads.
struct Kind {
    name: String,
    number: u64,
    ns: u64,
    quantiles: String,
}

/// The longest first.
fn kinds(case: &Case) -> Vec<Kind> {
    let mut names: Vec<&str> = case
        .run
        .seconds
        .iter()
        .filter_map(|second| match &second.metric {
            Metric::SoftIrq(name) => Some(name.as_str()),
            _ => None,
        })
        .collect();
    names.sort_unstable();
    names.dedup();
    let mut kinds: Vec<Kind> = names
        .into_iter()
        .filter_map(|name| {
            let histogram = case.histogram(&Metric::SoftIrq(name.to_owned()))?;
            Some(Kind {
                name: name.to_owned(),
                number: histogram.count(),
                ns: histogram.sum(),
                quantiles: quantiles(&histogram),
            })
        })
        .collect();
    kinds.sort_by_key(|kind| std::cmp::Reverse(kind.ns));
    kinds
}

/// Waiting for a CPU while ksoftirqd had it: its part of the waiting of each process.
fn behind_daemon(case: &Case) -> Accounts {
    let mut sum = Accounts::new();
    for runner in case.run.sums.runners.iter().filter(|r| r.runner_comm.starts_with(DAEMON)) {
        let Some(accounts) = case.process(runner.tgid) else { continue };
        let all = accounts.sum_of(Account::is_runnable);
        for (account, ns) in accounts.iter().filter(|(account, _)| account.is_runnable()) {
            sum.add(account, part_of(ns, runner.ns, all));
        }
    }
    sum
}

/// A kind of softirq in words.
fn described(name: &str) -> &'static str {
    match name {
        "net_rx" => "receiving packets",
        "net_tx" => "sending packets",
        "block" => "completing block I/O",
        "timer" | "hrtimer" => "expiring timers",
        "sched" => "balancing load",
        "rcu" => "calling RCU callbacks",
        "tasklet" | "hi" => "running tasklets",
        _ => "serving softirqs",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RunBuilder, SECOND, USER, runner};

    const SOFTIRQ: Account = Account::SoftIrq;

    fn served(frames: &[&str], samples: u64) -> RunBuilder {
        RunBuilder::new()
            .thread(10, 10, &[(USER, SECOND), (SOFTIRQ, SECOND), (Account::HardIrq, 1000)])
            .values(Metric::SoftIrq("net_rx".into()), 5, &[100_000; 100])
            .values(Metric::SoftIrq("timer".into()), 5, &[1000; 10])
            .sampled_path(10, SOFTIRQ, frames, samples)
    }

    #[test]
    fn claimed_with_the_kind_that_took_most() {
        let run = served(&["process_backlog", "net_rx_action", "__irq_exit_rcu"], 1000);
        let run = run.counter("softirq.net_rx", 1000, 4000).build();
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!((claim.lost.get(SOFTIRQ), claim.waits), (SECOND, 110));
        assert!(claim.title.starts_with("receiving packets for others takes"), "{}", claim.title);
        assert!(claim.evidence.iter().any(|e| e.text.starts_with("3,000 of them")));
        assert!(claim.doubts.is_empty());
    }

    #[test]
    fn packets_of_the_threads_themselves_are_not_counted() {
        let own = ["process_backlog", "do_softirq.part.0", "__local_bh_enable_ip", "udp_sendmsg"];
        let run = served(&own, 750).sampled_path(10, SOFTIRQ, &["net_rx_action"], 250).build();
        assert_eq!(examine(&Case::new(&run)).unwrap().lost.get(SOFTIRQ), SECOND / 4);
        let run = served(&own, 1000).build();
        let Absent(missing) = examine(&Case::new(&run)).unwrap_err();
        assert!(missing.contains("1.00 s, were raised by themselves"), "{missing}");
    }

    #[test]
    fn packets_that_the_program_receives_are_its_own_whichever_cpu_they_interrupt() {
        let arrived = ["net_rx_action", "handle_softirqs", "__irq_exit_rcu"];
        let receiving = |n| {
            let call = Metric::Syscall(model::Syscall::named("recvfrom").unwrap());
            served(&arrived, 1000).values(call, 5, &vec![1000; n]).build()
        };
        // 100 softirqs took 10 ms; the others are timers.
        let claimed = |n| examine(&Case::new(&receiving(n))).unwrap().lost.get(SOFTIRQ);
        assert_eq!(SECOND - claimed(0), 0);
        assert_eq!(SECOND - claimed(50), 5_000_000);
        assert_eq!(SECOND - claimed(5000), 10_000_000);
    }

    #[test]
    fn what_the_threads_free_is_their_own_as_far_as_the_cpus_were() {
        let freeing = |idle_ns, busy_ns| {
            RunBuilder::new()
                .thread(10, 10, &[(USER, SECOND), (SOFTIRQ, SECOND)])
                .values(Metric::SoftIrq("rcu".into()), 5, &[SECOND / 100; 100])
                .sampled_path(10, SOFTIRQ, &["rcu_do_batch", "rcu_core"], 1000)
                .cpus(2, idle_ns, busy_ns)
                .build()
        };
        let claimed =
            |run: &model::Run| examine(&Case::new(run)).map_or(0, |claim| claim.lost.get(SOFTIRQ));
        // They ran for 2 s of 2 s, then of 8 s.
        assert_eq!(claimed(&freeing(SECOND, SECOND)), 0);
        let of_others = claimed(&freeing(0, 4 * SECOND));
        assert!((740_000_000..760_000_000).contains(&of_others), "{of_others}");
    }

    #[test]
    fn waiting_behind_ksoftirqd_belongs_to_it_and_behind_others_does_not() {
        let mut daemon = runner(10, 14, 30, SECOND / 2);
        daemon.runner_comm = "ksoftirqd/0".into();
        let run = served(&["net_rx_action"], 1000)
            .thread(11, 10, &[(Account::RunnablePreempted, SECOND)])
            .runner(daemon)
            .runner(runner(10, 66, 30, SECOND / 2))
            .build();
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!(claim.lost.get(Account::RunnablePreempted), SECOND / 2);
    }

    #[test]
    fn not_claimed_for_hardware_interrupts() {
        let run = RunBuilder::new().thread(10, 10, &[(Account::HardIrq, SECOND)]).build();
        assert!(examine(&Case::new(&run)).is_err());
    }
}
