//! slow-clocksource: reading the clock costs many times what it should, so that everything that is
//! timed is slower by a like amount.
//!
//! With tsc a read takes some 25 ns, in user mode, however many read. Where the kernel has dropped
//! tsc, or a hypervisor offers none, a read is a system call and a read of a slow device: hpet takes
//! 600 ns alone and several us when many read. The recorder measures a read when it begins
//! (`clocksource.read_ns`); without that no claim is made, because the clocks of processes and
//! threads are system calls on every host.
//!
//! # Evidence
//!
//! The CPU time of a read of the clock, measured when the recording begins, 100 ns or more; the
//! calls of clock_gettime, gettimeofday and time that went into the kernel, with their CPU time; of
//! programs that trace their messages, the marks, which are reads, too. Clocks of processes and
//! threads are taken off.
//!
//! # Without whylag
//!
//!     cat /sys/devices/system/clocksource/clocksource0/{current,available}_clocksource
//!     dmesg | grep -i -e clocksource -e tsc      # why the kernel left tsc
//!     strace -c -e trace=clock_gettime PROGRAM   # none with a clock that the vDSO can read
//!
//! # Sources
//!
//! vdso(7); kernel/time/clocksource.c; arch/x86/kernel/tsc.c; Documentation/timers/timekeeping.rst.

use model::{Account, Accounts, MessageMetric, PathSum, RecorderPart, Syscall};

use crate::case::Case;
use crate::cause::{Absent, Cause, Claim, Needs, Verdict};
use crate::causes::ids;
use crate::text::{count, counted, duration, mean, percent, quantiles};

pub const CAUSE: Cause = Cause {
    id: ids::SLOW_CLOCKSOURCE,
    title: "reading the clock is slow on this host",
    fix: "Give the host its fast clock back: see why the kernel left tsc ('dmesg | grep -i \
          -e clocksource -e tsc'), repair firmware or hypervisor settings, and reboot, because a \
          kernel that has dropped tsc does not take it again. Until then read the clock less \
          often: once per message instead of once per step, or CLOCK_MONOTONIC_COARSE.",
    reproduce: "LD_PRELOAD=$PWD/mysteries/bin/slow-clocksource.so mysteries/bin/slow-clocksource 5",
    needs: Needs::parts(&[RecorderPart::Threads, RecorderPart::SystemCalls]).and_histograms(),
    look_alikes: &[],
    symptom: false,
    examine,
};

/// A read of tsc through the vDSO.
const ORDINARY_NS: u64 = 25;
/// What no read in user mode takes.
const SLOW_NS: u64 = 100;
/// Calls that read the clock where the vDSO cannot.
const CALLS: [&str; 3] = ["clock_gettime", "gettimeofday", "time"];
/// These clocks are sums over threads, on every host.
const CPU_CLOCKS: &[&str] =
    &["thread_group_cputime", "thread_group_cputime_adjusted", "posix_cpu_clock_get"];

