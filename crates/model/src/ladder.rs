//! What the rungs of a benchmark's ladder say together.

use serde::Serialize;
use stats::Interval;

/// What grows from rung to rung.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Along {
    /// The number of workers, with the same population.
    Workers,
    /// The population, with the same number of workers.
    Population,
}

/// How the cost of an operation changes along a ladder.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LadderVerdict {
    /// What grows.
    pub along: Along,
    /// Cost of an operation on the last rung over that on the first, for one worker.
    pub ratio: Option<Interval>,
    /// The Universal Scalability Law, from three rungs of workers on.
    pub law: Option<ScalabilityLaw>,
    /// The first rung on which a worker does less than half of what one does on the first rung.
    pub knee: Option<u32>,
    /// All that in words.
    pub sentences: Vec<String>,
}

/// The Universal Scalability Law as fitted to a ladder.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ScalabilityLaw {
    /// Part of the work that is serialised.
    pub contention: Interval,
    /// Cost that each pair of workers adds.
    pub crosstalk: Interval,
    /// Workers beyond which throughput falls, if crosstalk is certain.
    pub peak: Option<f64>,
    /// Rounds on each rung: the fewest and the most.
    pub rounds: [usize; 2],
}
