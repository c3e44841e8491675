//! blocked-log-pipe: a write to a full pipe, terminal or local socket sleeps until its reader makes room.
//!
//! Standard output and error of a service are often a pipe to a logger, a terminal (containers with -t,
//! tmux), or a socket to journald; syslog(3) writes to a socket, too. A slow logger stops the thread that logs, wherever it happens to be, with
//! whatever lock it holds.
//!
//! # Evidence
//!
//! Sends to a socket that slept until a thread of this host had read. Sleeps in write to a pipe or terminal that is full, by inode, with the process that ended each by reading;
//! sleeps between writes of the same data to a full pipe that does not block, which fail until there is
//! room (who drops what finds none waits for nothing);
//! threads that still waited when the recording ended; the descriptor that was written to. What the
//! reader did, if it is recorded, too: one that waits for room in a pipe leads on to its own
//! reader. Where the last reader computes instead of waiting, it is the slowest stage of a
//! pipeline: that is slow-peer.
//!
//! # Without whylag
//!
//!     strace -f -T -e trace=write,writev -p PID  # writes that take long
//!     ls -l /proc/PID/fd                         # pipe:[INODE]; lsof shows who reads it
//!
//! # Sources
//!
//! pipe(7); fs/pipe.c; fcntl(2) (F_SETPIPE_SZ).

use std::cmp::Reverse;
use std::collections::BTreeMap;

use model::{Account, Accounts, Blocked, Metric, RecorderPart, Syscall, WaitSum};

use crate::case::answers::is_for_a_stage;
use crate::case::in_words::{in_words, stacks};
use crate::case::{Case, Waits, sum_of};
use crate::cause::{Absent, Cause, Claim, Needs, Verdict};
use crate::causes::files::pipe_readers::{
    LastStage, PIPE, Reader, described, kind, last_stage, reader, reader_of_tries,
};
use crate::causes::files::socket_readers;
use crate::causes::ids;
use crate::causes::requests::slow_peer::FIX_OF_PIPELINE;
use crate::causes::tries::Tries;
use crate::text::{counted, duration, mean, percent, quantiles};

pub const CAUSE: Cause = Cause {
    id: ids::BLOCKED_LOG_PIPE,
    title: "a write to a full pipe, terminal or local socket waits for its reader",
    fix: "Never let the critical thread write to a pipe that can fill: log through a bounded queue \
          and a thread of its own, drop or count what does not fit, make the reader faster, or \
          enlarge the pipe (F_SETPIPE_SZ).",
    reproduce: "mysteries/bin/blocked-log-pipe-faulty 5",
    needs: Needs::parts(&[RecorderPart::Threads]),
    look_alikes: &[],
    symptom: false,
    examine,
};

/// Less than one in so many parts is not worth a second name.
const NEARLY_ALL: u64 = 20;
/// Calls that write to a pipe.
const CALLS: [&str; 2] = ["write", "writev"];

fn examine(case: &Case) -> Verdict {
    match (in_pipes(case), socket_readers::claim(case)) {
        (Ok(pipes), Some(sockets)) if pipes.lost.total() < sockets.lost.total() => Ok(sockets),
        (Err(_), Some(sockets)) => Ok(sockets),
        (pipes, _) => pipes,
    }
}

