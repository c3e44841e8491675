//! TCP: what is lost, and what waits.

use model::units::{count, counted, percentage};

use super::entry::{Entry, Host, Look, get, number};
use super::network::field;

pub(super) const ENTRIES: &[Entry<Host>] = &[
    Entry {
        id: "slow-start-after-idle",
        why: "A TCP connection that was idle starts again with 10 segments: the first large message \
              after a pause takes several round trips.",
        source: "/proc/sys/net/ipv4/tcp_slow_start_after_idle",
        look: |_| Ok(slow_start(number("/proc/sys/net/ipv4/tcp_slow_start_after_idle")?)),
    },
    Entry {
        id: "tcp-retransmits",
        why: "Each lost segment waits for its repetition: a round trip, or 200 ms and more.",
        source: "/proc/net/snmp",
        look: |_| {
            let snmp = get("/proc/net/snmp")?;
            let of = |name| field(&snmp, "Tcp", name).ok_or_else(|| format!("no {name}"));
            Ok(retransmits(of("RetransSegs")?, of("OutSegs")?))
        },
    },
    Entry {
        id: "tcp-timeouts",
        why: "How often a connection waited for its whole retransmission timeout, 200 ms and doubling.",
        source: "/proc/net/netstat",
        look: |_| {
            let netstat = get("/proc/net/netstat")?;
            let times = field(&netstat, "TcpExt", "TCPTimeouts").ok_or("no TCPTimeouts")?;
            const ADVICE: &str = "Look for loss on the way (tcp-retransmits); whylag record shows the \
                                  threads that wait.";
            let fact = format!("{} since boot", counted(times, "time"));
            Ok(Look::by(times as f64, 100.0, f64::INFINITY, fact, ADVICE).passing())
        },
    },
    Entry {
        id: "listen-overflows",
        why: "A connection that finds the queue full is dropped, and its client waits a second \
              before it tries again.",
        source: "/proc/net/netstat",
        look: |_| {
            let netstat = get("/proc/net/netstat")?;
            let lost = field(&netstat, "TcpExt", "ListenOverflows").ok_or("no ListenOverflows")?;
            const ADVICE: &str = "A larger backlog in listen(), net.core.somaxconn, and a server that \
                                  accepts without delay.";
            let fact = format!("{} since boot", counted(lost, "connection"));
            Ok(Look::by(lost as f64, 1.0, 1_000.0, fact, ADVICE).passing())
        },
    },
    Entry {
        id: "somaxconn",
        why: "The longest queue of connections that a server can ask for.",
        source: "/proc/sys/net/core/somaxconn",
        look: |_| Ok(somaxconn(number("/proc/sys/net/core/somaxconn")?)),
    },
];

fn slow_start(enabled: i64) -> Look {
    match enabled {
        0 => Look::good("off"),
        _ => Look::attention("on", "sysctl net.ipv4.tcp_slow_start_after_idle=0."),
    }
}

fn retransmits(repeated: u64, sent: u64) -> Look {
    let percent = 100.0 * repeated as f64 / sent.max(1) as f64;
    let fact = format!("{} of the segments sent since boot", percentage(percent / 100.0));
    const ADVICE: &str = "Look for loss on the way: errors of the interface (ip -s link), switches, \
                          buffers too small.";
    Look::by(percent, 0.1, 2.0, fact, ADVICE).detail(count(repeated)).passing()
}

fn somaxconn(longest: i64) -> Look {
    match longest {
        ..1024 => Look::attention(longest, "sysctl net.core.somaxconn=4096."),
        _ => Look::good(longest),
    }
}

#[cfg(test)]
mod tests {
    use model::CheckResult::{Attention, Bad, Good};

    use super::*;

    #[test]
    fn losses_and_settings() {
        assert_eq!([0, 1].map(|n| slow_start(n).verdict), [Good, Attention]);
        assert_eq!([1, 20, 300].map(|n| retransmits(n, 10_000).verdict), [Good, Attention, Bad]);
        assert_eq!([128, 4096].map(|n| somaxconn(n).verdict), [Attention, Good]);
    }
}
