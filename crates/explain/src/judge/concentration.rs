//! When a claim's time was lost, if nearly all of it was at one time or keeps to the second.
//!
//! Read from the intervals kept whole, so only where these have most of the claim, and the claim has
//! most of its accounts.

use model::{Concentration, OutlierKind};

use crate::case::Case;
use crate::case::lost::{Class, class};
use crate::cause::Claim;
use crate::patterns::rhythm;
use crate::text::{count, duration, percent};
use model::units::moment;

/// The part of the time that has to be close together, in hundredths.
const PART: u64 = 90;
/// Close together: within this part of the run.
const CLOSE: u64 = 10;
/// All of it at one time: within this part of the run.
const AT_ONCE: u64 = 20;
/// What is this part of the run from its end is at its end.
const EDGE: u64 = 50;
/// Phases that are this unlikely by chance keep to the second.
const ALPHA: f64 = 1e-4;
const SECOND: u64 = 1_000_000_000;

/// A wait: its start, its end, and its time in the claim's accounts.
type Piece = (u64, u64, u64);

/// When most of the claim's time was lost; `None` if that was at no special time, or is not known.
pub(super) fn of(case: &Case, claim: &Claim) -> Option<Concentration> {
    let pieces = pieces(case, claim)?;
    let length = case.run.length_ns();
    let begin = case.run.header.started_ns;
    let (from, to, within, all) = densest(&pieces)?;
    if to - from <= length / CLOSE {
        let (from_ns, to_ns) = (from.saturating_sub(begin), to.saturating_sub(begin));
        let at = if to_ns.saturating_add(length / EDGE) >= length {
            "at the end of the run".to_owned()
        } else if from_ns <= length / EDGE {
            "at its start".to_owned()
        } else {
            format!("{} after its start", moment(from_ns))
        };
        let text = format!("{} within {}, {at}", percent(within, all), duration(to - from));
        return Some(Concentration { text, share: within as f64 / all as f64, from_ns, to_ns });
    }
    let times: Vec<u64> = pieces.iter().map(|(from, _, _)| *from).collect();
    let fold = rhythm::in_wall_clock(case.run, &times, SECOND).filter(|fold| fold.p < ALPHA)?;
    let text = format!(
        "once a second, {} after the full one (n = {}, p = {:.0e})",
        duration(fold.phase as u64),
        count(fold.n as u64),
        fold.p
    );
    Some(Concentration { text, share: 1.0, from_ns: 0, to_ns: length })
}

/// Whether nearly all of it was at one time, which is a small part of the run.
pub(super) fn is_at_once(case: &Case, when: Option<&Concentration>) -> bool {
    when.is_some_and(|when| when.to_ns - when.from_ns <= case.run.length_ns() / AT_ONCE)
}

/// The waits that the claim is made of, in the order of their middles.
fn pieces(case: &Case, claim: &Claim) -> Option<Vec<Piece>> {
    let is_its_own = |account| {
        let claimed = claim.lost.get(account);
        class(account) != Class::Work && claimed > 0 && claimed >= case.accounts.get(account) / 2
    };
    let waits = case.run.outliers.iter();
    let waits = waits.filter(|o| matches!(o.kind, OutlierKind::OffCpu | OutlierKind::RunQueue));
    let waits = waits.map(|o| (o.start_ns, o.end_ns(), o.breakdown.sum_of(is_its_own)));
    let mut pieces: Vec<Piece> = waits.filter(|(_, _, ns)| *ns > 0).collect();
    let kept = pieces.iter().fold(0u64, |sum, (_, _, ns)| sum.saturating_add(*ns));
    pieces.sort_by_key(|(from, to, _)| from / 2 + to / 2);
    (kept > 0 && kept >= claim.lost.total() / 2).then_some(pieces)
}

/// The shortest time that has nearly all of it: from, to, how much, of how much.
fn densest(pieces: &[Piece]) -> Option<(u64, u64, u64, u64)> {
    let all = pieces.iter().fold(0u64, |sum, (_, _, ns)| sum.saturating_add(*ns));
    let enough = all / 100 * PART;
    let middle = |piece: &Piece| piece.0 / 2 + piece.1 / 2;
    let (mut first, mut within) = (0, 0u64);
    let mut best: Option<(u64, usize, usize, u64)> = None;
    for (last, piece) in pieces.iter().enumerate() {
        within = within.saturating_add(piece.2);
        while within.saturating_sub(pieces[first].2) >= enough && first < last {
            within = within.saturating_sub(pieces[first].2);
            first += 1;
        }
        let span = middle(piece) - middle(&pieces[first]);
        if within >= enough && best.is_none_or(|(shortest, ..)| span < shortest) {
            best = Some((span, first, last, within));
        }
    }
    let (_, first, last, within) = best?;
    let inside = &pieces[first..=last];
    let from = inside.iter().map(|piece| piece.0).min()?;
    let to = inside.iter().map(|piece| piece.1).max()?;
    Some((from, to, within, all))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RunBuilder, interval};
    use model::{Account, Run};

    const QUEUED: Account = Account::RunnablePreempted;
    const MS: u64 = 1_000_000;

    /// 100 waits of 1 ms, which begin at these times of 10 s.
    fn when(start: impl Fn(u64) -> u64) -> Option<Concentration> {
        let mut builder = RunBuilder::new().length(10 * SECOND);
        builder = builder.thread(10, 10, &[(Account::User, 9 * SECOND), (QUEUED, 100 * MS)]);
        for n in 0..100 {
            builder = builder.kept(interval(10, QUEUED, start(n), MS, None));
        }
        let run: Run = builder.build();
        let claim = Claim::new(String::new(), [(QUEUED, 100 * MS)].into_iter().collect(), 100);
        of(&Case::new(&run), &claim)
    }

    #[test]
    fn what_comes_at_one_time_is_said_to() {
        // Three of a hundred are elsewhere.
        let at = |n: u64| if n < 3 { n * SECOND } else { 9_900 * MS + n * MS };
        let burst = when(at).unwrap();
        assert!(burst.text.starts_with("90 % within"), "{}", burst.text);
        assert!(burst.text.ends_with("at the end of the run"), "{}", burst.text);
        assert!(burst.to_ns - burst.from_ns < 100 * MS);
    }

    #[test]
    fn what_keeps_to_the_second_is_said_to_and_what_comes_at_any_time_is_not() {
        let each = when(|n| n / 10 * SECOND + 300 * MS + n % 10 * 2 * MS).unwrap();
        assert!(each.text.starts_with("once a second, 3"), "{}", each.text);
        assert_eq!(when(|n| n * 97 * MS), None);
    }
}