fn examine(case: &Case) -> Verdict {
    let source = case.run.fact("clocksource.current").unwrap_or("unknown");
    let read_ns = case.run.fact_number("clocksource.read_ns").and_then(|ns| ns.try_into().ok());
    let Some(read_ns) = read_ns else {
        return Err(Absent("what a read of the clock costs here was not measured".to_owned()));
    };
    if read_ns < SLOW_NS {
        return Err(Absent(format!(
            "a read of the clock ({source}) takes {} of CPU time, as it should",
            duration(read_ns)
        )));
    }
    let in_calls = read_by_calls(case);
    let excess = read_ns - ORDINARY_NS;
    let marks = marks(case);
    let lost = if in_calls.total() > 0 {
        let around = (Account::User, around_calls(case, &in_calls, read_ns));
        let whole = in_calls.iter().chain([around]).filter(|(_, ns)| *ns > 0);
        // Each read would still cost something.
        whole.map(|(a, ns)| (a, ns - ns * ORDINARY_NS / read_ns)).collect()
    } else {
        Accounts::from_iter([(Account::User, marks.saturating_mul(excess))])
    };
    let reads = in_calls.total() / read_ns + if in_calls.total() > 0 { 0 } else { marks };
    let process = case.main_process(|account| lost.get(account) > 0);
    let Some(process) = process.filter(|_| reads > 0) else {
        return Err(Absent(format!(
            "a read of the clock ({source}) takes {}, but no program was seen to read it",
            duration(read_ns)
        )));
    };

    let name = case.process_name(process);
    let title = format!(
        "each read of the clock takes {} here, and {name} reads it often",
        duration(read_ns)
    );
    let mut claim = Claim::new(title, lost, reads);
    claim.mechanism(format!(
        "a read of the clock took {} of CPU time; tsc, read in user mode, takes {}",
        duration(read_ns),
        duration(ORDINARY_NS)
    ));
    claim.trigger(trigger(case, &in_calls, reads));
    claim.saw(
        format!("clocksource {source}: {} a read", duration(read_ns)),
        "CPU time of reads when recording began",
    );
    claim.saw_if(gaps_in_words(case), "the program's trace of its messages");
    let metric = Syscall::named(CALLS[0]).map(model::Metric::Syscall);
    claim.saw_if(
        metric.and_then(|m| case.histogram(&m)).map(|h| format!("{}: {}", CALLS[0], quantiles(&h))),
        "system call histogram (sys_enter, sys_exit)",
    );
    rule_out(case, &mut claim, &in_calls);
    if in_calls.total() == 0 {
        claim.doubt(0.7, "reads in user mode are only known from the marks of messages");
    }
    Ok(claim)
}

fn asks(path: &PathSum) -> bool {
    CALLS.iter().any(|name| path.call.is_some() && Syscall::named(name) == path.call)
}

/// CPU time in the calls, without that of the clocks that are slow everywhere.
fn read_by_calls(case: &Case) -> Accounts {
    let elsewhere = case.time_through(CPU_CLOCKS, |path| path.sampled && asks(path)).accounts;
    CALLS
        .iter()
        .filter_map(|name| Syscall::named(name).map(Account::Syscall))
        .map(|call| (call, case.accounts.get(call).saturating_sub(elsewhere.get(call))))
        .filter(|(_, ns)| *ns > 0)
        .collect()
}

/// The way into the kernel and back, which is counted as the program's own time: what so many reads
/// took when they were measured, beyond the calls themselves.
fn around_calls(case: &Case, in_calls: &Accounts, read_ns: u64) -> u64 {
    let (calls, ns) = calls(case);
    let of_this_clock = in_calls.total() as f64 / ns.max(in_calls.total()).max(1) as f64;
    let reads = (calls as f64 * of_this_clock) as u64;
    let around = reads.saturating_mul(read_ns).saturating_sub(in_calls.total());
    around.min(case.accounts.get(Account::User))
}

/// How many calls, and how long all of them took.
fn calls(case: &Case) -> (u64, u64) {
    let each = CALLS.iter().map(|name| case.calls(name));
    each.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
}

/// Reads that the traces of messages tell of: each ended message has a receipt, its points, the
/// start and the end of its logic, and its publishes.
fn marks(case: &Case) -> u64 {
    let messages = &case.run.messages;
    let traced = messages.seconds.iter().filter(|s| !messages.is_from_sockets(s.program));
    let counted = traced.map(|second| match second.metric {
        MessageMetric::Total => 3 * second.histogram.count(),
        MessageMetric::ToPoint(_) | MessageMetric::PublishGap => second.histogram.count(),
        _ => 0,
    });
    counted.sum()
}

fn trigger(case: &Case, in_calls: &Accounts, reads: u64) -> String {
    if in_calls.total() == 0 {
        return format!("the marks of messages alone are {}", counted(reads, "read"));
    }
    let (calls, ns) = calls(case);
    let seconds = case.run.length_ns() as f64 / 1e9;
    format!(
        "{} a second that read the clock, {} on average: {} of the time of the threads",
        counted((calls as f64 / seconds.max(0.001)) as u64, "system call"),
        mean(ns, calls),
        percent(in_calls.total(), case.wall_ns)
    )
}

