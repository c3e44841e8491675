//! One message shape for every tracer: 8 marks over 2 threads.
//!
//! ```text
//! receiving thread   begin   journalled   replicated
//! logic thread                                        start   fill   fill   fill   end
//! ```
//!
//! Messages go from one thread to the other in batches, and only the stages are timed: what the
//! hand-off costs is the same for all. A peer comes twice. With events it notes the 8 times under
//! their names, the cheapest way it has; with spans it measures each step, as whylag does. What it
//! makes is dropped at once: no peer's figure has the histograms that whylag's has.

pub mod fastrace_message;
pub mod floor;
pub mod opentelemetry_message;
pub mod tracing_message;
pub mod whylag_message;

/// Messages handed over at once.
pub const BATCH: usize = 64;
/// Times noted for each message.
pub const MARKS: u32 = 8;

/// A tracer's way to trace a batch. `logic` is called by another thread than `receive`.
pub trait Tracer {
    /// What travels with a batch.
    type Batch: Send + 'static;

    /// An empty batch.
    fn batch() -> Self::Batch;
    /// The first three marks of each message.
    fn receive(batch: &mut Self::Batch);
    /// The other five.
    fn logic(batch: &mut Self::Batch);
}
