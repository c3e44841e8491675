//! stopped-or-traced: threads are kept from running by a tracer, a stop signal or the freezer.
//!
//! Debuggers, pstack, gcore and strace hold a thread for a while or at each of its system calls; a
//! job control signal stops all threads until SIGCONT; a container that is paused freezes. The
//! thread is on no run queue meanwhile, and it did not ask for anything.
//!
//! A thread that waited for work when it was stopped lost nothing by it until some came: a request that
//! it read after the stop, or another thread that began to wait for it meanwhile.
//!
//! # Evidence
//!
//! Time in which threads stood still in ptrace_stop, for a stop signal, or in the freezer: an
//! account of its own, known by the state of the task. With it: the sender of a stop signal, the
//! process that let the threads go on, and TracerPid. Stops of threads that waited for work are
//! taken off, up to the moment at which some came.
//!
//! # Without whylag
//!
//!     grep -E 'State|TracerPid' /proc/PID/status   # T: stopped, t: traced
//!     perf trace -a -e signal:signal_generate --filter 'sig == 19'
//!     cat /sys/fs/cgroup/GROUP/cgroup.freeze       # version 1: freezer/GROUP/freezer.state
//!
//! # Sources
//!
//! ptrace(2); signal(7); Documentation/admin-guide/cgroup-v2.rst (cgroup.freeze).

use model::{Account, Accounts, ChainEnd, Event, EventKind, RecorderPart, WaitSum};

use crate::case::Case;
use crate::case::in_words::in_words;
use crate::case::stops::STOPPED;
use crate::cause::{Absent, Cause, Claim, Needs, Verdict};
use crate::causes::ids;
use crate::text::{count, counted, duration, mean, percent};

pub const CAUSE: Cause = Cause {
    id: ids::STOPPED_OR_TRACED,
    title: "threads are stopped by a tracer, a signal or the freezer",
    fix: "Stop whatever attaches to the process (pstack, gcore, a debugger, strace, a profiler \
          that uses ptrace) or let it do so less often; tools that read by eBPF or by \
          process_vm_readv() stop nobody. For stop signals: find their sender.",
    reproduce: "mysteries/bin/stopped-or-traced-faulty 5",
    needs: Needs::parts(&[RecorderPart::Threads]),
    look_alikes: &[],
    symptom: false,
    examine,
};

/// Stops shorter than this on average are a tracer that looks at every system call.
const EACH_CALL_NS: u64 = 1_000_000;
/// SIGSTOP, SIGTSTP, SIGTTIN and SIGTTOU, by number.
const STOP_SIGNALS: [(u64, &str); 4] =
    [(19, "SIGSTOP"), (20, "SIGTSTP"), (21, "SIGTTIN"), (22, "SIGTTOU")];
const TRACED: &str = "held by a tracer";
/// Kernel functions in which a thread stands still, and what that is.
const WAYS: [(&[&str], &str); 3] = [
    (&["ptrace_stop"], TRACED),
    (&["do_signal_stop"], "stopped by a signal"),
    (&["__refrigerator", "do_freezer_trap"], "frozen"),
];

