//! rate-limit-burst: a thread that receives also sends, within a limit of the rate, and a burst
//! makes it wait for the limit, while what it should receive piles up.
//!
//! The limiter is the program's own, and waits by calls that do nothing but wait (sched_yield,
//! nanosleep). The recorder keeps such waits that are followed by a send.
//!
//! # Evidence
//!
//! Waits in calls that do nothing else (sched_yield, nanosleep), one after the other, that end with
//! a send of the same thread, which also receives. Of all sends some are held back and most are
//! not: a limit, not a pace. The times between the ends show the limiter's interval. One sleep of
//! always the same length before each is the thread's own (a handler that sleeps), and ends that
//! come evenly over all of the run are a pace.
//!
//! # Without whylag
//!
//!     strace -f -r -e trace=sched_yield,nanosleep,clock_nanosleep,sendto,sendmsg,sendmmsg -p PID
//!
//! # Sources
//!
//! sched_yield(2); clock_nanosleep(2).

use std::collections::BTreeMap;

use model::{Account, Accounts, Blocked, Event, RecorderPart, Run, ThreadAccounts};

use crate::case::Case;
use crate::case::call_counts::calls_recorded_ns;
use crate::case::held_sends::{self, Sends, interval_ns, kept};
use crate::cause::{Absent, Cause, Claim, LookAlike, Needs, Verdict};
use crate::causes::ids;
use crate::causes::network::receivers::receives;
use crate::patterns::rhythm;
use crate::text::{count, counted, duration, mean};

pub const CAUSE: Cause = Cause {
    id: ids::RATE_LIMIT_BURST,
    title: "a receiving thread waits for its own limit of what it sends",
    fix: "Take the rate limit off the thread that receives: hand what is to be sent to another \
          thread, or send later what the limit does not allow now. Or spread the burst, or raise \
          the limit.",
    reproduce: "mysteries/bin/rate-limit-burst-faulty 5",
    needs: Needs::parts(&[RecorderPart::Threads, RecorderPart::SystemCalls]).and_histograms(),
    look_alikes: &[
        LookAlike {
            cause: ids::YIELD_SPIN,
            tell_apart: "see what follows the calls of sched_yield ('strace -f -p PID'): a limit \
                         of the rate ends each series with a send of the same thread, a lock does \
                         not",
            mutual: true,
        },
        LookAlike {
            cause: ids::CGROUP_THROTTLE,
            tell_apart: "read nr_throttled in cpu.stat of the program's cgroup before and after: a \
                         quota counts there, a limit of the program's own does not",
            mutual: false,
        },
        LookAlike {
            cause: ids::CPU_RUNQUEUE,
            tell_apart: "raise the limit of the sending rate and record again: waiting for a CPU \
                         that stays is the run queue",
            mutual: false,
        },
    ],
    symptom: false,
    examine,
};

const FEWEST: usize = 3;

fn examine(case: &Case) -> Verdict {
    let all: Vec<&Event> = kept(case.run).collect();
    if all.is_empty() {
        return Err(Absent(format!(
            "no thread held a send back for {} or longer",
            duration(case.run.header.threshold_ns)
        )));
    }
    let Some((tgid, events)) = of_receivers(case.run, &all) else {
        return Err(Absent(format!(
            "{} held back, but by threads that receive nothing",
            counted(all.len() as u64, "send")
        )));
    };
    let call = events.first().and_then(|event| held_sends::waited_in(event));
    let sends = call.map_or_else(Sends::default, |call| Sends::of(case.whole(), tgid, call));
    if !sends.reach_a_limit() || events.len() < FEWEST {
        return Err(Absent(format!(
            "of {} of receiving threads {} were held back, {} of them for {} or longer: none now \
             and then, or a pace that is kept",
            counted(sends.count, "send"),
            count(sends.held),
            count(events.len() as u64),
            duration(case.run.header.threshold_ns)
        )));
    }
    if let Some(why) = held_sends::deliberate(&events, calls_recorded_ns(case.whole())) {
        return Err(Absent(format!("{} held back, {why}", counted(events.len() as u64, "send"))));
    }

    let ns = total(events.iter().copied());
    let (lost, sleeps) = lost(case.run, &events);
    let names: Vec<String> = threads(case.run, &events).into_iter().take(3).collect();
    let title = format!(
        "{} waits for a limit of its own sending rate, and receives nothing meanwhile",
        case.process_name(tgid)
    );
    let mut claim = Claim::new(title, lost, events.len() as u64);
    claim.takes_idle = sleeps;
    claim.mechanism(format!(
        "{} held {} back for {} and longer: {} each, {} in all",
        names.join(", "),
        counted(events.len() as u64, "send"),
        duration(case.run.header.threshold_ns),
        mean(ns, events.len() as u64),
        duration(ns)
    ));
    claim.trigger(reached(case.whole(), tgid, &sends));
    claim.saw(
        format!("longest: {}", longest(case, &events)),
        "calls that only wait, followed by a send",
    );
    if let Some(interval) = interval_ns(&events) {
        let text = format!(
            "they end {} or a multiple of it apart: a limiter's interval",
            duration(interval)
        );
        claim.saw(text, "ends of the waits");
    }
    claim.rule_out(
        ids::YIELD_SPIN,
        "each of these waits ended with a send of the same thread, not with a lock".to_owned(),
    );
    Ok(claim)
}

/// That, and when, sends of a process reach a limit of its own, in words.
pub(crate) fn reached(run: &Run, tgid: u32, sends: &Sends) -> String {
    let times: Vec<u64> =
        kept(run).filter(|event| event.tgid == tgid).map(|event| event.time_ns).collect();
    let when = rhythm::of_second(run, &times);
    format!(
        "bursts reach a limit of the sending rate: {} of {} were held back, {} each, in {} of \
         the run{}",
        count(sends.held),
        counted(sends.count, "send"),
        mean(sends.held_ns, sends.held),
        counted(sends.seconds, "second"),
        when.map_or_else(String::new, |when| format!("; {when}"))
    )
}

