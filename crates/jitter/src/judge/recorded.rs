//! What the recording of a program's latest ticks says for and against a cause. It is better
//! evidence than any law: it was seen, and other programs on the CPU do not blur it.

use model::{Evidence, LateTick};

use super::causes::Source;
use crate::attribute::{JIFFIES, SET_LATE, SLACK, THROTTLED_RT};
use crate::words::{part, time};

/// Fewer recorded ticks say nothing.
const FEWEST: usize = 3;
/// Timers that are set later than this were set wrong; less is the way to the system call, ns.
const SET_WRONG_NS: f64 = 5_000.0;
/// What rounding to whole milliseconds makes of the latest ticks at least, ns.
const ROUNDED_NS: f64 = 50_000.0;
/// The part of the slack that is used at least.
const USED: f64 = 0.3;
/// Shorter turns of ordinary threads are no throttling, ns.
const THROTTLED_NS: f64 = 1e6;

/// The latest ticks whose way was recorded.
pub struct Recorded<'a> {
    ticks: Vec<&'a LateTick>,
    /// For how much later than intended timers were set, as parts of the time asked for.
    set_late: Vec<f64>,
}

impl<'a> Recorded<'a> {
    /// `None` if too little was recorded, or of whylag's own timers: those are set as they should.
    pub fn of(source: &Source<'a>) -> Option<Recorded<'a>> {
        source.program?;
        let worst = source.series.iter().flat_map(|(series, _)| &series.worst);
        let ticks: Vec<&LateTick> = worst.filter(|tick| !tick.legs.is_empty()).collect();
        let set_late = ticks.iter().filter_map(|tick| {
            let mut all = source.series.iter().flat_map(|(_, ticks)| ticks.iter());
            let asked = all.find(|other| other.0 == tick.intended_ns)?.2;
            (asked > 0).then(|| leg(tick, SET_LATE) / asked as f64)
        });
        let set_late = set_late.collect();
        (ticks.len() >= FEWEST).then_some(Recorded { ticks, set_late })
    }

    /// How long a leg is in these ticks, ns: the median.
    fn usual(&self, what: &str) -> f64 {
        let each: Vec<f64> = self.ticks.iter().map(|tick| leg(tick, what)).collect();
        stats::quantile::median(&each).unwrap_or(0.0)
    }

    /// Why it is not this cause.
    pub fn against(&self, cause: &str, slack_ns: Option<u64>) -> Option<String> {
        let n = self.ticks.len();
        let (least, what) = self.sign(cause, slack_ns)?;
        let usual = self.usual(what);
        (usual < least).then(|| {
            format!("in the {n} latest ticks '{what}' is {} (median), as recorded", time(usual))
        })
    }

    /// That it is this cause.
    pub fn evidence(&self, cause: &str, slack_ns: Option<u64>) -> Option<Evidence> {
        let (least, what) = self.sign(cause, slack_ns)?;
        let usual = self.usual(what);
        let n = self.ticks.len();
        let mut text = format!("in the {n} latest ticks '{what}' is {} (median)", time(usual));
        if cause == "timer-proportional" {
            let at = |q| stats::quantile::of(&self.set_late, q).map_or_else(String::new, part);
            text += &format!(
                ": {} of the time asked for (quartiles {} and {})",
                at(0.5),
                at(0.25),
                at(0.75)
            );
        }
        (usual >= least).then(|| Evidence {
            text,
            source: "hrtimer_expire_entry, timer_expire_entry, sched_waking, sched_switch"
                .to_owned(),
        })
    }

    /// The leg that shows a cause, and how long it is then at least.
    fn sign(&self, cause: &str, slack_ns: Option<u64>) -> Option<(f64, &'static str)> {
        Some(match cause {
            "timer-ms-rounding" => (ROUNDED_NS, SET_LATE),
            "timer-proportional" => (SET_WRONG_NS, SET_LATE),
            "timer-jiffies" => (SET_WRONG_NS, JIFFIES),
            "timer-slack" => (USED * slack_ns? as f64, SLACK),
            "rt-throttling" => (THROTTLED_NS, THROTTLED_RT),
            _ => return None,
        })
    }
}

fn leg(tick: &LateTick, what: &str) -> f64 {
    let legs = tick.legs.iter().filter(|leg| leg.what.starts_with(what));
    legs.map(|leg| leg.ns as f64).sum()
}
