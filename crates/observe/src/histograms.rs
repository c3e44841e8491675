//! Reads the kernel's histograms, one second at a time.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::time::Duration;

use libbpf_rs::{MapCore, MapFlags};
use model::histogram::PRECISION_KERNEL;
use model::{Histogram, MessageMetric, MessageSecond, Metric, MetricSecond, Syscall};

use crate::Error;
use crate::bpf::{self, hist, hist_key};
use crate::map_entries::entries;
use crate::names::Names;
use crate::probes::Probes;
use crate::requests;
use crate::wire::{self, HistKind};

/// Programs run with preemption off and for microseconds: after this long nobody still counts
/// into the half that was flipped away.
const QUIET: Duration = Duration::from_millis(2);

/// Which histogram is in which slot.
#[derive(Default)]
pub struct Histograms {
    keys: HashMap<u32, hist_key>,
    /// Those of processes that have ended: nobody finds them any more, and they are read once more.
    retired: HashSet<u32>,
    /// Values that came after nobody knew any more whose they are.
    unknown: u64,
}

impl Histograms {
    /// The values since the last read, which ended at `start_ns`; those of requests apart.
    pub fn read(
        &mut self,
        probes: &mut Probes,
        names: &mut Names,
        start_ns: u64,
    ) -> Result<(Vec<MetricSecond>, Vec<MessageSecond>), Error> {
        let half = probes.flip_histograms();
        std::thread::sleep(QUIET);
        let slots = probes.histogram_slots();
        let maps = &probes.skel().maps;
        if self.keys.len() + 1 < slots as usize {
            self.learn(&maps.hist_index)?;
        }
        let (mut seconds, mut of_requests) = (Vec::new(), Vec::new());
        let cpus = libbpf_rs::num_possible_cpus().map_err(Error::bpf("counting CPUs"))?;
        let empty = vec![vec![0; size_of::<hist>()]; cpus];
        for slot in 1..slots {
            let index = (slot * 2 + half).to_ne_bytes();
            let values = maps.hists.lookup_percpu(&index, MapFlags::ANY);
            let Some(values) = values.map_err(Error::bpf("reading histograms"))? else { continue };
            let Some(histogram) = merge(&values) else { continue };
            maps.hists
                .update_percpu(&index, &empty, MapFlags::ANY)
                .map_err(Error::bpf("clearing histograms"))?;
            let Some(key) = self.keys.get(&slot) else {
                self.unknown += histogram.count();
                continue;
            };
            if let Some(metric) = of_request(key) {
                let program = requests::program(key.id as u32);
                let flow = requests::FLOW;
                of_requests.push(MessageSecond { program, flow, metric, start_ns, histogram });
            } else if let Some(metric) = metric(key, names) {
                seconds.push(MetricSecond { tgid: key.tgid, metric, start_ns, histogram });
            }
        }
        self.give_back(probes);
        let maps = &probes.skel().maps;
        if self.keys.len() > maps.hists.max_entries() as usize / 4 {
            self.retire(&maps.hist_index);
        }
        Ok((seconds, of_requests))
    }

    /// Values of no known histogram since the last call: of processes that ended while they were
    /// counted.
    pub fn unknown(&mut self) -> u64 {
        std::mem::take(&mut self.unknown)
    }

    fn learn(&mut self, index: &dyn MapCore) -> Result<(), Error> {
        for (_, key, slot) in entries::<hist_key, u32>(index)? {
            self.keys.insert(slot, key);
        }
        Ok(())
    }

    /// Takes the histograms of processes that have ended out of the index.
    fn retire(&mut self, index: &dyn MapCore) {
        let mut lives = Lives::default();
        for (slot, key) in &self.keys {
            if key.tgid == 0 || self.retired.contains(slot) || lives.is_there(key.tgid) {
                continue;
            }
            if index.delete(bytes_of(key).as_slice()).is_ok() {
                self.retired.insert(*slot);
            }
        }
    }

