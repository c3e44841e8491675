//! udp-multicast: a datagram to a group with one member, over the loopback interface.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::OwnedFd;

use rustix::net::sockopt::{set_ip_multicast_if, set_ip_multicast_ttl};

use super::{Benchmark, THREADS, loopback, through};
use crate::Error;

/// For use within a site (RFC 2365), and hardly by anybody else.
const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 87, 76);

pub const CASE: Benchmark = Benchmark {
    id: "udp-multicast",
    measures: "send() of 64 bytes to a multicast group on lo and recv() by its only member",
    ladder: THREADS,
    prepare: |request| through::prepare(request, pair),
};

/// The member and who sends to it; each pair has a port of its own.
fn pair() -> Result<(OwnedFd, OwnedFd), Error> {
    let make = || -> io::Result<_> {
        let member = UdpSocket::bind((GROUP, 0))?;
        member.join_multicast_v4(&GROUP, &Ipv4Addr::LOCALHOST)?;
        let sender = UdpSocket::bind(loopback::ANY)?;
        set_ip_multicast_if(&sender, &Ipv4Addr::LOCALHOST)?;
        // Not beyond this host, whatever the routes.
        set_ip_multicast_ttl(&sender, 0)?;
        sender.connect((GROUP, member.local_addr()?.port()))?;
        loopback::try_out(&member, &sender)?;
        Ok((member.into(), sender.into()))
    };
    make().map_err(loopback::refused("multicast"))
}
