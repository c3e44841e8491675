//! CPU time that may be spent, and has been.

/// What is saved up at most, ns of CPU time: enough for the histograms of a large program.
const MOST_NS: i64 = 200_000_000;

/// A budget that grows with time.
#[derive(Debug)]
pub(crate) struct Budget {
    left_ns: i64,
    grown_ns: u64,
}

impl Budget {
    pub fn new(now_ns: u64) -> Budget {
        Budget { left_ns: MOST_NS, grown_ns: now_ns }
    }

    /// Lets it grow by one part in `parts` of the time that went by; true if anything is left.
    pub fn has(&mut self, now_ns: u64, parts: u64) -> bool {
        let went_by = now_ns.saturating_sub(self.grown_ns);
        let grown = i64::try_from(went_by / parts.max(1)).unwrap_or(i64::MAX);
        self.left_ns = self.left_ns.saturating_add(grown).min(MOST_NS);
        self.grown_ns = self.grown_ns.max(now_ns);
        self.left_ns > 0
    }

    pub fn spend(&mut self, ns: u64) {
        self.left_ns = self.left_ns.saturating_sub(i64::try_from(ns).unwrap_or(i64::MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_the_long_run_no_more_than_its_part_is_spent() {
        const MS: u64 = 1_000_000;
        let mut budget = Budget::new(0);
        let mut spent = 0;
        for now in (0..10_000).step_by(20) {
            if budget.has(now * MS, 10) {
                budget.spend(70 * MS);
                spent += 70;
            }
        }
        assert!((1_100..=1_300).contains(&spent), "{spent} ms of 10 s");
        let mut budget = Budget::new(0);
        let spends = |now: u64| 1 + if now.is_multiple_of(1000) { 40 } else { 0 };
        for now in (0..10_000).step_by(20) {
            assert!(budget.has(now * MS, 10), "what costs little is never put off");
            budget.spend(spends(now) * MS);
        }
    }
}
