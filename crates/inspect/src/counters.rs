//! Numbers that the kernel keeps and that are worth reading before and after.
//!
//! Each has a stable name and the file it came from. What cannot be read is left out: a counter
//! that is not there is no evidence of anything.

mod processes;

use std::path::Path;

pub use self::processes::Processes;
use crate::fingerprint::cgroup;
use crate::read::text;

/// One reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Stable name; the unit is its last word where it is not a plain count.
    pub name: String,
    /// Value.
    pub value: u64,
    /// File it was read from.
    pub source: String,
}

/// What /proc/vmstat says that matters here, and the name we give it.
const VMSTAT: [(&str, &str); 15] = [
    ("nr_dirty", "vm.nr_dirty_pages"),
    ("nr_writeback", "vm.nr_writeback_pages"),
    ("nr_dirty_threshold", "vm.dirty_threshold_pages"),
    ("nr_dirty_background_threshold", "vm.dirty_background_threshold_pages"),
    ("allocstall_normal", "vm.direct_reclaims"),
    ("allocstall_movable", "vm.direct_reclaims_movable"),
    ("allocstall_dma32", "vm.direct_reclaims_dma32"),
    ("compact_stall", "vm.compact_stalls"),
    ("compact_fail", "vm.compact_failures"),
    ("numa_hint_faults", "vm.numa_hint_faults"),
    ("numa_pages_migrated", "vm.numa_pages_migrated"),
    ("pgmajfault", "vm.major_faults"),
    ("pswpin", "vm.swapped_in_pages"),
    ("nr_tlb_remote_flush", "vm.tlb_remote_flushes"),
    ("cow_ksm", "vm.ksm_copies"), // since 5.18
];

/// Rows of /proc/PID/status, and the name we give them.
const STATUS: [(&str, &str); 5] = [
    ("Threads", "process.threads"),
    ("TracerPid", "process.tracer_pid"),
    ("VmSize", "process.vm_size_kb"),
    ("VmRSS", "process.rss_kb"),
    ("Seccomp_filters", "process.seccomp_filters"), // since 5.9
];

/// What /proc/PID/net/netstat and snmp count in the network namespace of a process: group, field,
/// and the name we give it. No socket is walked for them.
const NETWORK: [(&str, &str, &str, &str); 8] = [
    ("netstat", "TcpExt", "ListenOverflows", "net.listen_overflows"),
    ("netstat", "TcpExt", "ListenDrops", "net.listen_drops"),
    ("netstat", "TcpExt", "DelayedACKs", "net.tcp_delayed_acks"),
    ("netstat", "TcpExt", "TCPTimeouts", "net.tcp_timeouts"),
    ("netstat", "TcpExt", "TCPLostRetransmit", "net.tcp_lost_retransmits"),
    ("snmp", "Tcp", "RetransSegs", "net.tcp_retransmitted"),
    ("snmp", "Udp", "InErrors", "net.udp_receive_errors"),
    ("snmp", "Udp", "RcvbufErrors", "net.udp_buffer_errors"),
];

/// Files of one number in a directory.
const KSM: [&str; 4] = ["run", "pages_shared", "pages_sharing", "full_scans"];

/// Counters of the host. About 100 us.
pub fn host() -> Vec<Reading> {
    let mut readings = softirqs();
    readings.extend(rows("/proc/vmstat", &VMSTAT));
    let ksm = Path::new("/sys/kernel/mm/ksm");
    readings.extend(KSM.iter().filter_map(|file| number(&format!("ksm.{file}"), ksm.join(file))));
    readings
}

/// Counters of a process, of its network namespace and its cgroups.
pub fn process(pid: u32) -> Vec<Reading> {
    Processes::default().read([pid])
}

