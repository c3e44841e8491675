//! Which other programs ran when repeated events came: netstat, each time that sockets are slow.
//!
//! No cause by itself; the test is that of [`stats::coincidence`].

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use model::{Coincidence, Presence, Run};
use stats::coincidence::{Span, test};

use crate::patterns::recurring::{Occurrence, Recurring, recurring};

/// Kinds of events that are asked about, those that took most time.
const KINDS: usize = 8;
/// With fewer events, or times that a program ran, the test says nothing.
const FEWEST: usize = 5;
/// Above this it may well be chance.
const ALPHA: f64 = 0.01;
/// Trials of chance for each test made, so that p times the number of tests can be this small: one
/// in so many.
const DRAWS: usize = 2_000;
const DRAWS_MAX: usize = 100_000;
/// A run of a century is a damaged one.
const LENGTH_MAX: u64 = 1 << 61;

/// A program: its processes, and when they ran.
#[derive(Default)]
struct Program {
    pids: BTreeSet<u32>,
    times: Vec<Span>,
}

/// Recurring events of a run that come while another program runs. The p of each is that of the
/// stricter test or, times the number of tests made (Bonferroni), that of the other.
pub fn coincidences(run: &Run) -> Vec<Coincidence> {
    let length = run.length_ns();
    if length > LENGTH_MAX {
        return Vec::new();
    }
    let mut kinds: Vec<(Recurring, Vec<Span>)> =
        recurring(run).into_iter().map(|kind| blips(run, kind)).collect();
    kinds.retain(|(_, blips)| blips.len() >= FEWEST);
    kinds.sort_by_key(|(_, blips)| Reverse(blips.iter().map(|(from, to)| to - from).sum::<u64>()));
    kinds.truncate(KINDS);

    let mut pairs = Vec::new();
    for (kind, blips) in &kinds {
        let own: BTreeSet<u32> = kind.events.iter().map(|event| event.life.0).collect();
        for (comm, program) in programs(run, &own) {
            // One that runs more than half of the time meets everything.
            let busy: u64 = program.times.iter().map(|(from, to)| to - from).sum();
            if program.times.len() >= FEWEST && busy <= length / 2 {
                pairs.push((kind, blips, comm, program));
            }
        }
    }
    let tests = pairs.len();
    let draws = (DRAWS * tests).min(DRAWS_MAX);
    let mut found: Vec<Coincidence> = pairs
        .into_iter()
        .filter_map(|(kind, blips, comm, program)| {
            let found = test(blips, &program.times, length, draws)?;
            let p = found.p_shifted.max((found.p_reordered * tests as f64).min(1.0));
            (p < ALPHA).then(|| Coincidence {
                comm: comm.to_owned(),
                pids: program.pids.into_iter().collect(),
                events: kind.name.clone(),
                n: found.n as u64,
                seen: found.seen as u64,
                expected: found.expected,
                p,
            })
        })
        .collect();
    found.sort_by(|a, b| a.p.total_cmp(&b.p).then(b.seen.cmp(&a.seen)));
    found
}

/// The long ones of a kind of events, those that follow within a piece of [`Presence`] as one. A few
/// slow calls must not drown in many that were merely kept: the longest that make up half of the
/// time say what is long, and a quarter of that counts, too.
fn blips(run: &Run, kind: Recurring) -> (Recurring, Vec<Span>) {
    let since = |ns: u64| ns.saturating_sub(run.header.started_ns).min(run.length_ns());
    let span = |event: &Occurrence| (since(event.from_ns), since(event.to_ns.max(event.from_ns)));
    let mut spans: Vec<Span> = kind.events.iter().map(span).collect();
    let length = |span: &Span| (span.1 - span.0).max(1);
    spans.sort_by_key(|span| Reverse(length(span)));
    let half = spans.iter().fold(0, |sum: u64, span| sum.saturating_add(length(span))) / 2;
    let mut sum = 0u64;
    let mut longest = spans.iter().map(length).take_while(|length| {
        sum = sum.saturating_add(*length);
        sum - length <= half
    });
    let least = longest.by_ref().last().unwrap_or(0) / 4;
    spans.retain(|span| length(span) >= least);
    (kind, joined(spans, Presence::PIECE_NS))
}

