//! What the kernel has said: a line in its log is often the only trace of a stall.
//!
//! The patterns are format strings of the kernel (see [`begins`]), of today's and older ones.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;

use model::units::counted;

use super::entry::{Entry, Host, Look};
use super::pattern::begins;

/// The log is at most some MiB; no more than this is read, bytes.
const LONGEST: usize = 32 << 20;

/// Longer than any message.
const LONGEST_MESSAGE: usize = 16 << 10;

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
            "tsc: Marking TSC unstable due to",
            "clocksource: timekeeping watchdog on CPU*Marking clocksource",
            "clocksource: timekeeping watchdog on CPU*marking *unstable",
            "Clocksource tsc unstable",
            "clocksource: Switched to clocksource hpet"
        ],
        bad,
        "See clocksource; the lines before say which CPU differed. Firmware and microcode are the usual causes."
    ),
    says!(
        "log-nohz",
        "If NO_HZ_FULL does not work, the tick goes on interrupting the CPUs that should be left alone.",
        &["NO_HZ FULL will not work", "NO_HZ: Can't run full dynticks"],
        bad,
        "It needs a stable time stamp counter; see clocksource."
    ),
    says!(
        "log-hung-task",
        "A thread that sleeps uninterruptibly for two minutes waits for a disk or a lock that others wait for as well.",
        &["INFO: task *:# blocked *for more than # seconds.$"],
        bad,
        "The stack that follows the line says what it waits for."
    ),
    says!(
        "log-lockup",
        "A CPU that does not schedule for 20 s stops everything on it; shorter stalls of the kind are not reported.",
        &[
            "watchdog: BUG: soft lockup - CPU",
            "NMI watchdog: BUG: soft lockup - CPU",
            "BUG: soft lockup - CPU",
            "watchdog: Watchdog detected hard LOCKUP",
            "watchdog: CPU#: Watchdog detected hard LOCKUP",
            "NMI watchdog: Watchdog detected hard LOCKUP",
            "rcu: INFO: & self-detected stall on CPU",
            "rcu: INFO: & detected stalls on ",
            "rcu: INFO: & detected expedited stalls on ",
            "INFO: & self-detected stall on CPU",
            "INFO: & detected stalls on ",
            "INFO: & detected expedited stalls on "
        ],
        bad,
        "The stack says where. On a virtual machine it can mean that the hypervisor took the CPU away."
    ),
    says!(
        "log-machine-check",
        "Corrected memory errors and machine checks stop all CPUs for the time of a system management interrupt.",
        &[
            "mce: [Hardware Error]: ",
            "[Hardware Error]: ",
            "{#}[Hardware Error]: ",
            "EDAC MC#: # CE &*page:0x*offset:0x*grain:#",
            "EDAC MC#: # UE &*page:0x*offset:0x*grain:#"
        ],
        bad,
        "mcelog or rasdaemon names the part to be exchanged."
    ),
    says!(
        "log-throttled",
        "A CPU that is throttled runs at a part of its speed.",
        &[
            "CPU#: & temperature is above threshold, cpu clock is throttled",
            "CPU#: & temperature above threshold, cpu clock throttled",
            "mce: CPU#: & temperature above threshold, cpu clock throttled",
            "sched: RT throttling activated"
        ],
        attention,
        "Cooling and power limits for a hot CPU; for real-time threads see rt-throttling."
    ),
    says!(
        "log-oom",
        "Before the kernel kills a process for lack of memory, all that need memory wait for reclaim.",
        &[
            "Out of memory: Kill",
            "Memory cgroup out of memory: Kill",
            "Out of memory (oom_kill_allocating_task): Kill"
        ],
        attention,
        "More memory or a higher limit of the cgroup; whylag record shows direct and memcg reclaim."
    ),
    says!(
        "log-slow-interrupt",
        "An interrupt that runs for long stops whatever thread it hit.",
        &[
            "hrtimer: interrupt took # ns",
            "perf: interrupt took too long (",
            "perf interrupt took too long (",
            "INFO: NMI handler (*) took too long to run"
        ],
        attention,
        "On a virtual machine this is the hypervisor; else whylag record shows which interrupt runs."
    ),
    says!(
        "log-io",
        "A disk that reports errors retries for seconds.",
        &[
            "I/O error, dev &, sector #",
            "critical & error, dev &, sector #",
            "blk_update_request: *error, dev ",
            "print_req_error: I/O error, dev ",
            "print_req_error: critical & error, dev ",
            "end_request: I/O error, dev ",
            "Buffer I/O error on dev",
            "sd #:#:#:#: attempting task abort!",
            "sd #:#:#:#: task abort: ",
            "ata#: link is slow to respond",
            "ata#.#: failed command: "
        ],
        bad,
        "Look at the disk (smartctl) and its cable or path."
    ),
];

