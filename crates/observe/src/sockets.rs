//! From a record of the kernel side to the socket that it is about, and names for its numbers.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::Enum;
use model::{Socket, SocketAddress, SocketKind};

use crate::bpf::queue_record;

/// What its queues are counted in.
pub fn kind(record: &queue_record) -> SocketKind {
    const AF_UNIX: u16 = libc::AF_UNIX as u16;
    const TCP: u16 = libc::IPPROTO_TCP as u16;
    const UDP: u16 = libc::IPPROTO_UDP as u16;
    /// include/net/tcp_states.h
    const LISTEN: u8 = 10;
    match (record.family, record.protocol) {
        (AF_UNIX, _) => SocketKind::Unix,
        (_, TCP) if record.state == LISTEN => SocketKind::TcpListening,
        (_, TCP) => SocketKind::Tcp,
        (_, UDP) => SocketKind::Udp,
        _ => SocketKind::Other,
    }
}

/// The socket of a record.
pub fn socket(record: &queue_record) -> Socket {
    let kind = kind(record);
    let local = address(record.family, record.local, record.local_port);
    let remote = address(record.family, record.remote, record.remote_port);
    let address = match (kind, record.local_port, record.remote_port) {
        (SocketKind::Unix, ..) | (_, 0, _) => SocketAddress::default(),
        (_, _, 0) => SocketAddress { local: Some(local), remote: None },
        _ => SocketAddress { local: Some(local), remote: Some(remote) },
    };
    Socket { inode: record.inode, tgid: record.tgid, fd: record.fd, kind, address }
}

fn address(family: u16, bytes: [u8; 16], port: u16) -> SocketAddr {
    let ip = match (family, bytes) {
        (family, bytes) if family == libc::AF_INET6 as u16 => IpAddr::V6(Ipv6Addr::from(bytes)),
        (_, [a, b, c, d, ..]) => IpAddr::V4(Ipv4Addr::new(a, b, c, d)),
    };
    SocketAddr::new(ip, port)
}

/// Names of enum skb_drop_reason in this kernel; the numbers change between versions.
pub fn drop_reasons() -> HashMap<u32, String> {
    let Ok(kernel) = Btf::from_vmlinux() else { return HashMap::new() };
    let Some(reasons) = kernel.type_by_name::<Enum<'_>>("skb_drop_reason") else {
        return HashMap::new();
    };
    let reason = |name: Option<&OsStr>, value: i64| {
        let name = name?.to_str()?;
        let short = name.strip_prefix("SKB_DROP_REASON_").unwrap_or(name);
        Some((u32::try_from(value).ok()?, short.to_owned()))
    };
    reasons.iter().filter_map(|member| reason(member.name, member.value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_of_the_family() {
        let bytes = Ipv6Addr::LOCALHOST.octets();
        let text = address(libc::AF_INET6 as u16, bytes, 80).to_string();
        assert_eq!(text, "[::1]:80");
        assert_eq!(address(libc::AF_INET as u16, bytes, 80).to_string(), "0.0.0.0:80");
    }

    #[test]
    fn this_kernel_names_its_reasons() {
        let reasons = drop_reasons();
        assert!(reasons.is_empty() || reasons.values().any(|name| name == "SOCKET_RCVBUFF"));
    }
}