/// The process whose receiving threads held sends back longest, and these sends.
fn of_receivers<'a>(run: &'a Run, all: &[&'a Event]) -> Option<(u32, Vec<&'a Event>)> {
    let mut processes = BTreeMap::<u32, Vec<&Event>>::new();
    for event in all {
        if thread_of(run, event).is_some_and(receives) {
            processes.entry(event.tgid).or_default().push(event);
        }
    }
    processes.into_iter().max_by_key(|(_, events)| total(events.iter().copied()))
}

fn total<'a>(events: impl Iterator<Item = &'a Event>) -> u64 {
    events.fold(0, |sum, event| sum.saturating_add(event.value))
}

fn thread_of<'a>(run: &'a Run, event: &Event) -> Option<&'a ThreadAccounts> {
    run.threads.iter().find(|t| t.tid == event.tid && t.first_ns <= event.time_ns)
}

/// `rx-0 (tid 12)`, each once.
fn threads(run: &Run, events: &[&Event]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for thread in events.iter().filter_map(|event| thread_of(run, event)) {
        let name = format!("{} (tid {})", thread.comm, thread.tid);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The accounts of the waits, and whether they were sleeps. What a loop of sched_yield takes beyond
/// the calls is the thread's own work.
fn lost(run: &Run, events: &[&Event]) -> (Accounts, bool) {
    let mut by_thread = BTreeMap::<(u32, Account), u64>::new();
    for event in events {
        let Some(account) = held_sends::account(event) else { continue };
        let sum = by_thread.entry((event.tid, account)).or_default();
        *sum = sum.saturating_add(event.value);
    }
    let sleep = Account::Blocked(Blocked::TimerSleep);
    let is_sleep = |event: &&Event| held_sends::account(event) == Some(sleep);
    let asleep = total(events.iter().copied().filter(is_sleep));
    // A claim takes either from the time that threads chose to wait, or from the rest.
    let sleeps = asleep > total(events.iter().copied()) / 2;
    let mut lost = Accounts::new();
    for ((tid, account), ns) in by_thread.into_iter().filter(|((_, a), _)| (*a == sleep) == sleeps)
    {
        let Some(thread) = run.threads.iter().find(|thread| thread.tid == tid) else { continue };
        let in_calls = thread.accounts.get(account).min(ns);
        lost.add(account, in_calls);
        if !sleeps {
            lost.add(Account::User, thread.accounts.get(Account::User).min(ns - in_calls));
        }
    }
    (lost, sleeps)
}

fn longest(case: &Case, events: &[&Event]) -> String {
    let longest = events.iter().max_by_key(|event| event.value);
    longest.map_or_else(String::new, |event| {
        format!(
            "{} in {}, {} into the run",
            duration(event.value),
            event.detail,
            duration(event.time_ns.saturating_sub(case.whole().header.started_ns))
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RunBuilder, SECOND, USER, held_send};
    use model::{Metric, Syscall};

    const MS: u64 = 1_000_000;

    fn named(name: &str) -> Syscall {
        Syscall::named(name).unwrap()
    }

    /// A thread that sends, and is held back three times at each of five seconds.
    fn run(receives: bool, sends: usize) -> RunBuilder {
        let yields = Account::Syscall(named("sched_yield"));
        let receive = Account::Syscall(named("recvfrom"));
        let accounts = [(USER, SECOND), (yields, SECOND), (receive, u64::from(receives) * SECOND)];
        let held = Metric::HeldSend(named("sched_yield"));
        let mut run = RunBuilder::new()
            .length(6 * SECOND)
            .thread(10, 10, &accounts)
            .values(held, 5, &[40 * MS; 15])
            .values(Metric::Syscall(named("sendto")), 5, &vec![2_000; sends]);
        for second in 0..5 {
            for n in 0..3 {
                run = run.event(held_send(10, second * SECOND + (14 + 50 * n) * MS, 40 * MS));
            }
        }
        run
    }

    #[test]
    fn claimed_is_what_the_receiving_thread_waited_for_its_limit() {
        let run = run(true, 4_000).build();
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!((claim.lost.total(), claim.waits), (15 * 40 * MS, 15));
        assert!(claim.chain[1].text.contains("15 of 4,000 sends"), "{:?}", claim.chain);
        assert!(
            claim.evidence.iter().any(|e| e.text.contains("50.0 ms or a multiple of it apart")),
            "{claim:?}"
        );
        assert_eq!(crate::explain(&run).findings[0].cause, CAUSE.id.as_str());
    }

    #[test]
    fn a_thread_that_only_sends_may_wait() {
        let run = run(false, 4_000).build();
        assert!(examine(&Case::new(&run)).unwrap_err().0.contains("receive nothing"));
    }

    #[test]
    fn a_handler_that_sleeps_reaches_no_limit() {
        let mut run = run(true, 4_000).build();
        for event in &mut run.events {
            let call = named("clock_nanosleep");
            event.detail = model::EventDetail::Waits { call, times: 1 };
        }
        for second in &mut run.seconds {
            if matches!(second.metric, Metric::HeldSend(_)) {
                second.metric = Metric::HeldSend(named("clock_nanosleep"));
            }
        }
        let Absent(missing) = examine(&Case::new(&run)).unwrap_err();
        assert!(missing.contains("one sleep of the same length"), "{missing}");
    }

    #[test]
    fn a_pace_is_no_limit() {
        let run = run(true, 20).build();
        assert!(examine(&Case::new(&run)).unwrap_err().0.contains("pace"));
    }
}
