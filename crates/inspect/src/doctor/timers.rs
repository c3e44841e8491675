//! Timers and ticks.

use model::units::{self, duration};

use super::entry::{Entry, Host, Look, choice, get, number};

pub(super) const ENTRIES: &[Entry<Host>] = &[
    Entry {
        id: "timer-frequency",
        why: "Timeouts counted in ticks (socket timeouts, TCP, poll on old kernels) are rounded up \
              by one or two of them.",
        source: "the kernel's configuration",
        look: |host| timer_frequency(host.config.as_deref()?),
    },
    Entry {
        id: "tick",
        why: "The tick interrupts a running thread up to 1,000 times a second; with NO_HZ_FULL one \
              that runs alone on its CPU is left alone.",
        source: "the kernel's configuration, /sys/devices/system/cpu/nohz_full",
        look: |host| {
            let full = get("/sys/devices/system/cpu/nohz_full").unwrap_or_default();
            let asked = host.kernel_word("nohz_full");
            Ok(tick(host.config.as_deref()?, host.kernel_word("nohz"), asked, &full))
        },
    },
    Entry {
        id: "high-resolution-timers",
        why: "Without them each sleep and each timer ends at a tick: 1 to 10 ms too late.",
        source: "clock_getres(CLOCK_MONOTONIC)",
        look: |_| Ok(high_resolution(clock::resolution_ns())),
    },
    Entry {
        id: "clock-slewing",
        why: "While the wall clock is corrected its seconds have another length, and time stamps of \
              two hosts cannot be compared if it is not synchronised.",
        source: "adjtimex(2)",
        look: |_| clock_slewing(),
    },
    Entry {
        id: "timer-migration",
        why: "Timers that are set on an idle CPU are moved to a busy one: isolated CPUs' timers then \
              fire elsewhere, and their threads are woken across CPUs.",
        source: "/proc/sys/kernel/timer_migration",
        look: |_| {
            let isolated = get("/sys/devices/system/cpu/isolated").unwrap_or_default();
            Ok(timer_migration(number("/proc/sys/kernel/timer_migration")?, &isolated))
        },
    },
    Entry {
        id: "halt-polling",
        why: "A guest that polls before it halts wakes faster; one that halts at once pays a wake-up \
              by the hypervisor, tens of microseconds.",
        source: "/sys/devices/system/cpu/cpuidle/current_driver",
        look: |host| {
            let is_guest = host.cpuinfo.contains(" hypervisor");
            let driver = choice("/sys/devices/system/cpu/cpuidle/current_driver");
            let poll = number("/sys/module/haltpoll/parameters/guest_halt_poll_ns").ok();
            Ok(halt_polling(is_guest, &driver.unwrap_or_default(), poll))
        },
    },
];

fn timer_frequency(config: &str) -> Result<Look, String> {
    let value = config.lines().find_map(|line| line.strip_prefix("CONFIG_HZ="));
    let hz: u32 = value.and_then(|v| v.parse().ok()).ok_or("no CONFIG_HZ in the configuration")?;
    let fact = format!("{hz} Hz");
    Ok(match hz {
        0..250 => Look::attention(
            fact,
            "A kernel with CONFIG_HZ=250 or 1000; or timers that do not count in ticks (timerfd, \
             ppoll, clock_nanosleep).",
        ),
        _ => Look::good(fact),
    })
}

fn tick(config: &str, nohz: Option<&str>, asked: Option<&str>, full: &str) -> Look {
    let has = |name: &str| config.lines().any(|line| line == format!("{name}=y"));
    let full = if full == "(null)" { "" } else { full };
    match (has("CONFIG_NO_HZ_FULL"), asked) {
        (false, Some(list)) => Look::bad(
            format!("nohz_full={list} has no effect"),
            "The kernel was built without CONFIG_NO_HZ_FULL: use one that has it, or do without \
             nohz_full.",
        ),
        (true, Some(list)) if full.is_empty() => Look::bad(
            format!("nohz_full={list} has no effect"),
            "See the kernel's log for the reason (dmesg | grep -i nohz).",
        ),
        _ if nohz == Some("off") || has("CONFIG_HZ_PERIODIC") => Look::attention(
            "ticks even when idle",
            "Without nohz=off idle CPUs are left alone, and wake from deeper sleep less often.",
        ),
        (true, Some(_)) => Look::good(format!("none on CPUs {full} when one thread runs")),
        _ => Look::good("none when idle"),
    }
}

