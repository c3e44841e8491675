//! The slowest requests of each port, or messages of each kind that programs trace: a port may be slow by
//! its nature, and all its requests take longer than the slowest of another one.

use std::collections::BTreeMap;

use model::{Message, MessageBreakdown, Messages, RequestCost, Run};

use crate::judge::FEWEST_REQUESTS;
use crate::messages::break_down;

/// Of messages seen at sockets and kept one in so many is among the slowest.
const ONE_IN: usize = 4;
/// Slow requests that take less than one in so many parts of the recording together show nothing.
const LEAST: u64 = 20;

/// The slowest of a port or kind, with what their threads did.
pub(crate) struct Slowest {
    /// Its name; `None` where there is only this.
    pub at: Option<String>,
    pub requests: Vec<MessageBreakdown>,
    /// They are enough to show something.
    are_enough: bool,
}

/// Port by port. Those that have too few slow ones to be judged alone are taken together.
pub(crate) fn slowest(run: &Run) -> Vec<Slowest> {
    let (mut apart, few): (Vec<_>, Vec<_>) = by_port(run)
        .into_iter()
        .map(|kept| (kept.at, kept.slowest(run)))
        .partition(|(_, slowest)| are_enough(run, slowest));
    let mut few: Vec<&Message> = few.into_iter().flat_map(|(_, slowest)| slowest).collect();
    if !few.is_empty() {
        few.sort_by_key(|message| std::cmp::Reverse(message.total_ns()));
        few.truncate(Messages::SLOWEST_OF_EACH);
        apart.push(("all others", few));
    }
    let several = apart.len() > 1;
    let one = |(at, slowest): (&str, Vec<&Message>)| Slowest {
        at: several.then(|| at.to_owned()),
        are_enough: are_enough(run, &slowest),
        requests: break_down(run, slowest),
    };
    apart.into_iter().map(one).collect()
}

fn are_enough(run: &Run, slowest: &[&Message]) -> bool {
    let total = slowest.iter().map(|message| message.total_ns()).fold(0, u64::saturating_add);
    is_enough(run, slowest.len() as u64, total)
}

/// So many slow requests, which took so long together, show something.
pub(crate) fn is_enough(run: &Run, of: u64, total_ns: u64) -> bool {
    of >= FEWEST_REQUESTS && total_ns >= run.length_ns() / LEAST
}

/// What was kept of a port.
struct Kept<'a> {
    at: &'a str,
    slow: Vec<&'a Message>,
    /// A sample of the others, seen at sockets.
    others: Vec<&'a Message>,
}

/// By port; what several processes trace by one name is of one kind.
fn by_port(run: &Run) -> Vec<Kept<'_>> {
    let messages = &run.messages;
    let mut ports = BTreeMap::<_, Kept>::new();
    let mut add = |message, is_slow| {
        let at = messages.flow_of(message).map_or("", |flow| flow.name.as_str());
        let is_port = messages.is_from_sockets(message.program);
        let key = (at, is_port.then_some((message.program, message.flow)));
        let kept = ports.entry(key).or_insert(Kept { at, slow: Vec::new(), others: Vec::new() });
        match is_slow {
            true => kept.slow.push(message),
            false => kept.others.push(message),
        }
    };
    messages.looked_at().for_each(|message| add(message, true));
    let others = messages.fast.iter().filter(|message| messages.is_from_sockets(message.program));
    others.for_each(|message| add(message, false));
    ports.into_values().collect()
}

impl<'a> Kept<'a> {
    /// What counts as slow of a program that says nothing may be only the slowest hundredth: then others
    /// that were kept belong to the slowest, too.
    fn slowest(&self, run: &Run) -> Vec<&'a Message> {
        let (slow, others) = (self.slow.len(), self.others.len());
        let wanted = slow.max((slow + others) / ONE_IN).min(Messages::SLOWEST_OF_EACH);
        let long = self.others.iter().filter(|m| m.total_ns() >= run.header.threshold_ns);
        let mut all: Vec<&Message> = self.slow.iter().chain(long).copied().collect();
        all.sort_by_key(|message| std::cmp::Reverse(message.total_ns()));
        all.truncate(wanted);
        all
    }
}

/// What is taken of the slowest of the port of which it is the largest part, by what is taken of each.
pub(crate) fn cost(slowest: &[Slowest], of_one: impl Fn(&MessageBreakdown) -> u64) -> RequestCost {
    let costs = slowest.iter().map(|of_port| (of_port.are_enough, of_port.cost(&of_one)));
    let largest = costs.max_by(|(enough, cost), (other_enough, other)| {
        let by_share = cost.share().total_cmp(&other.share());
        enough.cmp(other_enough).then(by_share).then(cost.total_ns.cmp(&other.total_ns))
    });
    largest.map(|(_, cost)| cost).unwrap_or_default()
}

impl Slowest {
    fn cost(&self, of_one: impl Fn(&MessageBreakdown) -> u64) -> RequestCost {
        let mut cost = RequestCost { at: self.at.clone(), ..RequestCost::default() };
        for one in &self.requests {
            let total = one.message.total_ns();
            let taken = of_one(one).min(total);
            cost.of += 1;
            cost.with += u64::from(taken > 0 && taken >= total / 10);
            cost.ns = cost.ns.saturating_add(taken);
            cost.total_ns = cost.total_ns.saturating_add(total);
        }
        cost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::requests::{PORT, request, served, served_at};
    use crate::testing::{RunBuilder, SECOND, USER};

    const MS: u64 = 1_000_000;

    fn run() -> Run {
        RunBuilder::new().thread(11, 10, &[(USER, SECOND)]).build()
    }

    #[test]
    fn what_was_kept_as_a_sample_is_among_the_slowest_if_few_were_slow() {
        let mut requests: Vec<Message> = (0..40).map(|n| request(1, 11, n * 50, 0, n)).collect();
        let slow = requests.pop().unwrap();
        let mut run = served(run(), vec![slow]);
        run.messages.fast = requests;
        let slowest = slowest(&run);
        assert_eq!(slowest.len(), 1);
        let requests = &slowest[0].requests;
        assert_eq!(requests.len(), 10, "a quarter of 40");
        assert!(requests.iter().all(|one| one.message.total_ns() >= 30 * MS));
    }

    #[test]
    fn a_port_keeps_its_own_slowest_beside_one_with_many_that_are_slower() {
        let slow = (0..1_000).map(|n| request(2, 12, 4 * n, 0, 500)).collect();
        let quick = (0..20).map(|n| request(1, 11, 100 * n, 0, 10)).collect();
        let run = served_at(served(run(), quick), PORT + 10, "port 8080", slow);
        let slowest = slowest(&run);
        let of = |n: usize| (slowest[n].at.as_deref(), slowest[n].requests.len());
        assert_eq!([of(0), of(1)], [(Some("port 80"), 20), (Some("port 8080"), 100)]);
    }
}
