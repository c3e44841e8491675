//! queueing: messages waited because the thread that handles them was busy with those before.
//!
//! Known only of programs that trace their messages. The time is that of the thread that worked
//! meanwhile, each nanosecond once however many messages waited for it. What it was blocked for is
//! not claimed: that has a cause of its own, and queueing is how one slow message becomes many.
//!
//! # Evidence
//!
//! The program's own trace of its messages: of slow messages the time from their arrival until
//! their thread began with them, while it worked on earlier ones; the earlier ones that took five
//! times the median or longer; and how long fast messages waited in the same way, as a control
//! group.
//!
//! # Without whylag
//!
//!     ss -tuan                                   # Recv-Q: bytes that the program has not read yet
//!     strace -f -r -e trace=read,recvfrom,recvmsg -p PID   # -r: how long after the call before it
//!     perf sched record -p PID -- sleep 5; perf sched timehist   # the thread ran all the time
//!
//! # Sources
//!
//! Kleinrock, Queueing Systems, volume 1; Li and others, Tales of the Tail (SoCC 2014).

use std::collections::BTreeMap;

use model::histogram::PRECISION_KERNEL;
use model::{
    Accounts, Histogram, Message, MessageAhead, MessageMetric, RecorderPart, SegmentKind,
    TracedProgram,
};

use crate::case::Case;
use crate::case::lost::{Class, class};
use crate::case::spans::{Span, union};
use crate::cause::{Absent, Cause, Claim, Needs, Verdict};
use crate::causes::ids;
use crate::part::clip::clips;
use crate::text::{count, counted, duration, mean, percent};

pub const CAUSE: Cause = Cause {
    id: ids::QUEUEING,
    title: "messages waited behind earlier ones for the thread that handles them",
    fix: "Take the long messages out of the line: give them a thread of their own, or cut them into \
          parts that let others pass. Where there is no long one and messages come faster than they \
          are handled, share the line among several threads, or handle more of them at once.",
    reproduce: "mysteries/bin/queueing-faulty 5",
    needs: Needs::parts(&[RecorderPart::Threads]),
    look_alikes: &[],
    symptom: true,
    examine,
};

/// Slow messages that wait less than this part of their time wait for something else.
const PART: u64 = 20;
/// A message ahead is long if its logic takes so many times the median.
const LONG: u64 = 5;

/// A message ahead, as (program, flow, id): it, how many waited for it, and how long together.
type Head<'a> = (&'a (u32, u32, u64), &'a (MessageAhead, u64, u64));

/// What slow messages waited for.
#[derive(Default)]
struct Waits<'a> {
    messages: Vec<&'a Message>,
    /// By thread: the times, as they are reported.
    spans: BTreeMap<u32, Vec<Span>>,
    /// As in [`Head`].
    ahead: BTreeMap<(u32, u32, u64), (MessageAhead, u64, u64)>,
    ns: u64,
}

fn examine(case: &Case) -> Verdict {
    let messages = &case.run.messages;
    if messages.programs.iter().all(|p| messages.is_from_sockets(p.program)) {
        return Err(Absent("no program traced its messages".to_owned()));
    }
    let waits = waits(&messages.slow);
    let slow_ns = messages.slow_traced().map(Message::total_ns).fold(0u64, u64::saturating_add);
    if waits.ns == 0 || waits.ns < slow_ns / PART {
        return Err(Absent(format!(
            "of the {} that {} took, {} was waiting behind earlier ones",
            duration(slow_ns),
            counted(messages.slow_traced().count() as u64, "slow message"),
            percent(waits.ns, slow_ns)
        )));
    }
    let mut lost = Accounts::default();
    let mut union_ns = 0;
    for (tid, spans) in &waits.spans {
        let spans = union(spans);
        union_ns += spans.iter().map(|span| span.ns()).sum::<u64>();
        lost.merge(&worked(case, *tid, &spans));
    }
    if lost.total() == 0 {
        return Err(Absent(format!(
            "slow messages waited {} behind earlier ones, but those were not handled meanwhile: \
             their thread was blocked, or was not recorded",
            duration(waits.ns)
        )));
    }

    let (title, trigger) = heads(case, &waits);
    let mut claim = Claim::new(title, lost, waits.messages.len() as u64);
    claim.mechanism(format!(
        "a thread handles one message after the other: in {} of its time others waited, {} with \
         {} of waiting together, {} of all the time that slow messages took",
        duration(union_ns),
        counted(waits.messages.len() as u64, "slow message"),
        duration(waits.ns),
        percent(waits.ns, slow_ns)
    ));
    claim.trigger(trigger);
    evidence(case, &waits, &mut claim);
    Ok(claim)
}

