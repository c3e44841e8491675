//! One message in a sentence.

use model::units::duration;
use model::{Message, MessageFlow, MessageSegment};

/// `order 8123: 4.10 ms; infrastructure 100 us (to journalled 90.0 us ...), logic ...`.
pub fn sentence(message: &Message, flow: &MessageFlow, flows: &[MessageFlow]) -> String {
    let segments = message.segments();
    let part = |name: &str, ns: u64, infrastructure: bool| {
        let mut of_it: Vec<&MessageSegment> =
            segments.iter().filter(|s| s.is_infrastructure() == infrastructure).collect();
        // The largest, in the order they came.
        of_it.sort_by_key(|s| std::cmp::Reverse(s.ns()));
        of_it.truncate(PARTS);
        of_it.sort_by_key(|s| s.from_ns);
        let parts: Vec<String> = of_it
            .iter()
            .map(|s| format!("{} {}", segment_name(s, flow, flows), duration(s.ns())))
            .collect();
        match parts.len() {
            0 => format!("{name} {}", duration(ns)),
            _ => format!("{name} {} ({})", duration(ns), parts.join(", ")),
        }
    };
    let waiting = match message.depth {
        Some(0) | None => String::new(),
        Some(depth) => format!("; {depth} waited behind it"),
    };
    format!(
        "{} {}: {}; {}; {}{waiting}",
        flow.name,
        message.id,
        duration(message.total_ns()),
        part("infrastructure", message.infrastructure_ns(), true),
        part("logic", message.logic_ns(), false),
    )
}

/// Parts that are named of infrastructure, and of logic.
const PARTS: usize = 4;

fn segment_name(segment: &MessageSegment, flow: &MessageFlow, flows: &[MessageFlow]) -> String {
    let ahead = match segment.kind {
        model::SegmentKind::Behind(ahead) => flows.iter().find(|f| f.flow == ahead.flow),
        _ => None,
    };
    segment.name(flow, ahead)
}
