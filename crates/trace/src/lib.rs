//! Measures every message of a program at named points, and lets an outside process read it all
//! while the program runs, and after it has crashed.
//!
//! Tracers that sample miss the one order in a million that took 4 ms; those that write every span
//! cost too much to stay on. Here every message is timed, what is usual goes into histograms, and
//! a message that takes longer than its threshold keeps its whole breakdown. Everything is in one file
//! in shared memory, whose format is docs/trace-format.md. After the set-up the program makes no
//! system call for it, takes no lock and allocates nothing.
//!
//! ```
//! # fn main() -> Result<(), trace::Error> {
//! # let folder = tempfile::tempdir_in("/dev/shm").unwrap();
//! use std::time::Duration;
//! use trace::{Point, Trace, Tracer};
//!
//! const JOURNALLED: Point = Point::new(0);
//! const REPLICATED: Point = Point::new(1);
//!
//! // At the start.
//! let tracer = Tracer::builder()
//! #   .folder(folder.path())
//!     .build()?;
//! let order = tracer
//!     .flow("order")
//!     .infra(["journalled", "replicated"])
//!     .threshold(Duration::from_micros(100))
//!     .build()?;
//! let fill = order.publish("fill")?;
//! let mut thread = tracer.thread()?;
//!
//! // For each message. The trace lies next to the message and travels with it.
//! let mut trace = Trace::new();
//! trace.begin(&order, 8123, trace::now());
//! trace.mark(JOURNALLED); // by any thread, also two at once
//! trace.mark(REPLICATED);
//! let mut logic = thread.logic_start(&mut trace, Some(3));
//! logic.published(fill);
//! logic.end();
//! # Ok(())
//! # }
//! ```
//!
//! # The map
//!
//! - [`writer`]: [`Tracer`], [`Flow`], [`Thread`], [`Trace`]: what a program uses.
//! - [`reader`]: opens, checks and follows a trace file that it does not trust.
//! - [`layout`]: where each number lies; [`word`]: how it is read and written.
//! - `c/`: the same writer for C and C++, one header and one small file.
//!
//! # Caveats
//!
//! - With no folder for the file there is an error, and the program decides; [`Tracer::off`] is a
//!   tracer whose every call returns at once.
//! - One tracer per process. In the child of a fork it is off.
//! - [`Trace::mark`] may be called by several threads, each its own point. What orders these calls
//!   before [`Thread::logic_start`] is whatever hands the message over.
//! - Times are CLOCK_MONOTONIC. On a host whose clocksource is slow every mark is slow: the reader
//!   sees it, because all gaps grow by the same amount.

pub mod clock;
mod error;
#[allow(missing_docs, reason = "each field is in the diagram above its structure")]
pub mod layout;
mod process;
pub mod reader;
#[allow(missing_docs, reason = "the names say it: what is done, and in which order")]
pub mod word;
pub mod writer;

pub use clock::now;
pub use error::Error;
pub use writer::{Builder, Flow, FlowBuilder, Logic, Point, Publish, Thread, Trace, Tracer};
