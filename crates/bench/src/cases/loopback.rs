//! Pairs of sockets that are connected over the loopback interface.

use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::time::Duration;

use crate::Error;

/// Any free port of the loopback interface.
pub const ANY: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 0);
/// Datagrams that do not arrive within this never do.
const PATIENCE: Duration = Duration::from_secs(2);

/// Two UDP sockets, each connected to the other. Refused if nothing arrives.
pub fn udp() -> Result<(OwnedFd, OwnedFd), Error> {
    let make = || {
        let (one, other) = (UdpSocket::bind(ANY)?, UdpSocket::bind(ANY)?);
        one.connect(other.local_addr()?)?;
        other.connect(one.local_addr()?)?;
        try_out(&one, &other)?;
        try_out(&other, &one)?;
        Ok((one.into(), other.into()))
    };
    make().map_err(refused("UDP"))
}

/// Two TCP sockets, connected to each other, that send at once.
pub fn tcp() -> Result<(OwnedFd, OwnedFd), Error> {
    let make = || {
        let listener = TcpListener::bind(ANY)?;
        let one = TcpStream::connect(listener.local_addr()?)?;
        let (other, _) = listener.accept()?;
        one.set_nodelay(true)?;
        other.set_nodelay(true)?;
        Ok((one.into(), other.into()))
    };
    make().map_err(refused("TCP"))
}

/// Exactly one datagram must arrive of one sent.
pub fn try_out(to: &UdpSocket, from: &UdpSocket) -> io::Result<()> {
    to.set_read_timeout(Some(PATIENCE))?;
    from.send(b"?")?;
    let arrived = to.recv(&mut [0; 1]);
    to.set_read_timeout(None)?;
    to.set_nonblocking(true)?;
    let twice = to.recv(&mut [0; 1]).is_ok();
    to.set_nonblocking(false)?;
    match (arrived, twice) {
        (Ok(_), false) => Ok(()),
        (Ok(_), true) => Err(io::Error::other("a datagram arrived twice")),
        (Err(_), _) => Err(io::Error::other("a datagram did not arrive")),
    }
}

/// Why it cannot be, and what to do.
pub fn refused(protocol: &str) -> impl Fn(io::Error) -> Error {
    move |why| {
        Error::Refused(format!(
            "{protocol} over the loopback interface: {why}; is lo up, and no filter on it?"
        ))
    }
}
