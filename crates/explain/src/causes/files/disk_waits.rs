//! Sleeps for a disk by what was asked of it: to deliver data, or to keep it.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use model::{Account, Accounts, Blocked, ChainEnd, Metric, PathSum, Syscall, part_of};

use crate::case::Case;
use crate::cause::Claim;
use crate::causes::files::fsync_journal::JOURNAL;
use crate::causes::ids;
use crate::text::{counted, duration, mean, quantiles};

pub(super) const DISK: Account = Account::Blocked(Blocked::Disk);

/// What the one who sleeps has asked of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// To deliver data, or what a file system knows of its files.
    Read,
    /// To keep data.
    Write,
}

const WRITES: [&str; 11] = [
    "fsync",
    "fdatasync",
    "msync",
    "sync",
    "syncfs",
    "sync_file_range",
    "write",
    "pwrite64",
    "writev",
    "pwritev",
    "pwritev2",
];
/// Calls that change what a file system knows of a file: they may read that first, or write what is new.
const CHANGES: [&str; 9] = [
    "rename",
    "renameat",
    "renameat2",
    "unlink",
    "unlinkat",
    "truncate",
    "ftruncate",
    "fallocate",
    "close",
];
/// Of a page that is written in part the rest is read first.
const READ_FIRST: [&str; 3] =
    ["__block_write_begin_int", "ext4_block_write_begin", "iomap_write_begin"];
/// Waits of other kinds: for a journal, for others' data while memory is short, for the disk to
/// forget the blocks of a file that is removed, for writes in the background.
const OTHERS: [&str; 5] = [
    "try_to_free_pages",
    "try_to_free_mem_cgroup_pages",
    "blkdev_issue_discard",
    "rq_qos_wait",
    "wb_wait_for_completion",
];
/// File systems without a disk on this host, by how their functions begin, and who has the data.
const REMOTE: [(&str, &str); 9] = [
    ("nfs_", "the NFS server"),
    ("nfs4_", "the NFS server"),
    ("rpc_", "the NFS server"),
    ("cifs_", "the SMB server"),
    ("smb2_", "the SMB server"),
    ("ceph_", "the Ceph cluster"),
    ("fuse_", "the program behind a FUSE file system"),
    ("p9_", "the 9P server"),
    ("v9fs_", "the 9P server"),
];

/// What to do about those.
pub(super) const FIX_OF_REMOTE: &str = "Look at whoever has the data, and at the way there (nfsstat, \
                                        nfsiostat, ss -ti): the disk of this host is not asked. Ask \
                                        less often: read ahead, in larger pieces, keep what is read; \
                                        sync once for many records.";

/// System calls worth a line.
const CALLS_SHOWN: usize = 3;

/// Sleeps of one kind.
#[derive(Debug, Default)]
pub(super) struct DiskWaits {
    pub count: u64,
    pub ns: u64,
    pub max_ns: u64,
    /// The process that waited longest.
    pub waiter: u32,
    /// Of each system call: sleeps and their time, the longest first.
    pub calls: Vec<(String, u64, u64)>,
    /// Who has the data, where most of them wait for a file system that has no disk here.
    pub remote: Option<&'static str>,
}

impl DiskWaits {
    /// Those of a run.
    pub fn of(case: &Case, asked: Asked) -> DiskWaits {
        let mut waits = DiskWaits::default();
        let (mut processes, mut calls) = (BTreeMap::new(), BTreeMap::new());
        let mut remote = BTreeMap::<&str, u64>::new();
        for path in case.run.sums.paths.iter().filter(|path| is_wait(path)) {
            let ns = own_ns(case, path);
            if kind(case, path) != Some(asked) || ns == 0 {
                continue;
            }
            waits.count = waits.count.saturating_add(path.count);
            waits.ns = waits.ns.saturating_add(ns);
            waits.max_ns = waits.max_ns.max(path.max_ns);
            add(processes.entry(path.tgid).or_default(), path.count, ns);
            if let Some(whose) = of_remote(case, path) {
                let sum = remote.entry(whose).or_default();
                *sum = sum.saturating_add(ns);
            }
            if let Some(call) = path.call {
                add(calls.entry(call.to_string()).or_default(), path.count, ns);
            }
        }
        let longest = processes.into_iter().max_by_key(|(_, (_, ns))| *ns);
        waits.waiter = longest.map_or(0, |(tgid, _)| tgid);
        waits.calls = calls.into_iter().map(|(call, (n, ns))| (call, n, ns)).collect();
        waits.calls.sort_by_key(|(_, _, ns)| Reverse(*ns));
        let most = remote.into_iter().max_by_key(|(_, ns)| *ns);
        waits.remote = most.filter(|(_, ns)| *ns > waits.ns / 2).map(|(whose, _)| whose);
        waits
    }

