//! close-linger: closing a TCP socket waits until the other side has acknowledged all that was sent,
//! because SO_LINGER is set.
//!
//! Ordinarily close() returns at once, and the kernel sends what is left and the end of the
//! connection by itself. With SO_LINGER and a time the thread that closes waits for the
//! acknowledgement of all that, for that time at most, also where the socket is non-blocking. How
//! long it takes is up to the other side: one that reads slowly has its window full. A socket that
//! is closed because its process ends never waits.
//!
//! # Evidence
//!
//! Sleeps in sk_stream_wait_close, where the kernel sleeps only if SO_LINGER has a time: the sum of
//! all of the run's threshold (1 ms) and more, whichever call gave the last descriptor away (close,
//! dup2, execve). Any other slow close is not this. TCPTimeouts of the network namespace says
//! whether segments were lost meanwhile.
//!
//! # Without whylag
//!
//!     strace -f -T -e trace=setsockopt,close -p PID    # SO_LINGER with l_onoff=1; long closes
//!     grep -l sk_stream_wait_close /proc/PID/task/*/stack
//!     ss -tn state fin-wait-1                          # closed, and Send-Q not yet acknowledged
//!
//! # Sources
//!
//! socket(7) (SO_LINGER); net/ipv4/af_inet.c (inet_release); net/ipv4/tcp.c (__tcp_close);
//! net/core/stream.c (sk_stream_wait_close).

use model::{Account, Accounts, Outlier, OutlierKind, RecorderPart, StackSum};

use crate::case::Case;
use crate::case::in_words::in_words;
use crate::cause::{Absent, Cause, Claim, LookAlike, Needs, Verdict};
use crate::causes::ids;
use crate::text::{counted, duration, mean, quantiles};

pub const CAUSE: Cause = Cause {
    id: ids::CLOSE_LINGER,
    title: "closing a TCP socket waits for the other side, because SO_LINGER is set",
    fix: "Do not set SO_LINGER: close() then returns at once, and the kernel sends the rest. Where \
          the program has to know that all has arrived, let it call shutdown(SHUT_WR) and wait for \
          the other side's end (recv returns 0) in its event loop, or have a thread close that \
          nobody waits for. A linger time of 0 is no fix: it throws away what is not yet sent.",
    reproduce: "mysteries/bin/close-linger-faulty 5",
    needs: Needs::parts(&[RecorderPart::Threads]).and_kernel_symbols(),
    look_alikes: &[
        LookAlike {
            cause: ids::TCP_RTO,
            tell_apart: "see why the rest is not acknowledged ('ss -tin state fin-wait-1'): \
                         backoff and retrans grow where segments are lost, rwnd_limited where \
                         the other side does not read",
            mutual: false,
        },
        LookAlike {
            cause: ids::SLOW_PEER,
            tell_apart: "see the call that the threads sleep in ('strace -f -T -p PID'): close \
                         waits for an acknowledgement, recv or read for an answer",
            mutual: false,
        },
    ],
    symptom: false,
    examine,
};

/// Sleeps only if it is given a time, which `inet_release` takes from SO_LINGER.
const LINGERS: [&str; 1] = ["sk_stream_wait_close"];
/// Of each side of a stack.
const FRAMES_SHOWN: usize = 5;

fn examine(case: &Case) -> Verdict {
    let sums = lingering(case);
    let Some(main) = sums.iter().max_by_key(|sum| sum.ns) else {
        let (closes, ns) = case.calls("close");
        return Err(Absent(format!(
            "no thread slept in sk_stream_wait_close; {} took {}",
            case.calls_in_words(closes, "call of close"),
            duration(ns)
        )));
    };
    let lost: Accounts = sums.iter().map(|sum| (sum.account, sum.ns)).collect();
    let (waits, ns) = (sums.iter().map(|sum| sum.count).sum::<u64>(), lost.total());
    let longest = longest(case);
    let title = format!(
        "{} closes TCP sockets and waits until the other side has acknowledged all",
        case.process_name(main.tgid)
    );
    let mut claim = Claim::new(title, lost, waits);
    // Who closes a connection has nothing to get from it: this is no wait for work.
    claim.takes_idle = true;
    claim.mechanism(format!(
        "{} asleep until what was sent on a closed socket was acknowledged: {}, mean {}, longest {}",
        duration(ns),
        counted(waits, "wait"),
        mean(ns, waits),
        longest.map_or("not kept".to_owned(), |o| duration(o.breakdown.get(main.account)))
    ));
    claim.trigger(
        "SO_LINGER has a time on these sockets; how fast the other side reads and acknowledges, \
         the closing thread has to wait for"
            .to_owned(),
    );
    evidence(case, main, longest, &mut claim);
    rule_out(case, &mut claim);
    Ok(claim)
}

/// Sums of sleeps by stack. Other sums leave out what looks like waiting for work.
fn lingering<'a>(case: &Case<'a>) -> Vec<&'a StackSum> {
    let asleep =
        case.run.sums.stack_sums.iter().filter(|s| matches!(s.account, Account::Blocked(_)));
    asleep.filter(|sum| sum.ns > 0 && case.goes_through(sum.kernel, &LINGERS)).collect()
}

