//! Clocks.

use model::units::{duration, fine_duration};

use super::entry::{Entry, Host, Look, get};
use crate::clock;

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
        look: |_| {
            let source = get(&format!("{CLOCKSOURCE}/current_clocksource")).unwrap_or_default();
            Ok(clock_read(&source, clock::read_alone()))
        },
    },
    Entry {
        id: "clock-read-contended",
        why: "A clock in a shared device costs more the more CPUs read it; one in each CPU does \
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

/// What a read should cost at most, ns: in user mode through the vDSO on processors of the last ten
/// years; of devices what is published and what the story measured.
const COSTS: [(&str, f64); 7] = [
    ("tsc", 60.0),
    ("kvm-clock", 90.0),
    ("hyperv_clocksource_tsc_page", 90.0),
    ("arch_sys_counter", 90.0),
    ("hpet", 1_000.0),
    ("acpi_pm", 3_000.0),
    ("xen", 500.0),
];

fn clock_read(source: &str, ns: f64) -> Look {
    let fact = format!("{} of CPU time a read", fine_duration(ns));
    let should = COSTS.iter().find(|(name, _)| *name == source).map(|(_, most)| *most);
    let detail = should.map_or_else(String::new, |most| {
        format!("{source} should cost up to {}", duration(most as u64))
    });
    let advice = match should {
        Some(most) if ns >= 2.0 * most => {
            "More than this clock should cost: see vdso; on a virtual machine its reads may be \
             trapped by the hypervisor."
        }
        _ => "See clocksource; whylag bench clock-monotonic shows it with more readers.",
    };
    let look = match ns {
        300.0.. => Look::bad(fact, advice),
        _ if ns >= 2.0 * should.unwrap_or(50.0) => Look::attention(fact, advice),
        _ => Look::good(fact),
    };
    look.detail(detail).measured(ns)
}

fn clock_read_contended(alone: f64, readers: usize, together: f64) -> Look {
    const ADVICE: &str =
        "The clock is a shared device: see clocksource; read the clock in fewer threads.";
    let ratio = together / alone.max(1.0);
    let fact = format!("{} of CPU time a read with {readers} readers", fine_duration(together));
    Look::by(ratio, 2.0, 4.0, fact, ADVICE)
        .detail(format!("{} alone", fine_duration(alone)))
        .measured(together)
}

fn vdso(library: f64, system_call: f64) -> Look {
    let [library_words, call_words] = [library, system_call].map(fine_duration);
    let detail = format!("{library_words}, by a system call {call_words}");
    if library < 0.7 * system_call {
        return Look::good("used").detail(detail);
    }
    Look::bad(
        "not used: each clock read is a system call",
        "The clocksource cannot be read in user mode, or the program runs under something that \
         takes the vDSO away (vdso=0, a sandbox, valgrind).",
    )
    .detail(detail)
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

#[cfg(test)]
mod tests {
    use model::CheckResult::{Attention, Bad, Good};

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
        let read = |source, ns| clock_read(source, ns).verdict;
        assert_eq!([25.0, 150.0, 612.0].map(|ns| read("tsc", ns)), [Good, Attention, Bad]);
        // As expensive as it always is, and still bad.
        assert_eq!(read("hpet", 612.0), Bad);
        assert_eq!((read("kvm-clock", 60.0), read("unheard-of", 60.0)), (Good, Good));
        assert_eq!(read("unheard-of", 150.0), Attention);
        // The figures of the story: hpet with one, four and sixteen readers; tsc.
        let contended = |alone, readers, ns| clock_read_contended(alone, readers, ns).verdict;
        assert_eq!(contended(612.0, 4, 1443.0), Attention);
        assert_eq!(contended(612.0, 16, 7949.0), Bad);
        assert_eq!(contended(25.0, 16, 30.0), Good);
        assert_eq!((vdso(25.0, 110.0).verdict, vdso(600.0, 610.0).verdict), (Good, Bad));
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