/// What one process alone has.
fn own(pid: u32, merges: bool) -> Vec<Reading> {
    let mut readings = rows(&format!("/proc/{pid}/status"), &STATUS);
    let merging = format!("/proc/{pid}/ksm_merging_pages"); // since 5.19
    readings.extend(number("process.ksm_merging_pages", merging));
    if merges {
        // Since 6.1: pages that KSM goes through, merged or not.
        let offered = [("ksm_rmap_items", "process.ksm_offered_pages")];
        readings.extend(rows(&format!("/proc/{pid}/ksm_stat"), &offered));
    }
    readings
}

/// Whether KSM goes through pages. If not, /proc/PID/ksm_stat is not read: the kernel takes the mmap_lock
/// of the process for it and goes through its mappings (ksm_process_mergeable, seen in 6.18).
fn ksm_runs() -> bool {
    text("/sys/kernel/mm/ksm/run").is_ok_and(|run| run == "1")
}

/// Sums over all CPUs of /proc/softirqs.
fn softirqs() -> Vec<Reading> {
    const FILE: &str = "/proc/softirqs";
    let table = text(FILE).unwrap_or_default();
    let reading = |line: &str| {
        let (name, counts) = line.trim().split_once(':')?;
        let counts = counts.split_ascii_whitespace().filter_map(|n| n.parse::<u64>().ok());
        let value = counts.fold(0, |sum: u64, n| sum.saturating_add(n));
        let name = format!("softirq.{}", name.to_ascii_lowercase());
        Some(Reading { name, value, source: FILE.to_owned() })
    };
    table.lines().skip(1).filter_map(reading).collect()
}

/// Of the network namespace of a process, each group is a line of names and a line of values; named as
/// files of process `of`.
fn network(pid: u32, of: u32) -> Vec<Reading> {
    let mut readings = Vec::new();
    for file in ["netstat", "snmp"] {
        let source = format!("/proc/{of}/net/{file}");
        let table = text(format!("/proc/{pid}/net/{file}")).unwrap_or_default();
        let lines: Vec<&str> = table.lines().collect();
        for pair in lines.chunks_exact(2) {
            let [names, values] = pair else { continue };
            let columns = names.split_ascii_whitespace().zip(values.split_ascii_whitespace());
            let group = names.split(':').next().unwrap_or_default();
            for (field, value) in columns {
                let wanted = NETWORK.iter().find(|w| (w.0, w.1, w.2) == (file, group, field));
                if let Some((.., name)) = wanted
                    && let Ok(value) = value.parse()
                {
                    let name = (*name).to_owned();
                    readings.push(Reading { name, value, source: source.clone() });
                }
            }
        }
    }
    readings
}

/// How many AF_UNIX sockets are in the network namespace of a process: a count that the kernel
/// keeps by protocol. (/proc/net/unix would walk through them.)
fn unix_sockets(pid: u32, of: u32) -> Option<Reading> {
    let source = format!("/proc/{of}/net/protocols");
    let table = text(format!("/proc/{pid}/net/protocols")).ok()?;
    let of_unix = |line: &str| {
        let mut fields = line.split_ascii_whitespace();
        ["UNIX", "UNIX-STREAM"].contains(&fields.next()?).then_some(())?;
        fields.nth(1)?.parse::<u64>().ok()
    };
    let value = table.lines().filter_map(of_unix).sum();
    Some(Reading { name: "net.unix_sockets".to_owned(), value, source })
}

/// Version 1 and version 2 name the same things differently.
fn cpu_controller(directory: &Path) -> Vec<Reading> {
    let stat = directory.join("cpu.stat").to_string_lossy().into_owned();
    let mut readings = rows(
        &stat,
        &[
            ("nr_periods", "cgroup.cpu.nr_periods"),
            ("nr_throttled", "cgroup.cpu.nr_throttled"),
            ("throttled_time", "cgroup.cpu.throttled_ns"),
        ],
    );
    for mut usec in rows(&stat, &[("throttled_usec", "cgroup.cpu.throttled_ns")]) {
        usec.value = usec.value.saturating_mul(1000);
        readings.push(usec);
    }
    if let Some(quota) = cgroup::quota_in(directory) {
        let of = |name: &str, value| Reading {
            name: name.to_owned(),
            value,
            source: quota.source.clone(),
        };
        readings.push(of("cgroup.cpu.quota_us", quota.quota_us));
        readings.push(of("cgroup.cpu.period_us", quota.period_us));
    }
    readings
}