fn evidence(case: &Case, main: &StackSum, longest: Option<&Outlier>, claim: &mut Claim) {
    let path: Vec<String> = [main.kernel, main.user]
        .into_iter()
        .flat_map(|stack| case.labels(stack).into_iter().take(FRAMES_SHOWN))
        .collect();
    claim.saw(path.join(" <- "), "kernel and user stack of most of them");
    let call = model::Syscall::named("close").map(model::Metric::Syscall);
    let histogram = call.and_then(|metric| case.histogram(&metric));
    claim.saw_if(
        histogram.map(|h| format!("all calls of close, files among them: {}", quantiles(&h))),
        "system call histogram (sys_enter, sys_exit)",
    );
    claim.saw_if(longest.map(|o| in_words(case, o)), "longest wait of the run");
}

fn longest<'a>(case: &Case<'a>) -> Option<&'a Outlier> {
    let kept = case.run.outliers.iter().filter(|o| o.kind == OutlierKind::OffCpu);
    let lingers = kept.filter(|o| case.goes_through(o.kernel_stack, &LINGERS));
    lingers.max_by_key(|outlier| outlier.duration_ns)
}

fn rule_out(case: &Case, claim: &mut Claim) {
    if let Some(timeouts) = case.run.counter("net.tcp_timeouts") {
        match timeouts.growth() {
            0 => claim.rule_out(
                ids::TCP_RTO,
                "TCPTimeouts of the network namespace did not grow: no timer sent a segment again"
                    .to_owned(),
            ),
            n => claim.saw(
                format!(
                    "{}: the rest may have been lost on the way, too",
                    counted(n, "TCP timeout of the network namespace")
                ),
                "TCPTimeouts of the network namespace",
            ),
        }
    }
    claim.exclude(
        "a file whose last close waits for a server or a disk (NFS, FUSE)",
        "these sleeps are in sk_stream_wait_close, where only TCP sockets with SO_LINGER wait"
            .to_owned(),
    );
}

#[cfg(test)]
mod tests {
    use model::{Blocked, Run};

    use super::*;
    use crate::testing::{RunBuilder, SECOND};

    const OTHER: Account = Account::Blocked(Blocked::Other);
    const IN_CLOSE: [&str; 5] =
        ["wait_woken", "sk_stream_wait_close", "__tcp_close", "tcp_close", "inet_release"];

    /// A process that sleeps for a second under `frames`, and for another one waits for a signal.
    fn sleeps(frames: &[&str], timeouts: u64) -> Run {
        let mut run = RunBuilder::new()
            .thread(10, 10, &[(OTHER, 2 * SECOND)])
            .slept_path(10, OTHER, "close", frames, 20, SECOND)
            .slept_path(10, OTHER, "rt_sigtimedwait", &["do_sigtimedwait"], 1, SECOND)
            .counter("net.tcp_timeouts", 5, 5 + timeouts)
            .build();
        let by_stack = run.sums.paths.drain(..).map(|path| StackSum {
            tgid: path.tgid,
            account: path.account,
            kernel: path.kernel,
            user: None,
            count: path.count,
            ns: path.ns,
        });
        run.sums.stack_sums = by_stack.collect();
        run
    }

    #[test]
    fn claimed_are_the_sleeps_that_linger_and_no_other_wait_of_their_account() {
        let run = sleeps(&IN_CLOSE, 0);
        let claim = examine(&Case::new(&run)).expect("its sleeps are there");
        assert_eq!((claim.lost.get(OTHER), claim.waits), (SECOND, 20));
        let found = &crate::explain(&run).findings[0];
        assert_eq!((found.cause.as_str(), found.lost_ns), ("close-linger", SECOND));
    }

    #[test]
    fn the_run_queue_after_such_a_sleep_is_not_claimed() {
        let mut run = sleeps(&IN_CLOSE, 0);
        let woken = StackSum { account: Account::RunnableWakeup, ..run.sums.stack_sums[0].clone() };
        run.sums.stack_sums.push(woken);
        assert_eq!(examine(&Case::new(&run)).unwrap().lost.total(), SECOND);
    }

    #[test]
    fn a_close_that_is_slow_elsewhere_is_not_this() {
        for frames in [
            &["nfs_wb_all", "nfs4_file_flush", "filp_flush", "__x64_sys_close"][..],
            &["__lock_sock", "lock_sock_nested", "tcp_close", "inet_release"],
            &["wait_woken", "sk_stream_wait_memory", "tcp_sendmsg_locked"],
        ] {
            assert!(examine(&Case::new(&sleeps(frames, 0))).is_err(), "{frames:?}");
        }
    }

    #[test]
    fn lost_segments_are_excluded_only_if_no_timer_fired() {
        let excluded = |timeouts| {
            let run = sleeps(&IN_CLOSE, timeouts);
            let claim = examine(&Case::new(&run)).unwrap();
            claim.ruled_out.iter().any(|other| other.cause == "tcp-rto")
        };
        assert!(excluded(0) && !excluded(4));
    }
}
