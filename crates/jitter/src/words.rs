//! Numbers in sentences.

pub use model::units::{deviation as part, fine_duration as time, number as three_digits};
