//! CPUs: model, number, and who is below them.

use model::Fact;

use crate::read::{fact, fact_of, file_fact, text, unknown};

const CPUINFO: &str = "/proc/cpuinfo";
const PRESENT: &str = "/sys/devices/system/cpu/present";

pub fn facts() -> Vec<Fact> {
    let cpuinfo = text(CPUINFO);
    let model = cpuinfo.map_err(|e| e.to_string()).and_then(|t| model_name(&t));
    let count = text(PRESENT).map_err(|e| e.to_string()).and_then(|list| {
        count_in_list(&list).map(|n| n.to_string()).ok_or_else(|| format!("'{list}' is no list"))
    });
    vec![
        fact_of("cpu.model", model, CPUINFO),
        fact_of("cpu.count", count, PRESENT),
        file_fact("cpu.online", "/sys/devices/system/cpu/online"),
        hypervisor(),
    ]
}

/// Name of the first CPU: `model name` on x86, and what other architectures have in its place.
fn model_name(cpuinfo: &str) -> Result<String, String> {
    for wanted in ["model name", "cpu", "CPU part", "uarch"] {
        let values = cpuinfo.lines().filter_map(|line| line.split_once(':'));
        if let Some((_, value)) = values.into_iter().find(|(name, _)| name.trim() == wanted) {
            return Ok(value.trim().to_owned());
        }
    }
    Err("no line names a model".to_owned())
}

/// Number of CPUs in a list such as `0-3,8,10-11`.
fn count_in_list(list: &str) -> Option<u64> {
    let mut count: u64 = 0;
    for range in list.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
        count = count.checked_add(last.checked_sub(first)?.checked_add(1)?)?;
    }
    Some(count)
}

/// Who runs this machine as a guest; `none` on bare metal.
#[cfg(target_arch = "x86_64")]
fn hypervisor() -> Fact {
    const NAME: &str = "cpu.hypervisor";
    /// "Hypervisor present" in ECX of leaf 1, defined so by every vendor.
    const PRESENT_BIT: u32 = 1 << 31;
    // Newer compilers know that CPUID is safe on this architecture.
    #[allow(unused_unsafe)]
    // SAFETY: every x86-64 CPU has the CPUID instruction and leaf 1.
    let features = unsafe { std::arch::x86_64::__cpuid(1) };
    if features.ecx & PRESENT_BIT == 0 {
        return fact(NAME, "none", "cpuid leaf 1");
    }
    const LEAF: &str = "cpuid leaf 0x40000000";
    #[allow(unused_unsafe)]
    // SAFETY: as above; the leaf is reserved for hypervisors and present under one.
    let vendor = unsafe { std::arch::x86_64::__cpuid(0x4000_0000) };
    let signature: Vec<u8> =
        [vendor.ebx, vendor.ecx, vendor.edx].iter().flat_map(|r| r.to_le_bytes()).collect();
    let signature = String::from_utf8_lossy(&signature);
    let signature = signature.trim_end_matches('\0').trim();
    if signature.is_empty() {
        return unknown(NAME, "a hypervisor that gives no name", LEAF);
    }
    fact(NAME, hypervisor_name(signature), LEAF)
}

/// Who runs this machine as a guest, as far as the kernel offers it in a file.
#[cfg(not(target_arch = "x86_64"))]
fn hypervisor() -> Fact {
    const FILE: &str = "/sys/hypervisor/type";
    match text(FILE) {
        Ok(name) => fact("cpu.hypervisor", name, FILE),
        Err(_) => unknown("cpu.hypervisor", "no CPUID on this architecture", FILE),
    }
}

#[cfg(target_arch = "x86_64")]
fn hypervisor_name(signature: &str) -> &str {
    match signature {
        "KVMKVMKVM" => "KVM",
        "Microsoft Hv" => "Microsoft",
        "VMwareVMware" => "VMware",
        "XenVMMXenVMM" => "Xen",
        "TCGTCGTCGTCG" => "QEMU TCG",
        "VBoxVBoxVBox" => "VirtualBox",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_counted() {
        assert_eq!(count_in_list("0"), Some(1));
        assert_eq!(count_in_list("0-3,8,10-11"), Some(7));
        assert_eq!(count_in_list("3-0"), None);
        assert_eq!(count_in_list(""), None);
        assert_eq!(count_in_list("0-18446744073709551615"), None);
    }

    #[test]
    fn the_model_is_the_first_cpus() {
        let x86 = "processor\t: 0\nmodel\t\t: 17\nmodel name\t: AMD EPYC\n";
        assert_eq!(model_name(x86).unwrap(), "AMD EPYC");
        let arm = "processor\t: 0\nBogoMIPS\t: 50.00\nCPU part\t: 0xd0c\n";
        assert_eq!(model_name(arm).unwrap(), "0xd0c");
        assert!(model_name("").is_err());
    }
}
