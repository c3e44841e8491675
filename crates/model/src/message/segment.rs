//! A message in parts, one after the other.

use super::{FlowKind, Message, MessageAhead, MessageFlow};
use crate::Window;

/// A part of a message: what it waited for, and the thread that had it meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageSegment {
    /// What ended it.
    pub kind: SegmentKind,
    /// Start.
    pub from_ns: u64,
    /// End.
    pub to_ns: u64,
    /// The thread, if it is known.
    pub tid: Option<u32>,
}

/// What a part of a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentKind {
    /// Up to the infrastructure point of this place, since the one before it in time. Points that
    /// other threads pass meanwhile run beside it.
    ToPoint(u32),
    /// All points were passed, and the thread of the logic worked on an earlier message.
    Behind(MessageAhead),
    /// All points were passed, and the thread of the logic was not seen to work on another.
    ToLogic,
    /// Up to a publish, since logic start or the publish before it; its place if it has a name.
    ToPublish(Option<u32>),
    /// From logic start until its thread woke the one that answered.
    ToHandOver,
    /// From the last publish that was kept, or the hand-over, to the end; all of the logic if there
    /// was none.
    ToEnd,
}

impl MessageSegment {
    /// Length.
    pub fn ns(&self) -> u64 {
        self.to_ns.saturating_sub(self.from_ns)
    }

    /// True for what lies before logic start.
    pub fn is_infrastructure(&self) -> bool {
        use SegmentKind::{Behind, ToLogic, ToPoint};
        matches!(self.kind, ToPoint(_) | Behind(_) | ToLogic)
    }

    /// What it is called: `to journalled`, `queued behind order 8122`, `gap to fill`.
    pub fn name(&self, flow: &MessageFlow, ahead_flow: Option<&MessageFlow>) -> String {
        let of = |names: &[String], place: u32| {
            names.get(place as usize).cloned().unwrap_or_else(|| format!("number {place}"))
        };
        let request = flow.kind == FlowKind::Request;
        match self.kind {
            SegmentKind::ToLogic if request => "in the socket's queue".to_owned(),
            SegmentKind::ToPublish(Some(0)) if request => "worked on".to_owned(),
            SegmentKind::ToHandOver => "worked on until handed over".to_owned(),
            SegmentKind::ToEnd if request => "answering".to_owned(),
            SegmentKind::ToPoint(place) => format!("to {}", of(&flow.points, place)),
            SegmentKind::Behind(ahead) => {
                format!("queued behind {} {}", ahead_flow.unwrap_or(flow).name, ahead.id)
            }
            SegmentKind::ToLogic => "to logic start".to_owned(),
            SegmentKind::ToPublish(Some(place)) => format!("gap to {}", of(&flow.publishes, place)),
            SegmentKind::ToPublish(None) => "gap to a publish".to_owned(),
            SegmentKind::ToEnd => "to the end".to_owned(),
        }
    }
}

impl Message {
    /// Which thread had it, and when, one after the other.
    pub fn windows(&self) -> Vec<Window> {
        let mut parts: Vec<Window> = Vec::new();
        for segment in self.segments() {
            let Some(tid) = segment.tid else { continue };
            match parts.last_mut() {
                Some(last) if last.tid == Some(tid) && last.to_ns == segment.from_ns => {
                    last.to_ns = segment.to_ns;
                }
                _ => {
                    let (from_ns, to_ns) = (segment.from_ns, segment.to_ns);
                    parts.push(Window { from_ns, to_ns, tid: Some(tid) });
                }
            }
        }
        parts
    }

    /// Its parts in time order. Their lengths sum to that of the message.
    pub fn segments(&self) -> Vec<MessageSegment> {
        let mut cut = Cut { at: self.t0_ns, segments: Vec::new() };
        let mut points = self.points.clone();
        points.sort_by_key(|point| point.time_ns);
        for point in points {
            let until = point.time_ns.min(self.logic_start_ns);
            cut.until(until, SegmentKind::ToPoint(point.point), point.tid);
        }
        let logic = Some(self.tid).filter(|tid| *tid != 0);
        for ahead in &self.ahead {
            let until = |ns: u64| ns.min(self.logic_start_ns);
            cut.until(until(ahead.logic_start_ns), SegmentKind::ToLogic, logic);
            cut.until(until(ahead.end_ns), SegmentKind::Behind(*ahead), logic);
        }
        cut.until(self.logic_start_ns, SegmentKind::ToLogic, logic);
        let handed = self.handed();
        if let Some(time_ns) = handed.and_then(|handed| handed.time_ns) {
            cut.until(time_ns.min(self.end_ns), SegmentKind::ToHandOver, logic);
        }
        let answering = handed.map(|handed| handed.tid).or(logic);
        for publish in &self.published {
            let until = publish.time_ns.min(self.end_ns);
            cut.until(until, SegmentKind::ToPublish(publish.publish), answering);
        }
        cut.until(self.end_ns, SegmentKind::ToEnd, answering);
        cut.segments
    }
}

struct Cut {
    at: u64,
    segments: Vec<MessageSegment>,
}

impl Cut {
    /// The next part, if there is time left for it.
    fn until(&mut self, to_ns: u64, kind: SegmentKind, tid: Option<u32>) {
        if to_ns > self.at {
            self.segments.push(MessageSegment { kind, from_ns: self.at, to_ns, tid });
            self.at = to_ns;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MessagePoint, MessagePublish};

    #[test]
    fn parts_follow_each_other_from_receipt_to_end() {
        let ahead = MessageAhead { flow: 1, id: 6, logic_start_ns: 90, end_ns: 150 };
        let message = Message {
            program: 0,
            flow: 1,
            id: 7,
            sample: None,
            t0_ns: 100,
            logic_start_ns: 160,
            end_ns: 200,
            tid: 9,
            // In the order of the flow, which is not that of time.
            points: vec![
                MessagePoint { point: 0, time_ns: 130, tid: Some(3) },
                MessagePoint { point: 1, time_ns: 120, tid: None },
            ],
            published: vec![MessagePublish { publish: Some(2), time_ns: 190 }],
            publishes: 1,
            longest_gap_ns: 30,
            depth: None,
            ahead: vec![ahead],
            kept_ns: 0,
            at_socket: None,
        };
        let parts: Vec<_> =
            message.segments().iter().map(|s| (s.kind, s.from_ns, s.to_ns, s.tid)).collect();
        assert_eq!(
            parts,
            [
                (SegmentKind::ToPoint(1), 100, 120, None),
                (SegmentKind::ToPoint(0), 120, 130, Some(3)),
                (SegmentKind::Behind(ahead), 130, 150, Some(9)),
                (SegmentKind::ToLogic, 150, 160, Some(9)),
                (SegmentKind::ToPublish(Some(2)), 160, 190, Some(9)),
                (SegmentKind::ToEnd, 190, 200, Some(9)),
            ]
        );
        let sum: u64 = message.segments().iter().map(MessageSegment::ns).sum();
        assert_eq!(sum, message.total_ns());
    }
}
