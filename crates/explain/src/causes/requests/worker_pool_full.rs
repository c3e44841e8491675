//! worker-pool-full: requests wait because all workers of the server are busy with others.
//!
//! A server with k workers (threads, prefork processes, children of PHP-FPM) handles k requests at
//! a time. The next one waits: where workers accept connections themselves, in the queue of the
//! listening socket, with its data in its own socket. The server's own log does not show it: the
//! entry of a request begins when a worker takes it. What the workers do is the cause: where they
//! compute, there are too few CPUs or too much work; where they wait (for a backend, a lock, a
//! sleep), few workers are the limit although the machine is idle.
//!
//! # Evidence
//!
//! Requests that waited for as long as the run's threshold or longer between their arrival at the
//! socket and their first read by one of k threads, each of which has one connection at a time; what
//! these threads did meanwhile; and their utilisation: the time of all requests from first read to
//! answer, divided by k times the time in which there were requests. At least a quarter of the time of
//! the slowest requests, and a twentieth of the recording.
//!
//! Where an event loop reads all requests and hands them to other threads (libuv, executors of asyncio and
//! of Java), no queue is seen, but its length follows from numbers: these threads never wait for work, one
//! of them ends a sleep of the loop, or answers, for about each request, and more requests are in progress
//! than there are such threads. A third of the time of all requests at least is then in line.
//!
//! # Without whylag
//!
//!     ss -ltn                                    # Recv-Q of a listening socket: connections that wait
//!     ps -o pid,state,wchan -C php-fpm           # what all workers do
//!     apachectl status; php-fpm's /status page   # busy workers, listen queue
//!
//! # Sources
//!
//! Kleinrock, Queueing Systems, volume 1 (M/M/k; Little's law); libuv: "Thread pool work scheduling"; listen(2); php-fpm.conf: pm.max_children; Apache:
//! MaxRequestWorkers; Gunicorn: "How many workers?".

use model::{Message, MessageMetric, RecorderPart};

use super::held_up::{COMPUTES, HeldUp, WAITS, held_up};
use super::pool_behind_loop;
use crate::case::Case;
use crate::case::requests::load_ns;
use crate::cause::{Absent, Cause, Needs, Verdict};
use crate::causes::ids;
use crate::text::{counted, duration, percent};

pub const CAUSE: Cause = Cause {
    id: ids::WORKER_POOL_FULL,
    title: "requests wait because all workers of the server are busy with others",
    fix: WAITS,
    reproduce: "mysteries/bin/worker-pool-full-faulty 5",
    needs: Needs::parts(&[RecorderPart::Threads, RecorderPart::Requests]),
    look_alikes: &[],
    symptom: true,
    examine,
};

/// Workers that have a request for less of the time in which there are requests are not all busy.
const LEAST_USED: f64 = 0.6;
/// Workers are known by the requests that were kept whole, their work by all: more of it than they can
/// do shows that there are others.
const MOST_USED: f64 = 1.05;

/// Requests that were kept for each worker that was seen: of fewer a worker may have had none.
const SEEN_EACH: u64 = 3;

fn examine(case: &Case) -> Verdict {
    match (at_sockets(case), pool_behind_loop::claim(case)) {
        (Ok(queued), Some(handed)) if handed.lost.total() > queued.lost.total() => Ok(handed),
        (Err(_), Some(handed)) => Ok(handed),
        (queued, _) => queued,
    }
}

/// Workers that read requests themselves.
fn at_sockets(case: &Case) -> Verdict {
    let held = held_up(case, false)?;
    let queue = &held.queue;
    let (workers, used) = (queue.readers.len() as u64, utilisation(case, &held));
    let process = case.process_name(queue.program.tgid);
    if used > MOST_USED {
        return Err(Absent(format!(
            "the requests of {process} were worked on for {used:.1} times as long as its {} that were \
             seen to read some can: not all are known",
            counted(workers, "worker")
        )));
    }
    if used < LEAST_USED {
        return Err(Absent(format!(
            "{} waited {} for {} of {process}, but these worked on requests for {:.0} % of the time only",
            counted(queue.waited.len() as u64, "request"),
            duration(queue.waited_ns()),
            counted(workers, "worker"),
            used * 100.0
        )));
    }
    let (main, k) = (held.main(case), counted(workers, "worker"));
    let title = match workers {
        1 => format!("requests wait for the only worker of {process}, which {main}"),
        _ => format!(
            "requests wait because {k} of {process}, all that were seen to read, are busy: each {main}"
        ),
    };
    let mut claim = held.claim(title);
    claim.fix = Some(if held.on_cpu() >= 0.5 { COMPUTES } else { WAITS });
    claim.mechanism(format!(
        "{} worked on requests for {:.0} % of the time in which there were any; {} came meanwhile and \
         waited {} to be read",
        k,
        used.min(1.0) * 100.0,
        counted(queue.waited.len() as u64, "request"),
        duration(queue.waited_ns())
    ));
    claim.trigger(format!("while requests waited the workers were {}", held.did()));
    held.evidence(case, &mut claim);
    if queue.kept < workers * SEEN_EACH {
        claim.doubt(
            0.8,
            "so few requests were kept that there may be workers which read none of them",
        );
    }
    let queued = queue.queued.sum();
    claim.exclude(
        "the work on each request alone",
        format!(
            "{} of the {} until all requests were answered they waited to be read",
            percent(queued, queue.total.sum()),
            duration(queue.total.sum())
        ),
    );
    held.rule_runqueue_out(&mut claim);
    Ok(claim)
}

