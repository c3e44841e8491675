//! What services are called, which of their requests are slow, and what becomes of a record.

use super::*;
use crate::bpf;
use crate::wire::{Role, ServiceKind};

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
