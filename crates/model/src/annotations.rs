//! What a run says beyond its own figures, for those who look at the run as a whole.

use crate::{Coincidence, LadderVerdict, OnCpu, SampledCalls, SlowMessages};

/// What explain reads in a run apart from its causes. `whylag show` prints it with the run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Annotations {
    /// For each case of a benchmark run, in its order: what its ladders say.
    pub ladders: Vec<Vec<LadderVerdict>>,
    /// The slow messages of traced programs.
    pub messages: SlowMessages,
    /// Other programs that ran when repeated events came, the surest first.
    pub coincidences: Vec<Coincidence>,
    /// Threads that were on a CPU for most of their time.
    pub on_cpu: Vec<OnCpu>,
    /// System calls that were looked at in windows; `None` if the run has none of those.
    pub sampled_calls: Option<SampledCalls>,
}
