//! Turns: what threads do one at a time, how often, and for how long.

use model::{ChainEnd, Turns, chain_end};

use crate::case::beyond::Whose;
use crate::case::lock_word::LockWord;
use crate::text::{count, duration};

/// The turns of those that wait for `word`, called `lock`, in a run of that length; `None` if the
/// length of none is known.
pub(crate) fn turns(word: &LockWord, lock: String, length_ns: u64) -> Option<Turns> {
    let mean_ns = word.turn_ns.checked_div(word.turns).filter(|ns| *ns > 0)?;
    let seconds = length_ns.max(1) as f64 / 1e9;
    let per_second = word.by_thread as f64 / seconds;
    Some(Turns {
        lock,
        count: word.by_thread,
        per_second,
        mean_ns,
        seen_whole: word.turns,
        waiting: word.ns as f64 / 1e9 / seconds,
        half_as_long_per_second: 2.0 * per_second,
        ends: word.ends.by_end().filter(|(end, _)| *end != ChainEnd::Unknown).collect(),
    })
}

/// `95 turns a second that others waited for, 10.3 ms each (...)`. What they
/// consist of was the doing of `whose`.
pub(crate) fn in_words(turns: &Turns, whose: &Whose) -> String {
    let ends = chain_end::in_words(&turns.ends);
    let whose = whose.or_beyond("whose turn it was");
    let consists = if ends.is_empty() { String::new() } else { format!(": {whose} {ends}") };
    format!(
        "{}: {} turns a second that others waited for; a turn takes {} on average (of {} seen \
         whole){consists}; {:.1} threads wait on average; a turn half as long would let up to {} \
         a second through",
        turns.lock,
        rate(turns.per_second),
        duration(turns.mean_ns),
        count(turns.seen_whole),
        turns.waiting,
        rate(turns.half_as_long_per_second),
    )
}

fn rate(per_second: f64) -> String {
    if per_second < 10.0 { format!("{per_second:.1}") } else { count(per_second.round() as u64) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::lost::lock_words;
    use crate::case::purposes::Purposes;
    use crate::testing::{FUTEX, RunBuilder, SECOND, wait};
    use model::WaitSum;

    fn of(seen: u64, turn_ns: u64) -> Option<Turns> {
        let sum = WaitSum {
            lock_like: 200,
            waker_tgid: 1,
            turns: seen,
            turn_ns,
            ends: [(ChainEnd::Timer, 3 * SECOND)].into(),
            ..wait(1, FUTEX, 0x10, 200, 3 * SECOND)
        };
        let run = RunBuilder::new().wait(sum).build();
        turns(&lock_words(&run, &Purposes::default())[0], "lock".to_owned(), 2 * SECOND)
    }

    #[test]
    fn turns_have_a_rate_a_length_and_those_that_wait() {
        let turns = of(100, SECOND).unwrap();
        assert_eq!((turns.count, turns.per_second), (200, 100.0));
        assert_eq!((turns.mean_ns, turns.waiting), (SECOND / 100, 1.5));
        let words = in_words(&turns, &Whose::Holders);
        assert!(words.contains("lock: 100 turns a second"), "{words}");
        assert!(words.contains("takes 10.0 ms"), "{words}");
        assert!(words.contains("slept by a timer of its own for 100"), "{words}");
        assert!(words.ends_with("up to 200 a second through"), "{words}");
    }

    #[test]
    fn of_turns_that_were_not_seen_nothing_is_said() {
        assert_eq!(of(0, 0), None);
    }
}
