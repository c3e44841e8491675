//! Sums over waits, holds, runners and stacks, rebuilt from the intervals that were kept whole.
//!
//! The recorder keeps such sums for each process over the whole run. Of a part of a run only the
//! kept intervals tell who was waited for; each counts once here.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use model::histogram::PRECISION_KERNEL;
use model::{
    Account, Blocked, CallError, Context, Event, EventKind, Histogram, HoldSum, Metric,
    MetricSecond, ObjectName, Outlier, OutlierKind, PathSum, Run, RunnerSum, StackId, StackSum,
    WaitSum, part_of,
};

use crate::case::lost::{Class, class};
use crate::part::clip::Clip;

/// Waits for the disk within page faults are summed by this much of the address space.
const FAULT_REGION: u64 = 2 << 20;

/// (process, account, object).
type Object = (u32, Account, u64);

/// What the whole run knows of an object.
#[derive(Default)]
struct Known<'a> {
    name: Option<&'a ObjectName>,
    count: u64,
    by_waiter: u64,
    lock_like: u64,
    turn_ns: u64,
    idle_turn_ns: u64,
}

/// The sums, and what they are made with.
pub struct PartSums<'a> {
    known: HashMap<Object, Known<'a>>,
    /// All holds of the run.
    all_holds: &'a [HoldSum],
    seen_holds: BTreeSet<(u32, u32, u64)>,
    /// Waits whose holder was not seen and is taken to be who ended them.
    by_waker: u64,
    waits: BTreeMap<(Object, u32), WaitSum>,
    holds: Vec<HoldSum>,
    runners: BTreeMap<(u32, u32, u8), RunnerSum>,
    stack_sums: BTreeMap<(u32, Account, Option<StackId>, Option<StackId>), StackSum>,
    paths: Vec<PathSum>,
    values: BTreeMap<(u32, Metric), Histogram>,
    call_errors: BTreeMap<(u32, model::Syscall, i32), CallError>,
}

impl<'a> PartSums<'a> {
    /// No time yet. Names of objects, and whether a futex word behaves like a lock, are taken from
    /// `whole`.
    pub fn new(whole: &'a Run) -> Self {
        let mut known = HashMap::<Object, Known>::new();
        for wait in &whole.sums.waits {
            let object = known.entry((wait.tgid, wait.account, wait.object)).or_default();
            object.name = object.name.or(wait.name.as_ref());
            object.count = object.count.saturating_add(wait.count);
            object.by_waiter = object.by_waiter.saturating_add(wait.by_waiter);
            object.lock_like = object.lock_like.saturating_add(wait.lock_like);
            object.turn_ns = object.turn_ns.saturating_add(wait.turn_ns);
            object.idle_turn_ns = object.idle_turn_ns.saturating_add(wait.idle_turn_ns);
        }
        PartSums {
            known,
            all_holds: &whole.sums.holds,
            seen_holds: BTreeSet::new(),
            by_waker: 0,
            waits: BTreeMap::new(),
            holds: Vec::new(),
            runners: BTreeMap::new(),
            stack_sums: BTreeMap::new(),
            paths: Vec::new(),
            values: BTreeMap::new(),
            call_errors: BTreeMap::new(),
        }
    }

    /// Adds a clip of an interval.
    pub fn add(&mut self, clip: &Clip) {
        for (account, ns) in clip.accounts.iter() {
            if let Account::Blocked(kind) = account {
                self.add_wait(clip, kind, ns);
            }
            if matches!(account, Account::Blocked(_)) || account.is_waiting_for_cpu() {
                self.add_stack(clip, account, ns);
            }
        }
        self.add_hold(clip);
        if clip.own_details {
            self.add_runners(clip);
        }
    }

    /// Adds the length of an interval that ended within the part.
    pub fn add_value(&mut self, outlier: &Outlier) {
        let mut value = |metric, ns| self.value(outlier.tgid, metric, ns);
        match (outlier.kind, outlier.syscall) {
            (OutlierKind::Syscall, Some(call)) => {
                value(Metric::Syscall(call.call), outlier.duration_ns);
                if let Some(errno) = call.result.filter(|result| *result < 0) {
                    let errno = errno.unsigned_abs().try_into().unwrap_or(0);
                    let key = (outlier.tgid, call.call, errno);
                    let (tgid, call, errno) = key;
                    let new = CallError { tgid, call, errno, count: 0 };
                    self.call_errors.entry(key).or_insert(new).count += 1;
                }
            }
            (OutlierKind::OffCpu | OutlierKind::RunQueue, _) => {
                if outlier.kind == OutlierKind::OffCpu {
                    value(Metric::OffCpu, outlier.duration_ns);
                }
                let queued = outlier.breakdown.sum_of(Account::is_waiting_for_cpu);
                if queued > 0 {
                    value(Metric::RunQueueDelay, queued);
                }
            }
            _ => {}
        }
    }

