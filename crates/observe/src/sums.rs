//! Reads the kernel's sums of waits, holds, runners, code paths and failed calls; gives those that changed.

use std::collections::HashMap;

use libbpf_rs::{MapCore, MapFlags};
use model::{Account, BesideSum, CallError, HoldSum, PathSum, RunnerSum, Syscall, WaitSum};

use crate::Error;
use crate::bpf::{
    self, Record, beside_key, beside_sum, call_error_key, call_key, hold_key, hold_sum, path_key,
    path_sum, runner_key, runner_sum, wait_key, wait_sum,
};
use crate::convert::{self, EvictedCalls};
use crate::names::Names;
use crate::probes::Probes;
use crate::wire;

/// What was read last time, by count, to give only what changed.
#[derive(Default)]
pub struct Sums {
    waits: HashMap<Vec<u8>, u64>,
    holds: HashMap<Vec<u8>, u64>,
    runners: HashMap<Vec<u8>, u64>,
    paths: HashMap<Vec<u8>, u64>,
    call_errors: HashMap<Vec<u8>, u64>,
    beside: HashMap<Vec<u8>, u64>,
}

/// All of a map.
pub fn entries<K: Record, V: Record>(map: &dyn MapCore) -> Result<Vec<(Vec<u8>, K, V)>, Error> {
    // All at once: libbpf-rs takes a batch that is not full for the last one, but the kernel also
    // ends a batch early, before a bucket that does not fit in whole.
    let batch = map
        .lookup_batch(map.max_entries(), MapFlags::ANY, MapFlags::ANY)
        .map_err(Error::bpf("reading a map"))?;
    let read = |(key, value): (Vec<u8>, Vec<u8>)| {
        let typed = (bpf::read::<K>(&key)?, bpf::read::<V>(&value)?);
        Some((key, typed.0, typed.1))
    };
    Ok(batch.filter_map(read).collect())
}

/// True if the count differs from the one remembered.
fn changed(seen: &mut HashMap<Vec<u8>, u64>, key: Vec<u8>, count: u64) -> bool {
    seen.insert(key, count) != Some(count)
}

impl Sums {
    /// Waits that grew.
    pub fn waits(&mut self, probes: &Probes, names: &mut Names) -> Result<Vec<WaitSum>, Error> {
        let mut sums = Vec::new();
        for (raw, key, sum) in entries::<wait_key, wait_sum>(&probes.skel().maps.wait_sums)? {
            if !changed(&mut self.waits, raw, sum.count) {
                continue;
            }
            let account = wire::account(key.account, wire::NO_CALL);
            let name = match account {
                Account::Blocked(kind) if kind.is_kernel_lock() => {
                    Some(names.lock_class(key.object))
                }
                Account::Blocked(model::Blocked::FaultMajor | model::Blocked::FaultMinor) => {
                    names.mapping(key.tgid, key.object)
                }
                _ => None,
            };
            sums.push(WaitSum {
                tgid: key.tgid,
                account,
                object: key.object,
                name,
                waker_tgid: key.waker_tgid,
                waker_comm: bpf::text(&sum.waker_comm),
                count: sum.count,
                ns: sum.ns,
                max_ns: sum.max_ns,
                by_waiter: sum.by_waiter,
                lock_like: sum.lock_like,
            });
        }
        Ok(sums)
    }

    /// Holds of mmap_lock that grew.
    pub fn holds(&mut self, probes: &Probes) -> Result<Vec<HoldSum>, Error> {
        let mut sums = Vec::new();
        for (raw, key, sum) in entries::<hold_key, hold_sum>(&probes.skel().maps.hold_sums)? {
            if changed(&mut self.holds, raw, sum.count) {
                sums.push(HoldSum {
                    tgid: key.tgid,
                    waiter_write: key.waiter_write != 0,
                    holder_tgid: key.holder_tgid,
                    holder_comm: bpf::text(&sum.holder_comm),
                    holder_write: key.holder_write != 0,
                    holder_call: (key.holder_call != wire::NO_CALL)
                        .then_some(Syscall(key.holder_call)),
                    count: sum.count,
                    ns: sum.ns,
                    max_ns: sum.max_ns,
                });
            }
        }
        Ok(sums)
    }