fn high_resolution(step_ns: u64) -> Look {
    match step_ns {
        1 => Look::good("on"),
        _ => Look::bad(
            format!("off: the clock steps by {}", duration(step_ns)),
            "Boot without highres=off, with a kernel that has CONFIG_HIGH_RES_TIMERS.",
        ),
    }
}

fn clock_slewing() -> Result<Look, String> {
    // SAFETY: all zero is a valid timex, and asks for nothing to be changed.
    let mut timex: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: `timex` is valid for reading and writing.
    if unsafe { libc::adjtimex(&raw mut timex) } < 0 {
        return Err(format!("adjtimex: {}", std::io::Error::last_os_error()));
    }
    let is_synchronised = timex.status & libc::STA_UNSYNC == 0;
    // Parts per million, with 16 bits behind the point.
    Ok(slewing(is_synchronised, timex.freq as f64 / 65_536.0))
}

fn slewing(is_synchronised: bool, ppm: f64) -> Look {
    let by = format!("corrected by {} ppm", units::number(ppm));
    match (is_synchronised, ppm.abs() >= 100.0) {
        (true, false) => Look::good("synchronised").detail(by),
        (true, true) => Look::attention(
            format!("synchronised, {by}"),
            "The clock of this host is far off its nominal rate: intervals in wall-clock time are \
             wrong by as much. Measure intervals with CLOCK_MONOTONIC_RAW, and have the clock looked \
             at.",
        ),
        (false, _) => Look::attention(
            "not synchronised",
            "Run chrony or another NTP client. Its absence costs no latency by itself; a clock that \
             is set by hand jumps.",
        )
        .detail(by),
    }
    .passing()
}

fn timer_migration(value: i64, isolated: &str) -> Look {
    match (value, isolated.is_empty()) {
        (0, _) => Look::good("off"),
        (_, true) => Look::good("on").detail("no CPU is isolated"),
        (_, false) => Look::attention(
            "on, with isolated CPUs",
            "sysctl kernel.timer_migration=0 keeps timers on the CPU that sets them.",
        ),
    }
}

fn halt_polling(is_guest: bool, driver: &str, poll_ns: Option<i64>) -> Look {
    match (is_guest, driver, poll_ns) {
        (false, ..) => Look::good("not a virtual machine"),
        (true, "haltpoll", Some(0)) => Look::attention(
            "a virtual machine that halts at once",
            "The hypervisor's own polling may do; otherwise set haltpoll.guest_halt_poll_ns=200000.",
        ),
        (true, "haltpoll", _) => Look::good("haltpoll"),
        (true, _, _) => Look::good(if driver.is_empty() || driver == "none" {
            "left to the hypervisor".to_owned()
        } else {
            driver.to_owned()
        }),
    }
}

#[cfg(test)]
mod tests {
    use model::CheckResult::{Attention, Bad, Good};

    use super::*;

    #[test]
    fn ticks() {
        let full = "CONFIG_NO_HZ_FULL=y";
        assert_eq!(tick("CONFIG_NO_HZ_IDLE=y", None, None, "").verdict, Good);
        assert_eq!(tick("CONFIG_NO_HZ_IDLE=y", None, Some("1"), "").verdict, Bad);
        assert_eq!(tick(full, None, Some("1"), "(null)").verdict, Bad);
        assert_eq!(tick(full, None, Some("1"), "1").verdict, Good);
        assert_eq!(tick(full, Some("off"), None, "").verdict, Attention);
        assert_eq!((high_resolution(1).verdict, high_resolution(4_000_000).verdict), (Good, Bad));
        assert_eq!(timer_frequency("CONFIG_HZ=100\n").unwrap().verdict, Attention);
        assert!(timer_frequency("").is_err());
        assert_eq!((slewing(true, 12.0).verdict, slewing(true, -400.0).verdict), (Good, Attention));
    }
}