    /// `the disk`, or who has the data instead.
    pub fn device(&self) -> &'static str {
        self.remote.unwrap_or("the disk")
    }

    /// What a claim takes.
    pub fn accounts(&self) -> Accounts {
        [(DISK, self.ns)].into_iter().collect()
    }

    /// Evidence that both kinds have: by which calls, in which code, how fast the disks were, and
    /// who waited behind those that waited.
    pub fn evidence(&self, case: &Case, asked: Asked, claim: &mut Claim) {
        for (call, n, ns) in self.calls.iter().take(CALLS_SHOWN) {
            let sleeps = counted(*n, "sleep");
            let text = format!("{call}: {sleeps}, {}, mean {}", duration(*ns), mean(*ns, *n));
            claim.saw(text, "sleeps by system call and kernel stack");
        }
        let path = case.path_in_words(&[], |path| {
            is_wait(path) && path.kernel.is_some() && kind(case, path) == Some(asked)
        });
        claim.saw_if(path.map(|path| format!("asleep in {path}")), "kernel stack of the sleeps");
        for (device, histogram) in devices(case) {
            let text = format!("requests of disk {device}: {}", quantiles(&histogram));
            claim.saw(text, "block_rq_issue to block_rq_complete, of all programs");
        }
        let behind = case.behind(|end| end == ChainEnd::Disk).total();
        if behind > 0 {
            let text = format!(
                "{} more in waits for locks and answers whose holder or peer waited for a disk \
                 (in the findings of those)",
                duration(behind)
            );
            claim.saw(text, "waits by what the waker did meanwhile");
        }
    }

    /// Pauses of writers are an account of their own.
    pub fn rule_out_throttle(&self, case: &Case, claim: &mut Claim) {
        let throttled = case.accounts.get(Account::Blocked(Blocked::DirtyThrottle));
        if throttled < self.ns / 5 {
            let because = format!(
                "pauses of writers are an account of their own: {} against {} asleep for the disk",
                duration(throttled),
                duration(self.ns)
            );
            claim.rule_out(ids::DIRTY_THROTTLE, because);
        }
    }
}

fn of_remote(case: &Case, path: &PathSum) -> Option<&'static str> {
    let frames = case.labels(path.kernel);
    let is_there = |begin: &str| frames.iter().any(|frame| frame.starts_with(begin));
    REMOTE.iter().find(|(begin, _)| is_there(begin)).map(|(_, whose)| *whose)
}

fn add(sum: &mut (u64, u64), count: u64, ns: u64) {
    *sum = (sum.0.saturating_add(count), sum.1.saturating_add(ns));
}

fn is_wait(path: &PathSum) -> bool {
    !path.sampled && path.account == DISK
}

/// True of calls that write, or wait for what was written.
pub(super) fn writes(call: Syscall) -> bool {
    WRITES.iter().any(|name| Syscall::named(name) == Some(call))
}

/// What a thread asked for that sleeps here; `None` if it is not this: it asked for nothing, or
/// waits for something else.
fn kind(case: &Case, path: &PathSum) -> Option<Asked> {
    let call = path.call?;
    if case.passes(path, &JOURNAL) || case.passes(path, &OTHERS) {
        return None;
    }
    let changes = CHANGES.iter().any(|name| Syscall::named(name) == Some(call));
    if changes && path.kernel.is_none() {
        return None;
    }
    Some(if writes(call) && !case.passes(path, &READ_FIRST) { Asked::Write } else { Asked::Read })
}

/// The stack of a short sleep is not walked: of those in a call that syncs as large a part is the
/// journal's as of the others.
fn own_ns(case: &Case, path: &PathSum) -> u64 {
    if path.kernel.is_some() {
        return path.ns;
    }
    let same_call = |other: &PathSum| is_wait(other) && other.call == path.call;
    let walked = case.time_through(&[], |other| same_call(other) && other.kernel.is_some()).ns();
    let others = case.time_through(&JOURNAL, same_call).ns();
    path.ns - part_of(path.ns, others, walked)
}

/// Histogram of the requests of each disk.
fn devices(case: &Case) -> Vec<(String, model::Histogram)> {
    let mut names: Vec<String> = Vec::new();
    for second in &case.run.seconds {
        if let Metric::BlockIo(name) = &second.metric
            && !names.contains(name)
        {
            names.push(name.clone());
        }
    }
    let histogram = |name: String| {
        case.histogram(&Metric::BlockIo(name.clone())).map(|histogram| (name, histogram))
    };
    names.into_iter().filter_map(histogram).collect()
}