fn evidence(case: &Case, waits: &Waits, claim: &mut Claim) {
    let messages = &case.run.messages;
    claim.saw(against_fast(case, waits), "the program's trace of its messages");
    claim.saw_if(depths(case), "the program's trace of its messages");
    let waited = case.accounts.sum_of(|account| account.is_waiting_for_cpu());
    claim.rule_out(
        ids::CPU_RUNQUEUE,
        format!(
            "only time in which the thread ran is counted; all waiting for a CPU is {} of the wall \
             time",
            percent(waited, case.wall_ns)
        ),
    );
    if (case.run.outliers.len() as u64) < case.run.outlier_count {
        claim.doubt(
            0.8,
            "not all waits of the thread were looked at; what they took counts as work",
        );
    }
    if (messages.slow.len() as u64) < messages.slow_count {
        claim.doubt(0.9, "not all slow messages were kept");
    }
}

fn waits(slow: &[Message]) -> Waits<'_> {
    let mut waits = Waits::default();
    for message in slow {
        let mut waited = false;
        for segment in message.segments() {
            let SegmentKind::Behind(ahead) = segment.kind else { continue };
            waited = true;
            waits.ns = waits.ns.saturating_add(segment.ns());
            let span = Span { from_ns: segment.from_ns, to_ns: segment.to_ns };
            waits.spans.entry(message.tid).or_default().push(span);
            let key = (message.program, ahead.flow, ahead.id);
            let (_, number, ns) = waits.ahead.entry(key).or_insert((ahead, 0, 0));
            *number += 1;
            *ns = ns.saturating_add(segment.ns());
        }
        if waited {
            waits.messages.push(message);
        }
    }
    waits
}

/// What a thread did on a CPU for itself in these times. Where no interval was kept, it ran.
fn worked(case: &Case, tid: u32, spans: &[Span]) -> Accounts {
    let Some(thread) = case.run.threads.iter().find(|thread| thread.tid == tid) else {
        return Accounts::default();
    };
    let own: Vec<_> = case.run.outliers.iter().filter(|outlier| outlier.tid == tid).collect();
    let mut worked = Accounts::default();
    for span in spans {
        let mut rest = span.ns();
        for clip in clips(own.iter().copied(), span.from_ns, span.to_ns) {
            rest = rest.saturating_sub(clip.accounts.total());
            for (account, ns) in clip.accounts.iter().filter(|(a, _)| class(*a) == Class::Work) {
                worked.add(account, ns);
            }
        }
        worked.add(thread.accounts.own_code(), rest);
    }
    worked.iter().map(|(account, ns)| (account, ns.min(thread.accounts.get(account)))).collect()
}

