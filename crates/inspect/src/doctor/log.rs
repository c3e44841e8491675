//! What the kernel has said: a line in its log is often the only trace of a stall.

use model::units::counted;

use super::entry::{Entry, Host, Look};

/// The log is at most some MiB; no more than this is read, bytes.
const LONGEST: usize = 32 << 20;

macro_rules! says {
    ($id:literal, $why:literal, $patterns:expr, $worst:ident, $advice:literal) => {
        Entry {
            id: $id,
            why: $why,
            source: "the kernel's log",
            look: |host| Ok(said(host.log.as_deref()?, $patterns, Look::$worst, $advice)),
        }
    };
}

pub(super) const ENTRIES: &[Entry<Host>] = &[
    says!(
        "log-clock",
        "When the kernel mistrusts the time stamp counter it changes to a slow clock, for good.",
        &[
            "tsc unstable",
            "tsc: Marking TSC unstable",
            "Marking clocksource",
            "clocksource: Switched to clocksource hpet"
        ],
        bad,
        "See clocksource; the lines before say which CPU differed. Firmware and microcode are the usual causes."
    ),
    says!(
        "log-nohz",
        "If NO_HZ_FULL does not work, the tick goes on interrupting the CPUs that should be left alone.",
        &["NO_HZ FULL will not work", "NO_HZ: Can't run"],
        bad,
        "It needs a stable time stamp counter; see clocksource."
    ),
    says!(
        "log-hung-task",
        "A thread that sleeps uninterruptibly for two minutes waits for a disk or a lock that others wait for as well.",
        &["blocked for more than"],
        bad,
        "The stack that follows the line says what it waits for."
    ),
    says!(
        "log-lockup",
        "A CPU that does not schedule for 20 s stops everything on it; shorter stalls of the kind are not reported.",
        &[
            "soft lockup",
            "hard LOCKUP",
            "detected stall",
            "detected expedited stalls",
            "self-detected stall"
        ],
        bad,
        "The stack says where. On a virtual machine it can mean that the hypervisor took the CPU away."
    ),
    says!(
        "log-machine-check",
        "Corrected memory errors and machine checks stop all CPUs for the time of a system management interrupt.",
        &["Hardware Error", "Machine check events logged", "mce: CPU", "EDAC"],
        bad,
        "mcelog or rasdaemon names the part to be exchanged."
    ),
    says!(
        "log-throttled",
        "A CPU that is throttled runs at a part of its speed.",
        &[
            "cpu clock throttled",
            "clock throttled",
            "RT throttling activated",
            "temperature above threshold"
        ],
        attention,
        "Cooling and power limits for a hot CPU; for real-time threads see rt-throttling."
    ),
    says!(
        "log-oom",
        "Before the kernel kills a process for lack of memory, all that need memory wait for reclaim.",
        &["Out of memory: Killed", "Memory cgroup out of memory", "invoked oom-killer"],
        attention,
        "More memory or a higher limit of the cgroup; whylag record shows direct and memcg reclaim."
    ),
    says!(
        "log-slow-interrupt",
        "An interrupt that runs for long stops whatever thread it hit.",
        &["hrtimer: interrupt took", "interrupt took too long", "INFO: NMI handler"],
        attention,
        "On a virtual machine this is the hypervisor; else whylag record shows which interrupt runs."
    ),
    says!(
        "log-io",
        "A disk that reports errors retries for seconds.",
        &[
            "I/O error",
            "blk_update_request",
            "task abort",
            "link is slow to respond",
            "failed command"
        ],
        bad,
        "Look at the disk (smartctl) and its cable or path."
    ),
];