fn in_pipes(case: &Case) -> Verdict {
    let in_pipes = case.accounts.get(PIPE);
    let for_stages = sum_of(case.waits(PIPE).filter(|wait| is_for_a_stage(wait)));
    let slept = in_pipes.saturating_sub(for_stages.ns);
    let tries = Tries::of(case, |retry| retry.pipe);
    let Some(process) = waiter(case) else {
        return by_tries(case, &tries)
            .ok_or(Absent("no thread waited for room in a pipe".to_owned()));
    };
    if slept < in_pipes / NEARLY_ALL {
        return by_tries(case, &tries).ok_or(Absent(format!(
            "of {} in which threads waited for room in a pipe, somebody computed at the other end \
             for {}: a stage of a pipeline",
            duration(in_pipes),
            duration(for_stages.ns)
        )));
    }
    let total = match for_stages.count {
        0 => case.wait_total(PIPE),
        _ => sum_of(for_readers(case)),
    };
    let reader = reader(case);
    let by = reader.as_ref().map_or("its reader", |reader| reader.name.as_str());
    let last = reader.as_ref().and_then(|reader| last_stage(case, reader));
    let busy = last.as_ref().filter(|last| last.is_busy());
    let waiter = case.process_name(process);
    let kind = kind(case);
    let title = match busy {
        Some(last) => format!("{waiter} waits for {}, a later stage of its pipeline", last.name),
        None => format!("{waiter} waits for {by} to empty a {kind}"),
    };
    let lost: Accounts = [(PIPE, slept)].into_iter().collect();
    let mut claim = Claim::new(title, lost, total.count);

    let threads = case.threads_in(|account| account == PIPE).count() as u64;
    claim.mechanism(format!(
        "{} asleep in write() to a full {kind}: {}, mean {}, longest {}",
        counted(threads, "thread"),
        counted(total.count, "wait"),
        mean(total.ns, total.count),
        duration(total.max_ns)
    ));
    match &reader {
        Some(reader) => say_reader(reader, last.as_ref(), &total, &mut claim),
        None => {
            claim.trigger(format!("the reader of the {kind} is slow, or reads no more"));
            claim.doubt(0.8, &format!("who reads the {kind} is not known"));
        }
    }
    if busy.is_some() {
        claim.fix = Some(FIX_OF_PIPELINE);
    }
    evidence(case, &mut claim);
    add_tries(&tries, &mut claim);
    for (cause, kind) in
        [(ids::FSYNC_JOURNAL, Blocked::Disk), (ids::DIRTY_THROTTLE, Blocked::DirtyThrottle)]
    {
        let ns = duration(case.accounts.get(Account::Blocked(kind)));
        let because =
            format!("waiting for the disk is an account of its own ({}): {ns}", kind.name());
        claim.rule_out(cause, because);
    }
    Ok(claim)
}

/// Of all the waiting, which `total` has.
fn say_reader(reader: &Reader, last: Option<&LastStage>, total: &Waits, claim: &mut Claim) {
    let by = &reader.name;
    claim.trigger(match last {
        Some(last) => last.in_words(),
        None => format!("{by} reads more slowly than is written"),
    });
    claim.saw(
        format!(
            "{by} ended {} of {} by reading ({} of the waiting)",
            counted(reader.waits.count, "wait"),
            counted(total.count, "wait"),
            percent(reader.waits.ns, total.ns)
        ),
        "waker at sched_waking",
    );
    if last.is_none() {
        claim.doubt(
            0.9,
            "the reader is not recorded: it may be the next stage of a pipeline, and busy",
        );
    }
}

/// The waits for readers that do not compute.
fn for_readers<'a>(case: &Case<'a>) -> impl Iterator<Item = &'a WaitSum> {
    case.waits(PIPE).filter(|wait| !is_for_a_stage(wait))
}

/// The process that waited longest for such a reader, or waits still.
fn waiter(case: &Case) -> Option<u32> {
    let mut processes = BTreeMap::<u32, u64>::new();
    for wait in for_readers(case) {
        let ns = processes.entry(wait.tgid).or_default();
        *ns = ns.saturating_add(wait.ns);
    }
    let longest = processes.into_iter().max_by_key(|(_, ns)| *ns).map(|(tgid, _)| tgid);
    longest.or_else(|| case.main_process(|account| account == PIPE))
}

fn add_tries(tries: &Tries, claim: &mut Claim) {
    tries.add_to(
        claim,
        "a write to a full pipe that does not block",
        "pipe",
        "failed calls of write, and the sleeps up to the next to the same pipe",
    );
}