    /// Those that were retired before both halves were read. A process that got the number of one that
    /// had just ended may have found them while they were taken out: then they stay until it ends.
    fn give_back(&mut self, probes: &mut Probes) {
        let mut lives = Lives::default();
        for slot in std::mem::take(&mut self.retired) {
            let owner = self.keys.get(&slot).map(|key| key.tgid);
            if owner.is_some_and(|tgid| lives.is_there(tgid)) {
                self.retired.insert(slot);
                continue;
            }
            self.keys.remove(&slot);
            probes.give_histogram_back(slot);
        }
    }
}

/// Which processes are there; each is looked for once.
#[derive(Default)]
struct Lives(HashMap<u32, bool>);

impl Lives {
    fn is_there(&mut self, tgid: u32) -> bool {
        let look = || Path::new("/proc").join(tgid.to_string()).exists();
        *self.0.entry(tgid).or_insert_with(look)
    }
}

/// As the kernel has it.
fn bytes_of(key: &hist_key) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(size_of::<hist_key>());
    bytes.extend(key.tgid.to_ne_bytes());
    bytes.extend(key.kind.to_ne_bytes());
    bytes.extend(key.id.to_ne_bytes());
    bytes
}

/// One histogram from its per-CPU parts, `None` if nothing was counted.
fn merge(cpus: &[Vec<u8>]) -> Option<Histogram> {
    let mut sum = None::<Histogram>;
    for part in cpus.iter().filter_map(|bytes| bpf::read::<hist>(bytes)) {
        if part.max == 0 && part.inverse_min == 0 {
            continue;
        }
        let buckets = part.buckets.iter().enumerate().filter(|(_, count)| **count > 0);
        let histogram = Histogram::from_parts(
            PRECISION_KERNEL,
            buckets.map(|(index, count)| (index as u32, u64::from(*count))),
            part.sum,
            !part.inverse_min,
            part.max,
        );
        match sum.as_mut() {
            Some(sum) => sum.merge(&histogram),
            None => sum = Some(histogram),
        }
    }
    sum.filter(|histogram| histogram.count() > 0)
}

/// What is measured of requests, if it is that.
fn of_request(key: &hist_key) -> Option<MessageMetric> {
    Some(match HistKind::of(key.kind)? {
        HistKind::RequestTotal => MessageMetric::Total,
        HistKind::RequestQueued => MessageMetric::Infrastructure,
        HistKind::RequestWorked => MessageMetric::Logic,
        HistKind::RequestAnswering => MessageMetric::Answering,
        HistKind::RequestHeld => MessageMetric::Held,
        _ => return None,
    })
}

/// `enum hist_kind`; `None` if there is no such number.
fn metric(key: &hist_key, names: &mut Names) -> Option<Metric> {
    let call = || u16::try_from(key.id).ok().map(Syscall);
    Some(match HistKind::of(key.kind)? {
        HistKind::Syscall => Metric::Syscall(call()?),
        HistKind::SampledSyscall => Metric::SampledSyscall(call()?),
        HistKind::CensoredSyscall => Metric::CensoredSyscall(call()?),
        HistKind::OffCpu => Metric::OffCpu,
        HistKind::RunQueue => Metric::RunQueueDelay,
        HistKind::Lock => Metric::Lock(names.lock_class(key.id)),
        HistKind::Fault => Metric::PageFaultSleep,
        HistKind::Hardirq => Metric::HardIrq(wire::hard_irq_name(key.id)),
        HistKind::Softirq => Metric::SoftIrq(wire::softirq_name(key.id)),
        HistKind::BlockIo => Metric::BlockIo(wire::device_name(key.id)),
        HistKind::Reclaim => Metric::DirectReclaim,
        HistKind::Compaction => Metric::Compaction,
        HistKind::HeldSend => Metric::HeldSend(call()?),
        HistKind::LoopTurn => Metric::LoopTurn,
        HistKind::RequestTotal
        | HistKind::RequestQueued
        | HistKind::RequestWorked
        | HistKind::RequestAnswering
        | HistKind::RequestHeld => return None,
    })
}
