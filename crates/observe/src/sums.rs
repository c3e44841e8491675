//! Reads the kernel's sums of waits, holds, runners, code paths, tries and failed calls; gives those that changed.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};

use libbpf_rs::{MapCore, MapFlags};
use model::{
    Account, Batch, Blocked, CallError, ConcurrentCall, Evictor, HoldSum, ObjectName, OtherThreads,
    PageRead, PathSum, Retry, RunnerSum, Sum, Syscall, WaitSum, put_into_groups,
};

use crate::Error;
use crate::bpf::{
    self, Record, beside_key, beside_sum, call_error_key, call_key, hold_key, hold_sum,
    page_read_key, page_read_sum, path_key, path_sum, retry_key, retry_sum, runner_key, runner_sum,
    wait_key, wait_sum,
};
use crate::convert::{EvictedCalls, stack_id};
use crate::crowd::Crowd;
use crate::map_entries;
use crate::names::Names;
use crate::probes::Probes;
use crate::wire;

/// What was read last time, to give only what changed.
#[derive(Default)]
pub struct Sums {
    waits: Table<WaitSum>,
    holds: Table<HoldSum>,
    runners: Table<RunnerSum>,
    paths: Table<PathSum>,
    concurrent_calls: Table<ConcurrentCall>,
    retries: Table<Retry>,
    call_errors: Table<CallError>,
    page_reads: Table<PageRead>,
    /// Count of the runners that found no room.
    other_runners: u64,
}

impl Sums {
    /// All sums that grew. Those of processes that the crowd has are taken out of the kernel's maps,
    /// which have room for some thousands of processes, and so are those that did not grow where a map
    /// is half full. In a storm of processes a new sum is handed over with the next batch, unless
    /// this is the `last`: the end of the process that it tells of may be known then, and not yet now.
    pub fn read(
        &mut self,
        probes: &Probes,
        names: &mut Names,
        crowd: &mut Crowd,
        batch: &mut Batch,
        last: bool,
    ) -> Result<(), Error> {
        let maps = &probes.skel().maps;
        let sums = &mut batch.sums;
        self.waits.waits_for_ends = crowd.sums_up() && !last;
        sums.waits = self.waits.grown(&maps.wait_sums, crowd, |key, sum| wait(key, sum, names))?;
        sums.holds = self.holds.grown(&maps.hold_sums, crowd, hold)?;
        sums.runners = self.runners.grown(&maps.runner_sums, crowd, runner)?;
        sums.runners.extend(self.other_runners(&maps.other_runners, crowd)?);
        sums.paths = self.paths.grown(&maps.path_sums, crowd, path)?;
        sums.concurrent_calls =
            self.concurrent_calls.grown(&maps.beside_sums, crowd, concurrent_call)?;
        sums.retries = self.retries.grown(&maps.retry_sums, crowd, retry)?;
        sums.call_errors = self.call_errors.grown(&maps.call_errors, crowd, call_error)?;
        sums.page_reads = self.page_reads.grown(&maps.page_read_sums, crowd, page_read)?;
        Ok(())
    }

    /// Who ran instead of whom where the kernel side had no room for more pairs, if that grew.
    fn other_runners(
        &mut self,
        map: &dyn MapCore,
        crowd: &mut Crowd,
    ) -> Result<Option<RunnerSum>, Error> {
        let value = map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY);
        let value = value.map_err(Error::bpf("reading a map"))?;
        let Some(sum) = value.as_deref().and_then(bpf::read::<runner_sum>) else { return Ok(None) };
        if std::mem::replace(&mut self.other_runners, sum.count) == sum.count {
            return Ok(None);
        }
        let name = OtherThreads::UNTOLD;
        let group = crowd.group(name);
        Ok(Some(RunnerSum {
            tgid: group,
            runner_tgid: group,
            runner_comm: name.to_owned(),
            realtime: 0,
            count: sum.count,
            ns: sum.ns,
        }))
    }
}

/// Sums that are remembered when they have been taken out of a map, some 300 bytes each.
const TAKEN_KEPT: usize = 65_536;

/// The sums of one map.
struct Table<T> {
    /// Counts of those that were handed over and are in the map, by their key there; 0 if not yet.
    seen: HashMap<Vec<u8>, u64>,
    /// What was taken out of the map, by the key of the sum.
    taken: HashMap<String, T>,
    /// A new sum is handed over with the next batch.
    waits_for_ends: bool,
}

impl<T> Default for Table<T> {
    fn default() -> Table<T> {
        Table { seen: HashMap::new(), taken: HashMap::new(), waits_for_ends: false }
    }
}

