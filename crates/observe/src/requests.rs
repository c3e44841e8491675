//! Requests and calls as sockets show them: from the kernel side's services and records to messages.
//!
//! Times are counted for all of them in the kernel; whole it sends the slow ones and a sample of the
//! others. What counts as slow follows from what was counted so far.

mod services;

use std::collections::BTreeMap;

use model::histogram::PRECISION_KERNEL;
use model::{
    AtSocket, Call, FlowKind, HandOver, Histogram, Message, MessageFlow, MessageMetric,
    MessagePublish, MessageSecond, Messages, Service, ServiceRole, TracedProgram,
};

pub use self::services::program;
use self::services::{name, role};
use crate::Error;
use crate::bpf::{request_record, service};
use crate::probes::Probes;
use crate::watch::SlowRequests;

/// An answer to which nothing was added for so long is complete.
pub const IDLE_NS: u64 = 50_000_000;

/// The number of the one flow that the program of a service has.
pub const FLOW: u32 = 1;

/// Of the requests of a port so many of each second are to be sent as the sample.
const SAMPLED_PER_S: u64 = 100;

/// The slowest requests are slow, if they took the threshold at all: one of so many ...
const SLOW_ONE_IN: u64 = 100;
/// ... but so many of those of a port, as long as they are no more than are sent: of fewer no cause
/// can be shown.
const SLOW_AT_LEAST: u64 = 20;
/// One of so many is sent: it may be what a slow request of another port called.
const SENT_ONE_IN: u64 = 10;

/// What a request takes at least that is sent whole because it is slow.
pub fn least_ns(slow: SlowRequests, threshold_ns: u64) -> u64 {
    match slow {
        SlowRequests::From(ns) => ns,
        SlowRequests::Slowest | SlowRequests::Off => threshold_ns,
    }
}

/// What is known of one service.
struct Known {
    total: Histogram,
    threshold_ns: u64,
    /// Those are sent that take so long.
    sent_ns: u64,
    slow: u64,
    connections: u64,
    packets: u64,
}

/// What was read so far.
pub struct Requests {
    slow: SlowRequests,
    /// No request is slow that took less.
    least_ns: u64,
    known: BTreeMap<u32, Known>,
}

impl Requests {
    /// For a recording with this threshold.
    pub fn new(slow: SlowRequests, threshold_ns: u64) -> Requests {
        let least_ns = least_ns(slow, threshold_ns);
        Requests { slow, least_ns, known: BTreeMap::new() }
    }

    /// Adds what is new to `messages`: `seconds` are what was counted since the last time, `records`
    /// what was sent. Gives the services that changed.
    pub fn read(
        &mut self,
        probes: &mut Probes,
        records: &[request_record],
        seconds: Vec<MessageSecond>,
        messages: &mut Messages,
    ) -> Result<Vec<Service>, Error> {
        let mut changed = Vec::new();
        for number in 1..probes.services() {
            let Some(service) = services::read(probes, number)? else { continue };
            let of_it = seconds.iter().filter(|second| second.program == program(number));
            let counted = self.learn(&service, of_it);
            let Some(known) = self.known.get_mut(&number) else { continue };
            let seen = (service.connections, service.packets);
            let before = (known.connections, known.packets);
            (known.connections, known.packets) = seen;
            if counted == 0 && before == seen && service.open == 0 {
                continue;
            }
            if role(&service) == ServiceRole::Server {
                let one_in = (counted / SAMPLED_PER_S).max(1).next_power_of_two();
                let mask = u32::try_from(one_in - 1).unwrap_or(u32::MAX);
                probes.choose_requests(number, known.sent_ns, mask);
            } else {
                probes.forget_sent(number);
            }
            changed.push(service);
        }
        messages.seconds = seconds;
        for record in records {
            match record.is_call {
                0 => self.put(record, messages),
                _ => messages.calls.push(call(record)),
            }
        }
        for service in &changed {
            let known = self.known.get(&service.number);
            messages.programs.extend(known.map(|known| traced(service, known)));
        }
        Ok(changed.iter().map(services::summed).collect())
    }

