//! Disks, file systems, and where kernel messages go.

use model::units::{fine_duration, percentage};

use super::entry::{Entry, Host, Look, choice, get, number, pressure};

pub(super) const ENTRIES: &[Entry<Host>] = &[
    Entry {
        id: "io-scheduler",
        why: "bfq holds requests back to order them, which costs fast disks most; without any \
              scheduler a slow disk serves whoever writes most.",
        source: "/sys/block/*/queue/scheduler",
        look: |_| io_scheduler(&disks()),
    },
    Entry {
        id: "disk-writes",
        why: "How long a write to the disk took on average, queueing included; fsync waits for two \
              or three of them.",
        source: "/proc/diskstats",
        look: |_| disk_writes(&get("/proc/diskstats")?),
    },
    Entry {
        id: "mount-options",
        why: "sync waits for the disk at each write, data=journal writes everything twice, discard \
              sends a command to the disk at each delete.",
        source: "/proc/self/mounts",
        look: |_| Ok(mount_options(&get("/proc/self/mounts")?)),
    },
    Entry {
        id: "access-times",
        why: "With strictatime each read of a file is also a write of its inode.",
        source: "/proc/self/mounts",
        look: |_| Ok(access_times(&get("/proc/self/mounts")?)),
    },
    Entry {
        id: "io-pressure",
        why: "The share of the last ten seconds in which some thread waited for a disk.",
        source: "/proc/pressure/io",
        look: |_| Ok(io_pressure(pressure("/proc/pressure/io")?)),
    },
    Entry {
        id: "console",
        why: "A kernel message to a serial console keeps a CPU busy for 87 us per character at \
              115,200 baud, often with interrupts off; one to a screen (console=tty0) scrolls it \
              under a lock that whoever else writes a message waits for.",
        source: "/proc/consoles, /proc/sys/kernel/printk",
        look: |_| Ok(console(&get("/proc/consoles")?, number("/proc/sys/kernel/printk")?)),
    },
    Entry {
        id: "core-dumps",
        why: "A program that crashes is not restarted before its memory is written.",
        source: "/proc/sys/kernel/core_pattern",
        look: |_| Ok(core_dumps(&get("/proc/sys/kernel/core_pattern")?)),
    },
    Entry {
        id: "aio-limit",
        why: "When the limit of asynchronous requests is reached, io_setup fails and databases fall \
              back to waiting.",
        source: "/proc/sys/fs/aio-nr",
        look: |_| Ok(aio(number("/proc/sys/fs/aio-nr")?, number("/proc/sys/fs/aio-max-nr")?)),
    },
];

/// A disk: name, scheduler, whether it turns.
type Disk = (String, String, bool);

/// Real disks: no loop devices, no memory.
fn disks() -> Vec<Disk> {
    let entries = std::fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let is_real = |name: &String| {
        !["loop", "ram", "zram", "sr", "fd"]
            .iter()
            .any(|kind| name.strip_prefix(kind).is_some_and(|rest| rest.parse::<u32>().is_ok()))
    };
    let disk = |name: String| {
        let queue = format!("/sys/block/{name}/queue");
        let scheduler = choice(&format!("{queue}/scheduler")).ok()?;
        Some((name, scheduler, number(&format!("{queue}/rotational")) == Ok(1)))
    };
    let mut disks: Vec<Disk> = names.filter(is_real).filter_map(disk).collect();
    disks.sort();
    disks
}

fn io_scheduler(disks: &[Disk]) -> Result<Look, String> {
    let schedulers: Vec<String> =
        disks.iter().map(|(name, scheduler, _)| format!("{name}: {scheduler}")).collect();
    let fact = schedulers.join(", ");
    if disks.is_empty() {
        return Err("no disk in /sys/block".to_owned());
    }
    let is_held_up = disks.iter().any(|(_, name, turns)| name == "bfq" && !turns);
    let is_unordered = disks.iter().any(|(_, name, turns)| name == "none" && *turns);
    Ok(match (is_held_up, is_unordered) {
        (true, _) => Look::attention(fact, "none or mq-deadline for disks that do not turn."),
        // A virtual disk is often said to turn and does not.
        (false, true) => Look::good(fact).detail("said to turn: mq-deadline if that is true"),
        (false, false) => Look::good(fact),
    })
}

fn disk_writes(diskstats: &str) -> Result<Look, String> {
    let names: Vec<String> = disks().into_iter().map(|(name, ..)| name).collect();
    let slowest = diskstats.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let (name, writes, ms) = (fields.get(2)?, fields.get(7)?, fields.get(10)?);
        let (writes, ms): (f64, f64) = (writes.parse().ok()?, ms.parse().ok()?);
        let is_known = names.iter().any(|one| one == name) && writes >= 100.0;
        is_known.then(|| (ms / writes, (*name).to_owned()))
    });
    let slowest = slowest.max_by(|a, b| a.0.total_cmp(&b.0));
    let (ms, name) = slowest.ok_or("no disk was written to a hundred times")?;
    const ADVICE: &str = "whylag bench fsync shows what one costs now; a slow disk needs fewer \
                          flushes, or another disk for the journal.";
    let fact = format!("{name}: {} each since boot", fine_duration(ms * 1e6));
    Ok(Look::by(ms, 10.0, 100.0, fact, ADVICE).passing())
}

