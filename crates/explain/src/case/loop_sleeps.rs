//! Sleeps of an event loop within a turn, while it has several requests in hand.
//!
//! A loop may read what all connections have sent before it works on the first of it. While it then waits in a
//! call for one of these (a child process, an answer, a timer), the others wait with it, though none is in the
//! queue of its socket.

use std::collections::BTreeMap;

use model::{Account, Blocked, Message, Outlier, OutlierKind};

use crate::case::spans::{Span, union};

/// In what a loop waits for nothing but what it works on. In poll, or in a futex as the schedulers of Go and
/// Erlang, it may wait for its next turn.
const WITHIN_A_TURN: [Account; 5] = [
    Account::Blocked(Blocked::ChildWait),
    Account::Blocked(Blocked::TimerSleep),
    Account::Blocked(Blocked::SocketReceive),
    Account::Blocked(Blocked::SocketConnect),
    Account::Blocked(Blocked::PipeRead),
];

const TIMER: Account = Account::Blocked(Blocked::TimerSleep);
/// A loop that sleeps between two looks at its sockets, instead of in poll, does so for less.
const BETWEEN_LOOKS_NS: u64 = 10_000_000;

/// Such sleeps by thread, without overlaps, in which two or more of these requests were in its hand.
pub(super) fn loop_sleeps(
    requests: &[&Message],
    by_thread: &BTreeMap<u32, Vec<&Outlier>>,
) -> BTreeMap<u32, Vec<Span>> {
    let mut in_hand = BTreeMap::<u32, Vec<Span>>::new();
    for message in requests {
        let worked = Span { from_ns: message.logic_start_ns, to_ns: message.end_ns };
        in_hand.entry(message.tid).or_default().push(worked);
    }
    let sleeps = |(tid, worked): (u32, Vec<Span>)| {
        let own = by_thread.get(&tid)?.iter().filter(|outlier| is_within_a_turn(outlier));
        let own = own.map(|outlier| Span {
            from_ns: outlier.start_ns,
            to_ns: outlier.start_ns.saturating_add(outlier.duration_ns),
        });
        let has_several = |sleep: &Span| {
            let covers = |one: &&Span| one.from_ns <= sleep.from_ns && sleep.to_ns <= one.to_ns;
            worked.iter().filter(covers).take(2).count() == 2
        };
        let spans = union(&own.filter(has_several).collect::<Vec<_>>());
        (!spans.is_empty()).then_some((tid, spans))
    };
    in_hand.into_iter().filter_map(sleeps).collect()
}

fn is_within_a_turn(outlier: &Outlier) -> bool {
    let account = outlier.blocked.map(Account::Blocked);
    outlier.kind == OutlierKind::OffCpu
        && account.is_some_and(|a| WITHIN_A_TURN.contains(&a))
        && (account != Some(TIMER) || outlier.duration_ns > BETWEEN_LOOKS_NS)
}
