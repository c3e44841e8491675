//! Its sockets: what waits in their queues, and what they dropped.
//!
//! Each is looked at through a copy of its descriptor (pidfd_getfd), which asks that one socket
//! and takes none of the locks that /proc/net and netstat hold while they walk through all of
//! them. The copy is closed within microseconds; a process with very many is looked at in part.

use std::ffi::{c_int, c_void};
use std::fs;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, StatxFlags, statx};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use model::units::{bytes, counted, percentage};

use super::Target;
use crate::doctor::entry::{Entry, Look};
use crate::patience;

/// Sockets that are looked at; some 5 us each.
const MOST: usize = 10_000;
/// Descriptors that are checked for being sockets; some 1 us each.
const MOST_DESCRIPTORS: usize = 100_000;

pub(super) const ENTRIES: &[Entry<Target>] = &[
    Entry {
        id: "socket-drops",
        why: "What arrived while the receive buffer was full is lost; for UDP that is a gap, and \
              somebody's request to send again.",
        source: "getsockopt(SO_MEMINFO)",
        look: |of| drops(of.sockets()?),
    },
    Entry {
        id: "receive-queues",
        why: "What waits here arrived and was not read yet: the receiver is behind.",
        source: "getsockopt(SO_MEMINFO)",
        look: |of| queues(of.sockets()?, "receive", |socket| socket.receive),
    },
    Entry {
        id: "send-queues",
        why: "What waits here was sent and not yet taken: the network or the other side is slow.",
        source: "getsockopt(SO_MEMINFO)",
        look: |of| queues(of.sockets()?, "send", |socket| socket.send),
    },
    Entry {
        id: "accept-queues",
        why: "A full queue of connections drops new ones, and each client tries again after a second.",
        source: "getsockopt(TCP_INFO)",
        look: |of| accept_queues(of.sockets()?),
    },
];

/// What is known of a socket.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Socket {
    descriptor: u32,
    /// (bytes in the queue, room for so many).
    receive: (u32, u32),
    send: (u32, u32),
    /// Packets that were dropped.
    drops: u32,
    /// (connections waiting, room for so many) of one that listens.
    accept: Option<(u32, u32)>,
}

/// A descriptor can be another thing than a socket when it is copied: a file whose server is told when
/// the copy is closed. And a socket can linger, whose last copy that is.
pub(super) fn read(of: &Target) -> Result<Vec<Socket>, String> {
    let pid = of.pid();
    patience::ask(pid, move || sockets_of(pid)).map_err(|error| error.to_string())?
}

fn sockets_of(pid: u32) -> Result<Vec<Socket>, String> {
    let refused = |error: rustix::io::Errno| match error {
        rustix::io::Errno::PERM => {
            "no permission to ask its sockets (needs its own user, or CAP_SYS_PTRACE)".to_owned()
        }
        rustix::io::Errno::NOSYS => "the kernel is older than 5.6".to_owned(),
        error => format!("its sockets cannot be asked: {error}"),
    };
    let folder = format!("/proc/{pid}/fd");
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or("no such process")?;
    let process = pidfd_open(pid, PidfdFlags::empty()).map_err(refused)?;
    let entries = fs::read_dir(&folder).map_err(|error| format!("{folder}: {error}"))?;
    let was_socket = |entry: &fs::DirEntry| {
        fs::read_link(entry.path())
            .is_ok_and(|to| to.as_os_str().as_encoded_bytes().starts_with(b"socket:"))
    };
    let numbers = entries.flatten().take(MOST_DESCRIPTORS).filter(was_socket);
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let mut sockets = Vec::new();
    for descriptor in numbers.take(MOST) {
        let Ok(number) = i32::try_from(descriptor) else { continue };
        match pidfd_getfd(process.as_fd(), number, PidfdGetfdFlags::empty()) {
            Ok(copy) if is_socket(&copy) => sockets.extend(ask(descriptor, copy)),
            Ok(_) => {}
            // Closed meanwhile.
            Err(rustix::io::Errno::BADF) => {}
            Err(error) => return Err(refused(error)),
        }
    }
    Ok(sockets)
}

