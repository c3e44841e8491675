//! Times from a moment to another one.

/// A time on a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Span {
    pub from_ns: u64,
    pub to_ns: u64,
}

impl Span {
    pub(crate) fn ns(self) -> u64 {
        self.to_ns.saturating_sub(self.from_ns)
    }
}

/// The same times without overlaps, in order.
pub(crate) fn union(spans: &[Span]) -> Vec<Span> {
    let mut sorted = spans.to_vec();
    sorted.sort();
    let mut union: Vec<Span> = Vec::new();
    for span in sorted {
        match union.last_mut() {
            Some(last) if span.from_ns <= last.to_ns => last.to_ns = last.to_ns.max(span.to_ns),
            _ => union.push(span),
        }
    }
    union
}

/// How much of a time lies in these, which have no overlaps.
pub(crate) fn within_all(time: Span, spans: &[Span]) -> u64 {
    let shared = spans
        .iter()
        .map(|span| span.to_ns.min(time.to_ns).saturating_sub(span.from_ns.max(time.from_ns)));
    shared.fold(0, u64::saturating_add)
}
