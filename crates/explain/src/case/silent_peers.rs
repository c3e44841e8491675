//! Peers that answered none of the packets of UDP that they were sent.

use model::{MessageMetric, Run, Service, ServiceRole};

/// One packet may be lost.
const PACKETS: u64 = 2;
/// RFC 1035, 4.2.
const NAME_SERVERS: &str = ":53";

pub(crate) fn silent_peers(run: &Run) -> impl Iterator<Item = &Service> {
    run.sums.services.iter().filter(|service| {
        service.role == ServiceRole::Client && service.packets >= PACKETS && !answers(run, service)
    })
}

pub(crate) fn is_name_server(peer: &Service) -> bool {
    peer.name.ends_with(NAME_SERVERS)
}

fn answers(run: &Run, peer: &Service) -> bool {
    let flows = run.messages.program(peer.program).map(|program| program.flows.iter());
    let count = |flow| run.messages.histogram(peer.program, flow, MessageMetric::Total).count();
    flows.into_iter().flatten().any(|flow| count(flow.flow) > 0)
}