    /// What was counted, and what is slow by it; how many there were.
    fn learn<'a>(
        &mut self,
        service: &service,
        seconds: impl Iterator<Item = &'a MessageSecond>,
    ) -> u64 {
        let known = self.known.entry(service.number).or_insert_with(|| Known {
            total: Histogram::new(PRECISION_KERNEL),
            threshold_ns: self.least_ns,
            sent_ns: self.least_ns,
            slow: 0,
            connections: 0,
            packets: 0,
        });
        let mut counted = 0;
        for second in seconds.filter(|second| second.metric == MessageMetric::Total) {
            known.total.merge(&second.histogram);
            counted += second.histogram.count();
        }
        if self.slow == SlowRequests::Slowest {
            let all = known.total.count();
            let sent = all / SENT_ONE_IN;
            let slow = SLOW_AT_LEAST.min(sent).max(all / SLOW_ONE_IN);
            let from = |number| from_slowest(&known.total, number).max(self.least_ns);
            (known.threshold_ns, known.sent_ns) = (from(slow), from(sent));
        }
        counted
    }

    fn put(&mut self, record: &request_record, messages: &mut Messages) {
        let Some(known) = self.known.get_mut(&record.service) else { return };
        let mut message = message(record);
        if record.served.saturating_sub(record.begun) >= known.threshold_ns {
            known.slow += 1;
            messages.slow.push(message);
        } else {
            // Also those that are in no sample: a call may have been for one of them.
            message.sample = Some(if record.sampled == 0 { Message::NO_SAMPLE } else { 0 });
            messages.fast.push(message);
        }
    }
}

/// What the slowest `number` values took at least: the lowest value of the bucket of the last of them.
fn from_slowest(total: &Histogram, number: u64) -> u64 {
    let mut faster = total.count().saturating_sub(number.max(1));
    for (low, _, count) in total.ranges() {
        if faster < count {
            return low;
        }
        faster -= count;
    }
    0
}

fn traced(service: &service, known: &Known) -> TracedProgram {
    let kind = match role(service) {
        ServiceRole::Server => FlowKind::Request,
        ServiceRole::Client => FlowKind::Call,
    };
    let ended = known.total.count() + service.held;
    let flow = MessageFlow {
        flow: FLOW,
        name: name(service),
        kind,
        threshold_ns: known.threshold_ns,
        begun: ended,
        ended,
        slow: known.slow,
        ..MessageFlow::default()
    };
    TracedProgram {
        program: program(service.number),
        tgid: service.tgid,
        language: "sockets".to_owned(),
        flows: vec![flow],
        missed: service.unsent,
        ..TracedProgram::default()
    }
}

/// The request of a record; its publish is the first byte of the answer.
fn message(record: &request_record) -> Message {
    let handed = (record.sender != record.reader).then_some(HandOver {
        tid: record.sender,
        time_ns: (record.handed != 0).then_some(record.handed),
    });
    let end_ns = record.last.max(record.served);
    let published = MessagePublish { publish: Some(0), time_ns: record.served };
    Message {
        program: program(record.service),
        flow: FLOW,
        id: record.id,
        sample: None,
        t0_ns: record.begun,
        logic_start_ns: record.first,
        end_ns,
        tid: record.reader,
        points: Vec::new(),
        published: vec![published],
        publishes: u64::from(record.sends),
        longest_gap_ns: record.served.saturating_sub(record.first),
        depth: None,
        ahead: Vec::new(),
        kept_ns: 0,
        at_socket: Some(AtSocket {
            tgid: record.tgid,
            link: record.link,
            is_first: record.is_first != 0,
            handed,
            calls: Vec::new(),
        }),
    }
}

fn call(record: &request_record) -> Call {
    Call {
        program: program(record.service),
        tgid: record.tgid,
        tid: record.sender,
        link: record.link,
        cause: record.cause,
        sent_ns: record.begun,
        arrived_ns: record.first,
        read_ns: record.read,
        answer: None,
    }
}

#[cfg(test)]
mod tests;
