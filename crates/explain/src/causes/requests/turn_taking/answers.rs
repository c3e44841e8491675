//! Requests of runtimes that have many of them on a thread (goroutines of Go, tasks of tokio, callbacks
//! of Node.js). Who lets whom go on is the runtime's own business, and the kernel sees none of it. But
//! where requests take turns, answers come one at a time: each about as long after the one before as a
//! turn takes, never sooner, however many requests are in progress.

use std::collections::{BTreeMap, BTreeSet};

use model::{Accounts, Message, Outlier};

use super::port::{Port, one_at_a_time, title, working};
use super::whole::whole;
use crate::case::Case;
use crate::case::lost::{Class, class};
use crate::case::requests::did;
use crate::case::slowest::cost;
use crate::case::spans::{Span, union};
use crate::cause::{Claim, OfRequests};
use crate::text::{count, duration, percent};

/// So many pairs of answers at least that follow each other.
const FEWEST: usize = 20;
/// Answers that come sooner than half a turn after the one before: one in so many at most. Of requests
/// that have nothing to do with each other one in three does.
const SOONER: usize = 50;
/// Of pairs this part at least follows each other by one turn: more time is between answers that were
/// not all kept.
const FOLLOWS: usize = 3;
/// The turns are to be so much more even than the times of whole requests, at least. Of requests that come at
/// even times and each take as long, the answers are as even as they come, or less.
const EVENER: f64 = 0.9;
/// The times between such answers spread as much as those of two requests.
const APART: f64 = std::f64::consts::SQRT_2;
/// How far the spread of so few turns may be from that by chance, in parts of it times the root of how
/// many there are: two standard errors of the middle half.
const CHANCE: f64 = 2.25;

/// How the spread of turns may compare with that of requests, at most.
fn evener(turns: usize) -> f64 {
    (APART * (1.0 - CHANCE / (turns.max(1) as f64).sqrt())).clamp(0.0, EVENER)
}

/// A port where answers come in turn.
struct InTurn {
    /// Of a turn, middle.
    turn_ns: u64,
    /// Middle half of them.
    from_ns: u64,
    to_ns: u64,
    pairs: usize,
    /// When a request was in progress.
    busy: Vec<Span>,
    readers: BTreeSet<u32>,
}

/// What requests waited that came behind others, of a port whose answers come in turn.
pub fn claim(case: &Case, port: &Port, by_thread: &BTreeMap<u32, Vec<&Outlier>>) -> Option<Claim> {
    let of_it = in_turn(case, port)?;
    let waited = |message: &Message| match message.program == port.program.program {
        true => of_it.wait(message).ns(),
        false => 0,
    };
    let slowest = cost(case.slowest(), |one| waited(&one.message));
    let all: u64 = port.kept.iter().map(|message| message.total_ns()).sum();
    let kept: u64 = port.kept.iter().map(|message| waited(message)).sum();
    let lost = of_it.slept(case, port, by_thread);
    let mut claim = Claim::new(title(case, port), lost, port.kept.len() as u64);
    claim.takes_idle = true;
    claim.requests = Some(OfRequests { slowest, of_all: kept as f64 / all.max(1) as f64 });
    claim.mechanism(format!(
        "{} answers one request at a time: every {} (half of them {} to {}), while {:.1} were in \
         progress on average",
        port.flow.name,
        duration(of_it.turn_ns),
        duration(of_it.from_ns),
        duration(of_it.to_ns),
        all as f64 / total(&of_it.busy).max(1) as f64
    ));
    if let Some(whole) = whole(port.flow, &port.kept, 0, waited) {
        claim.mechanism(whole.in_words());
    }
    of_it.trigger(case, port, &mut claim);
    claim.doubt(
        0.75,
        "which request lets which go on is the program's own business and not seen: that they take turns \
         follows from the times of their answers, and a limit to the rate looks the same",
    );
    Some(claim)
}