    /// Runners that grew.
    pub fn runners(&mut self, probes: &Probes) -> Result<Vec<RunnerSum>, Error> {
        let mut sums = Vec::new();
        for (raw, key, sum) in entries::<runner_key, runner_sum>(&probes.skel().maps.runner_sums)? {
            if changed(&mut self.runners, raw, sum.count) {
                sums.push(RunnerSum {
                    tgid: key.tgid,
                    runner_tgid: key.runner_tgid,
                    runner_comm: bpf::text(&sum.runner_comm),
                    realtime: key.realtime,
                    count: sum.count,
                    ns: sum.ns,
                });
            }
        }
        Ok(sums)
    }
}

impl Sums {
    /// Code paths that grew.
    pub fn paths(&mut self, probes: &Probes) -> Result<Vec<PathSum>, Error> {
        let mut sums = Vec::new();
        for (raw, key, sum) in entries::<path_key, path_sum>(&probes.skel().maps.path_sums)? {
            if changed(&mut self.paths, raw, sum.count) {
                sums.push(PathSum {
                    tgid: key.tgid,
                    account: wire::account(u32::from(key.account), key.call),
                    call: (key.call != wire::NO_CALL).then_some(Syscall(key.call)),
                    kernel: convert::stack_id(key.kernel),
                    user: convert::stack_id(key.user),
                    sampled: key.sampled != 0,
                    count: sum.count,
                    ns: sum.ns,
                    max_ns: sum.max_ns,
                });
            }
        }
        Ok(sums)
    }

    /// Neighbours of spinning threads that grew.
    pub fn beside(&mut self, probes: &Probes) -> Result<Vec<BesideSum>, Error> {
        let mut sums = Vec::new();
        for (raw, key, sum) in entries::<beside_key, beside_sum>(&probes.skel().maps.beside_sums)? {
            if changed(&mut self.beside, raw, sum.count) {
                sums.push(BesideSum {
                    tgid: key.tgid,
                    other_tgid: key.other_tgid,
                    other_comm: bpf::text(&sum.comm),
                    other_call: Syscall(key.call),
                    reads: wire::read_by(key.kind, &bpf::text(&sum.folder), &bpf::text(&sum.name)),
                    kernel: convert::stack_id(key.kernel),
                    count: sum.count,
                    ns: sum.ns,
                    max_ns: sum.max_ns,
                });
            }
        }
        Ok(sums)
    }

    /// Failed calls that became more.
    pub fn call_errors(&mut self, probes: &Probes) -> Result<Vec<CallError>, Error> {
        let mut sums = Vec::new();
        for (raw, key, count) in entries::<call_error_key, u64>(&probes.skel().maps.call_errors)? {
            if changed(&mut self.call_errors, raw, count) {
                sums.push(CallError {
                    tgid: key.tgid,
                    call: Syscall(key.call),
                    errno: i32::from(key.error),
                    count,
                });
            }
        }
        Ok(sums)
    }
}

/// Time in calls that did not fit a thread's slots.
pub fn evicted_calls(probes: &Probes) -> Result<EvictedCalls, Error> {
    let mut calls = EvictedCalls::new();
    for (_, key, ns) in entries::<call_key, u64>(&probes.skel().maps.evicted_calls)? {
        calls.entry((key.tid, key.first_ns)).or_default().push((key.nr as u16, ns));
    }
    Ok(calls)
}

/// Makes room: the sums of a thread that is dead and stored are not needed any more.
pub fn forget_calls(probes: &Probes, tid: u32, first_ns: u64, calls: &[(u16, u64)]) {
    for (call, _) in calls {
        let mut key = Vec::with_capacity(size_of::<call_key>());
        key.extend(first_ns.to_ne_bytes());
        key.extend(tid.to_ne_bytes());
        key.extend(u32::from(*call).to_ne_bytes());
        // Only housekeeping: a key that stays costs one slot.
        let _ = probes.skel().maps.evicted_calls.delete(&key);
    }
}