/// The kernel's own messages, each in a line: its time in brackets, then its text. Read from
/// /dev/kmsg, where a message is whole: in what syslog(2) gives, a line break in the name of a program
/// begins a line that looks like one of the kernel.
pub(super) fn read() -> Result<String, String> {
    const LOG: &str = "/dev/kmsg";
    let refused = |error: io::Error| match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => {
            "no permission to read the kernel's log (needs root or CAP_SYSLOG, or \
             kernel.dmesg_restrict=0)"
                .to_owned()
        }
        Some(libc::ENOENT) => format!("there is no {LOG} here"),
        _ => format!("{LOG} cannot be read: {error}"),
    };
    let mut options = File::options();
    let options = options.read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    let mut log = options.open(LOG).map_err(refused)?;
    let mut lines = String::new();
    let mut record = vec![0; LONGEST_MESSAGE];
    while lines.len() < LONGEST {
        match log.read(&mut record) {
            Ok(0) => break,
            Ok(length) => lines.extend(line(&String::from_utf8_lossy(&record[..length]))),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            // What was to be read next has been overwritten.
            Err(error) if error.raw_os_error() == Some(libc::EPIPE) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(refused(error)),
        }
    }
    Ok(lines)
}

/// Of a record `PRIORITY,NUMBER,MICROSECONDS,FLAGS...;TEXT`; nothing of what programs wrote there.
fn line(record: &str) -> Option<String> {
    const FACILITY_OF_KERNEL: u32 = 0;
    let (head, text) = record.split_once(';')?;
    let mut head = head.split(',');
    let (priority, us): (u32, u64) = (head.next()?.parse().ok()?, head.nth(1)?.parse().ok()?);
    let text = text.lines().next()?;
    let time = format!("{}.{:06}", us / 1_000_000, us % 1_000_000);
    (priority >> 3 == FACILITY_OF_KERNEL).then(|| format!("[{time}] {text}\n"))
}

