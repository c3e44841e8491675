package org.whylag.bench;

import io.opentelemetry.api.trace.Span;
import io.opentelemetry.sdk.common.CompletableResultCode;
import io.opentelemetry.sdk.trace.SdkTracerProvider;
import io.opentelemetry.sdk.trace.data.SpanData;
import io.opentelemetry.sdk.trace.export.BatchSpanProcessor;
import io.opentelemetry.sdk.trace.export.SpanExporter;
import java.util.Collection;

/**
 * OpenTelemetry's SDK: a span for each message, whose other seven marks are its events; every message
 * is sampled, batched, and dropped by the exporter.
 */
final class SpanShape implements Shape, AutoCloseable {
    private final SdkTracerProvider provider =
            SdkTracerProvider.builder()
                    .addSpanProcessor(BatchSpanProcessor.builder(new Nowhere()).build())
                    .build();
    private final io.opentelemetry.api.trace.Tracer tracer = provider.get("bench");
    private final Span[] slots = new Span[SLOTS];

    @Override
    public void receive(int slot, long id) {
        Span span = tracer.spanBuilder("order").setAttribute("id", id).startSpan();
        span.addEvent("journalled");
        span.addEvent("replicated");
        slots[slot] = span;
    }

    @Override
    public void handle(int slot) {
        Span span = slots[slot];
        span.addEvent("started");
        span.addEvent("fill");
        span.addEvent("trade");
        span.addEvent("report");
        span.end();
    }

    @Override
    public void close() {
        provider.close();
    }

    private static final class Nowhere implements SpanExporter {
        @Override
        public CompletableResultCode export(Collection<SpanData> spans) {
            return CompletableResultCode.ofSuccess();
        }

        @Override
        public CompletableResultCode flush() {
            return CompletableResultCode.ofSuccess();
        }

        @Override
        public CompletableResultCode shutdown() {
            return CompletableResultCode.ofSuccess();
        }
    }
}