/// The gaps between the publishes of the messages with the most kinds of them.
fn gaps_in_words(case: &Case) -> Option<String> {
    let messages = &case.run.messages;
    let flows = messages
        .programs
        .iter()
        .flat_map(|program| program.flows.iter().map(move |flow| (program.program, flow)));
    let (program, flow) = flows.max_by_key(|(_, flow)| flow.publishes.len())?;
    let medians: Vec<(&str, u64)> = flow
        .publishes
        .iter()
        .zip(0..)
        .filter_map(|(name, place)| {
            let gaps = messages.histogram(program, flow.flow, MessageMetric::ToPublish(place));
            Some((name.as_str(), gaps.quantile(0.5)?))
        })
        .collect();
    let shortest = medians.iter().map(|(_, ns)| *ns).min()?;
    let longest = medians.iter().map(|(_, ns)| *ns).max()?;
    let each: Vec<String> =
        medians.iter().map(|(name, ns)| format!("{name} {}", duration(*ns))).collect();
    let alike = if medians.len() > 1 && longest <= 2 * shortest {
        ": all are equally long; a fault of one step would lengthen only one of them"
    } else {
        ""
    };
    Some(format!(
        "median gaps before the publishes of {}, of {} messages: {}{alike}",
        flow.name,
        count(flow.ended),
        each.join(", ")
    ))
}

fn rule_out(case: &Case, claim: &mut Claim, in_calls: &Accounts) {
    let waited = case.accounts.sum_of(|account| account.is_waiting_for_cpu());
    claim.rule_out(
        ids::CPU_RUNQUEUE,
        format!(
            "a read was measured in CPU time, and this is time on a CPU; all waiting for one is {} \
             of the wall time",
            percent(waited, case.wall_ns)
        ),
    );
    let walked = case.time_through(CPU_CLOCKS, |path| path.sampled && asks(path)).ns();
    claim.rule_out(
        ids::CPUTIME_CLOCK_THREADS,
        format!(
            "of the CPU time in these calls, {}, {} went into clocks of processes and threads",
            duration(in_calls.total().saturating_add(walked)),
            duration(walked)
        ),
    );
}

#[cfg(test)]
mod tests {
    use model::{Fact, Histogram, MessageFlow, MessageSecond, Metric, Run, TracedProgram};

    use super::*;
    use crate::testing::{RunBuilder, SECOND, USER};

    fn clock() -> Account {
        Account::Syscall(Syscall::named("clock_gettime").unwrap())
    }

    fn with_facts(mut run: Run, source: &str, read_ns: &str) -> Run {
        for (name, value) in [("current", source), ("read_ns", read_ns)] {
            let name = format!("clocksource.{name}");
            run.facts.push(Fact { name, value: value.to_owned(), source: "test".to_owned() });
        }
        run
    }

    /// A second of 4 in clock_gettime.
    fn reader() -> RunBuilder {
        RunBuilder::new().thread(10, 10, &[(USER, 3 * SECOND), (clock(), SECOND)]).values(
            Metric::Syscall(Syscall::named("clock_gettime").unwrap()),
            5,
            &[700; 1000],
        )
    }

    /// 1,000 messages with two publishes each, whose gaps were these.
    fn traced(mut run: Run, gaps: [u64; 2]) -> Run {
        run.messages.programs = vec![TracedProgram {
            tgid: 10,
            flows: vec![MessageFlow {
                flow: 1,
                name: "order".into(),
                publishes: vec!["ack".into(), "fill".into()],
                ended: 1000,
                ..MessageFlow::default()
            }],
            ..TracedProgram::default()
        }];
        let second = |metric, values: &[u64]| {
            let mut histogram = Histogram::new(5);
            values.iter().for_each(|value| histogram.record(*value));
            MessageSecond { program: 0, flow: 1, metric, start_ns: 0, histogram }
        };
        run.messages.seconds = vec![
            second(MessageMetric::Total, &[1_000_000; 1000]),
            second(MessageMetric::PublishGap, &[gaps[0]; 2000]),
            second(MessageMetric::ToPublish(0), &[gaps[0]; 1000]),
            second(MessageMetric::ToPublish(1), &[gaps[1]; 1000]),
        ];
        run
    }

