//! opentelemetry_sdk: a span with events, and a processor that drops it.

use std::hint::black_box;
use std::sync::OnceLock;
use std::time::Duration;

use opentelemetry::Context;
use opentelemetry::trace::{Span as _, TraceContextExt as _, Tracer as _, TracerProvider as _};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider, Span, SpanData, SpanProcessor};

use crate::{BATCH, Tracer};

#[derive(Debug)]
struct Drops;

impl SpanProcessor for Drops {
    fn on_start(&self, _: &mut Span, _: &Context) {}

    fn on_end(&self, span: SpanData) {
        black_box(span);
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }
}

fn tracer() -> &'static SdkTracer {
    static TRACER: OnceLock<SdkTracer> = OnceLock::new();
    TRACER.get_or_init(|| {
        SdkTracerProvider::builder().with_span_processor(Drops).build().tracer("bench")
    })
}

pub struct OpenTelemetry;

impl Tracer for OpenTelemetry {
    type Batch = Vec<Span>;

    fn batch() -> Vec<Span> {
        Vec::with_capacity(BATCH)
    }

    fn receive(batch: &mut Vec<Span>) {
        for _ in 0..BATCH {
            let mut order = tracer().start("order");
            order.add_event("journalled", vec![]);
            order.add_event("replicated", vec![]);
            batch.push(order);
        }
    }

    fn logic(batch: &mut Vec<Span>) {
        for mut order in batch.drain(..) {
            order.add_event("start", vec![]);
            for _ in 0..3 {
                order.add_event("fill", vec![]);
            }
            order.end();
        }
    }
}

/// A span for each step, so that each has a duration.
pub struct OpenTelemetrySpans;

impl Tracer for OpenTelemetrySpans {
    type Batch = Vec<Context>;

    fn batch() -> Vec<Context> {
        Vec::with_capacity(BATCH)
    }

    fn receive(batch: &mut Vec<Context>) {
        for _ in 0..BATCH {
            let order = Context::new().with_span(tracer().start("order"));
            let mut journalled = tracer().start_with_context("journalled", &order);
            let mut replicated = tracer().start_with_context("replicated", &order);
            journalled.end();
            replicated.end();
            batch.push(order);
        }
    }

    fn logic(batch: &mut Vec<Context>) {
        for order in batch.drain(..) {
            let logic = order.with_span(tracer().start_with_context("logic", &order));
            for _ in 0..3 {
                tracer().start_with_context("fill", &logic).end();
            }
            logic.span().end();
            order.span().end();
        }
    }
}
