//! Measured timers: what the causes of late ticks look at.
//!
//! [`source::TimerSource`] has the ticks of one kind of timer with the law of their lateness
//! (`law`), what was recorded of the latest ones (`attribution`, `recorded`), and what the host adds
//! to any timer. `beats` finds unusual ticks that come at a beat, `pairs` early ones that the next
//! makes up for, `notes` says what else matters.

pub(crate) mod attribution;
pub(crate) mod beats;
pub(crate) mod conversion;
mod law;
pub(crate) mod notes;
pub(crate) mod pairs;
pub(crate) mod recorded;
pub(crate) mod source;