/// Without a thread that slept in write.
fn by_tries(case: &Case, tries: &Tries) -> Option<Claim> {
    if tries.ns == 0 {
        return None;
    }
    let name = case.process_name(tries.process);
    let title = format!("{name} tries again and again to write to a full pipe");
    let mut claim = Claim::new(title, Accounts::new(), 0);
    claim.mechanism(format!(
        "{} asleep between writes that found the pipe full: {}",
        duration(tries.ns),
        counted(tries.count, "sleep")
    ));
    let reader = reader_of_tries(case, tries);
    match &reader {
        Some(reader) => claim.trigger(reader.in_words()),
        None => {
            claim.trigger(
                "its reader is slow: a write that fails does not say who that is".to_owned(),
            );
        }
    }
    add_tries(tries, &mut claim);
    if reader.is_none() {
        claim.doubt(0.9, "who reads the pipe, and what it does meanwhile, is not known");
    }
    Some(claim)
}

fn evidence(case: &Case, claim: &mut Claim) {
    if let Some(pipe) = for_readers(case).min_by_key(|wait| Reverse(wait.ns)) {
        claim.saw(
            format!(
                "{}: {}, mean {}, longest {}",
                described(pipe.object),
                counted(pipe.count, "wait"),
                mean(pipe.ns, pipe.count),
                duration(pipe.max_ns)
            ),
            "inode of the file at sched_switch",
        );
    }
    let stuck = case.threads_in(|a| a == PIPE).filter(|t| t.alive && t.open == PIPE).count() as u64;
    if stuck > 0 {
        let text = format!("{} still waiting when the recording ended", counted(stuck, "thread"));
        claim.saw(text, "open account of the threads");
    }
    for name in CALLS {
        let metric = Syscall::named(name).map(Metric::Syscall);
        let histogram = metric.and_then(|metric| case.histogram(&metric));
        claim.saw_if(
            histogram.map(|h| format!("{name}: {}", quantiles(&h))),
            "system call histogram (sys_enter, sys_exit)",
        );
    }
    if let Some(longest) = case.worst(PIPE) {
        claim.saw(in_words(case, longest), "longest wait of the run");
        let call = longest.syscall.filter(|s| s.call.is_one_of(&CALLS));
        claim.saw_if(call.map(|s| format!("written to {}", file(s.args[0]))), "its arguments");
    }
    let (_, user) = stacks(case, PIPE, |_| true, "");
    claim.saw_if(user.map(|s| format!("written in {s}")), "user stack");
}

