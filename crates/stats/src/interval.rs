//! An estimate with its bounds.

use serde::{Deserialize, Serialize};

/// An estimate and the interval that contains the truth with the stated confidence.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The estimate.
    pub estimate: f64,
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
    /// 0.95 for a 95 % interval.
    pub confidence: f64,
}

impl Interval {
    /// True if `value` is inside.
    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// Half of the width as a part of the estimate: 0.02 is "within 2 %".
    pub fn relative_half_width(&self) -> f64 {
        (self.high - self.low) / 2.0 / self.estimate.abs()
    }
}
