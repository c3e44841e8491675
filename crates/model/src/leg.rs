//! The parts of the way from the time a tick was intended for to the moment it was served.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A part of that way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredLeg")]
pub struct Leg {
    /// What passed.
    pub kind: LegKind,
    /// The same for people, with who was involved: `ready, hog (tid 9) ran`.
    pub what: String,
    /// How long.
    pub ns: i64,
}

/// What passes in a part of the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LegKind {
    /// The timer was set for a later time than the tick was intended for.
    SetLate,
    /// The kernel could put the timer off, and did.
    Slack,
    /// The timer counts in ticks of the kernel's low-resolution clock.
    Jiffies,
    /// The timer fired late because its CPU was idle.
    FromIdle,
    /// The timer fired late on a busy CPU.
    FiredLate,
    /// From the timer to the moment the thread was woken.
    Waking,
    /// Ready, but not on the CPU.
    Ready,
    /// Real-time, and ready, but an ordinary thread had the CPU.
    RealTimeThrottled,
    /// On the CPU.
    Running,
    /// Its cgroup had used up its CPU time.
    CgroupThrottled,
    /// Stopped by a signal or a tracer.
    Stopped,
    /// Asleep, and no timer ended it.
    Asleep,
    /// What a later whylag tells apart.
    #[serde(other)]
    Unknown,
}

impl LegKind {
    const ALL: [LegKind; 12] = [
        LegKind::SetLate,
        LegKind::Slack,
        LegKind::Jiffies,
        LegKind::FromIdle,
        LegKind::FiredLate,
        LegKind::Waking,
        LegKind::Ready,
        LegKind::RealTimeThrottled,
        LegKind::Running,
        LegKind::CgroupThrottled,
        LegKind::Stopped,
        LegKind::Asleep,
    ];

    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            LegKind::SetLate => "timer set for later",
            LegKind::Slack => "timer slack",
            LegKind::Jiffies => "rounded up to a tick of the kernel",
            LegKind::FromIdle => "idle CPU woken",
            LegKind::FiredLate => "timer fired late",
            LegKind::Waking => "fired, then woken",
            LegKind::Ready => "ready",
            LegKind::RealTimeThrottled => "real-time throttled",
            LegKind::Running => "on the CPU",
            LegKind::CgroupThrottled => "CPU limit of the cgroup",
            LegKind::Stopped => "stopped",
            LegKind::Asleep => "asleep, not for a timer",
            LegKind::Unknown => "unknown",
        }
    }
}

impl fmt::Display for LegKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Leg {
    /// A part of which no more is to be said.
    pub fn new(kind: LegKind, ns: i64) -> Leg {
        Leg { kind, what: kind.name().to_owned(), ns }
    }

    /// A part with who had the CPU meanwhile.
    pub fn with(kind: LegKind, meanwhile: &str, ns: i64) -> Leg {
        Leg { kind, what: format!("{kind}, {meanwhile}"), ns }
    }
}

/// As it is stored. Runs of whylag 0.1 have no kind, only its name at the beginning of `what`.
#[derive(Deserialize)]
struct StoredLeg {
    kind: Option<LegKind>,
    what: String,
    ns: i64,
}

impl From<StoredLeg> for Leg {
    fn from(StoredLeg { kind, what, ns }: StoredLeg) -> Leg {
        let named = || LegKind::ALL.into_iter().find(|kind| what.starts_with(kind.name()));
        let kind = kind.or_else(named).unwrap_or(LegKind::Unknown);
        Leg { kind, what, ns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Leg {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn a_leg_comes_back_as_it_was() {
        for kind in LegKind::ALL {
            for leg in [Leg::new(kind, -5), Leg::with(kind, "hog (tid 9) ran", 7)] {
                assert_eq!(read(&serde_json::to_string(&leg).unwrap()), leg);
            }
        }
    }

    #[test]
    fn a_leg_without_a_kind_has_that_of_its_words() {
        let leg = read(r#"{"what": "ready, hog (tid 9) ran", "ns": 7}"#);
        assert_eq!(leg, Leg::with(LegKind::Ready, "hog (tid 9) ran", 7));
        let leg = read(r#"{"what": "real-time throttled, hog (tid 9) ran", "ns": 7}"#);
        assert_eq!(leg.kind, LegKind::RealTimeThrottled);
        for kind in LegKind::ALL {
            assert_eq!(read(&format!(r#"{{"what": "{kind}", "ns": 1}}"#)), Leg::new(kind, 1));
        }
    }

    #[test]
    fn a_kind_of_a_later_version_is_unknown_whatever_its_words() {
        let leg = read(r#"{"kind": "woven", "what": "timer slack, woven", "ns": 7}"#);
        assert_eq!((leg.kind, leg.what.as_str()), (LegKind::Unknown, "timer slack, woven"));
    }
}
