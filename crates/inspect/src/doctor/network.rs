//! Network: buffers, and what was dropped so far.

use model::units::{bytes, count, counted, duration, percentage};

use super::entry::{Entry, Host, Look, get, number};

const CORE: &str = "/proc/sys/net/core";

pub(super) const ENTRIES: &[Entry<Host>] = &[
    Entry {
        id: "rmem-max",
        why: "The largest receive buffer that a program can ask for; 208 KiB hold some 250 small \
              datagrams, and a receiver that stalls for longer loses the rest.",
        source: "/proc/sys/net/core/rmem_max",
        look: |_| Ok(buffer(number(&format!("{CORE}/rmem_max"))?, "rmem_max")),
    },
    Entry {
        id: "rmem-default",
        why: "The receive buffer of programs that do not ask.",
        source: "/proc/sys/net/core/rmem_default",
        look: |_| Ok(Look::good(bytes(number(&format!("{CORE}/rmem_default"))?.unsigned_abs()))),
    },
    Entry {
        id: "wmem-max",
        why: "The largest send buffer that a program can ask for; when it is full, send() waits or \
              fails.",
        source: "/proc/sys/net/core/wmem_max",
        look: |_| Ok(buffer(number(&format!("{CORE}/wmem_max"))?, "wmem_max")),
    },
    Entry {
        id: "udp-errors",
        why: "Datagrams that were lost in this host because a socket's buffer was full.",
        source: "/proc/net/snmp",
        look: |_| {
            let snmp = get("/proc/net/snmp")?;
            let of = |name| field(&snmp, "Udp", name);
            let receive = of("RcvbufErrors").ok_or("no RcvbufErrors in /proc/net/snmp")?;
            Ok(udp_errors(receive, of("SndbufErrors").unwrap_or(0), of("InDatagrams").unwrap_or(0)))
        },
    },
    Entry {
        id: "softnet-drops",
        why: "Packets that were dropped because a CPU's queue was full.",
        source: "/proc/net/softnet_stat",
        look: |_| {
            let dropped = softnet(&get("/proc/net/softnet_stat")?, 1);
            const ADVICE: &str = "sysctl net.core.netdev_max_backlog=10000; spread the interrupts of \
                                  the network card over CPUs.";
            let fact = format!("{} since boot", counted(dropped, "packet"));
            Ok(Look::by(dropped as f64, 1.0, 10_000.0, fact, ADVICE).passing())
        },
    },
    Entry {
        id: "softnet-squeezes",
        why: "How often a CPU had more packets than it may take at once: they waited for ksoftirqd, \
              an ordinary thread.",
        source: "/proc/net/softnet_stat",
        look: |_| {
            let squeezed = softnet(&get("/proc/net/softnet_stat")?, 2);
            const ADVICE: &str = "sysctl net.core.netdev_budget=600 and net.core.netdev_budget_usecs=8000; \
                                  spread interrupts over CPUs.";
            let fact = format!("{} since boot", counted(squeezed, "time"));
            Ok(Look::by(squeezed as f64, 100.0, f64::INFINITY, fact, ADVICE).passing())
        },
    },
    Entry {
        id: "netdev-backlog",
        why: "How many packets fit into a CPU's queue before they are dropped.",
        source: "/proc/sys/net/core/netdev_max_backlog",
        look: |_| {
            let packets = number(&format!("{CORE}/netdev_max_backlog"))?;
            Ok(Look::good(counted(packets.unsigned_abs(), "packet")))
        },
    },
    Entry {
        id: "busy-poll",
        why: "With busy polling a receiver asks the network card itself, instead of waiting for its \
              interrupt: some 10 us less, for a CPU that is always busy.",
        source: "/proc/sys/net/core/busy_poll",
        look: |_| {
            let us = number(&format!("{CORE}/busy_poll"))?;
            Ok(Look::good(if us == 0 {
                "off".to_owned()
            } else {
                duration(us.unsigned_abs() * 1_000)
            }))
        },
    },
    Entry {
        id: "conntrack",
        why: "When the table of connections is full, new ones are dropped; and each packet costs a \
              look into it.",
        source: "/proc/sys/net/netfilter/nf_conntrack_count",
        look: |_| {
            let folder = "/proc/sys/net/netfilter";
            match number(&format!("{folder}/nf_conntrack_count")) {
                Ok(used) => Ok(conntrack(used, number(&format!("{folder}/nf_conntrack_max"))?)),
                Err(_) => Ok(Look::good("not in use")),
            }
        },
    },
    Entry {
        id: "resolver",
        why: "A name server that does not answer costs 5 s for each try, in whoever asks.",
        source: "/etc/resolv.conf",
        look: |_| resolver(&get("/etc/resolv.conf")?),
    },
];

fn buffer(most: i64, name: &str) -> Look {
    let most = most.unsigned_abs();
    match most < 1 << 20 {
        true => Look::attention(
            bytes(most),
            format!("sysctl net.core.{name}=8388608, and ask for it with setsockopt."),
        ),
        false => Look::good(bytes(most)),
    }
}