fn examine(case: &Case) -> Verdict {
    let stopped = case.accounts.get(STOPPED);
    let Some(process) = case.main_process(|account| account == STOPPED) else {
        return Err(Absent("no thread was stopped, frozen or held by a tracer".to_owned()));
    };
    let stops = &case.stops;
    let lost = case.lost.get(STOPPED);
    if lost == 0 {
        return Err(Absent(format!(
            "threads were stopped for {}, but all of them waited for work then, and none was seen to \
             come",
            duration(stopped)
        )));
    }
    let total = case.wait_total(STOPPED);
    let name = case.process_name(process);
    let resumer = resumer(case);
    let mut claimed: Accounts = [(STOPPED, lost)].into_iter().collect();
    let behind = case.behind(|end| end == ChainEnd::Stopped);
    claimed.merge(&behind);
    let way = way(case);
    // strace stops a program with a signal first, and then at each of its calls.
    let signal = stop_signal(case, process).filter(|_| way != Some(TRACED));
    let title = title(&name, way, signal, resumer);
    let mut claim = Claim::new(title, claimed, total.count);

    claim.mechanism(format!(
        "threads were {} {} for {} in all, mean {}, longest {}",
        way.unwrap_or("stopped"),
        counted(total.count, "time"),
        duration(stopped),
        mean(total.ns, total.count),
        duration(total.max_ns)
    ));
    if behind.total() > 0 {
        let ns = duration(behind.total());
        claim.mechanism(format!("others waited {ns} for locks and answers of stopped threads"));
    }
    claim.trigger(match (signal, resumer) {
        (Some((name, event)), _) => format!("{name} {}", event.detail),
        (None, Some(resumer)) => {
            let (who, part) = (of(resumer), percent(resumer.ns, total.ns));
            let each_call = total.ns / total.count.max(1) < EACH_CALL_NS;
            let how = if each_call { ", as short and as many as system calls" } else { "" };
            format!("{who} let them go on: it ended {part} of the stops{how}")
        }
        (None, None) => "who stopped them was not seen".to_owned(),
    });
    evidence(case, stopped.saturating_sub(lost), &mut claim);
    rule_out(case, &mut claim);
    if stops.number == 0 && threads(case) > 1 {
        let text = "no stop was kept whole: threads that only waited for work may be counted, too";
        claim.doubt(0.8, text);
    }
    Ok(claim)
}

fn evidence(case: &Case, idle_ns: u64, claim: &mut Claim) {
    let stops = &case.stops;
    for (functions, way) in WAYS {
        let time = case.time_through(functions, |path| path.account == STOPPED && !path.sampled);
        if time.sleeps > 0 {
            let text =
                format!("{way}: {} in {}", duration(time.ns()), counted(time.sleeps, "stop"));
            claim.saw(text, "kernel stack of the stopped threads");
        }
    }
    if stops.idle > 0 {
        let text = format!(
            "{} of {} kept whole interrupted a wait for work; that part, {}, is not counted here",
            count(stops.idle),
            counted(stops.number, "stop"),
            duration(idle_ns)
        );
        claim.saw(text, "the thread's interval before the stop");
    }
    if stops.late > 0 {
        let text = format!(
            "in {} of these something came for the stopped thread: from then on they are counted",
            count(stops.late)
        );
        claim
            .saw(text, "requests at its sockets, and waits of others that it ended after the stop");
    }
    let tracer =
        case.run.sums.counters.iter().find(|c| c.name == "process.tracer_pid" && c.last > 0);
    claim.saw_if(tracer.map(|c| format!("TracerPid was {}", c.last)), "/proc/PID/status");
    claim.saw_if(case.worst(STOPPED).map(|o| in_words(case, o)), "longest stop");
}

fn title(
    name: &str,
    way: Option<&str>,
    signal: Option<(&str, &Event)>,
    resumer: Option<&WaitSum>,
) -> String {
    match (way, signal, resumer) {
        (_, Some((signal, event)), _) => format!("{name} is stopped by {signal} {}", event.detail),
        (way, None, Some(resumer)) => {
            format!("{name} is {} until {} lets it go on", way.unwrap_or("stopped"), of(resumer))
        }
        (way, None, None) => format!("{name} is {}", way.unwrap_or("stopped")),
    }
}

fn rule_out(case: &Case, claim: &mut Claim) {
    claim.rule_out(
        ids::CGROUP_THROTTLE,
        format!(
            "time taken away by a CPU quota is an account of its own: {}",
            duration(case.accounts.get(Account::Throttled))
        ),
    );
    claim.rule_out(
        ids::CPU_RUNQUEUE,
        format!(
            "a stopped thread is on no run queue: waiting for a CPU, {}, is not counted here",
            duration(case.accounts.sum_of(Account::is_runnable))
        ),
    );
    let mmap_lock = case.accounts.sum_of(crate::case::mmap_holders::is_mmap_lock);
    claim.rule_out(
        ids::MM_READER,
        format!("waiting for mmap_lock is an account of its own: {}", duration(mmap_lock)),
    );
}

/// The way in which most of the time was spent.
fn way(case: &Case) -> Option<&'static str> {
    let times = WAYS.map(|(functions, way)| {
        (case.time_through(functions, |path| path.account == STOPPED).ns(), way)
    });
    times.into_iter().filter(|(ns, _)| *ns > 0).max().map(|(_, way)| way)
}