/// The part of the time in which there are requests for which a worker has one.
fn utilisation(case: &Case, held: &HeldUp) -> f64 {
    let queue = &held.queue;
    let (program, flow) = (queue.program.program, queue.flow.flow);
    let worked = case.run.messages.histogram(program, flow, MessageMetric::Logic).sum();
    let each = worked / queue.readers.len().max(1) as u64;
    let is_of_flow = |message: &&Message| (message.program, message.flow) == (program, flow);
    each as f64 / load_ns(case.run, is_of_flow, each) as f64
}

#[cfg(test)]
mod tests {
    use model::{Account, Blocked, Retry, Run, Syscall};

    use super::*;
    use crate::testing::requests::{MS, request, served};
    use crate::testing::{RunBuilder, SECOND, USER, interval};

    const ASLEEP: Account = Account::Blocked(Blocked::TimerSleep);

    /// Two workers that sleep for 20 ms in each request, of 4 s; each request waits for two others.
    fn pool(pause_ms: u64) -> Run {
        let mut run = RunBuilder::new();
        let mut requests = Vec::new();
        for (worker, tid) in [11, 12].into_iter().enumerate() {
            run = run.thread(tid, 10, &[(ASLEEP, 3 * SECOND), (USER, SECOND)]);
            for n in 0..4_000 / (20 + pause_ms) {
                let read = 40 + n * (20 + pause_ms);
                let link = 2 * n + worker as u64;
                requests.push(request(link, tid, read - 40, 40, 20));
                run = run.kept(interval(tid, ASLEEP, read * MS, 20 * MS, None));
            }
        }
        served(run.build(), requests)
    }

    #[test]
    fn workers_that_sleep_are_busy_and_what_they_do_is_said() {
        let run = pool(0);
        let claim = examine(&Case::new(&run)).unwrap();
        assert!(claim.title.contains("2 workers of"), "{}", claim.title);
        assert!(claim.lost.get(ASLEEP) > 3 * SECOND, "{:?}", claim.lost);
        assert_eq!(claim.fix, Some(WAITS));
        let found = crate::explain(&run);
        assert_eq!(found.findings[0].cause, "worker-pool-full");
        assert!(found.findings[0].requests.as_ref().unwrap().share() > 0.5);
        assert!(found.idle_ns < 6 * SECOND, "what they slept is no waiting for work");
    }

    #[test]
    fn workers_that_sleep_until_a_lock_is_let_go_wait_for_the_lock() {
        let tries_for = |ns| {
            let mut run = pool(0);
            run.sums.retries = vec![Retry {
                tgid: 10,
                call: Syscall::named("fcntl").unwrap(),
                errno: 11,
                object: 4711,
                pipe: false,
                count: 60,
                ns,
                max_ns: SECOND / 10,
                name: None,
                account: ASLEEP,
                won_ns: 0,
            }];
            run
        };
        let found = |ns| crate::explain(&tries_for(ns)).findings[0].cause.clone();
        assert_eq!(found(5 * SECOND), "file-lock");
        assert_eq!(found(SECOND), "worker-pool-full");
    }

    /// Whoever records by hand starts before the load, or ends after it.
    #[test]
    fn a_recording_may_be_longer_than_the_load() {
        let mut run = pool(0);
        run.end.as_mut().unwrap().ended_ns = 10 * SECOND;
        let case = Case::new(&run);
        assert!(examine(&case).is_ok());
        let used = utilisation(&case, &held_up(&case, false).unwrap());
        assert!((0.9..MOST_USED).contains(&used), "{used}");
    }

    /// They come in bursts: the same 4 s of work in two parts, 3 s apart.
    #[test]
    fn a_rest_between_two_bursts_is_no_time_with_requests() {
        let mut run = pool(0);
        run.end.as_mut().unwrap().ended_ns = 10 * SECOND;
        for message in run.messages.slow.iter_mut().filter(|message| message.t0_ns >= 2 * SECOND) {
            for ns in [&mut message.t0_ns, &mut message.logic_start_ns, &mut message.end_ns] {
                *ns += 3 * SECOND;
            }
        }
        let case = Case::new(&run);
        let used = utilisation(&case, &held_up(&case, false).unwrap());
        assert!((0.9..MOST_USED).contains(&used), "{used}");
        assert!(examine(&case).is_ok());
    }

    #[test]
    fn workers_that_are_idle_half_of_the_time_are_not_full() {
        let absent = examine(&Case::new(&pool(60))).unwrap_err();
        assert!(absent.0.contains("of the time only"), "{}", absent.0);
    }
}
