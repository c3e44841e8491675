//! cputime-clock-threads: a process of many threads reads its own CPU time, and the kernel adds up
//! all of its threads each time.
//!
//! `clock_gettime(CLOCK_PROCESS_CPUTIME_ID)`, `clock()`, `getrusage(RUSAGE_SELF)` and `times` walk
//! the list of threads, about 8 ns for each on the machine where this was written.
//!
//! # Evidence
//!
//! CPU samples in thread_group_cputime within clock_gettime, getrusage and times, in a process of
//! 32 threads or more; how many calls there were and how long each took.
//!
//! # Without whylag
//!
//!     strace -f -c -e trace=clock_gettime,getrusage,times -p PID
//!     perf record -g -p PID -- sleep 5           # CPU time under thread_group_cputime
//!     grep Threads /proc/PID/status
//!
//! # Sources
//!
//! clock_gettime(2); getrusage(2); kernel/sched/cputime.c; kernel/time/posix-cpu-timers.c.

use model::{PathSum, RecorderPart, Syscall};

use crate::case::Case;
use crate::cause::{Absent, Cause, Claim, Needs, Verdict};
use crate::causes::ids;
use crate::text::{count, counted, duration, mean, percent, quantiles};

pub const CAUSE: Cause = Cause {
    id: ids::CPUTIME_CLOCK_THREADS,
    title: "reading the CPU time of a process adds up all of its threads",
    fix: "Read the thread's own clock (CLOCK_THREAD_CPUTIME_ID, RUSAGE_THREAD), or read the \
          process's clock rarely and keep the value.",
    reproduce: "mysteries/bin/cputime-clock-threads-faulty 5",
    needs: Needs::parts(&[RecorderPart::Threads, RecorderPart::Samples]).and_kernel_symbols(),
    look_alikes: &[],
    symptom: false,
    examine,
};

/// The walk over the threads; inlined into its callers in some kernels.
const WALK: &[&str] = &["thread_group_cputime", "thread_group_cputime_adjusted"];
/// Calls by which a process asks for its own CPU time.
const CALLS: [&str; 3] = ["clock_gettime", "getrusage", "times"];
/// With fewer threads than this the walk is short, and whoever reads often pays for reading.
const MANY_THREADS: u64 = 32;

fn asks(path: &PathSum) -> Option<&'static str> {
    let call = path.call?;
    CALLS.into_iter().find(|name| Syscall::named(name) == Some(call))
}

fn examine(case: &Case) -> Verdict {
    let walked = case.time_through(WALK, |path| asks(path).is_some());
    let most_expensive = CALLS.into_iter().max_by_key(|call| through(case, call));
    let Some(call) = most_expensive.filter(|_| walked.ns() > 0) else {
        return Err(Absent(
            "no CPU time was seen in the walk over the threads of a process \
             (thread_group_cputime) in clock_gettime, getrusage or times"
                .to_owned(),
        ));
    };
    let (process, threads) = case.largest_process();
    if threads < MANY_THREADS {
        return Err(Absent(format!(
            "{} in adding up the CPU time of a process, but none has more than {}",
            duration(walked.ns()),
            counted(threads, "thread")
        )));
    }

    let (calls, call_ns) = case.calls(call);
    let name = case.process_name(process);
    let title = format!("{name} reads its CPU time, the sum over {} threads", count(threads));
    let all = walked.ns();
    let mut claim = Claim::new(title, walked.accounts.clone(), walked.observations());
    claim.mechanism(format!(
        "the kernel added up the times of all threads of the process, thread by thread, for {}",
        duration(all)
    ));
    let each =
        if calls > 0 { format!(", {} on average", mean(call_ns, calls)) } else { String::new() };
    claim.trigger(format!(
        "{} of {call}{each}, in a process of {}",
        case.calls_in_words(calls, "call"),
        counted(threads, "thread")
    ));
    claim.saw_if(
        case.path_in_words(WALK, |path| asks(path).is_some())
            .map(|path| format!("{} samples under {path}", count(walked.samples))),
        "CPU samples with kernel and user stacks",
    );
    let metric = Syscall::named(call).map(model::Metric::Syscall);
    claim.saw_if(
        metric.and_then(|m| case.histogram(&m)).map(|h| format!("{call}: {}", quantiles(&h))),
        "system call histogram (sys_enter, sys_exit)",
    );
    if let Some(counter) = case.run.counter("process.threads") {
        let text = format!(
            "threads of the recorded process: {} when it began, {} at the end",
            count(counter.first),
            count(counter.last)
        );
        claim.saw(text, &counter.source);
    }
    rule_out(case, call, &mut claim);
    Ok(claim)
}

