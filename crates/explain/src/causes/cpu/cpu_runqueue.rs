//! cpu-runqueue: threads are ready to run, and something else is on the CPU.
//!
//! Either the program has more runnable threads than CPUs, or another process takes the CPU. Only
//! waits during which someone is known to have run are claimed: waking on an idle CPU is not this.
//!
//! # Evidence
//!
//! The time that threads were ready to run and had no CPU (the accounts runnable:wakeup and
//! runnable:preempted), as far as somebody else was seen on their CPU meanwhile; who that was, by
//! process; the histogram of the waits; how busy the CPUs were; and which of them the threads may run
//! on, where that is not all (an affinity mask, a cpuset). Where most of the CPU time is of processes that
//! live for less than 100 ms each, how many these are, and what starting and ending them takes.
//!
//! # Without whylag
//!
//!     perf sched record -a -- sleep 10; perf sched timehist
//!     cat /proc/PID/task/*/schedstat   # second figure: ns on a run queue
//!     bpftrace -e 'tracepoint:sched:sched_switch /args->next_pid == TID/ {
//!         @[args->prev_comm] = count(); }'
//!
//! # Sources
//!
//! kernel/sched/fair.c; Documentation/scheduler/sched-stats.rst (what /proc/PID/schedstat says).

mod runners;
mod short_lived;

use model::{Account, Accounts, BoundThreads, ChainEnd, OutlierKind, RecorderPart, part_of};

use self::runners::largest;
use self::short_lived::ShortLived;
use crate::case::in_words::in_words;
use crate::case::run_queue::{Queue, Ran};
use crate::case::{Case, Cpus};
use crate::cause::{Cause, Claim, LookAlike, Needs, Verdict};
use crate::causes::ids;
use crate::text::{counted, duration, percent, quantiles};

pub const CAUSE: Cause = Cause {
    id: ids::CPU_RUNQUEUE,
    title: "runnable threads wait for a CPU that runs something else",
    fix: "Own threads: run no more busy threads than there are CPUs, or add CPUs. Another \
          process: move it to other CPUs (taskset, cpuset), lower its weight (nice, cpu.weight), \
          or keep CPUs for the latency-critical threads.",
    reproduce: "mysteries/bin/cpu-runqueue-faulty 5",
    needs: Needs::parts(&[RecorderPart::Threads]),
    look_alikes: &[
        LookAlike {
            cause: ids::RT_STARVATION,
            tell_apart: "see the scheduling policy of who ran meanwhile ('ps -eLo \
                         tid,cls,rtprio,comm'; record with -a to see all of the host): FF or RR is \
                         starvation",
            mutual: true,
        },
        LookAlike {
            cause: ids::YIELD_SPIN,
            tell_apart: "count the calls of sched_yield ('perf stat -e \
                         syscalls:sys_enter_sched_yield -p PID'): threads that only queue for a \
                         CPU make none",
            mutual: true,
        },
    ],
    symptom: true,
    examine,
};

/// The same for who it was that ran.
const FIX_OWN: &str = "Run no more busy threads than there are CPUs, or add CPUs.";
const FIX_OTHERS: &str = "Move the other process to other CPUs (taskset, cpuset), lower its weight (nice, \
                          cpu.weight), or keep CPUs for the latency-critical threads.";
/// More CPUs help nobody where others are free.
const FIX_ON_IDLE_HOST: &str = "Other CPUs were idle: find what keeps the threads together. An \
                                affinity mask or a cpuset (taskset -pc PID; Cpus_allowed_list in \
                                /proc/PID/task/TID/status; cpuset.cpus of the cgroup) is to be \
                                widened; threads that wake each other are placed together by the \
                                kernel, and stay apart if each has CPUs of its own.";
/// More threads than CPUs, of those that they may run on.
const FIX_BOUND: &str = "These threads may run on some of the CPUs only: run no more busy threads there than \
                         those are, or widen what binds them (an affinity mask: taskset -pc PID, \
                         Cpus_allowed_list in /proc/PID/task/TID/status; a cpuset: cpuset.cpus of the \
                         cgroup). Another process there: move it to other CPUs, or lower its weight (nice, \
                         cpu.weight).";
/// Runners worth a line.
const RUNNERS_SHOWN: usize = 3;

