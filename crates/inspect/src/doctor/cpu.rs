//! CPUs: how fast they are, and who else uses them.

use std::collections::{BTreeMap, BTreeSet};

use model::units::{counted, duration};

use super::entry::{Entry, Host, Look, get, number, numbered};
use crate::read::cpu_list;

pub(super) const CPUS: &str = "/sys/devices/system/cpu";

pub(super) const ENTRIES: &[Entry<Host>] = &[
    Entry {
        id: "governor",
        why: "A governor that follows the load gives a thread that just woke the slowest clock, and \
              takes milliseconds to raise it.",
        source: "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
        look: |_| governor(&of_each_cpu("cpufreq/scaling_governor")),
    },
    Entry {
        id: "idle-states",
        why: "A CPU that sleeps deeply needs 50 to 200 us to wake, before the thread that was woken \
              runs.",
        source: "/sys/devices/system/cpu/cpu0/cpuidle",
        look: |_| {
            let states = numbered(&format!("{CPUS}/cpu0/cpuidle"), "state");
            let enabled =
                states.iter().filter(|state| number(&format!("{state}/disable")) != Ok(1));
            let latency = |state: &String| {
                Some((
                    number(&format!("{state}/latency")).ok()?,
                    get(&format!("{state}/name")).ok()?,
                ))
            };
            let driver = get(&format!("{CPUS}/cpuidle/current_driver")).unwrap_or_default();
            Ok(idle_states(&driver, enabled.filter_map(latency).max()))
        },
    },
    Entry {
        id: "smt",
        why: "Two threads on one core share its units and caches: each is slower while the other \
              runs, by an amount that changes with what it does.",
        source: "/sys/devices/system/cpu/smt/active",
        look: |_| Ok(smt(number(&format!("{CPUS}/smt/active"))?)),
    },
    Entry {
        id: "mitigations",
        why: "Some mitigations cost on each entry into the kernel: page table isolation and IBRS the \
              most.",
        source: "/sys/devices/system/cpu/vulnerabilities",
        look: |host| {
            let word = host.kernel_word("mitigations").unwrap_or("default");
            mitigations(word, &vulnerabilities())
        },
    },
    Entry {
        id: "isolated-cpus",
        why: "Threads on CPUs that are not isolated share them with whatever the scheduler puts \
              there.",
        source: "/sys/devices/system/cpu/isolated",
        look: |_| {
            let list = get(&format!("{CPUS}/isolated"))?;
            Ok(Look::good(if list.is_empty() { "none" } else { &list }))
        },
    },
    Entry {
        id: "irq-affinity",
        why: "A device interrupt on an isolated CPU stops the thread there, and its softirq can \
              take milliseconds.",
        source: "/proc/irq/*/effective_affinity_list",
        look: |_| {
            let isolated = cpu_list(&get(&format!("{CPUS}/isolated")).unwrap_or_default());
            irq_affinity(&isolated, &interrupts())
        },
    },
    Entry {
        id: "cpus-online",
        why: "CPUs that are switched off are missing, and their threads run with others.",
        source: "/sys/devices/system/cpu/online",
        look: |_| {
            let (online, present) =
                (get(&format!("{CPUS}/online"))?, get(&format!("{CPUS}/present"))?);
            Ok(cpus_online(cpu_list(&online).len(), cpu_list(&present).len()))
        },
    },
    Entry {
        id: "kinds-of-cores",
        why: "A thread takes up to three times as long on a small core, and which it gets changes \
              from one second to the next.",
        source: "/sys/devices/system/cpu/cpu*/cpu_capacity, /sys/devices/cpu_{core,atom}/cpus",
        look: |_| {
            let of_intel =
                ["core", "atom"].map(|kind| get(&format!("/sys/devices/cpu_{kind}/cpus")));
            let of_intel = of_intel.iter().flatten().map(|list| cpu_list(list).len()).collect();
            kinds_of_cores(&of_each_cpu("cpu_capacity"), of_intel)
        },
    },
    Entry {
        id: "thermal-throttling",
        why: "A hot CPU lowers its clock to a fraction, for seconds.",
        source: "/sys/devices/system/cpu/cpu*/thermal_throttle/core_throttle_count",
        look: |_| {
            let counts = of_each_cpu("thermal_throttle/core_throttle_count");
            thermal_throttling(&counts)
        },
    },
    Entry {
        id: "watchdog",
        why: "The NMI watchdog takes a hardware counter and an interrupt on each CPU every few \
              seconds.",
        source: "/proc/sys/kernel/nmi_watchdog",
        look: |_| {
            let is_on = number("/proc/sys/kernel/nmi_watchdog")? != 0;
            Ok(Look::good(if is_on { "on" } else { "off" }))
        },
    },
];

/// The contents of a file of each CPU.
fn of_each_cpu(file: &str) -> Vec<String> {
    numbered(CPUS, "cpu").iter().filter_map(|cpu| get(&format!("{cpu}/{file}")).ok()).collect()
}