fn memory_controller(directory: &Path) -> Vec<Reading> {
    let files = [
        ("cgroup.memory.limit_bytes", "memory.limit_in_bytes"),
        ("cgroup.memory.limit_bytes", "memory.max"),
        ("cgroup.memory.usage_bytes", "memory.usage_in_bytes"),
        ("cgroup.memory.usage_bytes", "memory.current"),
        ("cgroup.memory.failcnt", "memory.failcnt"),
    ];
    let mut readings: Vec<_> =
        files.iter().filter_map(|(name, file)| number(name, directory.join(file))).collect();
    let events = directory.join("memory.events").to_string_lossy().into_owned();
    readings.extend(rows(&events, &[("max", "cgroup.memory.failcnt")]));
    readings
}

fn number(name: &str, file: impl AsRef<Path>) -> Option<Reading> {
    let value = text(file.as_ref()).ok()?.trim().parse().ok()?;
    let source = file.as_ref().to_string_lossy().into_owned();
    Some(Reading { name: name.to_owned(), value, source })
}

/// Rows `key value` or `key: value unit` of a file.
fn rows(file: &str, wanted: &[(&str, &str)]) -> Vec<Reading> {
    let table = text(file).unwrap_or_default();
    let reading = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let key = words.next()?.trim_end_matches(':');
        let (_, name) = wanted.iter().find(|(theirs, _)| *theirs == key)?;
        let value = words.next()?.parse().ok()?;
        Some(Reading { name: (*name).to_owned(), value, source: file.to_owned() })
    };
    table.lines().filter_map(reading).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(readings: &[Reading], name: &str) -> u64 {
        readings.iter().find(|r| r.name == name).unwrap_or_else(|| panic!("{name}")).value
    }

    #[test]
    fn the_host_and_this_process_are_read() {
        let host = host();
        assert!(value(&host, "softirq.timer") > 0 && value(&host, "vm.dirty_threshold_pages") > 0);
        let own = process(std::process::id());
        assert!(value(&own, "process.threads") >= 2, "the test runner has threads: {own:?}");
        assert!(value(&own, "process.rss_kb") < value(&own, "process.vm_size_kb"));
        assert!(process(u32::MAX).is_empty());
        let network = own.iter().filter(|reading| reading.name.starts_with("net."));
        assert_eq!(network.count(), NETWORK.len() + 1);
        let (_mine, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        assert!(value(&process(std::process::id()), "net.unix_sockets") >= 2);
    }

    #[test]
    fn both_versions_of_the_cpu_controller_give_the_same_names() {
        let folder = std::env::temp_dir().join(format!("whylag-counters-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for stat in ["nr_throttled 7\nthrottled_time 5000\n", "nr_throttled 7\nthrottled_usec 5\n"]
        {
            std::fs::write(folder.join("cpu.stat"), stat).unwrap();
            let readings = cpu_controller(&folder);
            assert_eq!(value(&readings, "cgroup.cpu.nr_throttled"), 7);
            assert_eq!(value(&readings, "cgroup.cpu.throttled_ns"), 5000);
        }
        std::fs::write(folder.join("cpu.max"), "20000 50000\n").unwrap();
        assert_eq!(value(&cpu_controller(&folder), "cgroup.cpu.quota_us"), 20_000);
        std::fs::write(folder.join("cpu.cfs_quota_us"), "7000\n").unwrap();
        std::fs::write(folder.join("cpu.cfs_period_us"), "9000\n").unwrap();
        assert_eq!(value(&cpu_controller(&folder), "cgroup.cpu.period_us"), 9000);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
