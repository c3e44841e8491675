//! What traced programs reported of their own messages, and what was seen of the requests of others.
//!
//! A program says when each message was received, passed its points, published and ended. Of a
//! program that says nothing, requests are seen at its sockets ([`FlowKind::Request`]). How long
//! messages took is counted for all of them; those at or above the threshold of their flow are kept
//! whole, and a sample of the others, to compare them with.

mod breakdown;
mod metric;
mod request;
mod segment;
mod service;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::histogram::PRECISION_KERNEL;
use crate::{Histogram, Window};

pub use breakdown::{
    ContrastPart, ContrastSide, MessageBreakdown, MessageContrast, MessagePart, MessageTime,
    SlowMessages,
};
pub use metric::{MessageMetric, MessageSecond};
pub use request::{Answer, AtSocket, Call, HandOver};
pub use segment::{MessageSegment, SegmentKind};
pub use service::{Peer, Service, ServiceRole};

/// All that was read of the traced programs of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Messages {
    /// The programs, by number.
    pub programs: Vec<TracedProgram>,
    /// Histograms of all messages, in time order.
    pub seconds: Vec<MessageSecond>,
    /// Messages that took as long as their flow's threshold, the slowest first.
    pub slow: Vec<Message>,
    /// How many slow ones were stored.
    pub slow_count: u64,
    /// A sample of the others, the control group; in time order.
    pub fast: Vec<Message>,
    /// Calls that were seen, on their way to the requests that they were made for.
    #[serde(skip)]
    pub calls: Vec<Call>,
}

/// Slow messages that are looked at part by part, of the whole run, besides the slowest of each flow.
const LOOKED_AT: usize = 400;

/// A program that traced its messages; after an exec it is another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracedProgram {
    /// Its number within the run, from 0.
    pub program: u32,
    /// Process id, as the recorder counts.
    pub tgid: u32,
    /// Its trace file.
    pub path: String,
    /// What its tracer was written in: `Rust`, `C`, `Java`.
    pub language: String,
    /// When it began to trace.
    pub created_ns: u64,
    /// From here on its messages are known.
    pub from_ns: u64,
    /// What became of it.
    pub state: TraceState,
    /// Its kinds of messages, by number.
    pub flows: Vec<MessageFlow>,
    /// Messages whose logic was running when it was last read.
    pub unfinished: Vec<UnfinishedMessage>,
    /// Threads, and flows, points or names, that its tracer had no room for.
    pub dropped: u64,
    /// Slow messages that were not read: later ones took their place, or they were half written.
    pub missed: u64,
    /// Marks that lay outside of their message's time.
    pub misplaced: u64,
    /// Why reading stopped before its end; empty if it did not.
    pub refused: String,
}

/// How a traced program stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TraceState {
    /// It was running when the recording ended.
    #[default]
    Running,
    /// It ended its tracing properly.
    Closed,
    /// It died, or made an exec, and left its trace.
    Crashed,
}

/// A kind of message. Counts are those of the recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageFlow {
    /// Its number in the program, from 1.
    pub flow: u32,
    /// As the program calls it: `order`; of requests where they arrive: `port 6379`.
    pub name: String,
    /// Who told of its messages.
    #[serde(default)]
    pub kind: FlowKind,
    /// Names of its infrastructure points.
    pub points: Vec<String>,
    /// Names of its publishes.
    pub publishes: Vec<String>,
    /// A message that takes this long is slow.
    pub threshold_ns: u64,
    /// Messages begun.
    pub begun: u64,
    /// Messages ended.
    pub ended: u64,
    /// Those of them that were slow, as far as they were read.
    pub slow: u64,
    /// Messages that were begun anew without an end.
    pub abandoned: u64,
    /// Marks of points that the flow has not.
    pub undeclared: u64,
}

/// What the messages of a flow are, and how they are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FlowKind {
    /// Messages that the program reported itself.
    #[default]
    Traced,
    /// Requests seen at its sockets: the infrastructure is the socket's queue, the logic all from the
    /// first read to the first byte of the answer.
    Request,
    /// Calls to a peer, seen at its sockets: the infrastructure is the time that the answer waited
    /// to be read, and not in the total, which ends when it arrives.
    Call,
}

