//! Reads the kernel's histograms, one second at a time.

use std::collections::HashMap;
use std::time::Duration;

use libbpf_rs::{MapCore, MapFlags};
use model::histogram::PRECISION_KERNEL;
use model::{Histogram, MessageMetric, MessageSecond, Metric, MetricSecond, Syscall};

use crate::Error;
use crate::bpf::{self, hist, hist_key};
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
            let Some(key) = self.keys.get(&slot) else { continue };
            if let Some(metric) = of_request(key) {
                let program = requests::program(key.id as u32);
                let flow = requests::FLOW;
                of_requests.push(MessageSecond { program, flow, metric, start_ns, histogram });
            } else if let Some(metric) = metric(key, names) {
                seconds.push(MetricSecond { tgid: key.tgid, metric, start_ns, histogram });
            }
        }
        Ok((seconds, of_requests))
    }

    fn learn(&mut self, index: &dyn MapCore) -> Result<(), Error> {
        for key in index.keys() {
            let slot =
                index.lookup(&key, MapFlags::ANY).map_err(Error::bpf("reading the index"))?;
            if let Some(slot) = slot.as_deref().and_then(bpf::read::<u32>)
                && let Some(key) = bpf::read::<hist_key>(&key)
            {
                self.keys.insert(slot, key);
            }
        }
        Ok(())
    }
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
