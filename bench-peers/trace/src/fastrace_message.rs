//! fastrace: a root span with events, and a local span with events; or a span for each step.

use fastrace::collector::{Config, Reporter};
use fastrace::prelude::*;

use crate::{BATCH, Tracer};

struct Drops;

impl Reporter for Drops {
    fn report(&mut self, _: Vec<SpanRecord>) {}
}

pub fn start() {
    fastrace::set_reporter(Drops, Config::default());
}

pub struct Fastrace;

impl Tracer for Fastrace {
    type Batch = Vec<Span>;

    fn batch() -> Vec<Span> {
        Vec::with_capacity(BATCH)
    }

    fn receive(batch: &mut Vec<Span>) {
        for id in 0..BATCH {
            let context = SpanContext::new(TraceId(id as u128 + 1), SpanId(0));
            let root = Span::root("order", context);
            root.add_event(Event::new("journalled"));
            root.add_event(Event::new("replicated"));
            batch.push(root);
        }
    }

    fn logic(batch: &mut Vec<Span>) {
        for root in batch.drain(..) {
            let _parent = root.set_local_parent();
            let _logic = LocalSpan::enter_with_local_parent("logic");
            for _ in 0..3 {
                LocalSpan::add_event(Event::new("fill"));
            }
        }
    }
}

/// A span for each step, so that each has a duration.
pub struct FastraceSpans;

impl Tracer for FastraceSpans {
    type Batch = Vec<Span>;

    fn batch() -> Vec<Span> {
        Vec::with_capacity(BATCH)
    }

    fn receive(batch: &mut Vec<Span>) {
        for id in 0..BATCH {
            let context = SpanContext::new(TraceId(id as u128 + 1), SpanId(0));
            let root = Span::root("order", context);
            {
                let _parent = root.set_local_parent();
                let _journalled = LocalSpan::enter_with_local_parent("journalled");
                let _replicated = LocalSpan::enter_with_local_parent("replicated");
            }
            batch.push(root);
        }
    }

    fn logic(batch: &mut Vec<Span>) {
        for root in batch.drain(..) {
            let _parent = root.set_local_parent();
            let _logic = LocalSpan::enter_with_local_parent("logic");
            for _ in 0..3 {
                let _fill = LocalSpan::enter_with_local_parent("fill");
            }
        }
    }
}