    #[test]
    fn slow_reads_by_system_call_are_claimed_but_for_what_a_read_always_costs() {
        let run = traced(with_facts(reader().build(), "hpet", "500"), [200_000, 210_000]);
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!(claim.lost.get(clock()), SECOND / 20 * 19);
        assert_eq!(claim.lost.total(), SECOND / 20 * 19);
        assert_eq!(claim.waits, 2_000_000);
        let texts: Vec<_> = claim.evidence.iter().map(|e| e.text.as_str()).collect();
        assert!(texts[0].contains("hpet: 500 ns"), "{texts:?}");
        assert!(texts[1].contains("all are equally long"), "{texts:?}");
    }

    #[test]
    fn the_way_into_the_kernel_is_part_of_a_read() {
        let calls = Metric::Syscall(Syscall::named("clock_gettime").unwrap());
        let run = RunBuilder::new()
            .thread(10, 10, &[(USER, 3 * SECOND), (clock(), SECOND)])
            .values(calls, 5, &[100_000; 10_000])
            .build();
        // 10,000 reads of 150 us, of which the calls are 100.
        let claim = examine(&Case::new(&with_facts(run, "hpet", "150000"))).unwrap();
        let ordinary = ORDINARY_NS as f64 / 150_000.0;
        let of_user = claim.lost.get(USER) as f64 / (SECOND as f64 / 2.0 * (1.0 - ordinary));
        // A histogram's sum is exact, the calls are all of this clock.
        assert!((of_user - 1.0).abs() < 0.01, "{of_user}");
    }

    #[test]
    fn one_long_gap_is_not_called_alike() {
        let run = traced(with_facts(reader().build(), "hpet", "500"), [200_000, 900_000]);
        let claim = examine(&Case::new(&run)).unwrap();
        assert!(claim.evidence.iter().all(|e| !e.text.contains("alike")), "{:?}", claim.evidence);
    }

    #[test]
    fn a_fast_clock_is_not_this_however_often_it_is_read() {
        for source in ["tsc", "kvm-clock"] {
            let run = with_facts(reader().build(), source, "26");
            let Absent(missing) = examine(&Case::new(&run)).unwrap_err();
            assert!(missing.contains(source) && missing.contains("26 ns"), "{missing}");
        }
    }

    #[test]
    fn without_a_measurement_nothing_is_claimed() {
        let run = with_facts(reader().build(), "hpet", "unknown: refused");
        let Absent(missing) = examine(&Case::new(&run)).unwrap_err();
        assert!(missing.contains("not measured"), "{missing}");
    }

    #[test]
    fn a_slow_clock_that_nobody_reads_is_not_this() {
        let run = RunBuilder::new().thread(10, 10, &[(USER, SECOND)]).build();
        let Absent(missing) = examine(&Case::new(&with_facts(run, "hpet", "700"))).unwrap_err();
        assert!(missing.contains("no program was seen to read it"), "{missing}");
    }

    #[test]
    fn the_clocks_of_threads_are_taken_out() {
        let run = RunBuilder::new()
            .thread(10, 10, &[(USER, SECOND), (clock(), SECOND)])
            .sampled_path(10, clock(), &["posix_cpu_clock_get"], 750)
            .sampled_path(10, clock(), &["read_hpet"], 250)
            .build();
        let run = with_facts(run, "hpet", "500");
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!(claim.lost.get(clock()), SECOND / 4 / 20 * 19);
    }

    #[test]
    fn slow_reads_in_user_mode_are_known_by_the_marks_of_messages() {
        let run = RunBuilder::new().thread(10, 10, &[(USER, SECOND)]).build();
        let run = traced(with_facts(run, "kvm-clock", "1025"), [5000, 5000]);
        let claim = examine(&Case::new(&run)).unwrap();
        // Receipt, logic start, end and two publishes of 1,000 messages, each 1 us too long.
        assert_eq!(claim.lost.get(USER), 5_000_000);
        assert!(!claim.doubts.is_empty());
    }
}
