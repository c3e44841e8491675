//! Reads what a traced program wrote, from outside and without trust.
//!
//! `header` checks where everything lies; [`tables`], [`records`] and [`histograms`] read the
//! sections; [`Reader`] follows one trace; [`TraceFile`] opens a file and knows whether its program
//! lives; [`paths()`] finds the files of a host. What does not pass is refused with its reason and
//! its offset. A look is bounded by the size of the file.

mod error;
mod header;
pub mod histograms;
mod list;
mod of_process;
mod open;
#[allow(clippy::module_inception, reason = "the reader of the room of readers")]
mod reader;
pub mod records;
mod source;
pub mod tables;

pub use error::ReadError;
pub use header::{Identity, Language};
pub use histograms::{Counted, Metric};
pub use list::{Listed, list_in, paths};
pub use open::{Standing, TraceFile};
pub use reader::{Dropped, MOST_AT_ONCE, Messages, Reader};
pub use records::{Losses, PointMark, PublishMark, Record};
pub use source::Source;
pub use tables::{Flow, MessageInLogic, Thread};
