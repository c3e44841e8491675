//! tracing with a registry: a span with events, and a layer that notes the time of each in the
//! span's extensions. The registry alone notes no time.

use std::hint::black_box;
use std::time::Instant;

use tracing::span::{Attributes, Id};
use tracing::{Event, Span, Subscriber, info, info_span};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

use crate::{BATCH, Tracer};

struct Times;

struct Noted(Vec<(&'static str, Instant)>);

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Times {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if let Some(span) = context.span(id) {
            let noted = Noted(vec![(attributes.metadata().name(), Instant::now())]);
            span.extensions_mut().insert(noted);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        if let Some(span) = context.event_span(event)
            && let Some(Noted(noted)) = span.extensions_mut().get_mut()
        {
            noted.push((event.metadata().name(), Instant::now()));
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        if let Some(span) = context.span(&id)
            && let Some(Noted(mut noted)) = span.extensions_mut().remove()
        {
            noted.push(("end", Instant::now()));
            black_box(&noted);
        }
    }
}

pub fn start() {
    let subscriber = tracing_subscriber::registry().with(Times);
    tracing::subscriber::set_global_default(subscriber).expect("the only subscriber");
}

pub struct Tracing;

impl Tracer for Tracing {
    type Batch = Vec<Span>;

    fn batch() -> Vec<Span> {
        Vec::with_capacity(BATCH)
    }

    fn receive(batch: &mut Vec<Span>) {
        for id in 0..BATCH {
            let order = info_span!("order", id);
            info!(name: "journalled", parent: &order, "");
            info!(name: "replicated", parent: &order, "");
            batch.push(order);
        }
    }

    fn logic(batch: &mut Vec<Span>) {
        for order in batch.drain(..) {
            info!(name: "start", parent: &order, "");
            for _ in 0..3 {
                info!(name: "fill", parent: &order, "");
            }
        }
    }
}

/// A span for each step, so that each has a duration.
pub struct TracingSpans;

impl Tracer for TracingSpans {
    type Batch = Vec<Span>;

    fn batch() -> Vec<Span> {
        Vec::with_capacity(BATCH)
    }

    fn receive(batch: &mut Vec<Span>) {
        for id in 0..BATCH {
            let order = info_span!("order", id);
            let journalled = info_span!(parent: &order, "journalled");
            let replicated = info_span!(parent: &order, "replicated");
            drop((journalled, replicated));
            batch.push(order);
        }
    }

    fn logic(batch: &mut Vec<Span>) {
        for order in batch.drain(..) {
            let logic = info_span!(parent: &order, "logic");
            for _ in 0..3 {
                drop(info_span!(parent: &logic, "fill"));
            }
        }
    }
}
