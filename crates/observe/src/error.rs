//! What can go wrong with a recording.

use std::io;

use crate::CgroupName;
use crate::capability::Refusal;

/// Why a recording cannot start or go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No such process.
    #[error("no process with pid {0}: it may have ended; see 'ps -e'")]
    NoProcess(u32),
    /// No such thread.
    #[error("no thread with tid {0}: it may have ended; see 'ps -eT'")]
    NoThread(u32),
    /// No hierarchy of cgroups is mounted.
    #[error("{0}: no cgroups are mounted here; in a container mount the host's /sys/fs/cgroup")]
    NoCgroups(CgroupName),
    /// No such cgroup.
    #[error("{0}: {why}", why = no_cgroup(.0))]
    NoCgroup(CgroupName),
    /// The name fits several cgroups.
    #[error(
        "{name} fits {count} cgroups; {how}{first}", how = how_to_choose(name),
        first = first_of(*count, listed.len())
    )]
    SeveralCgroups {
        /// The name.
        name: CgroupName,
        /// How many.
        count: usize,
        /// The first of them.
        listed: Vec<String>,
    },
    /// The numbers of /proc are not those of whylag.
    #[error(
        "the /proc mounted here is that of another PID namespace, so its numbers are of other \
         processes: mount its own ('unshare --mount-proc', or 'mount -t proc proc /proc'), or run \
         whylag in the other namespace"
    )]
    OtherProc,
    /// Children of whylag would be in another PID namespace, so it can have no threads.
    #[error(
        "children started here would be in another PID namespace, so the kernel allows whylag no \
         threads: use 'unshare --fork --pid --mount-proc', or start whylag within the namespace"
    )]
    NoThreads,
    /// The clock is not the one that the kernel side reads.
    #[error(
        "CLOCK_MONOTONIC is shifted in this time namespace (/proc/self/timens_offsets), and the \
         kernel's own is not: run whylag outside of it"
    )]
    OtherClock,
    /// The command cannot be started.
    #[error("cannot run '{program}': {source}")]
    Command {
        /// The program of the command.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// The kernel refused to load a program.
    #[error("{}", .0.because)]
    Refused(Refusal),
    /// The kernel refused a part of the recorder.
    #[error("the kernel refused the recorder ({step}): {source}")]
    Bpf {
        /// What was tried.
        step: &'static str,
        /// The kernel's answer.
        source: libbpf_rs::Error,
    },
    /// Something of the operating system.
    #[error("{doing}: {source}")]
    Io {
        /// What was tried.
        doing: &'static str,
        /// Why it failed.
        source: io::Error,
    },
}

impl Error {
    /// For `map_err` on libbpf results.
    pub(crate) fn bpf(step: &'static str) -> impl FnOnce(libbpf_rs::Error) -> Error {
        move |source| Error::Bpf { step, source }
    }

    /// For `map_err` on I/O results.
    pub(crate) fn io<E: Into<io::Error>>(doing: &'static str) -> impl FnOnce(E) -> Error {
        move |source| Error::Io { doing, source: source.into() }
    }
}

fn how_to_choose(name: &CgroupName) -> &'static str {
    match name {
        CgroupName::Container(_) => "give more of the id, or choose one with --cgroup PATH",
        CgroupName::Unit(_) | CgroupName::Path(_) => "choose one with --cgroup PATH",
    }
}

fn first_of(count: usize, listed: usize) -> String {
    if count > listed { format!("; the first {listed}:") } else { ":".to_owned() }
}

fn no_cgroup(name: &CgroupName) -> &'static str {
    match name {
        CgroupName::Unit(_) => {
            "no cgroup has the name of this unit, so it does not run, or its cgroup is not visible \
             here; see 'systemctl status'"
        }
        CgroupName::Path(_) => {
            "no such cgroup; give a directory under /sys/fs/cgroup or the path of a cgroup, as \
             'cat /proc/PID/cgroup' shows it"
        }
        CgroupName::Container(_) => {
            "no cgroup is that of a container with such an id, so it does not run, or its cgroup is \
             not visible here; give the beginning of its id, not its name ('docker ps', 'podman ps', \
             'crictl ps'), or its cgroup with --cgroup PATH"
        }
    }
}