impl<T: Sum + Clone> Table<T> {
    /// Those that grew. A sum begins with its count.
    fn grown<K: Record, V: Record>(
        &mut self,
        map: &dyn MapCore,
        crowd: &Crowd,
        mut convert: impl FnMut(K, V) -> T,
    ) -> Result<Vec<T>, Error> {
        let mut own = |key: &[u8], value: &[u8]| Some(convert(bpf::read(key)?, bpf::read(value)?));
        let group = |tgid| crowd.group_of(tgid);
        let mut grown = Vec::new();
        let (mut idle, mut changed) = (Vec::new(), HashSet::new());
        let entries = map_entries::all(map)?;
        let is_crowded = entries.len() > map.max_entries() as usize / 2;
        for (key, value) in entries {
            let Some(count) = bpf::read::<u64>(&value) else { continue };
            let before = self.seen.get(&key).copied();
            if before == Some(count) {
                if is_crowded {
                    idle.push(key);
                }
                continue;
            }
            if before.is_none() && self.waits_for_ends {
                self.seen.insert(key, 0);
                continue;
            }
            let is_new = before.is_none_or(|count| count == 0);
            let Some(mut sum) = own(&key, &value) else { continue };
            let is_of_group = put_into_groups(&mut sum, &group);
            // What was handed over is stored under its own key, and stays there.
            if is_new && (is_of_group || self.was_taken(&sum)) {
                self.seen.remove(&key);
                // Again: it may have grown meanwhile.
                let taken = map.lookup_and_delete(&key).ok().flatten();
                if let Some(mut sum) = taken.and_then(|value| own(&key, &value)) {
                    put_into_groups(&mut sum, &group);
                    changed.extend(self.add_to_taken(sum));
                }
                continue;
            }
            self.seen.insert(key, count);
            grown.push(sum);
        }
        for key in idle {
            if self.taken.len() >= TAKEN_KEPT {
                break;
            }
            let Some(value) = map.lookup_and_delete(&key).ok().flatten() else { continue };
            let grew = self.seen.remove(&key) != bpf::read(&value);
            let Some(sum) = own(&key, &value) else { continue };
            changed.extend(self.add_to_taken(sum).filter(|_| grew));
        }
        grown.extend(changed.iter().filter_map(|key| self.taken.get(key).cloned()));
        Ok(grown)
    }

    /// True of a part of a sum whose first part is not in the map any more.
    fn was_taken(&self, sum: &T) -> bool {
        let is_known = |key: String| self.taken.contains_key(&key);
        !self.taken.is_empty() && sum.key_text().is_some_and(is_known)
    }

    /// Gives its key.
    fn add_to_taken(&mut self, sum: T) -> Option<String> {
        let key = sum.key_text()?;
        match self.taken.get_mut(&key) {
            Some(all) => T::add(all, &sum),
            None => drop(self.taken.insert(key.clone(), sum)),
        }
        Some(key)
    }
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
        turns: sum.turns,
        turn_ns: sum.turn_ns,
        idle_turn_ns: sum.idle_turn_ns,
        began: (sum.began_tid != 0).then_some((sum.began_tid, sum.began_by)),
        asked: key.asked != 0,
        ends: wire::chain_ends(&sum.ends),
        longest_end: wire::chain_end(sum.end, sum.end_tid),
        usual_end: wire::chain_end((sum.usual >> 32) as u32, sum.usual as u32),
        open_at: None,
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
        tid: key.tid,
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
        pipe: key.pipe != 0,
        account: wire::account(u32::from(key.account), None),
        name: retry_name(&sum.name),
        count: sum.count,
        ns: sum.ns,
        max_ns: sum.max_ns,
        won_ns: sum.won_ns,
    }
}

fn page_read(key: page_read_key, sum: page_read_sum) -> PageRead {
    let evictor = (key.evictor_tgid != 0).then(|| Evictor {
        tgid: key.evictor_tgid,
        comm: bpf::text(&sum.evictor_comm),
        call: wire::call(key.evictor_call),
        reclaim: key.reclaim != 0,
    });
    PageRead {
        tgid: key.tgid,
        call: wire::call(key.call),
        evictor,
        file: bpf::text(&sum.file),
        pages: sum.pages,
    }
}

/// A path, or an address.
fn retry_name(name: &bpf::retry_name) -> Option<String> {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&name.address[0].to_ne_bytes());
    bytes[8..].copy_from_slice(&name.address[1].to_ne_bytes());
    let ip = match i32::from(name.family) {
        libc::AF_INET => Some(IpAddr::from([bytes[0], bytes[1], bytes[2], bytes[3]])),
        libc::AF_INET6 => Some(IpAddr::from(bytes).to_canonical()),
        _ => None,
    };
    if let Some(ip) = ip {
        return Some(SocketAddr::new(ip, name.port).to_string());
    }
    let path = bpf::text(&name.path);
    match path.len() {
        0 => None,
        length if length + 1 >= name.path.len() => Some(path + "..."),
        _ => Some(path),
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
    for (_, key, ns) in map_entries::entries::<call_key, u64>(&probes.skel().maps.evicted_calls)? {
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