/// What of it matters: the messages that begin with one of the patterns, and the newest of them.
fn said(
    log: &str,
    patterns: &[&str],
    verdict: fn(String, &'static str) -> Look,
    advice: &'static str,
) -> Look {
    let is_about = |line: &&str| {
        let message = line.split_once("] ").map_or(*line, |(_, message)| message);
        patterns.iter().any(|pattern| begins(message, pattern))
    };
    let lines: Vec<&str> = log.lines().filter(is_about).collect();
    let look = match lines.last() {
        None => Look::good("nothing"),
        Some(newest) => verdict(counted(lines.len() as u64, "line"), advice)
            .detail(format!("the newest: {newest}")),
    };
    look.passing()
}

#[cfg(test)]
mod tests {
    use model::CheckResult::{Attention, Bad, Good};

    use super::*;

    /// As kernels of 3.10 to 6.18 write them.
    const MESSAGES: &[(&str, &[&str])] = &[
        (
            "log-clock",
            &[
                "tsc: Marking TSC unstable due to clocksource watchdog",
                "clocksource: timekeeping watchdog on CPU2: Marking clocksource 'tsc' as unstable because the skew is too large:",
                "clocksource: timekeeping watchdog on CPU13: wd-tsc-wd excessive read-back delay of 1000614ns vs. limit of 125000ns, wd-wd read-back delay only 27ns, attempt 3, marking tsc unstable",
                "Clocksource tsc unstable (delta = 4396384657 ns)",
                "clocksource: Switched to clocksource hpet",
            ],
        ),
        (
            "log-nohz",
            &[
                "NO_HZ FULL will not work with unstable sched clock",
                "NO_HZ: Can't run full dynticks because arch doesn't support irq work self-IPIs",
            ],
        ),
        (
            "log-hung-task",
            &[
                "INFO: task jbd2/sda1-8:301 blocked for more than 120 seconds.",
                "INFO: task a: b c:7 blocked in I/O wait for more than 122 seconds.",
            ],
        ),
        (
            "log-lockup",
            &[
                "watchdog: BUG: soft lockup - CPU#1 stuck for 22s! [x:77]",
                "NMI watchdog: BUG: soft lockup - CPU#1 stuck for 22s! [x:77]",
                "BUG: soft lockup - CPU#1 stuck for 22s! [x:77]",
                "watchdog: Watchdog detected hard LOCKUP on cpu 3",
                "watchdog: CPU3: Watchdog detected hard LOCKUP on cpu 3",
                "NMI watchdog: Watchdog detected hard LOCKUP on cpu 1",
                "rcu: INFO: rcu_preempt self-detected stall on CPU",
                "rcu: INFO: rcu_sched detected stalls on CPUs/tasks:",
                "rcu: INFO: rcu_preempt detected expedited stalls on CPUs/tasks: { 1-... } 5443 jiffies s: 49 root: 0x2/.",
                "INFO: rcu_sched self-detected stall on CPU { 3}  (t=60000 jiffies)",
                "INFO: rcu_tasks detected stalls on tasks:",
                "INFO: rcu_sched detected expedited stalls on CPUs/tasks: {",
            ],
        ),
        (
            "log-machine-check",
            &[
                "mce: [Hardware Error]: Machine check events logged",
                "[Hardware Error]: Corrected error, no action required.",
                "{1}[Hardware Error]: Hardware error from APEI Generic Hardware Error Source: 0",
                "EDAC MC0: 1 CE memory read error on CPU_SrcID#0_MC#0_Chan#1_DIMM#0 (channel:1 slot:0 page:0x1f3 offset:0x40 grain:32 syndrome:0x0 -  err_code:0x0101:0x0090)",
                "EDAC MC1: 2 UE ie31200 UE on mc#1csrow#0channel#0 (csrow:0 page:0x0 offset:0x0 grain:8)",
            ],
        ),
        (
            "log-throttled",
            &[
                "CPU7: Core temperature is above threshold, cpu clock is throttled (total events = 219)",
                "CPU7: Package temperature above threshold, cpu clock throttled (total events = 1)",
                "mce: CPU7: Package temperature above threshold, cpu clock throttled (total events = 1)",
                "sched: RT throttling activated",
            ],
        ),
        (
            "log-oom",
            &[
                "Out of memory: Killed process 77 (java) total-vm:5kB, anon-rss:1kB",
                "Out of memory: Kill process 77 (java) score 900 or sacrifice child",
                "Memory cgroup out of memory: Killed process 77 (java) total-vm:5kB",
                "Out of memory (oom_kill_allocating_task): Killed process 77 (java) total-vm:5kB",
            ],
        ),
        (
            "log-slow-interrupt",
            &[
                "hrtimer: interrupt took 123456 ns",
                "perf: interrupt took too long (2501 > 2500), lowering kernel.perf_event_max_sample_rate to 79750",
                "perf interrupt took too long (2501 > 2500), lowering kernel.perf_event_max_sample_rate to 50000",
                "INFO: NMI handler (perf_event_nmi_handler) took too long to run: 2.277 msecs",
            ],
        ),
        (
            "log-io",
            &[
                "I/O error, dev nvme0n1, sector 0 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2",
                "critical medium error, dev sda, sector 7 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2",
                "blk_update_request: critical target error, dev sda, sector 0",
                "print_req_error: I/O error, dev sda, sector 0",
                "print_req_error: critical medium error, dev sda, sector 0",
                "end_request: I/O error, dev sda, sector 0",
                "Buffer I/O error on dev dm-3, logical block 1, async page read",
                "Buffer I/O error on device vda2, logical block 51184",
                "sd 11:0:3:0: attempting task abort!scmd(0x00000000931cd1e4), outstanding for 7174 ms & timeout 7000 ms",
                "sd 11:0:3:0: task abort: SUCCESS scmd(0x00000000931cd1e4)",
                "ata1: link is slow to respond, please be patient (ready=0)",
                "ata1.00: failed command: READ FPDMA QUEUED",
            ],
        ),
    ];

    fn verdicts(log: String) -> Vec<(&'static str, model::CheckResult)> {
        let host = Host {
            config: Err(String::new()),
            command_line: String::new(),
            cpuinfo: String::new(),
            vmstat: String::new(),
            log: Ok(log),
        };
        let looks = ENTRIES.iter().map(|entry| (entry.id, (entry.look)(&host).unwrap()));
        looks.map(|(id, look)| (id, look.verdict)).collect()
    }

    #[test]
    fn each_message_belongs_to_one_check() {
        for (id, messages) in MESSAGES {
            for message in *messages {
                for (of, verdict) in verdicts(format!("[    9.100000] {message}\n")) {
                    assert_eq!(verdict != Good, of == *id, "{of}: {message}");
                }
            }
        }
        let patterns = verdicts(String::new());
        assert!(patterns.iter().all(|(_, verdict)| *verdict == Good));
        assert_eq!(patterns.len(), MESSAGES.len(), "each has messages here");
        let verdict = |id: &str| {
            let message = MESSAGES.iter().find(|(of, _)| *of == id).unwrap().1[0];
            let all = verdicts(format!("[9.1] {message}"));
            all.into_iter().find(|(of, _)| *of == id).unwrap().1
        };
        assert_eq!((verdict("log-lockup"), verdict("log-oom")), (Bad, Attention));
    }

    /// A program can have any name of 15 bytes, and can crash in a file of any name; it can mount a
    /// tmpfs with any option, in a namespace of its own.
    #[test]
    fn what_a_program_makes_the_kernel_say_is_no_message_of_its_own() {
        for message in MESSAGES.iter().flat_map(|(_, messages)| *messages) {
            for length in 1..=15 {
                let name = &message[..length];
                let rest = &message[length..];
                let file = rest.trim_start_matches('[').replace('/', "");
                for said in [
                    format!("{name}[77]: segfault at 0 ip 0 sp 0 error 4 in {file}[0,1000]"),
                    format!(
                        "{name}[77]: segfault at 0 ip 0 sp 0 error 4 in {message}[0,1000] likely on CPU 1 (core 0, socket 0)"
                    ),
                    format!(
                        "traps: {name}[77] general protection fault ip:0 sp:0 error:0 in {file}[0,1000]"
                    ),
                    format!(
                        "{name} invoked oom-killer: gfp_mask=0x140cca(GFP_HIGHUSER_MOVABLE|__GFP_COMP), order=0, oom_score_adj=0"
                    ),
                    format!(
                        "{name}: page allocation failure: order:4, mode:0x1(GFP), nodemask=(null),cpuset={file},mems_allowed=0"
                    ),
                    format!("{name} (77): drop_caches: 1"),
                    format!("tmpfs: Unknown parameter '\\x0a{message}'"),
                    format!("x\\x0a{name}[77]: segfault at 0 ip 0 sp 0 error 4"),
                ] {
                    let all = verdicts(format!("[    9.100000] {said}\n"));
                    assert!(all.iter().all(|(_, verdict)| *verdict == Good), "{said}: {all:?}");
                }
            }
        }
    }

    /// Those that every host says when it boots.
    #[test]
    fn what_says_no_more_than_that_there_is_something_is_none_either() {
        for message in [
            "EDAC MC: Ver: 3.0.0",
            "EDAC MC0: Giving out device to module skx_edac controller Skylake Socket#0 IMC#0: DEV 0000:3a:0a.0 (INTERRUPT)",
            "mce: CPU0: Thermal monitoring enabled (TM1)",
            "mce: CPU supports 20 MCE banks",
            "clocksource: Switched to clocksource tsc",
            "clocksource: timekeeping watchdog on CPU3: hpet retried 2 times before success",
            "watchdog: Delayed init of the lockup detector failed: -22",
        ] {
            let all = verdicts(format!("[    0.100000] {message}\n"));
            assert!(all.iter().all(|(_, verdict)| *verdict == Good), "{message}: {all:?}");
        }
    }

    #[test]
    fn records_of_the_kernel_alone_are_lines() {
        let of = |record: &str| line(record);
        let record = "3,1234,99000000,-;ata1: a; b\n SUBSYSTEM=scsi\n DEVICE=+scsi:1\n";
        assert_eq!(of(record).unwrap(), "[99.000000] ata1: a; b\n");
        assert_eq!(of("6,1,7,-,caller=T1;x").unwrap(), "[0.000007] x\n");
        assert_eq!(of("12,1,7,-;soft lockup of a user"), None);
        assert_eq!(of("3,1,7;"), None);
        assert_eq!(of("no record"), None);
    }

    #[test]
    fn the_newest_line_is_shown() {
        let log = "[1.0] I/O error, dev a, sector 1\n[2.0] I/O error, dev b, sector 2\n";
        let look = said(log, &["I/O error, dev &"], Look::bad, "Do.");
        assert_eq!(look.fact, "2 lines");
        let newest = "the newest: [2.0] I/O error, dev b, sector 2";
        assert!(format!("{look:?}").contains(newest), "{look:?}");
    }
}