/// The programs of the host by name, without those that the events are of, and the recorder.
fn programs<'a>(run: &'a Run, own: &BTreeSet<u32>) -> BTreeMap<&'a str, Program> {
    let mut programs = BTreeMap::<&str, Program>::new();
    let (start, length) = (run.header.started_ns, run.length_ns());
    let since = |ns: u64| ns.saturating_sub(start).min(length);
    let others = run.presences.iter();
    for one in others.filter(|p| p.tgid != run.header.recorder_pid && !own.contains(&p.tgid)) {
        let program = programs.entry(&one.comm).or_default();
        program.pids.insert(one.tgid);
        let times = one.intervals().map(|(from, to)| (since(from), since(to)));
        program.times.extend(times.filter(|(from, to)| from < to));
    }
    for program in programs.values_mut() {
        program.times = joined(std::mem::take(&mut program.times), 0);
    }
    programs
}

/// Sorted, and those at most `gap` apart as one.
fn joined(mut spans: Vec<Span>, gap: u64) -> Vec<Span> {
    spans.sort_unstable();
    spans.dedup_by(|next, last| {
        let joins = next.0 <= last.1.saturating_add(gap);
        if joins {
            last.1 = last.1.max(next.1);
        }
        joins
    });
    spans
}

#[cfg(test)]
mod tests {
    use model::{Event, EventDetail, EventKind};

    use super::*;
    use crate::testing::{RunBuilder, SECOND, presence};

    const MS: u64 = 1_000_000;

    /// A run of 20 s with 20 ms for the disk at each of `times`, in ms.
    fn run(times: &[u64]) -> RunBuilder {
        let run = RunBuilder::new().thread(10, 10, &[]).length(20 * SECOND);
        times.iter().fold(run, |run, ms| run.outlier_at(ms * MS))
    }

    fn uneven() -> Vec<u64> {
        (0..14).map(|n| 500 + n * 1_300 + n * n * 137 % 700).collect()
    }

    #[test]
    fn a_program_that_runs_whenever_it_is_slow_is_named_with_its_executions() {
        let mut builder = run(&uneven());
        for (n, ms) in uneven().into_iter().enumerate() {
            builder = builder.present(presence(100 + n as u32, "netstat", ms, ms + 30));
            // Every second, whatever happens, and all the time.
            builder = builder.present(presence(7, "cron", n as u64 * 1_000, n as u64 * 1_000 + 30));
            builder =
                builder.present(presence(8, "busy", n as u64 * 1_000, n as u64 * 1_000 + 990));
            // The one that is slow itself, and the recorder.
            builder = builder.present(presence(10, "main", ms, ms + 30));
            builder = builder.present(presence(1, "whylag", ms, ms + 30));
        }
        let found = coincidences(&builder.build());
        let [found] = &found[..] else { panic!("{found:#?}") };
        assert_eq!((found.comm.as_str(), found.pids.len()), ("netstat", 14));
        assert_eq!((found.n, found.seen), (14, 14));
        assert!(found.expected < 1.5 && found.p < 0.01, "{found:?}");
        assert!(found.events.contains("disk"), "{found:?}");
    }

    #[test]
    fn long_waits_for_spinlocks_are_asked_about_by_their_call() {
        let mut builder = RunBuilder::new().thread(10, 10, &[]).length(20 * SECOND);
        let detail = EventDetail::Call(model::Syscall::named("bind").unwrap());
        for ms in uneven() {
            builder = builder.present(presence(5, "netstat", ms, ms + 30)).event(Event {
                time_ns: ms * MS,
                kind: EventKind::Spin,
                tid: 10,
                tgid: 10,
                value: 20 * MS,
                detail: detail.clone(),
            });
        }
        let found = coincidences(&builder.build());
        let [found] = &found[..] else { panic!("{found:#?}") };
        assert_eq!((found.comm.as_str(), found.n, found.seen), ("netstat", 14, 14));
        assert_eq!(found.events, "spinning in bind of main-10");
    }

    #[test]
    fn short_intervals_that_were_merely_kept_do_not_count() {
        let mut builder = run(&uneven());
        for (n, ms) in uneven().into_iter().enumerate() {
            builder = builder.present(presence(5, "reader", ms, ms + 30));
            for more in 1..6 {
                let disk = model::Account::Blocked(model::Blocked::Disk);
                let at = n as u64 * 1_400 + more * 190;
                builder = builder.interval(10, disk, at * MS, 50_000, None);
            }
        }
        let found = coincidences(&builder.build());
        assert_eq!((found[0].comm.as_str(), found[0].seen), ("reader", found[0].n));
    }

    #[test]
    fn without_presence_or_with_few_events_nothing_is_said() {
        assert!(coincidences(&run(&uneven()).build()).is_empty());
        let few = run(&[500, 900, 2_700]).present(presence(5, "reader", 500, 520));
        assert!(coincidences(&few.build()).is_empty());
    }
}
