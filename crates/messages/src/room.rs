//! How many slow messages of a flow are kept.

/// Of a flow, at once and per second in the long run: more of them only say that the threshold is
/// too low.
const KEPT: u64 = 200;

/// Of all traces together.
const KEPT_OF_ALL: u64 = 2_000;

/// One message, in the unit that room is counted in: so that it fills by their number per nanosecond.
const ONE: u64 = 1_000_000_000;

/// Room for slow messages, which fills again with time.
pub(crate) struct Room {
    since_ns: u64,
    left: u64,
    kept: u64,
}

impl Default for Room {
    fn default() -> Self {
        Room::of(KEPT)
    }
}

impl Room {
    fn of(kept: u64) -> Room {
        Room { since_ns: 0, left: kept * ONE, kept }
    }

    /// That of all traces together.
    pub fn of_all() -> Room {
        Room::of(KEPT_OF_ALL)
    }

    /// Takes the room of one message, if there is any.
    pub fn take(&mut self, now_ns: u64) -> bool {
        let more = now_ns.saturating_sub(self.since_ns).saturating_mul(self.kept);
        self.left = self.left.saturating_add(more).min(self.kept * ONE);
        self.since_ns = now_ns;
        let has = self.left >= ONE;
        self.left -= if has { ONE } else { 0 };
        has
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_kept_and_then_some_of_each_look() {
        let mut room = Room::default();
        let mut kept = |now_ns, offered| (0..offered).filter(|_| room.take(now_ns)).count();
        assert_eq!(kept(5 * ONE, 1000), 200);
        assert_eq!(kept(5 * ONE + ONE / 50, 1000), 4, "20 ms later");
        assert_eq!(kept(60 * ONE, 1000), 200, "no more than at first");
    }
}