/// A message whose logic had begun and not ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnfinishedMessage {
    /// Its flow.
    pub flow: u32,
    /// The program's own id.
    pub id: u64,
    /// Thread that runs its logic.
    pub tid: u32,
    /// When it was received.
    pub t0_ns: u64,
    /// When its logic began.
    pub logic_start_ns: u64,
    /// When it published last, or else logic start.
    pub last_ns: u64,
    /// What it published last.
    pub last_name: Option<String>,
    /// When that was read.
    pub read_ns: u64,
}

/// A message that has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Number of its program.
    pub program: u32,
    /// Number of its flow in the program.
    pub flow: u32,
    /// The program's own id.
    pub id: u64,
    /// Its place in the sample of its flow; `None` if it was slow.
    pub sample: Option<u32>,
    /// When it was received.
    pub t0_ns: u64,
    /// When its logic began.
    pub logic_start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
    /// Thread that ran the logic.
    pub tid: u32,
    /// Infrastructure points that it passed, in the order of the flow.
    pub points: Vec<MessagePoint>,
    /// Its first publishes, in time order.
    pub published: Vec<MessagePublish>,
    /// How many there were.
    pub publishes: u64,
    /// The longest time between two publishes, or logic start and the first.
    pub longest_gap_ns: u64,
    /// Messages that waited behind it when its logic began, if the program said so.
    pub depth: Option<u32>,
    /// What its logic thread worked on between `t0_ns` and `logic_start_ns`, in time order; the
    /// longest of it, as far as it was read.
    pub ahead: Vec<MessageAhead>,
    /// Intervals of its threads were kept whole from this length on, while it lasted; 0 if nothing
    /// was recorded with it.
    pub kept_ns: u64,
    /// What is known of requests at sockets alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_socket: Option<AtSocket>,
}

/// An infrastructure point that was passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessagePoint {
    /// Place among `MessageFlow::points`.
    pub point: u32,
    /// When.
    pub time_ns: u64,
    /// Thread that marked it, if it is known.
    pub tid: Option<u32>,
}

/// A publish.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessagePublish {
    /// Place among `MessageFlow::publishes`, if it has a name.
    pub publish: Option<u32>,
    /// When.
    pub time_ns: u64,
}

/// An earlier message of the same logic thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageAhead {
    /// Its flow.
    pub flow: u32,
    /// The program's own id.
    pub id: u64,
    /// When its logic began.
    pub logic_start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
}

impl Messages {
    /// True if no program traced.
    pub fn is_empty(&self) -> bool {
        self.programs.is_empty()
    }

    /// True of what was seen at sockets; false of what programs reported themselves.
    pub fn is_from_sockets(&self, program: u32) -> bool {
        let flows = self.program(program).into_iter().flat_map(|program| &program.flows);
        flows.into_iter().any(|flow| flow.kind != FlowKind::Traced)
    }

    /// The slow ones that programs reported themselves.
    pub fn slow_traced(&self) -> impl Iterator<Item = &Message> {
        self.slow.iter().filter(|message| !self.is_from_sockets(message.program))
    }

    /// A program by its number.
    pub fn program(&self, program: u32) -> Option<&TracedProgram> {
        self.programs.iter().find(|known| known.program == program)
    }

    /// A flow by its numbers.
    pub fn flow(&self, program: u32, flow: u32) -> Option<&MessageFlow> {
        self.program(program)?.flows.iter().find(|known| known.flow == flow)
    }

    /// The flow of a message.
    pub fn flow_of(&self, message: &Message) -> Option<&MessageFlow> {
        self.flow(message.program, message.flow)
    }

    /// Of each flow so many slow ones are looked at, however many of others are slower.
    pub const SLOWEST_OF_EACH: usize = 100;

    /// The slow messages that are looked at part by part, the slowest first.
    pub fn looked_at(&self) -> impl Iterator<Item = &Message> {
        let mut of_flow = BTreeMap::<(u32, u32), usize>::new();
        let slow = self.slow.iter().enumerate().filter(move |(place, message)| {
            let before = of_flow.entry((message.program, message.flow)).or_default();
            *before += 1;
            *place < LOOKED_AT || *before <= Self::SLOWEST_OF_EACH
        });
        slow.map(|(_, message)| message)
    }

    /// Which threads had these and the control group, or called for them, and when.
    pub fn windows(&self) -> Vec<Window> {
        let kept = self.looked_at().chain(&self.fast);
        kept.flat_map(|message| message.windows().into_iter().chain(called(message))).collect()
    }

