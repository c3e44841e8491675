//! Clocks and timers.

use super::clock;
use super::entry::{Entry, Host, Look, choice, get, number};

const CLOCKSOURCE: &str = "/sys/devices/system/clocksource/clocksource0";

pub(super) const ENTRIES: &[Entry<Host>] = &[
    Entry {
        id: "clocksource",
        why: "Every time stamp reads this clock: tsc costs about 25 ns, hpet 600 ns and thousands \
              when several CPUs read at once.",
        source: "/sys/devices/system/clocksource/clocksource0/current_clocksource",
        look: |_| {
            let current = get(&format!("{CLOCKSOURCE}/current_clocksource"))?;
            Ok(clocksource(&current, &get(&format!("{CLOCKSOURCE}/available_clocksource"))?))
        },
    },
    Entry {
        id: "clock-read",
        why: "A program that stamps its messages pays this for each of them.",
        source: "clock_gettime(CLOCK_MONOTONIC)",
        look: |_| Ok(clock_read(clock::read_alone())),
    },
    Entry {
        id: "clock-read-contended",
        why: "A clock in a shared device becomes dearer the more CPUs read it; one in each CPU does \
              not.",
        source: "clock_gettime(CLOCK_MONOTONIC) on all CPUs",
        look: |_| {
            let (readers, together) = clock::read_together();
            Ok(clock_read_contended(clock::read_alone(), readers, together))
        },
    },
    Entry {
        id: "vdso",
        why: "Through the vDSO a clock is read without entering the kernel; without it each read is \
              a system call, with all its mitigations and tracers.",
        source: "clock_gettime, and the same by syscall(2)",
        look: |_| Ok(vdso(clock::read_alone(), clock::read_by_system_call())),
    },
    Entry {
        id: "tsc-flags",
        why: "Only a time stamp counter that runs evenly in all power states can be the clock; \
              otherwise the kernel may give it up at any moment, until the next boot.",
        source: "/proc/cpuinfo",
        look: |host| tsc_flags(&host.cpuinfo),
    },
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
        look: |_| {
            let step = rustix::time::clock_getres(rustix::time::ClockId::Monotonic);
            Ok(high_resolution(step.tv_sec as u64 * 1_000_000_000 + step.tv_nsec as u64))
        },
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

fn clocksource(current: &str, available: &str) -> Look {
    let has_tsc = available.split_whitespace().any(|name| name == "tsc");
    let look = match current {
        "tsc" | "arch_sys_counter" => Look::good(current),
        "hpet" | "acpi_pm" | "jiffies" | "refined-jiffies" | "xen" => Look::bad(
            current,
            "Find out why the kernel gave tsc up (dmesg | grep -i tsc); repair that and boot again \
             (tsc=reliable only if the counter is known to be sound). Until then read the clock less \
             often.",
        ),
        _ if has_tsc => Look::attention(
            current,
            "tsc is available and cheaper: boot with clocksource=tsc, or try it with \
             echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource.",
        ),
        // Read in user mode, from a page that the hypervisor keeps.
        "kvm-clock" | "hyperv_clocksource_tsc_page" => Look::good(current),
        _ => Look::attention(current, "Compare it: whylag bench clock-monotonic."),
    };
    look.detail(format!(
        "available: {}",
        available.split_whitespace().collect::<Vec<_>>().join(", ")
    ))
}

/// tsc through the vDSO is 20 to 60 ns on all processors of the last ten years.
fn clock_read(ns: f64) -> Look {
    const ADVICE: &str = "See clocksource and vdso; then whylag bench clock-monotonic.";
    let fact = format!("{ns:.0} ns of CPU time a read");
    Look::by(ns, 100.0, 300.0, fact, ADVICE).measured(ns)
}

fn clock_read_contended(alone: f64, readers: usize, together: f64) -> Look {
    const ADVICE: &str =
        "The clock is a shared device: see clocksource; read the clock in fewer threads.";
    let ratio = together / alone.max(1.0);
    let fact = format!("{together:.0} ns of CPU time a read with {readers} readers");
    Look::by(ratio, 2.0, 4.0, fact, ADVICE)
        .detail(format!("{alone:.0} ns alone"))
        .measured(together)
}

fn vdso(library: f64, system_call: f64) -> Look {
    if library < 0.7 * system_call {
        let detail = format!("{library:.0} ns, by a system call {system_call:.0} ns");
        return Look::good("used").detail(detail);
    }
    Look::bad(
        "not used: each clock read is a system call",
        "The clocksource cannot be read in user mode, or the program runs under something that \
         takes the vDSO away (vdso=0, a sandbox, valgrind).",
    )
    .detail(format!("{library:.0} ns, by a system call {system_call:.0} ns"))
}

fn tsc_flags(cpuinfo: &str) -> Result<Look, String> {
    let flags = cpuinfo.lines().find_map(|line| line.strip_prefix("flags")?.split_once(": "));
    let Some((_, flags)) = flags else {
        return Err("no flags in /proc/cpuinfo: not an x86 processor".to_owned());
    };
    let has = |flag: &&str| flags.split_whitespace().any(|one| one == *flag);
    let missing: Vec<&str> =
        ["constant_tsc", "nonstop_tsc"].into_iter().filter(|flag| !has(flag)).collect();
    Ok(match missing[..] {
        [] => Look::good("constant and nonstop"),
        _ => Look::attention(
            format!("without {}", missing.join(" and ")),
            "On a virtual machine have the hypervisor pass the invariant TSC through; otherwise \
             expect another clocksource.",
        ),
    })
}

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
            format!("off: the clock steps by {:.1} ms", step_ns as f64 / 1e6),
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
    let by = format!("corrected by {ppm:.1} ppm");
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
    use model::Verdict::{Attention, Bad, Good};

    use super::*;

    #[test]
    fn clocks() {
        for (current, available, verdict) in [
            ("tsc", "tsc hpet acpi_pm", Good),
            ("hpet", "hpet acpi_pm", Bad),
            ("acpi_pm", "tsc acpi_pm", Bad),
            ("kvm-clock", "kvm-clock tsc", Attention),
            ("kvm-clock", "kvm-clock", Good),
            ("arch_sys_counter", "arch_sys_counter", Good),
        ] {
            assert_eq!(clocksource(current, available).verdict, verdict, "{current}");
        }
        assert_eq!([25.0, 150.0, 612.0].map(|ns| clock_read(ns).verdict), [Good, Attention, Bad]);
        // The figures of the story: hpet with one, four and sixteen readers; tsc.
        let contended = |alone, readers, ns| clock_read_contended(alone, readers, ns).verdict;
        assert_eq!(contended(612.0, 4, 1443.0), Attention);
        assert_eq!(contended(612.0, 16, 7949.0), Bad);
        assert_eq!(contended(25.0, 16, 30.0), Good);
        assert_eq!((vdso(25.0, 110.0).verdict, vdso(600.0, 610.0).verdict), (Good, Bad));
    }

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

    #[test]
    fn flags_of_the_time_stamp_counter() {
        let flags = |flags: &str| tsc_flags(&format!("model name\t: X\nflags\t\t: {flags}\n"));
        assert_eq!(flags("fpu constant_tsc nonstop_tsc").unwrap().verdict, Good);
        assert_eq!(flags("fpu constant_tsc").unwrap().verdict, Attention);
        assert!(tsc_flags("processor : 0\nFeatures : fp").is_err());
    }

    #[test]
    fn this_host_reads_its_clock() {
        let (alone, call) = (clock::read_alone(), clock::read_by_system_call());
        assert!(alone > 1.0 && call > 1.0, "{alone} {call}");
        let current = get(&format!("{CLOCKSOURCE}/current_clocksource")).unwrap();
        if current == "tsc" || current == "kvm-clock" {
            assert!(alone < call, "{current}: {alone} against {call} ns by a system call");
        }
    }
}