/// Asks nobody but the kernel.
fn is_socket(copy: &OwnedFd) -> bool {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let status = statx(copy, "", flags, StatxFlags::TYPE);
    status.is_ok_and(|of| FileType::from_raw_mode(of.stx_mode.into()) == FileType::Socket)
}

fn ask(descriptor: u32, copy: OwnedFd) -> Option<Socket> {
    // linux/sock_diag.h: receive queue, its limit, send queue, its limit, ..., drops in the ninth.
    let memory: [u32; 9] = option(copy.as_fd(), libc::SOL_SOCKET, libc::SO_MEMINFO)?;
    let listens: u32 = option(copy.as_fd(), libc::SOL_SOCKET, libc::SO_ACCEPTCONN).unwrap_or(0);
    // linux/tcp.h: of a socket that listens, tcpi_unacked (the seventh word) is the queue, and
    // tcpi_sacked (the eighth) the room in it.
    let tcp: Option<[u32; 8]> = match listens {
        0 => None,
        _ => option(copy.as_fd(), libc::IPPROTO_TCP, libc::TCP_INFO),
    };
    Some(Socket {
        descriptor,
        receive: (memory[0], memory[1]),
        send: (memory[2], memory[3]),
        drops: memory[8],
        accept: tcp.map(|tcp| (tcp[6], tcp[7])),
    })
}

/// A socket option of plain words; `None` if the socket does not have it, or a shorter one.
fn option<T: Words>(socket: BorrowedFd<'_>, level: c_int, name: c_int) -> Option<T> {
    let mut value = T::default();
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: `value` is valid for writing `length` bytes, and any bytes make a value of T.
    let done = unsafe {
        let to = (&raw mut value).cast::<c_void>();
        libc::getsockopt(socket.as_raw_fd(), level, name, to, &raw mut length)
    };
    (done == 0 && length as usize >= size_of::<T>()).then_some(value)
}

/// Types of which any bytes are a value.
trait Words: Default {}
impl Words for u32 {}
impl Words for [u32; 8] {}
impl Words for [u32; 9] {}

fn drops(sockets: &[Socket]) -> Result<Look, String> {
    let lost: u64 = sockets.iter().map(|socket| u64::from(socket.drops)).sum();
    let fact = format!("{} dropped", counted(lost, "packet"));
    const ADVICE: &str = "A larger buffer (SO_RCVBUF, net.core.rmem_max) and no stalls in the \
                          receiver: whylag record -p PID shows them.";
    let mut worst: Vec<&Socket> = sockets.iter().filter(|socket| socket.drops > 0).collect();
    worst.sort_by_key(|socket| std::cmp::Reverse(socket.drops));
    let most_drops = worst.iter().take(3).map(|socket| {
        format!(
            "descriptor {}: {} (buffer {})",
            socket.descriptor,
            socket.drops,
            bytes(socket.receive.1.into())
        )
    });
    let detail = match lost {
        0 => counted(sockets.len() as u64, "socket"),
        _ => most_drops.collect::<Vec<_>>().join(", "),
    };
    Ok(Look::by(lost as f64, 1.0, 100_000.0, fact, ADVICE).detail(detail).passing())
}

fn queues(sockets: &[Socket], name: &str, of: fn(&Socket) -> (u32, u32)) -> Result<Look, String> {
    let share = |socket: &&Socket| f64::from(of(socket).0) / f64::from(of(socket).1.max(1));
    let fullest = sockets.iter().max_by(|a, b| share(a).total_cmp(&share(b)));
    let Some(fullest) = fullest else { return Ok(Look::good("it has no sockets").passing()) };
    let percent = 100.0 * share(&fullest);
    let fact = format!("the fullest is {} full", percentage(percent / 100.0));
    let advice = format!(
        "whylag record -p PID shows what its threads do meanwhile; see also the {name} buffer's size."
    );
    let (queue, room) = of(fullest);
    let detail = format!(
        "descriptor {}: {} of {}, of {}",
        fullest.descriptor,
        bytes(queue.into()),
        bytes(room.into()),
        counted(sockets.len() as u64, "socket"),
    );
    Ok(Look::by(percent, 25.0, 90.0, fact, &advice).detail(detail).passing())
}