    /// The threads that read the messages of a flow which were kept: of many messages all that do.
    pub fn readers(&self, program: u32, flow: u32) -> BTreeSet<u32> {
        let kept = self.slow.iter().chain(&self.fast);
        let of_flow = kept.filter(|message| (message.program, message.flow) == (program, flow));
        of_flow.map(|message| message.tid).collect()
    }

    /// All values of a metric of a flow.
    pub fn histogram(&self, program: u32, flow: u32, metric: MessageMetric) -> Histogram {
        let mut sum = Histogram::new(PRECISION_KERNEL);
        for second in &self.seconds {
            if (second.program, second.flow, second.metric) == (program, flow, metric) {
                sum.merge(&second.histogram);
            }
        }
        sum
    }
}

/// When other threads called peers for the message.
fn called(message: &Message) -> impl Iterator<Item = Window> {
    let calls = message.at_socket.iter().flat_map(|at| &at.calls);
    calls.filter(|call| call.tid != message.tid).map(|call| Window {
        from_ns: call.sent_ns,
        to_ns: call.arrived_ns,
        tid: Some(call.tid),
    })
}

impl Message {
    /// The place of what is in no sample, and on its way to those that asked for it only.
    pub const NO_SAMPLE: u32 = u32::MAX;

    /// From receipt to end.
    pub fn total_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.t0_ns)
    }

    /// From receipt to the start of the logic.
    pub fn infrastructure_ns(&self) -> u64 {
        self.logic_start_ns.saturating_sub(self.t0_ns)
    }

    /// From the start of the logic to the end.
    pub fn logic_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.logic_start_ns)
    }

    /// The thread that answered, if it was not the one that began.
    pub fn handed(&self) -> Option<HandOver> {
        self.at_socket.as_ref()?.handed
    }

    /// True if it took as long as its flow's threshold.
    pub fn is_slow(&self) -> bool {
        self.sample.is_none()
    }
}

impl MessageFlow {
    /// Every metric that it has.
    pub fn metrics(&self) -> impl Iterator<Item = MessageMetric> + use<> {
        use MessageMetric::{
            Answering, Held, Infrastructure, Logic, PublishGap, ToPoint, ToPublish, Total,
        };
        let own: &[MessageMetric] = match self.kind {
            FlowKind::Traced => &[Total, Infrastructure, Logic, PublishGap],
            FlowKind::Request => &[Total, Infrastructure, Logic, Answering, Held],
            FlowKind::Call => &[Total, Infrastructure],
        };
        let points = (0..self.points.len() as u32).map(ToPoint);
        let publishes = (0..self.publishes.len() as u32).map(ToPublish);
        own.iter().copied().chain(points).chain(publishes)
    }

    /// What a metric is called in this flow.
    pub fn metric_name(&self, metric: MessageMetric) -> String {
        let of = |names: &[String], place: u32| {
            names.get(place as usize).cloned().unwrap_or_else(|| format!("number {place}"))
        };
        let name = |traced: &str, request: &str, call: &str| match self.kind {
            FlowKind::Traced => traced.to_owned(),
            FlowKind::Request => request.to_owned(),
            FlowKind::Call => call.to_owned(),
        };
        match metric {
            MessageMetric::Total => name("total", "until answered", "at the peer"),
            MessageMetric::Infrastructure => {
                name("infrastructure", "in the socket's queue", "answer in the socket's queue")
            }
            MessageMetric::Logic => name("logic", "worked on", "logic"),
            MessageMetric::Answering => "answering in parts".to_owned(),
            MessageMetric::Held => "held open".to_owned(),
            MessageMetric::PublishGap => "publish gap".to_owned(),
            MessageMetric::ToPoint(place) => format!("to {}", of(&self.points, place)),
            MessageMetric::ToPublish(place) => format!("gap to {}", of(&self.publishes, place)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seconds_of_a_metric_add_up() {
        let second = |flow, metric, value| {
            let mut histogram = Histogram::new(PRECISION_KERNEL);
            histogram.record(value);
            MessageSecond { program: 0, flow, metric, start_ns: 0, histogram }
        };
        let messages = Messages {
            seconds: vec![
                second(1, MessageMetric::Total, 5),
                second(2, MessageMetric::Total, 900),
                second(1, MessageMetric::Logic, 70),
                second(1, MessageMetric::Total, 7),
            ],
            ..Messages::default()
        };
        let total = messages.histogram(0, 1, MessageMetric::Total);
        assert_eq!((total.count(), total.sum(), total.max()), (2, 12, Some(7)));
    }
}