/// A stop signal sent to the process, and its name.
fn stop_signal<'a>(case: &Case<'a>, process: u32) -> Option<(&'static str, &'a Event)> {
    let signals = case.run.events.iter().filter(|e| e.kind == EventKind::Signal);
    let mut signals = signals.filter(|e| e.tgid == process);
    signals.find_map(|event| {
        let known = STOP_SIGNALS.iter().find(|(number, _)| *number == event.value);
        known.map(|(_, name)| (*name, event))
    })
}

/// The process that ended most of the stopped time.
fn resumer<'a>(case: &Case<'a>) -> Option<&'a WaitSum> {
    case.waits(STOPPED).filter(|wait| wait.waker_tgid != 0).max_by_key(|wait| wait.ns)
}

fn of(wait: &WaitSum) -> String {
    format!("{} (pid {})", wait.waker_comm, wait.waker_tgid)
}

fn threads(case: &Case) -> usize {
    case.threads_in(|account| account == STOPPED).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::part::question::Question;
    use crate::part::run::PartialRun;
    use crate::testing::requests::{MS, request};
    use crate::testing::{RunBuilder, SECOND, USER, interval, wait};
    use model::{Blocked, EventDetail, OutlierKind, Run, Syscall, SyscallCall};

    const POLL: Account = Account::Blocked(Blocked::Poll);

    fn held(function: &str) -> RunBuilder {
        let sum = WaitSum {
            waker_tgid: 66,
            waker_comm: "gcore".into(),
            ..wait(10, STOPPED, 0, 40, 2 * SECOND)
        };
        RunBuilder::new()
            .thread(10, 10, &[(USER, SECOND), (STOPPED, SECOND)])
            .thread(11, 10, &[(POLL, SECOND), (STOPPED, SECOND)])
            .slept_path(10, STOPPED, "read", &[function, "get_signal"], 40, 2 * SECOND)
            .interval(10, STOPPED, SECOND, SECOND, None)
            .wait(sum)
    }

    #[test]
    fn a_tracer_is_named_and_every_stop_is_lost() {
        let run = held("ptrace_stop").interval(11, STOPPED, SECOND, SECOND, None).build();
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!((claim.lost.get(STOPPED), claim.waits), (2 * SECOND, 40));
        assert_eq!(
            claim.title,
            "main-10 (pid 10) is held by a tracer until gcore (pid 66) lets it go on"
        );
        assert!(claim.doubts.is_empty());
    }

    #[test]
    fn a_thread_that_waited_for_work_lost_nothing() {
        let run = held("ptrace_stop")
            .interval(11, POLL, SECOND / 2, SECOND / 2 - 40_000, None)
            .interval(11, STOPPED, SECOND, SECOND, None)
            .build();
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!(claim.lost.get(STOPPED), SECOND);
        assert!(claim.evidence.iter().any(|e| e.text.starts_with("1 of 2 stops")));
    }

    /// Thread 11 waits for work and is stopped for the second second; it waits again 2 ms after it.
    fn stopped_at_rest() -> RunBuilder {
        let at_rest = held("ptrace_stop").interval(11, POLL, SECOND / 2, SECOND / 2 - 40_000, None);
        at_rest.interval(11, STOPPED, SECOND, SECOND, None).interval(
            11,
            POLL,
            2 * SECOND + 2 * MS,
            SECOND,
            None,
        )
    }

    fn lost(run: &Run) -> u64 {
        examine(&Case::new(run)).unwrap().lost.get(STOPPED)
    }

    #[test]
    fn a_stop_hurts_from_the_request_on_that_came_meanwhile() {
        let with = |at, queued| {
            crate::testing::requests::served(
                stopped_at_rest().build(),
                vec![request(1, 11, at, queued, 1)],
            )
        };
        let run = with(1300, 701);
        assert_eq!(lost(&run), SECOND + 700 * MS);
        let claim = examine(&Case::new(&run)).unwrap();
        assert!(claim.evidence.iter().any(|e| e.text.starts_with("in 1 of these something came")));
        // Before the stop, or after it.
        assert_eq!((lost(&with(900, 1101)), lost(&with(2001, 1))), (SECOND, SECOND));
    }

    #[test]
    fn a_stop_hurts_from_the_moment_on_at_which_somebody_began_to_wait_for_the_thread() {
        let asked = |kind, from_ms: u64, to_ms: u64, waker| {
            let wait = interval(
                10,
                Account::Blocked(kind),
                from_ms * MS,
                (to_ms - from_ms) * MS,
                Some(waker),
            );
            stopped_at_rest().kept(wait)
        };
        let of = |run: RunBuilder| lost(&run.build());
        let pipe = Blocked::PipeRead;
        assert_eq!(of(asked(pipe, 1400, 2001, 11)), SECOND + 600 * MS);
        assert_eq!(of(asked(pipe, 1400, 2001, 12)), SECOND, "another thread let it go on");
        assert_eq!(of(asked(pipe, 1400, 2003, 11)), SECOND, "after it had waited again");
        assert_eq!(of(asked(pipe, 900, 2001, 11)), SECOND, "before the stop it had no work either");
        // The kernel tells the parent.
        assert_eq!(of(asked(Blocked::ChildWait, 1400, 2001, 11)), SECOND);
        let mut call = interval(10, Account::Blocked(pipe), 1399 * MS, 603 * MS, Some(11));
        call.kind = OutlierKind::Syscall;
        let read = Syscall::named("read").unwrap();
        call.syscall = Some(SyscallCall { call: read, args: [0; 6], result: Some(-4) });
        assert_eq!(of(asked(pipe, 1400, 2001, 11).kept(call)), SECOND, "a signal");
    }

    /// What is asked of a part is judged by what the whole run shows.
    #[test]
    fn of_a_thread_alone_the_stop_hurts_as_well() {
        let wait = interval(10, Account::Blocked(Blocked::PipeRead), 1400 * MS, 601 * MS, Some(11));
        let run = stopped_at_rest().kept(wait).build();
        let part = PartialRun::new(&run, &Question::Thread(11)).unwrap();
        assert_eq!(Case::of_part(&part).lost.get(STOPPED), 600 * MS);
    }

    #[test]
    fn waiting_for_a_lock_before_the_stop_is_not_waiting_for_work() {
        let futex = crate::testing::FUTEX;
        let run = held("ptrace_stop")
            .wait(WaitSum { lock_like: 9, ..wait(10, futex, 0x10, 9, SECOND) })
            .kept(interval(11, futex, SECOND / 2, SECOND / 2, None))
            .interval(11, STOPPED, SECOND, SECOND, None)
            .build();
        assert_eq!(examine(&Case::new(&run)).unwrap().lost.get(STOPPED), 2 * SECOND);
    }

    #[test]
    fn a_stop_signal_is_named_with_its_sender() {
        let event = Event {
            time_ns: SECOND,
            kind: EventKind::Signal,
            tid: 10,
            tgid: 10,
            value: 19,
            detail: EventDetail::Sender { comm: "bash".into(), tid: 77 },
        };
        let child = Event { value: 17, ..event.clone() };
        let run = held("ptrace_stop").event(event.clone()).build();
        let traced = examine(&Case::new(&run)).unwrap().title;
        assert!(traced.contains("held by a tracer"), "it stops a program to begin: {traced}");
        let run = held("do_signal_stop").event(child).event(event).build();
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!(claim.title, "main-10 (pid 10) is stopped by SIGSTOP from bash (tid 77)");
        assert!(claim.chain[0].text.starts_with("threads were stopped by a signal 40 times"));
    }

    #[test]
    fn the_freezer_is_told_from_a_tracer() {
        let run = held("do_freezer_trap").build();
        let title = examine(&Case::new(&run)).unwrap().title;
        assert!(title.contains("is frozen until gcore"), "{title}");
    }

    #[test]
    fn not_claimed_for_throttling_or_a_full_run_queue() {
        let accounts = [(Account::Throttled, SECOND), (Account::RunnablePreempted, SECOND)];
        let run = RunBuilder::new().thread(10, 10, &accounts).build();
        assert!(examine(&Case::new(&run)).is_err());
    }
}