/// CPU time of the walk in this call.
fn through(case: &Case, call: &str) -> u64 {
    case.time_through(WALK, |path| asks(path) == Some(call)).ns()
}

fn rule_out(case: &Case, call: &str, claim: &mut Claim) {
    let inside = case.time_through(&[], |path| path.sampled && asks(path) == Some(call)).ns();
    let walk = through(case, call);
    claim.rule_out(
        ids::SLOW_CLOCKSOURCE,
        format!(
            "of the CPU time in {call}, {}, {} went into adding up threads and not into reading \
             the hardware",
            duration(inside),
            percent(walk.min(inside), inside)
        ),
    );
    let waited = case.accounts.sum_of(|account| account.is_waiting_for_cpu());
    claim.rule_out(
        ids::CPU_RUNQUEUE,
        format!(
            "this is time on a CPU; all waiting for one together is {} of the wall time",
            percent(waited, case.wall_ns)
        ),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RunBuilder, SECOND, USER};
    use model::{Account, Blocked};

    const IDLE: Account = Account::Blocked(Blocked::PipeRead);

    fn reading(call: &str) -> Account {
        Account::Syscall(Syscall::named(call).unwrap())
    }

    fn server(threads: u32) -> RunBuilder {
        let clock = reading("clock_gettime");
        let mut builder = RunBuilder::new().thread(10, 10, &[(USER, SECOND), (clock, SECOND)]);
        for tid in 11..10 + threads {
            builder = builder.thread(tid, 10, &[(IDLE, 2 * SECOND)]);
        }
        builder
    }

    #[test]
    fn the_walk_over_many_threads_is_claimed() {
        let clock = reading("clock_gettime");
        let run = server(1000)
            .sampled_path(
                10,
                reading("clock_gettime"),
                &["thread_group_cputime", "posix_cpu_clock_get"],
                900,
            )
            .sampled_path(10, reading("clock_gettime"), &["do_syscall_64"], 100)
            .build();
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!(claim.lost.get(clock), SECOND / 10 * 9);
        assert!(claim.title.ends_with("1,000 threads"), "{}", claim.title);
        let source = claim.ruled_out.iter().find(|r| r.cause == "slow-clocksource").unwrap();
        assert!(source.because.contains("90 %"), "{}", source.because);
    }

    #[test]
    fn a_clock_that_is_slow_to_read_is_not_this() {
        let run = server(1000)
            .sampled_path(10, reading("clock_gettime"), &["read_hpet", "ktime_get_ts64"], 1000)
            .build();
        let Absent(missing) = examine(&Case::new(&run)).unwrap_err();
        assert!(missing.contains("thread_group_cputime"), "{missing}");
    }

    #[test]
    fn few_threads_are_not_this() {
        let run = server(4)
            .sampled_path(10, reading("clock_gettime"), &["thread_group_cputime"], 1000)
            .build();
        let Absent(missing) = examine(&Case::new(&run)).unwrap_err();
        assert!(missing.contains("4 threads"), "{missing}");
    }

    #[test]
    fn a_monitor_that_reads_other_processes_is_not_this() {
        let run = server(1000)
            .sampled_path(
                10,
                reading("read"),
                &["thread_group_cputime_adjusted", "do_task_stat"],
                1000,
            )
            .build();
        assert!(examine(&Case::new(&run)).is_err());
    }
}