fn examine(case: &Case) -> Verdict {
    let queue = Queue::of(case)?;
    let mut lost: Accounts = case
        .accounts
        .iter()
        .filter(|(account, _)| account.is_runnable())
        .map(|(account, ns)| (account, part_of(ns, queue.claimed_ns, queue.waited_ns)))
        .collect();
    let behind = case.behind(|end| end == ChainEnd::RunQueue);
    lost.merge(&behind);
    let short_lived = ShortLived::of(case).filter(|_| has_no_main_runner(case, &queue));
    let title = short_lived.as_ref().map_or_else(|| title(case, &queue), ShortLived::title);
    let mut claim = Claim::new(title, lost, queue.waits);
    claim.mechanism(format!(
        "threads that were ready to run waited {} for a CPU: {} after being woken, {} after being \
         preempted",
        duration(queue.waited_ns),
        duration(case.accounts.get(Account::RunnableWakeup)),
        duration(case.accounts.get(Account::RunnablePreempted))
    ));
    if behind.total() > 0 {
        claim.mechanism(format!(
            "others waited {} for locks and answers of threads that were ready and had no CPU",
            duration(behind.total())
        ));
    }
    if !queue.unseen {
        claim.trigger(format!(
            "on the CPU meanwhile: threads of the same process for {} of the waiting, other \
             processes that are recorded for {}, others for {}",
            duration(queue.ran.own),
            duration(queue.ran.recorded),
            duration(queue.ran.other)
        ));
    }
    if let Some(short_lived) = &short_lived {
        short_lived.explain(&mut claim);
    }
    evidence(case, &queue, &mut claim);
    rule_out(case, &queue.ran, &mut claim);
    let cpus = case.cpus_for(queue.process);
    if cpus.is_some_and(Cpus::are_mostly_idle) {
        claim.fix = Some(FIX_ON_IDLE_HOST);
        claim.spare_cpus = true;
        claim.doubt(0.7, "CPUs were idle more than half of the time, and yet threads shared one");
    } else if case.bound(queue.process).is_some() {
        claim.fix = Some(FIX_BOUND);
    } else if !queue.unseen && short_lived.is_none() {
        claim.fix = Some(if queue.ran.is_mostly_recorded() { FIX_OWN } else { FIX_OTHERS });
    }
    claim.of_placement = queue.is_of_placement(case);
    if queue.unseen {
        claim.doubt(0.7, "who ran meanwhile is not known");
    }
    Ok(claim)
}

/// Many others ran, and none for half of the waiting.
fn has_no_main_runner(case: &Case, queue: &Queue) -> bool {
    let main_ns = largest(case, |_| true).iter().map(|runner| runner.most_ns).max().unwrap_or(0);
    let beside = queue.ran.recorded.saturating_add(queue.ran.other);
    beside > queue.ran.own && main_ns < beside / 2
}

fn evidence(case: &Case, queue: &Queue, claim: &mut Claim) {
    for runner in largest(case, |_| true).into_iter().take(RUNNERS_SHOWN) {
        claim.saw(
            format!(
                "threads of {} had the CPU for {} of the waiting{}",
                runner.name(case),
                duration(runner.ns.min(queue.waited_ns)),
                case.error_of_runners(runner.ns)
            ),
            "sched_switch: who ran while the thread was ready",
        );
    }
    let measured = queue.delays.as_ref().filter(|h| h.sum() > 0);
    claim.saw_if(
        measured.map(|h| format!("waiting for a CPU: {}", quantiles(h))),
        "run-queue histogram (sched_waking, sched_switch)",
    );
    if let Some(cpus) = case.cpus() {
        let used = cpus.total_ns.saturating_sub(cpus.idle_ns);
        let text = format!(
            "{} busy {} of the time; {:.1} watched threads running or runnable on average",
            counted(cpus.number, "CPU"),
            percent(used, cpus.total_ns),
            runnable(case, None)
        );
        claim.saw(text, "/proc/stat and the accounts");
    }
    claim.saw_if(
        case.bound(queue.process).map(|bound| in_bounds(case, bound)),
        "task_struct.cpus_mask and /proc/stat",
    );
    let longest = case
        .run
        .outliers
        .iter()
        .filter(|o| o.kind == OutlierKind::RunQueue)
        .max_by_key(|o| o.duration_ns);
    claim.saw_if(longest.map(|o| in_words(case, o)), "longest wait for a CPU");
}

fn rule_out(case: &Case, ran: &Ran, claim: &mut Claim) {
    claim.rule_out(
        ids::CGROUP_THROTTLE,
        format!(
            "time taken away by a CPU quota is an account of its own: {}",
            duration(case.accounts.get(Account::Throttled))
        ),
    );
    if let Some(cpus) = case.cpus() {
        claim.exclude(
            "CPU time stolen by the hypervisor",
            format!(
                "{} stolen from the threads, {} from all CPUs of the host",
                duration(case.accounts.get(Account::Stolen)),
                duration(cpus.stolen_ns)
            ),
        );
    }
    if ran.recorder > 0 {
        claim.exclude(
            "the recording",
            format!(
                "whylag had the CPU for {} of the waiting{}, not counted here",
                duration(ran.recorder),
                case.error_of_runners(ran.recorder)
            ),
        );
    }
    claim.exclude(
        "waking an idle CPU",
        format!(
            "the CPU was idle for {} of the waiting{}, not counted here",
            duration(ran.idle),
            case.error_of_runners(ran.idle)
        ),
    );
}