fn governor(governors: &[String]) -> Result<Look, String> {
    let kinds: BTreeSet<&str> = governors.iter().map(String::as_str).collect();
    let fact = kinds.iter().copied().collect::<Vec<_>>().join(", ");
    match kinds.into_iter().collect::<Vec<_>>()[..] {
        [] => Err("the kernel does not scale frequencies here (as on virtual machines)".to_owned()),
        ["performance"] => Ok(Look::good(fact)),
        _ => Ok(Look::attention(fact, "cpupower frequency-set -g performance.")),
    }
}

/// `of_intel`: how many there are of each of its kinds, which older kernels tell in this way only.
fn kinds_of_cores(capacities: &[String], of_intel: Vec<usize>) -> Result<Look, String> {
    const ADVICE: &str =
        "Keep latency-critical threads on the large ones (taskset, a cpuset; lscpu -e shows them).";
    let mut kinds = BTreeMap::<&str, usize>::new();
    capacities.iter().for_each(|capacity| *kinds.entry(capacity).or_default() += 1);
    let found = |kinds: Vec<String>| Look::attention(kinds.join(", "), ADVICE);
    match (kinds.len(), &of_intel[..]) {
        (0 | 1, [large, small]) if *large > 0 && *small > 0 => {
            Ok(found(vec![format!("{large} of kind core"), format!("{small} of kind atom")]))
        }
        (0, _) => Err("the kernel does not say how fast each CPU is".to_owned()),
        (1, _) => Ok(Look::good("all alike")),
        _ => {
            let text = |(capacity, count): (&str, usize)| format!("{count} of capacity {capacity}");
            Ok(found(kinds.into_iter().map(text).collect()))
        }
    }
}

fn idle_states(driver: &str, deepest: Option<(i64, String)>) -> Look {
    const ADVICE: &str = "Hold /dev/cpu_dma_latency open with the latency allowed (tuned does it), or \
                          cpupower idle-set -D 10.";
    match deepest {
        Some((us, name)) => {
            let fact = format!("down to {name}: {} to wake", duration(us.unsigned_abs() * 1_000));
            if us > 20 { Look::attention(fact, ADVICE) } else { Look::good(fact) }
        }
        None => Look::good("none that the kernel chooses").detail(driver),
    }
}

fn smt(active: i64) -> Look {
    match active {
        0 => Look::good("not in use"),
        _ => Look::attention(
            "in use",
            "Leave the sibling of a latency-critical thread's CPU idle (lscpu -e shows them), or \
             switch SMT off.",
        ),
    }
}

fn vulnerabilities() -> Vec<(String, String)> {
    let entries = std::fs::read_dir(format!("{CPUS}/vulnerabilities")).into_iter().flatten();
    let one = |entry: std::io::Result<std::fs::DirEntry>| {
        let entry = entry.ok()?;
        let name = entry.file_name().into_string().ok()?;
        Some((name, get(&entry.path().to_string_lossy()).ok()?))
    };
    let mut all: Vec<_> = entries.filter_map(one).collect();
    all.sort();
    all
}

fn mitigations(word: &str, all: &[(String, String)]) -> Result<Look, String> {
    if all.is_empty() {
        return Err(format!("this host has no {CPUS}/vulnerabilities"));
    }
    let is_costly = |(name, state): &&(String, String)| {
        (name == "meltdown" && state.contains("PTI"))
            || (state.contains("IBRS") && state.starts_with("Mitigation: IBRS"))
    };
    let active: Vec<&str> = all
        .iter()
        .filter(|(_, state)| state.starts_with("Mitigation"))
        .map(|(name, _)| name.as_str())
        .collect();
    let costly: Vec<&str> = all.iter().filter(is_costly).map(|(name, _)| name.as_str()).collect();
    let fact = format!("{word}; {} active", active.len());
    let look = match costly[..] {
        [] => Look::good(fact),
        _ => Look::attention(
            format!("{fact}, costly ones for {}", costly.join(" and ")),
            "Fewer system calls; a newer processor; or, where nobody untrusted runs code, \
             mitigations=off.",
        ),
    };
    Ok(look.detail(active.join(", ")))
}

/// (number, CPUs that it goes to) of each interrupt of a device.
fn interrupts() -> Vec<(String, Vec<u32>)> {
    let one = |path: &String| {
        let list = get(&format!("{path}/effective_affinity_list"));
        let list = list.or_else(|_| get(&format!("{path}/smp_affinity_list"))).ok()?;
        Some((path.rsplit('/').next()?.to_owned(), cpu_list(&list)))
    };
    numbered("/proc/irq", "").iter().filter_map(one).collect()
}