/// Title and trigger: a few long messages that others stood behind, or many ordinary ones.
fn heads(case: &Case, waits: &Waits) -> (String, String) {
    let messages = &case.run.messages;
    let medians: BTreeMap<u32, u64> =
        messages.programs.iter().map(|p| (p.program, median_logic(case, p))).collect();
    let median = |program: u32| medians.get(&program).copied().unwrap_or(0);
    let (long, ordinary): (Vec<_>, Vec<_>) =
        waits.ahead.iter().partition(|((program, ..), (ahead, ..))| {
            logic_ns(ahead) >= LONG.saturating_mul(median(*program))
        });
    let waited = |heads: &[Head]| heads.iter().map(|(_, (_, _, ns))| *ns).sum::<u64>();
    let most_expensive = long.iter().max_by_key(|(_, (_, _, ns))| *ns);
    let Some(((program, flow, id), (ahead, number, ns))) =
        most_expensive.filter(|_| waited(&long) >= waited(&ordinary))
    else {
        return (
            "messages came faster than their thread handles them".to_owned(),
            format!(
                "{} stood in front of slow ones, none of them long: they came together",
                counted(waits.ahead.len() as u64, "message")
            ),
        );
    };
    let title = format!(
        "{} waited behind {} that took at least {LONG} times as long as the median",
        counted(waits.messages.len() as u64, "message"),
        counted(long.len() as u64, "other"),
    );
    let name = messages.flow(*program, *flow).map_or("message", |flow| &flow.name);
    let trigger = format!(
        "{name} {id} took {} of logic, and {} waited {} for it together; the median is {}",
        duration(logic_ns(ahead)),
        counted(*number, "message"),
        duration(*ns),
        duration(median(*program))
    );
    (title, trigger)
}

fn logic_ns(ahead: &MessageAhead) -> u64 {
    ahead.end_ns.saturating_sub(ahead.logic_start_ns)
}

/// Median logic of all messages of a program.
fn median_logic(case: &Case, program: &TracedProgram) -> u64 {
    let mut all = Histogram::new(PRECISION_KERNEL);
    for flow in &program.flows {
        let logic = MessageMetric::Logic;
        all.merge(&case.run.messages.histogram(program.program, flow.flow, logic));
    }
    all.quantile(0.5).unwrap_or(0)
}

/// The control group: did the fast messages wait, too?
fn against_fast(case: &Case, waits: &Waits) -> String {
    let fast = &case.run.messages.fast;
    let behind = |message: &Message| {
        let segments = message.segments().into_iter();
        segments.filter(|s| matches!(s.kind, SegmentKind::Behind(_))).map(|s| s.ns()).sum::<u64>()
    };
    let fast_ns: u64 = fast.iter().map(behind).sum();
    format!(
        "behind earlier messages waited: slow ones {} on average (n = {}), fast ones {} (n = {})",
        mean(waits.ns, waits.messages.len() as u64),
        count(waits.messages.len() as u64),
        mean(fast_ns, fast.len() as u64),
        count(fast.len() as u64)
    )
}

/// How many messages waited behind those that were slow and those that were not, where it was reported.
fn depths(case: &Case) -> Option<String> {
    let median = |messages: &[Message]| {
        let mut depths: Vec<u32> = messages.iter().filter_map(|message| message.depth).collect();
        depths.sort_unstable();
        depths.get(depths.len() / 2).copied()
    };
    let slow = median(&case.run.messages.slow)?;
    let fast = median(&case.run.messages.fast)?;
    Some(format!(
        "messages that still waited when logic began, median: {} behind a slow one, {} behind a \
         fast one",
        count(slow.into()),
        count(fast.into())
    ))
}

#[cfg(test)]
mod tests {
    use model::{Account, Blocked, MessageFlow, MessageSecond, Run};

    use super::*;
    use crate::testing::{RunBuilder, SECOND, USER, interval};

    const MS: u64 = 1_000_000;
    const DISK: Account = Account::Blocked(Blocked::Disk);

    fn message(id: u64, t0_ns: u64, logic_start_ns: u64, ahead: Vec<MessageAhead>) -> Message {
        Message {
            program: 0,
            flow: 1,
            id,
            sample: None,
            t0_ns,
            logic_start_ns,
            end_ns: logic_start_ns + MS,
            tid: 11,
            points: Vec::new(),
            published: Vec::new(),
            publishes: 0,
            longest_gap_ns: 0,
            depth: Some(7),
            ahead,
            kept_ns: 0,
            at_socket: None,
        }
    }

    fn ahead(id: u64, logic_start_ns: u64, end_ns: u64) -> MessageAhead {
        MessageAhead { flow: 1, id, logic_start_ns, end_ns }
    }

