//! Turns model types into text for people and for machines.
//!
//! People read tables and charts ([`accounts`], [`explanation`], [`show`], [`runs`], [`mod@bench`],
//! [`compare`], [`recordings`], [`doctor`], [`chart`]);
//! machines read [`json`] and the files under [`export`]. Every function writes to a
//! `&mut dyn Write` that it is given, or returns a value. The one important type is [`Style`]:
//! the caller knows its terminal and says whether to colour and how wide to write.
//!
//! Caveats. Durations are shown with three digits; exact nanoseconds are in the JSON. Tables and
//! sentences keep to `Style::width`; commands and stack frames are never broken, so that they can
//! be copied. Names of threads are under the control of whoever runs them: the store gives them out
//! with escapes ([`model::outside`]), and what is written here is escaped again where it did not come
//! from the store, so nothing recorded can send escape codes to a terminal.

pub mod accounts;
pub mod bench;
mod call;
pub mod cases;
pub mod chart;
pub mod class;
pub mod coincidences;
pub mod compare;
mod cost;
pub mod doctor;
pub mod explanation;
pub mod export;
pub mod grid;
pub mod jitter;
pub mod json;
pub mod messages;
mod on_cpu;
pub mod outlier;
pub mod page;
pub mod proof;
pub mod recordings;
pub mod runs;
pub mod runs_series;
#[cfg(test)]
mod sample;
mod sampled_calls;
mod series;
pub mod show;
mod sockets;
pub mod style;
mod table;
mod text;
pub mod trace_files;
mod unexplained;
mod waits;
mod who;
pub mod why_not;

pub use class::Class;
pub use style::Style;