/// A value of a table in which a line of names is followed by a line of values.
pub(super) fn field(table: &str, protocol: &str, name: &str) -> Option<u64> {
    let of = |line: &&str| line.split_once(':').is_some_and(|(first, _)| first == protocol);
    let mut lines = table.lines().filter(of);
    let (names, values) = (lines.next()?, lines.next()?);
    let position = names.split_ascii_whitespace().position(|one| one == name)?;
    values.split_ascii_whitespace().nth(position)?.parse().ok()
}

/// Sum over CPUs of a column of /proc/net/softnet_stat, which is in hex.
fn softnet(table: &str, column: usize) -> u64 {
    let of_cpu = |line: &str| {
        let field = line.split_ascii_whitespace().nth(column)?;
        u64::from_str_radix(field, 16).ok()
    };
    table.lines().filter_map(of_cpu).sum()
}

fn udp_errors(receive: u64, send: u64, received: u64) -> Look {
    let lost = receive.saturating_add(send);
    let fact = format!("{} lost since boot", counted(lost, "datagram"));
    const ADVICE: &str = "A larger buffer (SO_RCVBUF, rmem-max) and a receiver that does not stall: \
                          whylag record -p of the receiver shows why it does.";
    Look::by(lost as f64, 1.0, 100_000.0, fact, ADVICE)
        .detail(format!(
            "{} for lack of receive buffer, {} received",
            count(receive),
            count(received)
        ))
        .passing()
}

fn conntrack(used: i64, most: i64) -> Look {
    let percent = 100.0 * used as f64 / most.max(1) as f64;
    let fact = format!("{} of the table", percentage(percent / 100.0));
    const ADVICE: &str = "sysctl net.netfilter.nf_conntrack_max, or no tracking for this traffic.";
    Look::by(percent, 50.0, 90.0, fact, ADVICE).passing()
}

fn resolver(config: &str) -> Result<Look, String> {
    let rows = |name: &str| -> Vec<&str> {
        let words = config.lines().map(|line| line.split_ascii_whitespace());
        words.filter_map(|mut words| (words.next()? == name).then(|| words.next())?).collect()
    };
    let servers = rows("nameserver");
    let options: Vec<&str> = config
        .lines()
        .filter_map(|line| line.strip_prefix("options "))
        .flat_map(str::split_ascii_whitespace)
        .collect();
    let number = |name: &str, default: u64| {
        let value = options.iter().find_map(|option| option.strip_prefix(name)?.strip_prefix(':'));
        value.and_then(|value| value.parse::<u64>().ok()).unwrap_or(default)
    };
    let fact = format!(
        "{}, {} s timeout, {} tries",
        counted(servers.len() as u64, "server"),
        number("timeout", 5),
        number("attempts", 2)
    );
    let detail = servers.join(", ");
    Ok(match (servers.len(), number("ndots", 1)) {
        (0, _) => Look::attention("no server", "Name a server, or make sure that nobody asks."),
        (_, ndots @ 2..) => Look::attention(
            format!("{fact}, ndots:{ndots}"),
            "With ndots above 1 each name is first tried with every search domain: write names with \
             a dot at their end, or lower ndots.",
        ),
        (1, _) => Look::attention(
            fact,
            "A second server, and options timeout:1 attempts:2, so that one that is away costs a \
             second and not ten.",
        ),
        _ => Look::good(fact),
    }
    .detail(detail))
}

#[cfg(test)]
mod tests {
    use model::CheckResult::{Attention, Bad, Good};

    use super::*;

    #[test]
    fn tables_of_two_lines() {
        const SNMP: &str = "Udp: InDatagrams NoPorts RcvbufErrors\nUdp: 100 2 887\n\
                            UdpLite: InDatagrams NoPorts RcvbufErrors\nUdpLite: 0 0 0\n";
        assert_eq!(field(SNMP, "Udp", "RcvbufErrors"), Some(887));
        assert_eq!(field(SNMP, "UdpLite", "RcvbufErrors"), Some(0));
        assert_eq!((field(SNMP, "Udp", "Absent"), field(SNMP, "Tcp", "InSegs")), (None, None));
        assert_eq!(softnet("0a 1f 2\n0b 1 ff\n", 1), 0x20);
    }

    #[test]
    fn drops_and_settings() {
        assert_eq!(
            [0, 887, 1_000_000].map(|n| udp_errors(n, 0, 9).verdict),
            [Good, Attention, Bad]
        );
        assert_eq!([212_992, 8 << 20].map(|n| buffer(n, "rmem_max").verdict), [Attention, Good]);
        assert_eq!([10, 60, 95].map(|n| conntrack(n, 100).verdict), [Good, Attention, Bad]);
    }

    #[test]
    fn resolvers() {
        let of = |text: &str| resolver(text).unwrap();
        assert_eq!(of("# none\n").verdict, Attention);
        assert_eq!(of("nameserver 1.1.1.1\nnameserver 8.8.8.8\n").verdict, Good);
        assert_eq!(
            of("nameserver 1.1.1.1\nnameserver 8.8.8.8\noptions ndots:5 timeout:1\n").verdict,
            Attention
        );
        assert_eq!(
            of("nameserver 1.1.1.1\noptions timeout:1\n").fact,
            "1 server, 1 s timeout, 2 tries"
        );
    }
}