    /// Adds an event that has a duration.
    pub fn add_event(&mut self, event: &Event) {
        match event.kind {
            EventKind::BlockIo => {
                self.value(0, Metric::BlockIo(event.detail.to_string()), event.value);
            }
            EventKind::DirectReclaim => self.value(event.tgid, Metric::DirectReclaim, event.value),
            EventKind::Compaction => self.value(event.tgid, Metric::Compaction, event.value),
            _ => {}
        }
    }

    /// Puts the sums into `run`. Gives how many holders of mmap_lock were not seen and are taken to
    /// be who ended the wait.
    pub fn finish(self, run: &mut Run) -> u64 {
        run.sums.waits = self.waits.into_values().collect();
        run.sums.holds = self.holds;
        run.sums.runners = self.runners.into_values().collect();
        run.sums.stack_sums = self.stack_sums.into_values().collect();
        run.sums.paths = self.paths;
        run.sums.call_errors = self.call_errors.into_values().collect();
        let start_ns = run.header.started_ns;
        let second =
            |((tgid, metric), histogram)| MetricSecond { tgid, metric, start_ns, histogram };
        run.seconds = self.values.into_iter().map(second).collect();
        run.sums.waits.sort_by_key(|sum| std::cmp::Reverse(sum.ns));
        run.sums.stack_sums.sort_by_key(|sum| std::cmp::Reverse(sum.ns));
        self.by_waker
    }

    fn value(&mut self, tgid: u32, metric: Metric, ns: u64) {
        let new = || Histogram::new(PRECISION_KERNEL);
        self.values.entry((tgid, metric)).or_insert_with(new).record(ns);
    }

    fn add_wait(&mut self, clip: &Clip, kind: Blocked, ns: u64) {
        let account = Account::Blocked(kind);
        if kind != Blocked::Futex && class(account) == Class::Idle {
            return;
        }
        let outlier = clip.outlier;
        let is_its_own = outlier.blocked == Some(kind);
        let object = match kind {
            _ if !is_its_own => 0,
            Blocked::FaultMajor | Blocked::FaultMinor => outlier.object & !(FAULT_REGION - 1),
            _ => outlier.object,
        };
        let waker = outlier.waker.as_ref();
        let waker = waker.filter(|waker| is_its_own && waker.context == Context::Task);
        let waker_tgid = waker.map_or(0, |waker| waker.tgid);
        let object = (outlier.tgid, account, object);
        let known = self.known.get(&object);
        let sum = self.waits.entry((object, waker_tgid)).or_insert_with(|| WaitSum {
            tgid: outlier.tgid,
            account,
            object: object.2,
            name: known.and_then(|known| known.name).cloned(),
            waker_tgid,
            waker_comm: waker.map_or(String::new(), |waker| waker.comm.clone()),
            count: 0,
            ns: 0,
            max_ns: 0,
            by_waiter: 0,
            lock_like: 0,
            many: 0,
            again: 0,
            by_parked: 0,
            waiter_tid: 0,
            waker_tid: 0,
            open: 0,
            turns: 0,
            turn_ns: 0,
            idle_turn_ns: 0,
            open_at: None,
            began: None,
            asked: false,
            ends: BTreeMap::new(),
            longest_end: None,
            usual_end: None,
        });
        sum.count += 1;
        sum.ns = sum.ns.saturating_add(ns);
        sum.max_ns = sum.max_ns.max(ns);
        // One interval cannot say what its word is for; all waits of the run on it can.
        if let Some(known) = known {
            let mostly = |part: u64| u64::from(part > 0 && part >= known.count.div_ceil(2));
            sum.by_waiter += mostly(known.by_waiter);
            sum.lock_like += mostly(known.lock_like);
            (sum.turn_ns, sum.idle_turn_ns) = (known.turn_ns, known.idle_turn_ns);
        }
    }

