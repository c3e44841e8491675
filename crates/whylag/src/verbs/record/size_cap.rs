//! How large a run may become: bad rates give hundreds of megabytes a minute.

use model::Batch;
use model::units::bytes;

/// The loss that counts what is left out.
const LOSS: &str = "outliers, events and messages (--max-size reached)";

/// Leaves single outliers, events and messages out once the run has its size. Sums, histograms and
/// the stacks that sums refer to are of bounded rates and go on.
pub struct SizeCap {
    limit: u64,
    is_reached: bool,
}

impl SizeCap {
    /// `limit`: bytes in the store.
    pub fn new(limit: u64) -> SizeCap {
        SizeCap { limit, is_reached: false }
    }

    /// Leaves out of the batch what is not to be stored any more, the run having `stored` bytes, and
    /// counts it as lost. Says so the first time.
    pub fn trim(&mut self, batch: &mut Batch, stored: u64) -> Option<String> {
        if stored < self.limit {
            return None;
        }
        let messages = &mut batch.messages;
        let left_out =
            batch.outliers.len() + batch.events.len() + messages.slow.len() + messages.fast.len();
        batch.outliers.clear();
        batch.events.clear();
        messages.slow.clear();
        messages.fast.clear();
        if left_out > 0 {
            batch.losses.push((LOSS.to_owned(), batch.heartbeat_ns, left_out as u64));
        }
        let is_first = !std::mem::replace(&mut self.is_reached, true);
        is_first.then(|| {
            format!(
                "the run has its {}: from here on single outliers, events and messages are counted \
                 as lost, sums and histograms go on; --max-size sets another limit",
                bytes(self.limit)
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Event, EventDetail, EventKind, Fact};

    #[test]
    fn a_full_run_gets_sums_only_and_counts_the_rest() {
        let detail = EventDetail::None;
        let event = || {
            let detail = detail.clone();
            Event { time_ns: 1, kind: EventKind::Exit, tid: 1, tgid: 1, value: 0, detail }
        };
        let batch = || Batch {
            heartbeat_ns: 7,
            events: vec![event(); 3],
            facts: vec![Fact { name: String::new(), value: String::new(), source: String::new() }],
            ..Batch::default()
        };
        let mut cap = SizeCap::new(1000);
        let mut below = batch();
        assert_eq!(cap.trim(&mut below, 999), None);
        assert_eq!(below.events.len(), 3);
        let (mut first, mut second) = (batch(), batch());
        assert!(cap.trim(&mut first, 1000).is_some_and(|line| line.contains("--max-size")));
        assert_eq!(cap.trim(&mut second, 1001), None, "said once");
        for batch in [first, second] {
            assert!(batch.events.is_empty() && batch.facts.len() == 1);
            assert_eq!(batch.losses, [(LOSS.to_owned(), 7, 3)]);
        }
    }
}