fn in_turn(case: &Case, port: &Port) -> Option<InTurn> {
    // Threads with a request at a time show who lets whom go on.
    let with_calls = port
        .kept
        .iter()
        .filter(|message| message.at_socket.as_ref().is_none_or(|at| !at.calls.is_empty()));
    if !one_at_a_time(&port.kept).is_empty() || with_calls.count() > port.kept.len() / 10 {
        return None;
    }
    let gaps = gaps(&port.kept);
    let turns = one_turn(&gaps, case.run.header.threshold_ns)?;
    let worked: Vec<f64> = port.kept.iter().map(|m| working(m).ns() as f64).collect();
    let turn = stats::quantile::median(&turns)?;
    let of_middle = |values: &[f64], q| stats::quantile::of(values, q);
    let spread = |values: &[f64]| Some(of_middle(values, 0.75)? - of_middle(values, 0.25)?);
    if stats::quantile::median(&worked)? < 1.5 * turn
        || spread(&turns)? > evener(turns.len()) * spread(&worked)?
    {
        return None;
    }
    let busy = union(&port.kept.iter().map(|m| working(m)).collect::<Vec<_>>());
    let readers: BTreeSet<u32> = port.kept.iter().map(|message| message.tid).collect();
    let of_it = InTurn {
        turn_ns: turn as u64,
        from_ns: of_middle(&turns, 0.25)? as u64,
        to_ns: of_middle(&turns, 0.75)? as u64,
        pairs: turns.len(),
        busy,
        readers,
    };
    of_it.is_no_lack_of_cpus(case, port).then_some(of_it)
}

/// Times between answers, where the next one's request was in progress at the one before.
fn gaps(kept: &[&Message]) -> Vec<f64> {
    let mut answers: Vec<Span> = kept.iter().map(|message| working(message)).collect();
    answers.sort_by_key(|span| span.to_ns);
    let pairs = answers.windows(2).filter(|two| two[1].from_ns < two[0].to_ns);
    pairs.map(|two| (two[1].to_ns - two[0].to_ns) as f64).collect()
}

/// Those of one turn, if there is such a thing.
fn one_turn(gaps: &[f64], least_ns: u64) -> Option<Vec<f64>> {
    let low = stats::quantile::of(gaps, 0.1)?;
    let lowest: Vec<f64> =
        gaps.iter().copied().filter(|gap| (low..=2.0 * low).contains(gap)).collect();
    let turn = stats::quantile::median(&lowest)?;
    let sooner = gaps.iter().filter(|gap| **gap < 0.5 * turn).count();
    let turns: Vec<f64> =
        gaps.iter().copied().filter(|gap| (0.5 * turn..1.5 * turn).contains(gap)).collect();
    let is_one = turn >= least_ns.max(1) as f64
        && sooner <= gaps.len() / SOONER
        && turns.len() >= FEWEST.max(gaps.len() / FOLLOWS);
    is_one.then_some(turns)
}

fn total(spans: &[Span]) -> u64 {
    spans.iter().map(|span| span.ns()).fold(0, u64::saturating_add)
}

impl InTurn {
    /// All but its own turn, which is the last.
    fn wait(&self, message: &Message) -> Span {
        let Span { from_ns, to_ns } = working(message);
        Span { from_ns, to_ns: to_ns.saturating_sub(self.turn_ns).max(from_ns) }
    }

    /// What those that read it slept while it waited.
    fn slept(
        &self,
        case: &Case,
        port: &Port,
        by_thread: &BTreeMap<u32, Vec<&Outlier>>,
    ) -> Accounts {
        let waits: Vec<Span> = port.kept.iter().map(|message| self.wait(message)).collect();
        let waits = union(&waits.into_iter().filter(|span| span.ns() > 0).collect::<Vec<_>>());
        let mut slept = Accounts::new();
        for reader in &self.readers {
            let own = by_thread.get(reader).map_or(&[][..], Vec::as_slice);
            for time in did(case.run, &waits, own) {
                if let Some(account) = time.account.filter(|account| class(*account) == Class::Idle)
                {
                    slept.add(account, time.ns);
                }
            }
        }
        slept
    }

    /// CPU time of the threads that meet the condition, and the time in which requests were known to be in
    /// progress.
    fn ran(&self, case: &Case, of: impl Fn(u32, u32) -> bool) -> u64 {
        let threads = case.run.threads.iter().filter(|thread| of(thread.tgid, thread.tid));
        let ran = threads.map(|thread| thread.accounts.sum_of(|a| class(a) == Class::Work));
        ran.fold(0, u64::saturating_add)
    }