    /// Thread 11 works for 2 of 4 s. Message 1 has it from 100 to 500 ms; messages 2 and 3 come at
    /// 200 and 300 ms and wait for it, and 3 for 2.
    fn behind_a_long_one(mut run: Run) -> Run {
        run.messages.programs = vec![TracedProgram {
            tgid: 10,
            flows: vec![MessageFlow { flow: 1, name: "order".into(), ..MessageFlow::default() }],
            ..TracedProgram::default()
        }];
        let mut logic = Histogram::new(5);
        (0..100).for_each(|_| logic.record(MS));
        let metric = MessageMetric::Logic;
        run.messages.seconds =
            vec![MessageSecond { program: 0, flow: 1, metric, start_ns: 0, histogram: logic }];
        let long = ahead(1, 100 * MS, 500 * MS);
        run.messages.slow = vec![
            message(2, 200 * MS, 500 * MS, vec![long]),
            message(3, 300 * MS, 501 * MS, vec![long, ahead(2, 500 * MS, 501 * MS)]),
        ];
        run.messages.slow_count = 2;
        run.messages.fast =
            vec![Message { sample: Some(0), depth: Some(0), ..message(9, 0, 0, vec![]) }];
        run
    }

    fn engine() -> RunBuilder {
        RunBuilder::new().thread(11, 10, &[(USER, 2 * SECOND), (DISK, 2 * SECOND)])
    }

    #[test]
    fn the_time_of_the_thread_counts_once_however_many_wait() {
        let run = behind_a_long_one(engine().build());
        let claim = examine(&Case::new(&run)).unwrap();
        // From 200 ms, when message 2 came, to 501 ms.
        assert_eq!(claim.lost.get(USER), 301 * MS);
        assert_eq!(claim.waits, 2);
        assert!(claim.title.contains("2 messages waited behind 1 other"), "{}", claim.title);
        let trigger = &claim.chain[1].text;
        assert!(trigger.contains("order 1 took 400 ms"), "{trigger}");
        assert!(trigger.contains("2 messages waited 500 ms"), "{trigger}");
        assert!(claim.evidence[0].text.contains("fast ones 0 ns (n = 1)"), "{:?}", claim.evidence);
        assert!(claim.evidence[1].text.contains("7 behind a slow one, 0 behind"));
    }

    #[test]
    fn what_the_thread_was_blocked_for_is_left_to_its_own_cause() {
        let mut asleep = interval(11, DISK, 250 * MS, 200 * MS, None);
        asleep.breakdown = [(DISK, 200 * MS)].into_iter().collect();
        let run = behind_a_long_one(engine().kept(asleep).build());
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!((claim.lost.get(USER), claim.lost.total()), (101 * MS, 101 * MS));
    }

    #[test]
    fn many_ordinary_messages_ahead_are_a_burst() {
        let mut run = behind_a_long_one(engine().build());
        let burst: Vec<_> =
            (0..16).map(|k| ahead(100 + k, (200 + k) * MS, (201 + k) * MS)).collect();
        run.messages.slow = vec![message(2, 200 * MS, 216 * MS, burst)];
        let claim = examine(&Case::new(&run)).unwrap();
        assert!(claim.title.contains("faster than their thread"), "{}", claim.title);
        assert!(claim.chain[1].text.starts_with("16 messages"), "{:?}", claim.chain);
        assert_eq!(claim.lost.get(USER), 16 * MS);
    }

    #[test]
    fn messages_that_are_slow_by_themselves_are_not_this() {
        let mut run = behind_a_long_one(engine().build());
        run.messages.slow =
            vec![Message { end_ns: SECOND, ..message(2, 0, MS, vec![ahead(1, 0, MS)]) }];
        let Absent(missing) = examine(&Case::new(&run)).unwrap_err();
        assert!(missing.contains("1 slow message"), "{missing}");
    }

    #[test]
    fn programs_without_a_trace_are_not_judged() {
        let run = engine().build();
        assert!(examine(&Case::new(&run)).unwrap_err().0.contains("no program traced"));
    }
}