    fn add_stack(&mut self, clip: &Clip, account: Account, ns: u64) {
        let outlier = clip.outlier;
        let kernel = outlier.kernel_stack.filter(|_| clip.own_details);
        let (tgid, user) = (outlier.tgid, outlier.user_stack);
        let key = (tgid, account, kernel, user);
        let new = StackSum { tgid, account, kernel, user, count: 0, ns: 0 };
        let sum = self.stack_sums.entry(key).or_insert(new);
        sum.count += 1;
        sum.ns = sum.ns.saturating_add(ns);
        if has_path(account) {
            self.paths.push(PathSum {
                tgid,
                account,
                call: outlier.syscall.map(|call| call.call),
                kernel,
                user: None,
                sampled: false,
                tid: 0,
                count: 1,
                ns,
                max_ns: ns,
            });
        }
    }

    /// A call and the sleep inside it may name the same hold: it counts once.
    fn add_hold(&mut self, clip: &Clip) {
        let outlier = clip.outlier;
        let waited = |kind| outlier.breakdown.get(Account::Blocked(kind));
        let (write, read) = (waited(Blocked::MmapLockWrite), waited(Blocked::MmapLockRead));
        let (waiter_write, waited) = (write >= read, write.max(read));
        if waited == 0 {
            return;
        }
        let hold = |holder_tgid, holder_comm: &str, holder_write, holder_call, ns| HoldSum {
            tgid: outlier.tgid,
            waiter_write,
            holder_tgid,
            holder_comm: holder_comm.to_owned(),
            holder_write,
            holder_call,
            count: 1,
            ns,
            max_ns: ns,
        };
        if let Some(h) = &outlier.holder {
            if self.seen_holds.insert((outlier.tid, h.tid, h.overlap_ns)) {
                let ns = h.overlap_ns.min(waited);
                self.push_hold(hold(h.tgid, &h.comm, h.write, h.call, ns));
            }
        } else if let Some(waker) = outlier.waker.as_ref().filter(|w| w.context == Context::Task)
            && clip.own_details
            && let Some(usual) = self.usual_hold(outlier.tgid, waiter_write, waker.tgid)
        {
            // Who lets go of the lock wakes the next one; how that process holds it is known only
            // of other waits.
            let now = clip.accounts.sum_of(crate::case::mmap_holders::is_mmap_lock);
            let (write, call) = (usual.holder_write, usual.holder_call);
            self.by_waker += 1;
            self.push_hold(hold(waker.tgid, &waker.comm, write, call, now));
        }
    }

    /// How a process made the threads of another wait longest, over the run.
    fn usual_hold(&self, tgid: u32, waiter_write: bool, holder_tgid: u32) -> Option<&'a HoldSum> {
        let like = |h: &&HoldSum| {
            (h.tgid, h.waiter_write, h.holder_tgid) == (tgid, waiter_write, holder_tgid)
        };
        self.all_holds.iter().filter(like).max_by_key(|h| h.ns)
    }

    fn push_hold(&mut self, hold: HoldSum) {
        let same = self.holds.iter_mut().find(|sum| {
            (sum.tgid, sum.waiter_write, sum.holder_tgid, sum.holder_write, sum.holder_call)
                == (
                    hold.tgid,
                    hold.waiter_write,
                    hold.holder_tgid,
                    hold.holder_write,
                    hold.holder_call,
                )
        });
        match same {
            Some(sum) => {
                sum.count += 1;
                sum.ns = sum.ns.saturating_add(hold.ns);
                sum.max_ns = sum.max_ns.max(hold.ns);
            }
            None => self.holds.push(hold),
        }
    }

    fn add_runners(&mut self, clip: &Clip) {
        let outlier = clip.outlier;
        let queued = outlier.breakdown.sum_of(Account::is_waiting_for_cpu);
        let within = clip.accounts.sum_of(Account::is_waiting_for_cpu);
        for runner in &outlier.ran_instead {
            let ns = part_of(runner.ns, within, queued);
            if ns == 0 {
                continue;
            }
            let key = (outlier.tgid, runner.tgid, runner.realtime);
            let sum = self.runners.entry(key).or_insert_with(|| RunnerSum {
                tgid: outlier.tgid,
                runner_tgid: runner.tgid,
                runner_comm: runner.comm.clone(),
                realtime: runner.realtime,
                count: 0,
                ns: 0,
            });
            sum.count += 1;
            sum.ns = sum.ns.saturating_add(ns);
        }
    }
}

/// The sleeps that `PathSum` is about: those inside the kernel, no partner to wait for.
fn has_path(account: Account) -> bool {
    let is_told_by_object =
        matches!(account, Account::Blocked(Blocked::PipeWrite | Blocked::SocketSend));
    matches!(account, Account::Blocked(_)) && class(account) == Class::Lost && !is_told_by_object
}
