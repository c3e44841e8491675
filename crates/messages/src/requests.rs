//! Which requests, of those that the recorder saw at sockets, a run keeps.
//!
//! A program that reports its own messages says more of them than its sockets do: its requests are
//! left out.

use std::collections::{BTreeMap, BTreeSet};

use model::{FlowKind, Message, Messages, Outlier, Sums};

use crate::calls::Calls;
use crate::calls_at_once::CallsAtOnce;
use crate::room::Room;
use crate::sample::Sample;

/// What was kept so far.
#[derive(Default)]
pub(crate) struct Requests {
    services: BTreeMap<u32, Kept>,
    /// Numbers of services of programs that trace themselves.
    traced: BTreeSet<u32>,
    calls: Calls,
    calls_at_once: CallsAtOnce,
    /// Kept, and not handed on yet: what belongs to it may still come.
    waiting: Vec<Message>,
    ends: bool,
}

/// Of one port or path.
#[derive(Default)]
struct Kept {
    room: Room,
    sample: Sample,
    left_out: u64,
}

impl Requests {
    /// Of `messages` leaves what is kept; `traces` tells of a process whether it reports its own.
    pub fn keep(
        &mut self,
        now_ns: u64,
        messages: &mut Messages,
        sums: &mut Sums,
        traces: impl Fn(u32) -> bool,
    ) {
        for program in &messages.programs {
            let serves = program.flows.iter().any(|flow| flow.kind == FlowKind::Request);
            if serves && traces(program.tgid) {
                self.traced.insert(program.program);
            }
        }
        let is_left = |program: u32| !self.traced.contains(&program);
        messages.programs.retain(|program| is_left(program.program));
        messages.seconds.retain(|second| is_left(second.program));
        messages.slow.retain(|message| is_left(message.program));
        messages.fast.retain(|message| is_left(message.program));
        sums.services.retain(|service| is_left(service.program));
        self.calls_at_once.add(&messages.calls);
        self.calls_at_once.count(now_ns, self.ends);
        let seen = messages.slow.iter().chain(&messages.fast);
        self.calls.add(now_ns, std::mem::take(&mut messages.calls), seen);
        // The slowest first, for whom there is room.
        messages.slow.sort_by_key(|message| std::cmp::Reverse(message.total_ns()));
        let services = &mut self.services;
        messages.slow.retain(|message| {
            let kept = services.entry(message.program).or_default();
            let has_room = kept.room.take(now_ns);
            kept.left_out += u64::from(!has_room);
            has_room
        });
        messages.fast.retain_mut(|message| {
            if message.sample == Some(Message::NO_SAMPLE) {
                return false;
            }
            message.sample = services.entry(message.program).or_default().sample.place();
            message.sample.is_some()
        });
        let fresh = std::mem::take(&mut messages.slow).into_iter();
        let fresh = fresh.chain(last_of_each_place(std::mem::take(&mut messages.fast))).collect();
        self.hand_on(fresh, messages);
        for service in &mut sums.services {
            let left_out = self.services.get(&service.program).map_or(0, |kept| kept.left_out);
            service.left_out += left_out;
            service.calls_at_once = self.calls_at_once.of(service.program).to_vec();
        }
    }
}

impl Requests {
    /// Adds intervals, of which the sleeps show which thread works for which.
    pub fn add_sleeps<'a>(&mut self, outliers: impl Iterator<Item = &'a Outlier>) {
        self.calls.add_sleeps(outliers);
    }

    /// The recording ends: nothing waits any more for what may still come.
    pub fn ends(&mut self) {
        self.ends = true;
    }

    /// Gives those of the time before, with the calls that were made for them.
    fn hand_on(&mut self, fresh: Vec<Message>, messages: &mut Messages) {
        let mut ready = std::mem::replace(&mut self.waiting, fresh);
        if self.ends {
            ready.append(&mut self.waiting);
        }
        for mut message in ready {
            self.calls.put_with(&mut message);
            if message.is_slow() {
                messages.slow.push(message);
            } else {
                messages.fast.push(message);
            }
        }
    }
}

/// Of several that took the same place only the last one has it.
fn last_of_each_place(messages: Vec<Message>) -> Vec<Message> {
    let mut places = BTreeMap::new();
    for message in messages {
        places.insert((message.program, message.sample), message);
    }
    places.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{MessageFlow, TracedProgram};

    fn request(program: u32, total_ns: u64, sample: Option<u32>) -> Message {
        Message {
            program,
            flow: 1,
            id: total_ns,
            sample,
            t0_ns: 1_000,
            logic_start_ns: 1_000,
            end_ns: 1_000 + total_ns,
            tid: 7,
            points: Vec::new(),
            published: Vec::new(),
            publishes: 1,
            longest_gap_ns: 0,
            depth: None,
            ahead: Vec::new(),
            kept_ns: 0,
            at_socket: None,
        }
    }

    fn server(program: u32, tgid: u32) -> TracedProgram {
        let flow = MessageFlow { kind: FlowKind::Request, ..MessageFlow::default() };
        TracedProgram { program, tgid, flows: vec![flow], ..TracedProgram::default() }
    }

    #[test]
    fn a_program_that_traces_itself_keeps_its_own_messages_alone() {
        let mut messages = Messages {
            programs: vec![server(1, 77), server(2, 78)],
            slow: vec![request(1, 50, None), request(2, 60, None)],
            fast: vec![request(1, 5, Some(0))],
            ..Messages::default()
        };
        let mut requests = Requests { ends: true, ..Requests::default() };
        requests.keep(0, &mut messages, &mut Sums::default(), |tgid| tgid == 77);
        assert_eq!(messages.programs, [server(2, 78)]);
        assert_eq!(messages.slow, [request(2, 60, None)]);
        assert!(messages.fast.is_empty());
    }

    #[test]
    fn a_request_waits_for_what_may_belong_to_it() {
        let messages = || Messages { slow: vec![request(2, 60, None)], ..Messages::default() };
        let (mut requests, mut sums) = (Requests::default(), Sums::default());
        let mut first = messages();
        requests.keep(0, &mut first, &mut sums, |_| false);
        assert!(first.slow.is_empty());
        let mut last = messages();
        requests.ends();
        requests.keep(0, &mut last, &mut sums, |_| false);
        assert_eq!(last.slow.len(), 2);
    }

    #[test]
    fn of_too_many_slow_ones_the_slowest_are_kept_and_the_sample_is_bounded() {
        let slow = (1..=1_000).map(|ns| request(2, ns, None));
        let fast = (1..=1_000).map(|ns| request(2, ns, Some(0)));
        let mut messages = Messages {
            programs: vec![server(2, 78)],
            slow: slow.collect(),
            fast: fast.collect(),
            ..Messages::default()
        };
        let mut requests = Requests { ends: true, ..Requests::default() };
        requests.keep(1 << 40, &mut messages, &mut Sums::default(), |_| false);
        assert_eq!(messages.slow.len(), 200);
        assert!(messages.slow.iter().all(|request| request.total_ns() > 800));
        assert!((1..=128).contains(&messages.fast.len()));
    }
}