/// (mount point, options) of file systems on disks. Not of FUSE: whoever mounts it says what its source
/// is called, and users may.
fn on_disks(mounts: &str) -> impl Iterator<Item = (&str, Vec<&str>)> {
    mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ');
        let (device, point) = (fields.next()?, fields.next()?);
        let (kind, options) = (fields.next()?, fields.next()?);
        let is_on_disk = device.starts_with("/dev/") && !kind.starts_with("fuse");
        is_on_disk.then(|| (point, options.split(',').collect()))
    })
}

fn mount_options(mounts: &str) -> Look {
    const SLOW: [&str; 5] = ["sync", "dirsync", "data=journal", "discard", "journal_checksum"];
    let mut found: Vec<String> = on_disks(mounts)
        .flat_map(|(point, options)| {
            let slow = options.into_iter().filter(|option| SLOW.contains(option));
            slow.map(|option| format!("{point}: {option}")).collect::<Vec<_>>()
        })
        .collect();
    found.sort();
    found.dedup();
    match found[..] {
        [] => Look::good("nothing that waits"),
        _ => Look::attention(
            found.join(", "),
            "Mount without it; instead of discard run fstrim at quiet times.",
        ),
    }
}

fn access_times(mounts: &str) -> Look {
    let strict = on_disks(mounts).find(|(_, options)| {
        options.contains(&"strictatime")
            || !options.iter().any(|option| ["relatime", "noatime", "ro"].contains(option))
    });
    match strict {
        Some((point, _)) => Look::attention(format!("{point}: each read"), "Mount with noatime."),
        None => Look::good("at most once a day"),
    }
}

fn io_pressure(percent: f64) -> Look {
    const ADVICE: &str = "whylag record -a shows who waits for the disk, and who writes.";
    let fact = format!("{} of the last 10 s", percentage(percent / 100.0));
    Look::by(percent, 5.0, 30.0, fact, ADVICE).passing()
}

fn console(consoles: &str, level: i64) -> Look {
    let slow: Vec<&str> = consoles
        .lines()
        .filter_map(|line| line.split_ascii_whitespace().next())
        .filter(|name| name.starts_with("tty") || name.starts_with("hvc"))
        .collect();
    let detail = format!("messages below level {level} are shown");
    match (slow.is_empty(), level) {
        (true, _) => Look::good("no serial console, no screen"),
        // Up to errors only.
        (false, ..=4) => Look::good(format!("{}, errors only", slow.join(", "))),
        (false, _) => Look::attention(
            format!("{}, level {level}", slow.join(", ")),
            "sysctl kernel.printk=\"4 4 1 7\", or quiet on the kernel's command line.",
        ),
    }
    .detail(detail)
}

fn core_dumps(pattern: &str) -> Look {
    match pattern.strip_prefix('|') {
        Some(program) => Look::good(format!(
            "to a program ({})",
            program.split_ascii_whitespace().next().unwrap_or("none")
        )),
        None if pattern.is_empty() => Look::good("none"),
        None => Look::good(format!("to a file ({pattern})")),
    }
}

fn aio(used: i64, most: i64) -> Look {
    let share = 100.0 * used as f64 / most.max(1) as f64;
    const ADVICE: &str = "sysctl fs.aio-max-nr=1048576.";
    Look::by(share, 70.0, 95.0, format!("{} of {most} in use", percentage(share / 100.0)), ADVICE)
        .passing()
}

#[cfg(test)]
mod tests {
    use model::CheckResult::{Attention, Good};

    use super::*;

    #[test]
    fn schedulers() {
        let disk = |name: &str, turns| vec![("sda".to_owned(), name.to_owned(), turns)];
        assert_eq!(io_scheduler(&disk("bfq", false)).unwrap().verdict, Attention);
        assert_eq!(io_scheduler(&disk("bfq", true)).unwrap().verdict, Good);
        assert_eq!(io_scheduler(&disk("none", false)).unwrap().fact, "sda: none");
        assert!(io_scheduler(&[]).is_err());
    }

    #[test]
    fn mounts() {
        let line = |options: &str| {
            format!(
                "proc /proc proc sync 0 0\n/dev/sda1 /home/me/x fuse.sshfs rw,sync 0 0\n\
                 /dev/sda1 /home/me/y fuse strictatime 0 0\n/dev/sda1 /data ext4 {options} 0 0\n"
            )
        };
        for (options, slow, times) in [
            ("rw,relatime", Good, Good),
            ("rw,noatime,sync", Attention, Good),
            ("rw,relatime,data=journal", Attention, Good),
            ("rw", Good, Attention),
            ("rw,strictatime", Good, Attention),
            ("ro", Good, Good),
        ] {
            assert_eq!(mount_options(&line(options)).verdict, slow, "{options}");
            assert_eq!(access_times(&line(options)).verdict, times, "{options}");
        }
    }

    #[test]
    fn consoles() {
        const SERIAL: &str = "ttyS0                -W- (EC  p a)    4:64\n";
        const SCREEN: &str = "tty0                 -WU (EC  p  )    4:1\n";
        assert_eq!(console(SERIAL, 7).verdict, Attention);
        assert_eq!(console(SERIAL, 4).verdict, Good);
        assert_eq!([7, 4].map(|level| console(SCREEN, level).verdict), [Attention, Good]);
        assert_eq!(console("netcon0 -W- (E N )\n", 7).verdict, Good);
    }
}
