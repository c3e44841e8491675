//! A kind of message: its threshold and the names of its points.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::thread;
use super::tracer::Shared;
use crate::Error;
use crate::layout::{self, MOST_FLOWS, POINTS, PUBLISHES, THRESHOLD};

/// A kind of message. Clones are the same flow.
#[derive(Clone)]
pub struct Flow(pub(crate) Option<Declared>);

/// A flow that has its entry in the file.
#[derive(Clone)]
pub(crate) struct Declared {
    pub entry: &'static layout::Flow,
    pub id: u32,
    pub points: u32,
    pub generation: u32,
    /// As declared, ns.
    pub threshold: u64,
    shared: Arc<Shared>,
}

/// By flow: the thread that began the first message of it. That one counts without a locked
/// instruction, which costs as much as all else that begin does.
static FIRST: [AtomicUsize; MOST_FLOWS] = [const { AtomicUsize::new(0) }; MOST_FLOWS];

impl Declared {
    #[inline(always)]
    pub fn count_begun(&self) {
        if FIRST[self.id as usize - 1].load(Ordering::Relaxed) == thread::token() {
            self.entry.begun_by_first.add_as_owner(1);
        } else {
            self.count_begun_by_another();
        }
    }

    #[inline(never)]
    fn count_begun_by_another(&self) {
        let first = &FIRST[self.id as usize - 1];
        let became =
            first.compare_exchange(0, thread::token(), Ordering::Relaxed, Ordering::Relaxed);
        match became {
            Ok(_) => self.entry.begun_by_first.add_as_owner(1),
            Err(_) => self.entry.begun.add_shared(1),
        }
    }
}

/// A named outbound message of a flow; see [`Flow::publish`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Publish {
    pub(crate) name: u32,
    pub(crate) flow: u16,
    pub(crate) index: u16,
}

impl Publish {
    /// A publish without a name: it counts among the gaps.
    pub const UNNAMED: Publish = Publish { flow: 0, name: 0, index: 0 };
}

impl Flow {
    /// The flow of a tracer that is off.
    pub fn off() -> Flow {
        Flow(None)
    }

    /// Declares an outbound message, or finds it again. At most 16 have a histogram of their own.
    pub fn publish(&self, name: &str) -> Result<Publish, Error> {
        let Some(Declared { entry, id, shared, .. }) = &self.0 else {
            return Ok(Publish::UNNAMED);
        };
        // Holding the flows keeps two threads from appending at once.
        let _flows = shared.flows.lock().unwrap_or_else(PoisonError::into_inner);
        let name = shared.names.id(&shared.area, name)?;
        let found = entry.publish.iter().position(|used| [0, name].contains(&used.load_relaxed()));
        let Some(index) = found else {
            shared.area.header().dropped_others.add_shared(1);
            return Err(Error::Full { what: "named publishes of a flow", most: PUBLISHES });
        };
        entry.publish[index].store_release(name);
        Ok(Publish { flow: *id as u16, name, index: index as u16 })
    }
}

/// See [`crate::Tracer::flow`].
pub struct FlowBuilder<'a> {
    shared: Option<&'a Arc<Shared>>,
    name: &'a str,
    points: Vec<&'a str>,
    threshold: Duration,
}

impl<'a> FlowBuilder<'a> {
    pub(crate) fn new(shared: Option<&'a Arc<Shared>>, name: &'a str) -> Self {
        FlowBuilder { shared, name, points: Vec::new(), threshold: Duration::from_millis(1) }
    }

    /// Names the infrastructure points, at most 8. [`crate::Point::new`] counts them from 0.
    pub fn infra(mut self, points: impl IntoIterator<Item = &'a str>) -> Self {
        self.points.extend(points);
        self
    }

    /// A message that takes at least this long is slow and keeps its breakdown: 1 ms if not said;
    /// 1 us to 1 h.
    pub fn threshold(mut self, threshold: Duration) -> Self {
        self.threshold = threshold;
        self
    }

    /// Writes the flow into the file.
    pub fn build(self) -> Result<Flow, Error> {
        let Some(shared) = self.shared else { return Ok(Flow::off()) };
        let area = &shared.area;
        let full = |what, most| {
            area.header().dropped_others.add_shared(1);
            Err(Error::Full { what, most })
        };
        if self.points.len() > POINTS {
            return full("infrastructure points of a flow", POINTS);
        }
        let mut flows = shared.flows.lock().unwrap_or_else(PoisonError::into_inner);
        if flows.iter().any(|flow| flow == self.name) {
            return Err(Error::FlowExists(self.name.to_owned()));
        }
        let Some(entry) = area.flows().get(flows.len()) else {
            return full("flows", flows.len());
        };
        entry.name.store_relaxed(shared.names.id(area, self.name)?);
        for (cell, point) in entry.point.iter().zip(&self.points) {
            cell.store_relaxed(shared.names.id(area, point)?);
        }
        let points = self.points.len() as u32;
        entry.points.store_relaxed(points);
        entry.publishes.store_relaxed(PUBLISHES as u32);
        let threshold = u64::try_from(self.threshold.as_nanos()).unwrap_or(u64::MAX);
        let threshold = threshold.clamp(*THRESHOLD.start(), *THRESHOLD.end());
        entry.threshold.store_relaxed(threshold);
        flows.push(self.name.to_owned());
        let id = flows.len() as u32;
        // A tracer before this one may have had that thread.
        FIRST[flows.len() - 1].store(0, Ordering::Relaxed);
        entry.id.store_release(id);
        Ok(Flow(Some(Declared {
            entry,
            id,
            points,
            generation: shared.generation,
            threshold,
            shared: Arc::clone(shared),
        })))
    }
}
