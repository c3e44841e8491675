//! What all requests of a port waited, by those of them that were kept: all slow ones, for which there was
//! room, and a sample of the others.

use model::{Message, MessageFlow};

use crate::text::{counted, duration};

/// Of a normal distribution, 95 %.
const Z: f64 = 1.96;

/// Time that all requests lost, with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Whole {
    pub ns: u64,
    low: u64,
    high: u64,
    requests: u64,
}

/// Requests of one kind: how many there were, and what those of them lost that were kept.
struct Stratum {
    all: u64,
    kept: Vec<f64>,
}

impl Stratum {
    /// Sum over all, and its variance: of those that were not kept.
    fn sum(&self) -> Option<(f64, f64)> {
        let (n, all) = (self.kept.len() as f64, self.all.max(self.kept.len() as u64) as f64);
        if n == 0.0 {
            return (self.all == 0).then_some((0.0, 0.0));
        }
        let mean = self.kept.iter().sum::<f64>() / n;
        let squares: f64 = self.kept.iter().map(|value| (value - mean).powi(2)).sum();
        if n < 2.0 {
            return (all == n).then_some((mean * all, 0.0));
        }
        Some((mean * all, all * all * (1.0 - n / all) * squares / (n - 1.0) / n))
    }
}

/// Of all requests of `flow` but `without`, by those `kept`; `None` where these are too few to say so.
pub fn whole(
    flow: &MessageFlow,
    kept: &[&Message],
    without: u64,
    lost_ns: impl Fn(&Message) -> u64,
) -> Option<Whole> {
    let (slow, others): (Vec<_>, Vec<_>) = kept.iter().partition(|message| message.is_slow());
    let lost = |kept: Vec<&&Message>| kept.iter().map(|message| lost_ns(message) as f64).collect();
    let requests = flow.ended.saturating_sub(without);
    let of_slow = flow.slow.max(slow.len() as u64);
    let slow = Stratum { all: of_slow, kept: lost(slow) };
    let others = Stratum { all: requests.saturating_sub(of_slow), kept: lost(others) };
    let ((of_slow, slow_variance), (of_others, variance)) = (slow.sum()?, others.sum()?);
    let sum = of_slow + of_others;
    let half = Z * (slow_variance + variance).sqrt();
    let kept = slow.kept.iter().chain(&others.kept).sum::<f64>();
    Some(Whole {
        ns: sum as u64,
        // What was seen is certain.
        low: (sum - half).max(kept) as u64,
        high: (sum + half) as u64,
        requests,
    })
}

impl Whole {
    pub fn is_estimate(&self) -> bool {
        self.low != self.high
    }

    /// `all 1,234 requests waited about 17.1 s so (16.0 s to 18.2 s, ...)`.
    pub fn in_words(&self) -> String {
        let all = counted(self.requests, "request");
        // As figures are printed, the interval may be nothing.
        if duration(self.low) == duration(self.high) {
            return format!("all {all} waited {} so", duration(self.ns));
        }
        format!(
            "all {all} waited about {} so ({} to {}, by the slow ones and a sample of the others)",
            duration(self.ns),
            duration(self.low),
            duration(self.high)
        )
    }
}

#[cfg(test)]
mod tests {
    use model::Run;

    use super::*;
    use crate::case::requests::kept as kept_of;
    use crate::testing::requests::{MS, request, served};
    use crate::testing::{RunBuilder, SECOND, USER};

    fn of(run: &Run) -> Option<Whole> {
        let kept: Vec<&Message> = kept_of(run).collect();
        whole(&run.messages.programs[0].flows[0], &kept, 0, |message| message.logic_ns())
    }

    /// A hundred slow requests of 50 ms, and of a thousand others of 10 or 20 ms so many kept.
    fn kept(others: u64) -> Run {
        let run = RunBuilder::new().thread(11, 10, &[(USER, SECOND)]).build();
        let mut run = served(run, (0..100).map(|n| request(1, 11, 60 * n, 0, 50)).collect());
        let sample = (0..others).map(|n| {
            let mut one = request(2, 11, 6_000 + 30 * n, 0, 10 + 10 * (n % 2));
            one.sample = Some(n as u32);
            one
        });
        run.messages.fast = sample.collect();
        run.messages.programs[0].flows[0].ended = 1_100;
        run.messages.programs[0].flows[0].slow = 100;
        run
    }

    #[test]
    fn what_was_not_kept_counts_as_the_sample_and_has_an_interval() {
        let whole = of(&kept(200)).unwrap();
        assert_eq!(whole.ns, 100 * 50 * MS + 1_000 * 15 * MS);
        assert!(whole.low < whole.ns && whole.ns < whole.high, "{whole:?}");
        let narrower = of(&kept(800)).unwrap();
        assert_eq!(narrower.ns, whole.ns);
        assert!(narrower.high - narrower.low < (whole.high - whole.low) / 2);
        assert!(whole.in_words().contains("about 20.0 s"), "{}", whole.in_words());
    }

    #[test]
    fn what_was_kept_whole_is_no_estimate() {
        let whole = of(&kept(1_000)).unwrap();
        assert_eq!((whole.low, whole.high), (whole.ns, whole.ns));
        assert!(!whole.in_words().contains("about"), "{}", whole.in_words());
    }

    #[test]
    fn of_others_of_which_none_was_kept_nothing_is_known() {
        assert_eq!(of(&kept(0)), None);
    }
}
