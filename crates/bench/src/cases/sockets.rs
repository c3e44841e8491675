//! AF_UNIX sockets, and those who read the table of all of them. Not a case itself.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;

use model::{BenchStep, StoryShape};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, bind, netlink,
    recv, send, socket, socket_with,
};

use super::{Alone, Ladder, PROCESSES, Population, Prepared, Request, shape};
use crate::ceiling::{self, Resource};
use crate::helpers::Helpers;
use crate::{Error, Work};

/// A new socket.
pub fn open() -> Result<OwnedFd, Errno> {
    socket(AddressFamily::UNIX, SocketType::DGRAM, None)
}

/// A new socket with an abstract name, which ends with it.
pub fn open_bound(name: &str) -> Result<OwnedFd, Errno> {
    let socket = open()?;
    bind(&socket, &SocketAddrUnix::new_abstract_name(name.as_bytes())?)?;
    Ok(socket)
}

/// Sockets that stay open in helper processes; `make` makes the one of a number.
pub fn hold(n: u64, make: impl Fn(u64) -> Result<OwnedFd, Errno>) -> Result<Helpers, Error> {
    Helpers::hold(n, ceiling::descriptors_each(), |share| {
        Ok(share.map(&make).collect::<Result<Vec<OwnedFd>, _>>()?)
    })
}

/// Sockets that are open while others read their table.
const TABLE: u64 = 10_000;
/// Each reader keeps a CPU busy.
const MOST_READERS: u64 = 16;

/// The rungs of a case that has readers.
pub const READERS: Ladder = Ladder {
    workers: &[1],
    population: Some(Population {
        of: "readers of the table of AF_UNIX sockets, which has 10,000",
        sizes: &[0, 1, 2],
        uses: Resource::Tasks,
    }),
    ..PROCESSES
};

/// Workers that make sockets while others keep reading the table of all.
pub fn with_readers(
    request: &Request<'_>,
    read: fn() -> Result<(), Error>,
) -> Result<Box<dyn Prepared>, Error> {
    if request.population > MOST_READERS {
        return Err(Error::Refused(format!(
            "no more than {MOST_READERS} readers: each keeps a CPU busy"
        )));
    }
    ceiling::check(Resource::Descriptors, TABLE, "open AF_UNIX sockets")?;
    let sockets = hold(TABLE, |_| open())?;
    let readers = Helpers::repeat(request.population, |_| read())?;
    Ok(Box::new(Alone(move |_| {
        // What the closure names lives as long as it does.
        let _others = (&sockets, &readers);
        Ok(Box::new(|| open().map(drop)) as Box<dyn Work>)
    })))
}

/// Present if the slowest operations wait for the readers.
pub fn held_up(steps: &[BenchStep]) -> StoryShape {
    let story = "in the reported case sockets were held up exactly while netstat read their table";
    shape::held_up(steps, 5.0, story)
}

/// Reads the table as netstat does.
pub fn read_proc() -> Result<(), Error> {
    const TABLE: &str = "/proc/net/unix";
    let failed = |source| Error::Os { doing: format!("reading {TABLE}"), source };
    let mut file = File::open(TABLE).map_err(failed)?;
    let mut buffer = [0; 64 << 10];
    while file.read(&mut buffer).map_err(failed)? > 0 {}
    Ok(())
}

/// The request of `ss -x` (struct nlmsghdr, struct unix_diag_req of linux/unix_diag.h).
#[repr(C)]
struct DiagRequest {
    length: u32,
    kind: u16,
    flags: u16,
    sequence: u32,
    port: u32,
    family: u8,
    protocol: u8,
    padding: u16,
    states: u32,
    inode: u32,
    show: u32,
    cookie: [u32; 2],
}

const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// UDIAG_SHOW_NAME, UDIAG_SHOW_PEER and UDIAG_SHOW_RQLEN.
const SHOW: u32 = 0x01 | 0x04 | 0x10;

/// Asks the kernel for the table as ss does.
pub fn read_diag() -> Result<(), Error> {
    let raw = SocketType::RAW;
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::NETLINK, raw, flags, Some(netlink::SOCK_DIAG))?;
    let request = DiagRequest {
        length: size_of::<DiagRequest>() as u32,
        kind: SOCK_DIAG_BY_FAMILY,
        flags: (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16,
        sequence: 1,
        port: 0,
        family: libc::AF_UNIX as u8,
        protocol: 0,
        padding: 0,
        states: u32::MAX,
        inode: 0,
        show: SHOW,
        cookie: [0; 2],
    };
    // SAFETY: a plain structure without holes; the slice ends with this statement's value.
    let bytes = unsafe {
        std::slice::from_raw_parts((&raw const request).cast::<u8>(), size_of::<DiagRequest>())
    };
    send(&socket, bytes, SendFlags::empty())?;
    let mut buffer = [0; 64 << 10];
    loop {
        let (length, _) = recv(&socket, &mut buffer, RecvFlags::empty())?;
        match last_kind(&buffer[..length]) {
            Some(libc::NLMSG_DONE) | None => return Ok(()),
            Some(libc::NLMSG_ERROR) => {
                let why = "the kernel has no sock_diag for AF_UNIX: modprobe unix_diag";
                return Err(Error::Refused(why.to_owned()));
            }
            Some(_) => {}
        }
    }
}

/// The kind of the last message of a batch.
fn last_kind(mut batch: &[u8]) -> Option<i32> {
    let mut last = None;
    while let [a, b, c, d, e, f, ..] = *batch {
        last = Some(i32::from(u16::from_ne_bytes([e, f])));
        // Messages begin at multiples of 4; a length of less than a header would never end.
        let length = u32::from_ne_bytes([a, b, c, d]).next_multiple_of(4).max(16);
        batch = batch.get(length as usize..).unwrap_or_default();
    }
    last
}
