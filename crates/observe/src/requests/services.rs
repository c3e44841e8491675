//! Services as the kernel side knows them: who is reached, and by what name.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use libbpf_rs::{MapCore, MapFlags};
use model::{Peer, Service, ServiceRole};

use crate::Error;
use crate::bpf::{self, service};
use crate::probes::Probes;
use crate::wire::{Role, ServiceKind};

/// Each service is a program of its own; these numbers are beyond those of programs that trace
/// themselves.
const FIRST_PROGRAM: u32 = 1 << 16;

/// The number of a service's program.
pub fn program(service: u32) -> u32 {
    FIRST_PROGRAM.saturating_add(service)
}

/// The service of this number, if it is in use.
pub fn read(probes: &Probes, number: u32) -> Result<Option<service>, Error> {
    let map = &probes.skel().maps.services;
    let bytes = map.lookup(&number.to_ne_bytes(), MapFlags::ANY);
    let bytes = bytes.map_err(Error::bpf("reading services"))?;
    let service = bytes.as_deref().and_then(bpf::read::<service>);
    Ok(service.filter(|service| service.number == number))
}

/// Which end of its connections is watched.
pub fn role(service: &service) -> ServiceRole {
    match Role::of(service.role) {
        Some(Role::Client) => ServiceRole::Client,
        Some(Role::Server | Role::Unknown) | None => ServiceRole::Server,
    }
}

/// `port 6379`, `/run/redis.sock`, `10.0.0.7:5432`.
pub fn name(service: &service) -> String {
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

/// What a run says of it.
pub fn summed(service: &service) -> Service {
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
        packets: service.packets,
        given_up: service.given_up,
        packets_since_ns: (service.packets > 0).then_some(service.packets_since),
        peer: peer_process(service),
        calls_at_once: Vec::new(),
        oldest_ns: (service.open > 0).then_some(service.oldest),
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
