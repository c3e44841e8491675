//! What a traced program uses. From the first call to the last:
//!
//! [`tracer`] plans the file, `folder` and `file` make it safely, `area` lays the layout over it
//! and takes it away again after a fork; [`flow`] and [`thread`] register what is written about;
//! [`trace`] and [`logic`] are the hot path, which ends in `record` and `histogram`.

mod area;
mod file;
pub mod flow;
mod folder;
mod histogram;
pub mod logic;
mod names;
mod record;
pub mod thread;
pub mod trace;
pub mod tracer;

pub use flow::{Flow, FlowBuilder, Publish};
pub use logic::Logic;
pub use thread::Thread;
pub use trace::{Point, Trace};
pub use tracer::{Builder, Tracer};
