/**
 * Times every message of an application at named points, into a file in shared memory that whylag
 * reads from outside, while the application runs and after it has died.
 *
 * <pre>{@code
 * Tracer tracer = Tracer.open();
 * Flow order = tracer.flow("order").infra("journalled", "replicated").thresholdNanos(100_000).build();
 * int FILL = order.publish("fill");
 *
 * event.trace.begin(order, id, rxNanos);    // receipt; event.trace lives in the ring's slot
 * event.trace.mark(JOURNALLED);             // any thread, also at the same time as others
 * Logic logic = tracer.logic();             // once, in the thread that runs the business logic
 * logic.start(event.trace);
 * logic.published(event.trace, FILL);
 * logic.end(event.trace);
 * }</pre>
 *
 * <p>The file is specified in docs/trace-format.md. The {@code *Descriptor} classes hold its layout
 * and nothing else; {@link org.whylag.trace.Memory} is the only class that touches the mapping, and
 * its method names state the memory order. There is one writer for every region: the message's own
 * cells live in {@link org.whylag.trace.Trace}, and only the thread that ends a message writes
 * records and histograms.
 *
 * <p>What goes wrong at set-up is a {@link org.whylag.trace.TraceException} that says what to do;
 * what goes wrong later is counted in the file, and the application goes on.
 */
package org.whylag.trace;
