//! Gives up what root can do and the recorder does not need.
//!
//! Privileges belong to threads, and a thread begins with those of the one that starts it. So the
//! thread that records gives up before it starts others, and the one that needs more gives up what
//! it does not need by itself. A command was forked before, and keeps all that it inherited.

use std::collections::BTreeMap;

use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set, set_capabilities,
    set_no_new_privs,
};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};

/// Kept: reading maps (BPF), programs and timers for CPUs that come online (PERFMON), memory maps
/// of other users' processes (SYS_PTRACE), files for symbols (DAC_READ_SEARCH) also where nothing
/// but the mapping leads to them (/proc/PID/map_files: CHECKPOINT_RESTORE).
const KEPT: CapabilitySet = CapabilitySet::BPF
    .union(CapabilitySet::PERFMON)
    .union(CapabilitySet::SYS_PTRACE)
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::CHECKPOINT_RESTORE);

/// Kept by what reads or writes stores, exports and traces: files of other users, under sudo (the
/// last is for SQLite, which gives what it makes beside a store the store's owner).
const OF_FILES: CapabilitySet = CapabilitySet::DAC_OVERRIDE
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::CHOWN);

/// What no thread of the recorder does: refused by the kernel from then on. This is a list of what
/// is denied, not of what is allowed: which calls an allocator, the C library or SQLite make changes
/// with their versions, and a recorder that fails by that is worse than one that may do more.
const DENIED: &[libc::c_long] = &[
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_ptrace,
    libc::SYS_process_vm_writev,
    libc::SYS_socket,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsmount,
    libc::SYS_mount_setattr,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_setuid,
    libc::SYS_setgid,
    libc::SYS_setreuid,
    libc::SYS_setregid,
    libc::SYS_setresuid,
    libc::SYS_setresgid,
    libc::SYS_setgroups,
    libc::SYS_fchownat,
    libc::SYS_open_by_handle_at,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_sethostname,
];

/// Gives up all else, for the calling thread and for threads that it starts later. Where a command
/// was started, signals that are meant for it can still be passed on when it has become another
/// user's (KILL).
///
/// Failing is not an error: then there was nothing to give up.
pub fn drop_unneeded(started_command: bool) {
    let kill = if started_command { CapabilitySet::KILL } else { CapabilitySet::empty() };
    keep(KEPT | kill);
}

/// What a verb does that records nothing.
#[derive(Clone, Copy)]
pub enum Work {
    /// Looks at this host: the server of pages. The kernel's log takes SYSLOG.
    Host,
    /// Looks at a process as well: reading its timer slack takes SYS_NICE.
    Checkup,
    /// Reads and writes stores, exports and runs that strangers sent.
    Files,
    /// Reads what programs trace, removes what they left, and stores it.
    Traces,
}

/// Gives up all that the work of a verb does not need, for the calling thread and for those that it
/// starts later.
pub fn keep_for(work: Work) {
    keep(match work {
        Work::Host => KEPT | CapabilitySet::SYSLOG,
        Work::Checkup => KEPT | CapabilitySet::SYSLOG | CapabilitySet::SYS_NICE,
        Work::Files => OF_FILES,
        Work::Traces => OF_FILES | CapabilitySet::SYS_PTRACE,
    });
}

/// The same for the thread that times the programs: the kernel allows that with SYS_ADMIN only.
pub fn drop_all_but_timing() {
    keep(CapabilitySet::SYS_ADMIN);
}

/// The same for a thread that does nothing more.
pub fn drop_all() {
    keep(CapabilitySet::empty());
}

fn keep(kept: CapabilitySet) {
    // While the right to do so is still there. Numbers that the kernel does not know are refused.
    for number in (0..u64::BITS).filter(|number| kept.bits() >> number & 1 == 0) {
        // SAFETY: takes numbers only.
        let _ = unsafe { libc::prctl(libc::PR_CAPBSET_DROP, libc::c_ulong::from(number), 0, 0, 0) };
    }
    let _ = clear_ambient_capability_set();
    if let Ok(now) = capabilities(None) {
        let sets = CapabilitySets {
            effective: now.effective & kept,
            permitted: now.permitted & kept,
            inheritable: CapabilitySet::empty(),
        };
        let _ = set_capabilities(None, sets);
    }
    let _ = set_no_new_privs(true);
    if let Some(filter) = filter() {
        let _ = seccompiler::apply_filter(&filter);
    }
}

/// `None` on an architecture that has none.
fn filter() -> Option<BpfProgram> {
    let rules: BTreeMap<_, _> = DENIED.iter().map(|call| (*call, Vec::new())).collect();
    let refused = SeccompAction::Errno(libc::EPERM as u32);
    let architecture = std::env::consts::ARCH.try_into().ok()?;
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refused, architecture).ok()?;
    filter.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_has_given_up_can_start_nothing_and_others_still_can() {
        let refused = std::thread::spawn(|| {
            keep(CapabilitySet::empty());
            let capabilities = capabilities(None).unwrap();
            assert!(capabilities.effective.is_empty() && capabilities.permitted.is_empty());
            std::process::Command::new("true").status().map_err(|error| error.kind())
        });
        assert_eq!(refused.join().unwrap(), Err(std::io::ErrorKind::PermissionDenied));
        assert!(std::process::Command::new("true").status().unwrap().success());
    }
}