/// A file descriptor in words.
fn file(fd: u64) -> String {
    match fd {
        1 => "file descriptor 1 (standard output)".to_owned(),
        2 => "file descriptor 2 (standard error)".to_owned(),
        fd => format!("file descriptor {fd}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::causes::tries::SLEEP;
    use crate::testing::{RunBuilder, SECOND, USER, wait};

    fn writer() -> RunBuilder {
        RunBuilder::new().thread(10, 10, &[(USER, SECOND), (PIPE, 3 * SECOND)])
    }

    #[test]
    fn claimed_with_the_reader_by_name() {
        let sum = WaitSum {
            waker_tgid: 55,
            waker_comm: "slow-logger".into(),
            ..wait(10, PIPE, 777, 300, 3 * SECOND)
        };
        let run = writer().wait(sum).build();
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!(claim.lost.get(PIPE), 3 * SECOND);
        assert!(claim.title.contains("slow-logger (pid 55)"), "{}", claim.title);
        assert!(claim.evidence.iter().any(|e| e.text.contains("inode 777")));
        assert_eq!(claim.doubts.len(), 1, "what the reader did is not known");
    }

    /// 10 writes to 20, and that to 30.
    fn pipeline(of_30: &[(Account, u64)]) -> Claim {
        let from = |tgid, reader: u32| WaitSum {
            waker_tgid: reader,
            waker_comm: format!("stage-{reader}"),
            ..wait(tgid, PIPE, tgid.into(), 300, 3 * SECOND)
        };
        let run = writer()
            .thread(20, 20, &[(USER, SECOND / 10), (PIPE, 3 * SECOND)])
            .thread(30, 30, of_30)
            .wait(from(10, 20))
            .wait(from(20, 30));
        examine(&Case::new(&run.build())).unwrap()
    }

    #[test]
    fn a_busy_stage_is_the_end_of_a_pipeline_and_no_slow_logger() {
        let input = Account::Blocked(Blocked::PipeRead);
        let claim = pipeline(&[(USER, 3 * SECOND), (input, SECOND)]);
        assert!(claim.title.contains("stage-30 (pid 30), a later stage"), "{}", claim.title);
        assert!(claim.fix.is_some() && claim.doubts.is_empty());
        assert!(claim.chain[1].text.contains("computes for 3.00 s of the 3.00 s"), "{claim:?}");
    }

    #[test]
    fn a_reader_that_sleeps_is_slow_by_what_it_sleeps_in() {
        let disk = Account::Blocked(Blocked::Disk);
        let claim = pipeline(&[(USER, SECOND), (disk, 3 * SECOND)]);
        assert!(claim.fix.is_none());
        assert!(claim.chain[1].text.contains("is in blocked:disk for 3.00 s"), "{claim:?}");
    }

    #[test]
    fn a_wait_that_never_ended_is_claimed_too() {
        let run = writer().open(PIPE).build();
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!((claim.lost.total(), claim.waits), (3 * SECOND, 1));
        assert!(claim.evidence.iter().any(|e| e.text.starts_with("1 thread still waiting")));
        assert_eq!(claim.doubts.len(), 1);
    }

    #[test]
    fn who_has_found_the_pipe_empty_reads_it_and_what_it_does_is_said() {
        let read = Account::Blocked(Blocked::PipeRead);
        let run = |inode| {
            let mut run = RunBuilder::new()
                .thread(10, 10, &[(USER, SECOND), (SLEEP, SECOND)])
                .thread(20, 20, &[(USER, SECOND / 10), (SLEEP, SECOND), (read, SECOND)])
                .wait(wait(20, read, inode, 1, SECOND))
                .build();
            run.sums.retries = vec![model::Retry {
                tgid: 10,
                call: Syscall::named("write").unwrap(),
                errno: 11,
                object: 777,
                pipe: true,
                count: 100,
                ns: SECOND,
                max_ns: SECOND / 10,
                name: None,
                account: SLEEP,
                won_ns: 0,
            }];
            run
        };
        let claim = examine(&Case::new(&run(777))).unwrap();
        let trigger = &claim.chain[1].text;
        assert!(trigger.contains("(pid 20) reads more slowly"), "{trigger}");
        assert!(trigger.contains("is in blocked:timer for 1.00 s of the 1.10 s"), "{trigger}");
        assert!(claim.doubts.is_empty());
        assert_eq!(examine(&Case::new(&run(778))).unwrap().doubts.len(), 1);
    }

    #[test]
    fn sleeps_between_writes_to_a_full_pipe_are_waits_for_room() {
        let retry = |pipe| model::Retry {
            tgid: 10,
            call: Syscall::named("write").unwrap(),
            errno: 11,
            object: 777,
            pipe,
            count: 100,
            ns: SECOND,
            max_ns: SECOND / 10,
            name: None,
            account: SLEEP,
            won_ns: 0,
        };
        let slept = |pipe| {
            let mut run = RunBuilder::new().thread(10, 10, &[(SLEEP, 2 * SECOND)]).build();
            run.sums.retries = vec![retry(pipe)];
            examine(&Case::new(&run)).map(|claim| (claim.takes_idle, claim.lost.get(SLEEP)))
        };
        assert_eq!(slept(true).unwrap(), (true, SECOND));
        assert!(slept(false).is_err(), "a socket");
    }

    #[test]
    fn waiting_for_input_on_a_pipe_is_not_this() {
        let read = Account::Blocked(Blocked::PipeRead);
        let run = RunBuilder::new().thread(10, 10, &[(read, SECOND)]).build();
        assert!(examine(&Case::new(&run)).is_err());
    }
}