fn irq_affinity(isolated: &[u32], interrupts: &[(String, Vec<u32>)]) -> Result<Look, String> {
    if interrupts.is_empty() {
        return Err("no interrupt of /proc/irq can be read".to_owned());
    }
    let on_isolated: Vec<&str> = interrupts
        .iter()
        .filter(|(_, cpus)| cpus.iter().any(|cpu| isolated.contains(cpu)))
        .map(|(number, _)| number.as_str())
        .collect();
    if on_isolated.is_empty() {
        let detail =
            if isolated.is_empty() { "no CPU is isolated" } else { "none on isolated CPUs" };
        return Ok(Look::good(counted(interrupts.len() as u64, "interrupt")).detail(detail));
    }
    Ok(Look::attention(
        format!("{} on isolated CPUs", counted(on_isolated.len() as u64, "interrupt")),
        "Write the other CPUs to /proc/irq/N/smp_affinity_list, and have irqbalance leave the \
         isolated ones alone.",
    )
    .detail(format!("numbers {}", on_isolated.join(", "))))
}

fn cpus_online(online: usize, present: usize) -> Look {
    let fact = format!("{online} of {present}");
    match online < present {
        true => Look::attention(fact, "Switch them on (/sys/devices/system/cpu/cpuN/online)."),
        false => Look::good(fact),
    }
}

fn thermal_throttling(counts: &[String]) -> Result<Look, String> {
    if counts.is_empty() {
        return Err("the processor does not report it (as on virtual machines)".to_owned());
    }
    let events = counts.iter().filter_map(|count| count.parse::<u64>().ok()).sum::<u64>();
    let fact = format!("{} since boot", counted(events, "time"));
    const ADVICE: &str = "Look at cooling and power limits (turbostat).";
    Ok(Look::by(events as f64, 1.0, 1000.0, fact, ADVICE).passing())
}

#[cfg(test)]
mod tests {
    use model::CheckResult::{Attention, Good};

    use super::*;

    fn strings(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn frequencies_and_idle_states() {
        let verdict = |words: &[&str]| governor(&strings(words)).unwrap().verdict;
        assert_eq!(verdict(&["performance", "performance"]), Good);
        assert_eq!(verdict(&["performance", "powersave"]), Attention);
        assert!(governor(&[]).is_err());
        assert_eq!(idle_states("intel_idle", Some((133, "C6".into()))).verdict, Attention);
        assert_eq!(idle_states("intel_idle", Some((2, "C1".into()))).verdict, Good);
        assert_eq!(idle_states("haltpoll", None).verdict, Good);
        assert_eq!((smt(0).verdict, smt(1).verdict), (Good, Attention));
    }

    #[test]
    fn cores_of_several_kinds() {
        let of = |words: &[&str], intel: &[usize]| kinds_of_cores(&strings(words), intel.to_vec());
        assert_eq!(of(&["1024", "1024"], &[]).unwrap().verdict, Good);
        let mixed = of(&["1024", "446", "1024"], &[]).unwrap();
        assert_eq!(mixed.verdict, Attention);
        assert_eq!(mixed.fact, "2 of capacity 1024, 1 of capacity 446");
        // Before the kernel knew capacities of x86.
        assert_eq!(of(&[], &[8, 4]).unwrap().fact, "8 of kind core, 4 of kind atom");
        assert_eq!(of(&["1024"], &[8, 0]).unwrap().verdict, Good);
        assert!(of(&[], &[]).is_err());
    }

    #[test]
    fn mitigations_that_cost_on_each_entry() {
        let of = |name: &str, state: &str| vec![(name.to_owned(), state.to_owned())];
        let verdict = |all: &[_]| mitigations("auto", all).unwrap().verdict;
        assert_eq!(verdict(&of("meltdown", "Mitigation: PTI")), Attention);
        assert_eq!(verdict(&of("retbleed", "Mitigation: IBRS")), Attention);
        assert_eq!(
            verdict(&of("spectre_v2", "Mitigation: Retpolines; PBRSB-eIBRS: Not affected")),
            Good
        );
        assert_eq!(verdict(&of("meltdown", "Not affected")), Good);
    }

    #[test]
    fn interrupts_on_isolated_cpus() {
        let interrupts = [("24".to_owned(), vec![0]), ("25".to_owned(), vec![1])];
        assert_eq!(irq_affinity(&[], &interrupts).unwrap().verdict, Good);
        assert_eq!(irq_affinity(&[2, 3], &interrupts).unwrap().verdict, Good);
        assert_eq!(irq_affinity(&[1], &interrupts).unwrap().verdict, Attention);
        assert!(irq_affinity(&[1], &[]).is_err());
    }

    #[test]
    fn cpus_that_are_missing_or_slow() {
        assert_eq!((cpus_online(2, 2).verdict, cpus_online(1, 2).verdict), (Good, Attention));
        assert_eq!(thermal_throttling(&strings(&["0", "7"])).unwrap().verdict, Attention);
    }
}
