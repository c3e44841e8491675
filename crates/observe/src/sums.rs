//! Reads the kernel's sums of waits, holds, runners, code paths, tries and failed calls; gives those that changed.

use std::collections::HashMap;
use std::ffi::OsString;

use libbpf_rs::{MapCore, MapFlags};
use model::{
    Account, Batch, Blocked, CallError, ConcurrentCall, HoldSum, ObjectName, PathSum, Retry,
    RunnerSum, Syscall, WaitSum,
};

use crate::Error;
use crate::bpf::{
    self, Record, beside_key, beside_sum, call_error_key, call_key, hold_key, hold_sum, path_key,
    path_sum, retry_key, retry_sum, runner_key, runner_sum, wait_key, wait_sum,
};
use crate::convert::{EvictedCalls, stack_id};
use crate::names::Names;
use crate::probes::Probes;
use crate::wire;

/// Counts that were read last time, by map and key, to give only what changed.
#[derive(Default)]
pub struct Sums(HashMap<OsString, HashMap<Vec<u8>, u64>>);

impl Sums {
    /// All sums that grew.
    pub fn read(
        &mut self,
        probes: &Probes,
        names: &mut Names,
        batch: &mut Batch,
    ) -> Result<(), Error> {
        let maps = &probes.skel().maps;
        batch.sums.waits = self.grown(&maps.wait_sums, |key, sum| wait(key, sum, names))?;
        batch.sums.holds = self.grown(&maps.hold_sums, hold)?;
        batch.sums.runners = self.grown(&maps.runner_sums, runner)?;
        batch.sums.paths = self.grown(&maps.path_sums, path)?;
        batch.sums.concurrent_calls = self.grown(&maps.beside_sums, concurrent_call)?;
        batch.sums.retries = self.grown(&maps.retry_sums, retry)?;
        batch.sums.call_errors = self.grown(&maps.call_errors, call_error)?;
        Ok(())
    }

    /// Those of one map. A sum begins with its count.
    fn grown<K: Record, V: Record, T>(
        &mut self,
        map: &dyn MapCore,
        mut convert: impl FnMut(K, V) -> T,
    ) -> Result<Vec<T>, Error> {
        let seen = self.0.entry(map.name().to_owned()).or_default();
        let mut sums = Vec::new();
        for (key, value) in all(map)? {
            let count = bpf::read::<u64>(&value);
            if let (Some(count), Some(typed), Some(sum)) =
                (count, bpf::read(&key), bpf::read(&value))
                && seen.insert(key, count) != Some(count)
            {
                sums.push(convert(typed, sum));
            }
        }
        Ok(sums)
    }
}

/// All of a map, as bytes.
fn all(map: &dyn MapCore) -> Result<impl Iterator<Item = (Vec<u8>, Vec<u8>)>, Error> {
    // All at once: libbpf-rs takes a batch that is not full for the last one, but the kernel also
    // ends a batch early, before a bucket that does not fit in whole.
    map.lookup_batch(map.max_entries(), MapFlags::ANY, MapFlags::ANY)
        .map_err(Error::bpf("reading a map"))
}

/// All of a map: key as bytes, key and value.
pub fn entries<K: Record, V: Record>(map: &dyn MapCore) -> Result<Vec<(Vec<u8>, K, V)>, Error> {
    let read = |(key, value): (Vec<u8>, Vec<u8>)| {
        let typed = (bpf::read::<K>(&key)?, bpf::read::<V>(&value)?);
        Some((key, typed.0, typed.1))
    };
    Ok(all(map)?.filter_map(read).collect())
}

fn wait(key: wait_key, sum: wait_sum, names: &mut Names) -> WaitSum {
    let account = wire::account(key.account, None);
    let name = match account {
        Account::Blocked(kind) if kind.is_kernel_lock() => {
            Some(ObjectName::LockClass(names.lock_class(key.object)))
        }
        Account::Blocked(Blocked::FaultMajor | Blocked::FaultMinor) => {
            names.mapping(key.tgid, key.object)
        }
        _ => None,
    };
    WaitSum {
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
        many: sum.many,
        again: sum.again,
        by_parked: sum.by_parked,
        waiter_tid: sum.waiter_tid,
        waker_tid: sum.waker_tid,
        open: sum.open,
        asked: key.asked != 0,
        ends: wire::chain_ends(&sum.ends),
        longest_end: wire::chain_end(sum.end, sum.end_tid),
    }
}

fn hold(key: hold_key, sum: hold_sum) -> HoldSum {
    HoldSum {
        tgid: key.tgid,
        waiter_write: key.waiter_write != 0,
        holder_tgid: key.holder_tgid,
        holder_comm: bpf::text(&sum.holder_comm),
        holder_write: key.holder_write != 0,
        holder_call: wire::call(key.holder_call),
        count: sum.count,
        ns: sum.ns,
        max_ns: sum.max_ns,
    }
}

fn runner(key: runner_key, sum: runner_sum) -> RunnerSum {
    RunnerSum {
        tgid: key.tgid,
        runner_tgid: key.runner_tgid,
        runner_comm: bpf::text(&sum.runner_comm),
        realtime: key.realtime,
        count: sum.count,
        ns: sum.ns,
    }
}

fn path(key: path_key, sum: path_sum) -> PathSum {
    let call = wire::call(key.call);
    PathSum {
        tgid: key.tgid,
        account: wire::account(key.account, call),
        call,
        kernel: stack_id(key.kernel),
        user: stack_id(key.user),
        sampled: key.sampled != 0,
        count: sum.count,
        ns: sum.ns,
        max_ns: sum.max_ns,
    }
}

fn retry(key: retry_key, sum: retry_sum) -> Retry {
    Retry {
        tgid: key.tgid,
        call: Syscall(key.call),
        errno: i32::from(key.error),
        object: key.object,
        count: sum.count,
        ns: sum.ns,
        max_ns: sum.max_ns,
    }
}

fn concurrent_call(key: beside_key, sum: beside_sum) -> ConcurrentCall {
    ConcurrentCall {
        tgid: key.tgid,
        other_tgid: key.other_tgid,
        other_comm: bpf::text(&sum.comm),
        other_call: Syscall(key.call),
        reads: wire::read_by(key.kind, &bpf::text(&sum.folder), &bpf::text(&sum.name)),
        kernel: stack_id(key.kernel),
        count: sum.count,
        ns: sum.ns,
        max_ns: sum.max_ns,
    }
}

fn call_error(key: call_error_key, count: u64) -> CallError {
    CallError { tgid: key.tgid, call: Syscall(key.call), errno: i32::from(key.error), count }
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
