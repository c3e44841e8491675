//! Gives up what root can do and the recorder does not need.

use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

/// Kept: reading maps (BPF, PERFMON), memory maps of other users' processes (SYS_PTRACE), files
/// for symbols (DAC_READ_SEARCH), the very files that they have mapped (CHECKPOINT_RESTORE), kernel
/// addresses (SYSLOG).
const KEPT: CapabilitySet = CapabilitySet::BPF
    .union(CapabilitySet::PERFMON)
    .union(CapabilitySet::SYS_PTRACE)
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::CHECKPOINT_RESTORE)
    .union(CapabilitySet::SYSLOG);

/// Drops all other capabilities of the calling thread and of threads it starts later. The thread
/// that times the programs is started before: timing needs SYS_ADMIN.
///
/// Failing is not an error: then there was nothing to give up.
pub fn drop_unneeded() {
    let Ok(now) = capabilities(None) else { return };
    let sets = CapabilitySets {
        effective: now.effective & KEPT,
        permitted: now.permitted & KEPT,
        inheritable: CapabilitySet::empty(),
    };
    let _ = set_capabilities(None, sets);
}