/// Threads running or ready to run, on average over the recording; of one process, or of all.
fn runnable(case: &Case, process: Option<u32>) -> f64 {
    let wants_cpu = |account: Account| account.is_running() || account.is_runnable();
    let ns: f64 = case
        .processes()
        .filter(|(tgid, _)| process.is_none_or(|only| only == *tgid))
        .map(|(_, accounts)| accounts.sum_of(wants_cpu) as f64)
        .sum();
    ns / case.run.length_ns().max(1) as f64
}

/// `CPU 1`, or `CPUs 0-3,8`.
fn numbers(cpus: &[u32]) -> String {
    let mut ranges = Vec::<(u32, u32)>::new();
    for cpu in cpus {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(*cpu) => *last = *cpu,
            _ => ranges.push((*cpu, *cpu)),
        }
    }
    let words = ranges.iter().map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    let list = words.collect::<Vec<_>>().join(",");
    format!("CPU{} {list}", if cpus.len() == 1 { "" } else { "s" })
}

/// What binds threads, and whether that is why they wait.
fn in_bounds(case: &Case, bound: &BoundThreads) -> String {
    let busy = |cpus: Option<Cpus>| {
        let cpus = cpus.filter(|cpus| cpus.total_ns > 0)?;
        Some(percent(cpus.total_ns.saturating_sub(cpus.idle_ns), cpus.total_ns))
    };
    let times = busy(case.cpus_for(bound.tgid)).zip(busy(case.cpus()));
    let times = times.map_or(String::new(), |(theirs, all)| {
        format!(", busy {theirs} of the time, all CPUs of the host {all}")
    });
    format!(
        "{} of {}, {} of waiting for a CPU, may run on {} only (affinity mask or cpuset){times}",
        counted(bound.threads, "thread"),
        case.process_name(bound.tgid),
        duration(bound.waited_ns),
        numbers(&bound.cpus)
    )
}

/// Own threads on too few CPUs.
fn title_of_own(case: &Case, process: u32) -> String {
    let name = case.process_name(process);
    let Some(cpus) = case.cpus_for(process) else {
        return format!("{name} waits for CPUs that its own threads use");
    };
    let bound = case.bound(process);
    let length = case.run.length_ns().max(1) as f64;
    let threads = match bound {
        Some(bound) => (bound.waited_ns.saturating_add(bound.ran_ns)) as f64 / length,
        None => runnable(case, Some(process)),
    };
    if threads < cpus.number as f64 || cpus.are_mostly_idle() {
        return format!("threads of {name} wait for each other on the same CPU");
    }
    let place = match bound {
        Some(bound) => format!("{}, and may run nowhere else", numbers(&bound.cpus)),
        None => counted(cpus.number, "CPU"),
    };
    format!("{name} has {threads:.0} runnable threads of its own on {place}")
}

fn title(case: &Case, queue: &Queue) -> String {
    let name = case.process_name(queue.process);
    if queue.unseen {
        return format!("{name} waits for a CPU; who had it is not known");
    }
    if queue.ran.own >= queue.ran.recorded.saturating_add(queue.ran.other) {
        return title_of_own(case, queue.process);
    }
    let is_recorded = queue.ran.is_mostly_recorded();
    let others = largest(case, |runner| {
        runner.runner_tgid != runner.tgid
            && case.process(runner.runner_tgid).is_some() == is_recorded
    });
    let Some(other) = others.first() else {
        return format!("{name} waits for a CPU while another process runs");
    };
    let comm = case.run.comm(queue.process);
    if comm == other.comm {
        // Of many short ones the one in front may be the one that another waits for.
        let mut rest = other.tgids.iter().filter(|tgid| **tgid != queue.process);
        let pids = match (rest.next(), rest.next()) {
            (Some(only), None) => format!("pid {} and {only}", queue.process),
            _ => format!("pid {} and others", queue.process),
        };
        return format!("processes of {comm} ({pids}) wait for each other's CPU");
    }
    let runs = if other.tgids.len() == 1 { "runs" } else { "run" };
    format!("{name} waits for a CPU while {} {runs}", other.name(case))
}

#[cfg(test)]
mod tests;
