//! How often calls were made: counted where all were recorded, estimated where they were sampled.

use model::{Histogram, Metric, RecorderPart, Run, Syscall, part_of};

use super::Case;
use crate::cause::Needs;
use crate::text::counted;

/// When a run began to sample its calls; `None` if it did not.
fn sampled_since_ns(run: &Run) -> Option<u64> {
    let windows = run.seconds.iter().filter(|second| second.metric == Metric::CallWindow);
    windows.map(|second| second.start_ns).min()
}

/// How long a run recorded all of its calls.
pub(crate) fn calls_recorded_ns(run: &Run) -> u64 {
    let since = sampled_since_ns(run).map(|since| since.saturating_sub(run.header.started_ns));
    since.unwrap_or_else(|| run.length_ns())
}

impl Case<'_> {
    /// Calls of this name by all watched processes, and their time from entry to exit, waiting
    /// included. What windows saw of them stands for all the time from the first window on.
    pub fn calls(&self, name: &str) -> (u64, u64) {
        let Some(call) = Syscall::named(name) else { return (0, 0) };
        let (n, ns) =
            self.histogram(&Metric::Syscall(call)).map_or((0, 0), |all| (all.count(), all.sum()));
        let (sampled, sampled_ns) = self.sampled(call);
        (n.saturating_add(sampled), ns.saturating_add(sampled_ns))
    }

    /// The same while they were sampled; nothing of a part of a run, which windows are too few for. One that
    /// began before its window is taken to be as long as the others.
    fn sampled(&self, call: Syscall) -> (u64, u64) {
        let since_ns = sampled_since_ns(self.run).filter(|_| self.scope().is_none());
        let Some(since_ns) = since_ns else { return (0, 0) };
        let end_ns = self.run.header.started_ns.saturating_add(self.run.length_ns());
        let looked_ns = self.histogram(&Metric::CallWindow).map_or(0, |windows| windows.sum());
        let whole = self.histogram(&Metric::SampledSyscall(call));
        let (whole, whole_ns) = whole.map_or((0, 0), |whole| (whole.count(), whole.sum()));
        let cut = self.histogram(&Metric::CensoredSyscall(call));
        let cut = cut.as_ref().map_or(0, Histogram::count);
        let n = part_of(end_ns.saturating_sub(since_ns), whole.saturating_add(cut), looked_ns);
        let ns = u128::from(n) * u128::from(whole_ns) / u128::from(whole.max(1));
        (n, u64::try_from(ns).unwrap_or(u64::MAX))
    }

    /// `1,234 calls`, as [`Case::calls`] gives them; `about 1,234 calls` where they were sampled,
    /// `an unknown number of calls` where they were not even that.
    pub fn calls_in_words(&self, n: u64, noun: &str) -> String {
        if self.off(Needs::parts(&[RecorderPart::SystemCalls])).is_empty() {
            return counted(n, noun);
        }
        match n {
            0 => format!("an unknown number of {}", counted(2, noun).trim_start_matches("2 ")),
            n if sampled_since_ns(self.run).is_some() => format!("about {}", counted(n, noun)),
            n => format!("at least {}", counted(n, noun)),
        }
    }
}

#[cfg(test)]
mod tests {
    use model::MetricSecond;
    use model::histogram::PRECISION_KERNEL;

    use super::*;
    use crate::testing::{RunBuilder, SECOND, USER};

    const MS: u64 = 1_000_000;

    /// Four seconds, of which the first two were recorded whole.
    fn run() -> model::Run {
        let getppid = Syscall::named("getppid").unwrap();
        let mut run = RunBuilder::new().thread(10, 10, &[(USER, 4 * SECOND)]).build();
        let begin = run.header.started_ns;
        let mut seconds = Vec::new();
        let mut seen = |metric, at: u64, values: &[u64]| {
            let mut histogram = Histogram::new(PRECISION_KERNEL);
            values.iter().for_each(|value| histogram.record(*value));
            seconds.push(MetricSecond { tgid: 10, metric, start_ns: begin + at, histogram });
        };
        seen(Metric::Syscall(getppid), 0, &[1000; 200]);
        seen(Metric::CallWindow, 2 * SECOND, &[20 * MS, 20 * MS]);
        seen(Metric::CallWindow, 3 * SECOND, &[40 * MS]);
        seen(Metric::SampledSyscall(getppid), 2 * SECOND, &[1000; 7]);
        seen(Metric::CensoredSyscall(getppid), 3 * SECOND, &[500]);
        run.seconds = seconds.into();
        run
    }

    #[test]
    fn what_windows_saw_stands_for_the_time_that_was_not_recorded() {
        let mut run = run();
        assert_eq!(run.length_ns(), 4 * SECOND);
        // 8 in 80 ms of 2 s, of 1 us each.
        assert_eq!(Case::new(&run).calls("getppid"), (200 + 200, 400_000));
        let words = |run: &model::Run, n| Case::new(run).calls_in_words(n, "call");
        assert_eq!(words(&run, 1000), "1,000 calls");
        assert_eq!(calls_recorded_ns(&run), 2 * SECOND);
        let off = |part| model::Capability { part, on: false, because: "too many".to_owned() };
        run.capabilities = vec![off(RecorderPart::SystemCalls)];
        assert_eq!(words(&run, 1000), "about 1,000 calls");
        run.seconds = Vec::new().into();
        assert_eq!(words(&run, 1), "at least 1 call");
        assert_eq!(words(&run, 0), "an unknown number of calls");
        assert_eq!(calls_recorded_ns(&run), 4 * SECOND);
    }
}
