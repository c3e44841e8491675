//! Requests and calls as sockets show them: from the kernel side's services and records to messages.
//!
//! Times are counted for all of them in the kernel; whole it sends the slow ones and a sample of the
//! others. What counts as slow follows from what was counted so far.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use libbpf_rs::{MapCore, MapFlags};
use model::histogram::PRECISION_KERNEL;
use model::{
    AtSocket, Call, FlowKind, HandOver, Histogram, Message, MessageFlow, MessageMetric,
    MessagePublish, MessageSecond, Messages, Peer, Service, ServiceRole, TracedProgram,
};

use crate::Error;
use crate::bpf::{self, request_record, service};
use crate::probes::Probes;
use crate::watch::SlowRequests;
use crate::wire::{Role, ServiceKind};

/// An answer to which nothing was added for so long is complete.
pub const IDLE_NS: u64 = 50_000_000;

/// Each service is a program of its own, with one flow; these numbers are beyond those of programs
/// that trace themselves.
const FIRST_PROGRAM: u32 = 1 << 16;
/// The number of that flow.
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

/// The number of a service's program.
pub fn program(service: u32) -> u32 {
    FIRST_PROGRAM.saturating_add(service)
}

/// What is known of one service.
struct Known {
    total: Histogram,
    threshold_ns: u64,
    /// Those are sent that take so long.
    sent_ns: u64,
    slow: u64,
    connections: u64,
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
            let Some(service) = read(probes, number)? else { continue };
            let of_it = seconds.iter().filter(|second| second.program == program(number));
            let counted = self.learn(&service, of_it);
            let Some(known) = self.known.get_mut(&number) else { continue };
            let was = std::mem::replace(&mut known.connections, service.connections);
            if counted == 0 && was == service.connections && service.open == 0 {
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
        Ok(changed.iter().map(summed).collect())
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

fn read(probes: &Probes, number: u32) -> Result<Option<service>, Error> {
    let map = &probes.skel().maps.services;
    let bytes = map.lookup(&number.to_ne_bytes(), MapFlags::ANY);
    let bytes = bytes.map_err(Error::bpf("reading services"))?;
    let service = bytes.as_deref().and_then(bpf::read::<service>);
    Ok(service.filter(|service| service.number == number))
}

fn role(service: &service) -> ServiceRole {
    match Role::of(service.role) {
        Some(Role::Client) => ServiceRole::Client,
        Some(Role::Server | Role::Unknown) | None => ServiceRole::Server,
    }
}

/// `port 6379`, `/run/redis.sock`, `10.0.0.7:5432`.
fn name(service: &service) -> String {
    match (ServiceKind::of(service.kind), role(service)) {
        (Some(ServiceKind::Unix), _) if service.path[0] == 0 => {
            "a socket without a name".to_owned()
        }
        (Some(ServiceKind::Unix), _) => bpf::text(&service.path),
        (Some(ServiceKind::Tcp), ServiceRole::Server) => format!("port {}", service.port),
        (Some(ServiceKind::Tcp), ServiceRole::Client) => peer(service).to_string(),
        (Some(ServiceKind::Udp), ServiceRole::Server) => format!("UDP port {}", service.port),
        (Some(ServiceKind::Udp), _) if service.port == 0 => "peers of UDP".to_owned(),
        (Some(ServiceKind::Udp), _) => format!("UDP {}", peer(service)),
        (Some(ServiceKind::Others) | None, ServiceRole::Server) => "other ports".to_owned(),
        (Some(ServiceKind::Others) | None, ServiceRole::Client) => "other peers".to_owned(),
    }
}

fn peer_process(service: &service) -> Option<Peer> {
    let comm = || bpf::text(&service.peer_comm);
    (service.peer_tgid != 0).then(|| Peer { tgid: service.peer_tgid, comm: comm() })
}

fn peer(service: &service) -> SocketAddr {
    let bytes = service.address;
    let ip = match bytes {
        [a, b, c, d, ..] if service.family != libc::AF_INET6 as u16 => {
            IpAddr::V4(Ipv4Addr::new(a, b, c, d))
        }
        _ => IpAddr::V6(Ipv6Addr::from(bytes)),
    };
    SocketAddr::new(ip, service.port)
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

fn summed(service: &service) -> Service {
    Service {
        program: program(service.number),
        tgid: service.tgid,
        role: role(service),
        name: name(service),
        connections: service.connections,
        several: service.several,
        pushed: service.pushed,
        left_out: service.unsent,
        open: service.open,
        peer: peer_process(service),
        oldest_ns: (service.open > 0).then_some(service.oldest),
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
mod tests {
    use super::*;

    fn blank(role: Role, kind: ServiceKind, port: u16) -> service {
        let mut service = bpf::read::<service>(&vec![0; size_of::<service>()]).unwrap();
        (service.number, service.role, service.kind) = (3, role as u8, kind as u8);
        (service.port, service.family) = (port, libc::AF_INET as u16);
        service
    }

    fn second(values: impl Iterator<Item = u64>) -> MessageSecond {
        let mut histogram = Histogram::new(PRECISION_KERNEL);
        values.for_each(|value| histogram.record(value));
        let metric = MessageMetric::Total;
        MessageSecond { program: program(3), flow: FLOW, metric, start_ns: 0, histogram }
    }

    #[test]
    fn a_service_is_called_by_how_it_is_reached() {
        let mut unix = blank(Role::Server, ServiceKind::Unix, 0);
        assert_eq!(name(&unix), "a socket without a name");
        for (to, from) in unix.path.iter_mut().zip(b"/run/x.sock") {
            *to = *from as _;
        }
        assert_eq!(name(&unix), "/run/x.sock");
        let mut peer = blank(Role::Client, ServiceKind::Tcp, 5432);
        peer.address[..4].copy_from_slice(&[10, 0, 0, 7]);
        assert_eq!(name(&peer), "10.0.0.7:5432");
        peer.family = libc::AF_INET6 as u16;
        assert_eq!(name(&peer), "[a00:7::]:5432");
        assert_eq!(name(&blank(Role::Server, ServiceKind::Udp, 53)), "UDP port 53");
        assert_eq!(name(&blank(Role::Client, ServiceKind::Udp, 0)), "peers of UDP");
        assert_eq!(name(&blank(Role::Client, ServiceKind::Others, 0)), "other peers");
    }

    /// An event loop that four long turns blocked: each held up 5 requests, which took from a fifth of
    /// the turn to all of it.
    #[test]
    fn of_few_requests_that_were_held_up_many_are_slow() {
        let turns = [155, 160, 168, 188].map(|ms| ms * 1_000_000u64);
        let held_up = turns.iter().flat_map(|turn| (1..=5).map(move |part| turn / 5 * part));
        let all: Vec<u64> = held_up.chain(std::iter::repeat_n(70_000, 380)).collect();
        let mut requests = Requests::new(SlowRequests::Slowest, 1_000_000);
        let service = blank(Role::Server, ServiceKind::Tcp, 80);
        requests.learn(&service, [&second(all.iter().copied())].into_iter());
        let known = &requests.known[&3];
        let slow = all.iter().filter(|ns| **ns >= known.threshold_ns).count();
        assert_eq!(slow, 20, "from {} ns on", known.threshold_ns);
        assert!(known.sent_ns <= known.threshold_ns);
        // All in one bucket: they are as slow as each other.
        let same = second([100_000_000; 50].into_iter());
        let mut requests = Requests::new(SlowRequests::Slowest, 1_000_000);
        requests.learn(&service, [&same].into_iter());
        assert!(requests.known[&3].threshold_ns <= 100_000_000);
    }

    #[test]
    fn the_slowest_hundredth_is_slow_unless_it_was_said_what_is() {
        const MS: u64 = 1_000_000;
        let service = blank(Role::Server, ServiceKind::Tcp, 80);
        let counted = second((1..=1_000).map(|n| n * MS));
        let mut requests = Requests::new(SlowRequests::Slowest, MS);
        assert_eq!(requests.learn(&service, [&counted].into_iter()), 1_000);
        let known = &requests.known[&3];
        assert!((970 * MS..=1_000 * MS).contains(&known.threshold_ns), "{}", known.threshold_ns);
        assert!((880 * MS..=920 * MS).contains(&known.sent_ns), "{}", known.sent_ns);
        let fast = second((1..=1_000).map(|n| n * 100));
        let mut requests = Requests::new(SlowRequests::Slowest, MS);
        requests.learn(&service, [&fast].into_iter());
        assert_eq!(requests.known[&3].threshold_ns, MS, "no less than the threshold of the run");
        let mut requests = Requests::new(SlowRequests::From(100 * MS), MS);
        requests.learn(&service, [&counted].into_iter());
        assert_eq!(requests.known[&3].threshold_ns, 100 * MS);
    }

    #[test]
    fn a_record_becomes_a_message_whose_parts_are_its_time() {
        let bytes = vec![0; size_of::<request_record>()];
        let mut record = bpf::read::<request_record>(&bytes).unwrap();
        (record.begun, record.first, record.served, record.last) = (100, 130, 190, 220);
        (record.reader, record.sender, record.handed, record.sends) = (7, 8, 150, 2);
        let message = message(&record);
        let parts: Vec<_> = message.segments().iter().map(|part| (part.ns(), part.tid)).collect();
        assert_eq!(parts, [(30, Some(7)), (20, Some(7)), (40, Some(8)), (30, Some(8))]);
        let flow = MessageFlow { kind: FlowKind::Request, ..MessageFlow::default() };
        let names: Vec<_> = message.segments().iter().map(|part| part.name(&flow, None)).collect();
        let expected =
            ["in the socket's queue", "worked on until handed over", "worked on", "answering"];
        assert_eq!(names, expected);
    }
}