fn accept_queues(sockets: &[Socket]) -> Result<Look, String> {
    let listening = sockets.iter().filter_map(|socket| Some((socket.descriptor, socket.accept?)));
    let fullest = listening.max_by_key(|(_, (waiting, room))| waiting * 1000 / (room.max(&1)));
    let Some((descriptor, (waiting, room))) = fullest else {
        return Ok(Look::good("none listens").passing());
    };
    let percent = 100.0 * f64::from(waiting) / f64::from(room.max(1));
    let fact = format!("{waiting} of {room} places taken");
    const ADVICE: &str = "Accept in a thread of its own; a larger backlog in listen() and \
                          net.core.somaxconn.";
    let detail = format!("descriptor {descriptor}");
    Ok(Look::by(percent, 50.0, 95.0, fact, ADVICE).detail(detail).passing())
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream, UdpSocket};

    use model::CheckResult::{Attention, Bad, Good};

    use super::*;
    use crate::live::Process;

    /// A socket of this process, as seen through its descriptor's copy.
    fn of_this_process(descriptor: i32) -> Socket {
        let target = Target::new(Process::open(std::process::id()).unwrap(), Ok(Vec::new()));
        let all = target.sockets().unwrap();
        *all.iter().find(|socket| socket.descriptor == descriptor as u32).unwrap()
    }

    #[test]
    fn what_is_no_socket_is_not_asked() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(is_socket(&socket.into()));
        assert!(!is_socket(&fs::File::open("/dev/null").unwrap().into()));
    }

    #[test]
    fn drops_and_queues_of_a_receiver_that_does_not_read() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        let empty = of_this_process(receiver.as_raw_fd());
        assert_eq!((empty.drops, empty.receive.0), (0, 0));
        assert_eq!(queues(&[empty], "receive", |socket| socket.receive).unwrap().verdict, Good);
        let to = receiver.local_addr().unwrap();
        for _ in 0..1_000 {
            sender.send_to(&[0; 1_400], to).unwrap();
        }
        let full = of_this_process(receiver.as_raw_fd());
        // What is in the queue and what was dropped are all that was sent.
        let mut read = 0;
        receiver.set_nonblocking(true).unwrap();
        while receiver.recv(&mut [0; 2_000]).is_ok() {
            read += 1;
        }
        assert_eq!(full.drops + read, 1_000);
        assert!(full.drops > 0, "1.4 MB do not fit: {full:?}");
        assert_eq!(queues(&[full], "receive", |socket| socket.receive).unwrap().verdict, Bad);
        let look = drops(&[full]).unwrap();
        assert_eq!(
            (look.verdict, look.fact),
            (Attention, format!("{} packets dropped", full.drops))
        );
        assert_eq!(of_this_process(receiver.as_raw_fd()).receive.0, 0);
    }

    #[test]
    fn the_queue_of_a_server_that_does_not_accept() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        assert_eq!(of_this_process(server.as_raw_fd()).accept.unwrap().0, 0);
        let _clients: Vec<TcpStream> =
            (0..5).map(|_| TcpStream::connect(server.local_addr().unwrap()).unwrap()).collect();
        let (waiting, room) = of_this_process(server.as_raw_fd()).accept.unwrap();
        assert_eq!((waiting, room), (5, 128));
        let socket = |waiting| Socket { accept: Some((waiting, 128)), ..Socket::default() };
        assert_eq!(accept_queues(&[socket(5)]).unwrap().verdict, Good);
        assert_eq!(accept_queues(&[socket(5), socket(128)]).unwrap().verdict, Bad);
        assert_eq!(accept_queues(&[]).unwrap().fact, "none listens");
    }
}