    /// The part of the recording in which requests were in progress, by those kept and by how many there
    /// were.
    fn busy_ns(&self, case: &Case, port: &Port) -> u64 {
        let one_in = port.flow.ended as f64 / port.kept.len().max(1) as f64;
        let busy = (total(&self.busy) as f64 * one_in.max(1.0)) as u64;
        busy.min(case.run.length_ns())
    }

    /// Neither are the readers themselves at work all the time (an event loop that computes), nor several
    /// CPUs (requests that compute, and are in the queue of the runtime).
    fn is_no_lack_of_cpus(&self, case: &Case, port: &Port) -> bool {
        let busy = self.busy_ns(case, port);
        let readers = self.ran(case, |_, tid| self.readers.contains(&tid));
        let process = self.ran(case, |tgid, _| tgid == port.program.tgid);
        readers < busy / 2 && process < busy + busy / 5
    }

    fn trigger(&self, case: &Case, port: &Port, claim: &mut Claim) {
        let busy = self.busy_ns(case, port);
        let ran = self.ran(case, |tgid, _| tgid == port.program.tgid).min(busy);
        let what = match ran < busy / 2 {
            true => "whoever had the turn slept, or waited for something outside, for most of it",
            false => "whoever had the turn computed",
        };
        claim.trigger(format!(
            "while requests were in progress the threads of the process ran for {} of the time: {what}",
            percent(ran, busy)
        ));
        claim.saw(
            format!(
                "{} times an answer followed the one before by a turn, with its request in progress \
                 before that; at most one in {SOONER} came sooner than half a turn",
                count(self.pairs as u64)
            ),
            "first send of each answer",
        );
        let held = port.held(case).count();
        if held > 0 {
            claim.saw(
                format!("{} more requests look held open: none of them was kept", count(held)),
                "histogram of the port",
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use model::{Account, Blocked, HandOver, Run};

    use super::*;
    use crate::case::requests::intervals_by_thread;
    use crate::testing::requests::{MS, request, served};
    use crate::testing::{RunBuilder, SECOND, USER, interval};

    const POLL: Account = Account::Blocked(Blocked::Poll);

    /// A thread that sleeps in poll, with these requests (start and end in us).
    fn run_of(requests: impl Iterator<Item = (u64, u64)>, ran: u64) -> Run {
        let mut run = RunBuilder::new()
            .thread(11, 10, &[(POLL, 4 * SECOND - ran / 16), (USER, ran / 16)])
            .thread(12, 10, &[(POLL, 4 * SECOND - ran), (USER, ran)]);
        let mut all = Vec::new();
        for (n, (from_us, to_us)) in requests.enumerate() {
            let mut one = request(n as u64 % 8, 11, 0, 0, 0);
            (one.t0_ns, one.logic_start_ns, one.end_ns) =
                (from_us * 1_000, from_us * 1_000, to_us * 1_000);
            one.published[0].time_ns = one.end_ns;
            one.id = n as u64;
            one.at_socket.as_mut().unwrap().handed = Some(HandOver { tid: 12, time_ns: None });
            all.push(one);
        }
        let end = all.iter().map(|one| one.end_ns).max().unwrap();
        for from in (0..end / (10 * MS)).map(|n| n * 10 * MS) {
            run = run.kept(interval(11, POLL, from, 10 * MS, None));
        }
        served(run.build(), all)
    }

    /// 0.5 to 1.5, at random but always the same (splitmix64).
    fn noise(n: u64) -> f64 {
        let mut mixed = (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        0.5 + ((mixed ^ mixed >> 31) >> 40) as f64 / f64::from(1 << 24)
    }

    /// Eight clients, which think for 10 ms; one request at a time has what the others wait for, 15 ms
    /// and up to 0.4 ms.
    fn in_turn() -> Vec<(u64, u64)> {
        let mut free = 0;
        let mut ready: Vec<u64> = (0..8).map(|n| n * 1_000).collect();
        (0..200u64)
            .map(|n| {
                let from = ready.remove(0);
                let to = from.max(free) + 15_000 + (400.0 * noise(n)) as u64;
                free = to;
                ready.push(to + 9_000 + (2_000.0 * noise(n + 500)) as u64);
                ready.sort_unstable();
                (from, to)
            })
            .collect()
    }

    fn found(run: &Run) -> Option<Claim> {
        let (case, program) = (Case::new(run), &run.messages.programs[0]);
        let by_thread = intervals_by_thread(run);
        let port = Port::of(&case, program, &program.flows[0], &by_thread);
        claim(&case, &port, &by_thread)
    }

    #[test]
    fn answers_that_come_in_turn_are_of_requests_that_wait_for_each_other() {
        let run = run_of(in_turn().into_iter(), 0);
        let first = &crate::explain(&run).findings[0];
        assert_eq!(first.cause, "turn-taking");
        assert!(first.requests.as_ref().unwrap().share() > 0.7, "{:?}", first.requests);
        let chain: Vec<&str> = first.chain.iter().map(|link| link.text.as_str()).collect();
        assert!(
            chain.iter().any(|text| text.contains("one request at a time: every 15.")),
            "{chain:?}"
        );
        assert!(chain.iter().any(|text| text.contains("slept")), "{chain:?}");
        assert!(!first.doubts.is_empty());
    }

    #[test]
    fn a_sample_of_the_requests_is_enough() {
        let mut run = run_of(in_turn().into_iter(), 0);
        let mut n = 0;
        run.messages.slow.retain(|_| {
            n += 1;
            n % 5 != 0 && n % 7 != 0
        });
        assert!(found(&run).is_some());
    }

    /// Each sleeps for 120 ms, whatever the others do.
    fn apart(from: impl Fn(u64) -> u64) -> Run {
        let one = |n: u64| (from(n), from(n) + 120_000 + (400.0 * noise(n)) as u64);
        run_of((0..200).map(one), 0)
    }

    #[test]
    fn requests_that_each_take_their_time_take_no_turns() {
        assert!(found(&apart(|n| n * 16_000)).is_none(), "as even as they come");
        assert!(found(&apart(|n| n / 8 * 130_000 + n % 8 * 1_300)).is_none(), "eight at a time");
        let at_random = |n: u64| n * 16_000 + (30_000.0 * noise(n)) as u64;
        assert!(found(&apart(at_random)).is_none(), "at any time");
    }

    /// Turns of 15 ms, until the next tick of a runtime's timers, and clients that all think for as long: each
    /// request takes nearly as long as the others.
    #[test]
    fn turns_by_coarse_timers_are_turns() {
        let mut free = 0_u64;
        let mut ready: Vec<u64> = (0..8).map(|n| n * 1_000).collect();
        let turns = (0..200u64).map(|n| {
            let from = ready.remove(0);
            let tick = (from.max(free) + 15_000).next_multiple_of(1_000);
            free = tick + 400 + (100.0 * noise(n)) as u64;
            ready.push(free + 10_000 + (100.0 * noise(n + 500)) as u64);
            ready.sort_unstable();
            (from, free)
        });
        let turns: Vec<(u64, u64)> = turns.collect();
        assert!(found(&run_of(turns.into_iter(), 0)).is_some());
    }

    #[test]
    fn of_few_turns_more_may_be_chance() {
        assert!((0.69..0.71).contains(&evener(20)));
        assert!(evener(100) <= EVENER && evener(1) <= 0.0);
    }

    #[test]
    fn who_computes_on_all_cpus_lacks_these() {
        assert!(
            found(&run_of(in_turn().into_iter(), 3 * SECOND)).is_some(),
            "one thread of a pool"
        );
        let mut run = run_of(in_turn().into_iter(), 0);
        for thread in &mut run.threads {
            thread.accounts = [(USER, 3 * SECOND), (POLL, SECOND)].into_iter().collect();
        }
        assert!(found(&run).is_none());
    }

    #[test]
    fn requests_with_a_thread_each_show_who_lets_them_go_on() {
        let mut run = run_of(in_turn().into_iter(), 0);
        for one in &mut run.messages.slow {
            one.at_socket.as_mut().unwrap().handed = None;
            one.tid = 20 + one.at_socket.as_ref().unwrap().link as u32;
        }
        assert!(found(&run).is_none());
    }
}