/// The kernel's log.
pub(super) fn read() -> Result<String, String> {
    const READ_ALL: libc::c_int = 3;
    const SIZE_OF_BUFFER: libc::c_int = 10;
    let refused = || {
        let error = std::io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EPERM) => {
                "no permission to read the kernel's log (needs root or CAP_SYSLOG, or \
                 kernel.dmesg_restrict=0)"
                    .to_owned()
            }
            _ => format!("the kernel's log cannot be read: {error}"),
        }
    };
    // SAFETY: this asks for a number, and uses no buffer.
    let size = unsafe { libc::klogctl(SIZE_OF_BUFFER, std::ptr::null_mut(), 0) };
    let size = usize::try_from(size).map_err(|_| refused())?.min(LONGEST);
    let mut buffer = vec![0u8; size];
    let length = libc::c_int::try_from(size).unwrap_or(libc::c_int::MAX);
    // SAFETY: the buffer is valid for `length` bytes; nothing is taken out of the log.
    let read = unsafe { libc::klogctl(READ_ALL, buffer.as_mut_ptr().cast(), length) };
    buffer.truncate(usize::try_from(read).map_err(|_| refused())?);
    Ok(String::from_utf8_lossy(&buffer).into_owned())
}

/// What of it matters: the lines with one of the patterns, and the newest of them.
fn said(
    log: &str,
    patterns: &[&str],
    verdict: fn(String, &'static str) -> Look,
    advice: &'static str,
) -> Look {
    let is_about = |line: &&str| patterns.iter().any(|pattern| line.contains(pattern));
    let lines: Vec<&str> = log.lines().filter(is_about).collect();
    let look = match lines.last() {
        None => Look::good("nothing"),
        Some(newest) => {
            // Level in angle brackets, then the message.
            let text = newest.strip_prefix('<').and_then(|rest| rest.split_once('>'));
            let newest = text.map_or(*newest, |(_, text)| text).trim();
            verdict(counted(lines.len() as u64, "line"), advice)
                .detail(format!("the newest: {newest}"))
        }
    };
    look.passing()
}

#[cfg(test)]
mod tests {
    use model::CheckResult::{Attention, Bad, Good};

    use super::*;

    #[test]
    fn each_pattern_belongs_to_one_check() {
        for (line, id, verdict) in [
            (
                "<4>[  9.1] clocksource: timekeeping watchdog on CPU2: Marking clocksource 'tsc' as unstable because the skew is too large:",
                "log-clock",
                Bad,
            ),
            (
                "<3>[ 99.0] INFO: task jbd2/sda1-8:301 blocked for more than 120 seconds.",
                "log-hung-task",
                Bad,
            ),
            (
                "<0>[ 12.0] watchdog: BUG: soft lockup - CPU#1 stuck for 22s! [x:77]",
                "log-lockup",
                Bad,
            ),
            ("<4>[  7.7] sched: RT throttling activated", "log-throttled", Attention),
            ("<3>[ 50.2] Out of memory: Killed process 77 (java)", "log-oom", Attention),
            (
                "<6>[ 50.2] perf: interrupt took too long (2501 > 2500), lowering",
                "log-slow-interrupt",
                Attention,
            ),
            ("<3>[ 50.2] blk_update_request: I/O error, dev sda, sector 0", "log-io", Bad),
            ("<4>[  0.1] NO_HZ FULL will not work with unstable sched clock", "log-nohz", Bad),
            (
                "<2>[  0.1] mce: [Hardware Error]: Machine check events logged",
                "log-machine-check",
                Bad,
            ),
        ] {
            let host = Host { log: Ok(line.to_owned()), ..Host::read() };
            for entry in ENTRIES {
                let look = (entry.look)(&host).unwrap();
                assert_eq!(
                    look.verdict,
                    if entry.id == id { verdict } else { Good },
                    "{}: {line}",
                    entry.id
                );
            }
        }
    }

    #[test]
    fn the_newest_line_is_shown_without_its_level() {
        let look = said(
            "<3>[1.0] x: I/O error a\n<3>[2.0] x: I/O error b\n",
            &["I/O error"],
            Look::bad,
            "Do.",
        );
        assert_eq!(look.fact, "2 lines");
        assert!(format!("{look:?}").contains("the newest: [2.0] x: I/O error b"), "{look:?}");
    }
}
