//! What the recording of a program's latest ticks says for and against a cause. It is better
//! evidence than any law: it was seen, and other programs on the CPU do not blur it.

use model::units::{deviation, fine_duration};
use model::{JitterSeries, LateTick, LegKind};

/// Fewer recorded ticks say nothing.
const FEWEST: usize = 3;
/// Where it was recorded.
pub const SOURCE: &str = "hrtimer_expire_entry, timer_expire_entry, sched_waking, sched_switch";

/// The leg that shows a cause, and how long it is then at least.
#[derive(Clone, Copy)]
pub struct Sign {
    /// What passes in it.
    pub leg: LegKind,
    /// Its least length, ns.
    pub least_ns: f64,
    /// Ticks that are late by less, ns, do not have to show it.
    pub late_ns: f64,
}

impl Sign {
    /// One that each tick has to show.
    pub const fn of_all(leg: LegKind, least_ns: f64) -> Sign {
        Sign { leg, least_ns, late_ns: 0.0 }
    }
}

/// The latest ticks whose way was recorded.
pub struct Recorded<'a> {
    ticks: Vec<&'a LateTick>,
    /// For how much later than intended timers were set, as parts of the time asked for.
    set_late: Vec<f64>,
}

impl<'a> Recorded<'a> {
    /// `None` if too little was recorded.
    pub fn of(series: &[&'a JitterSeries]) -> Option<Recorded<'a>> {
        let worst = series.iter().flat_map(|series| &series.worst);
        let ticks: Vec<&LateTick> = worst.filter(|tick| !tick.legs.is_empty()).collect();
        let set_late = ticks.iter().filter_map(|tick| {
            let mut all = series.iter().flat_map(|series| &series.ticks);
            let asked = all.find(|other| other.0 == tick.intended_ns)?.2;
            (asked > 0).then(|| leg(tick, LegKind::SetLate) / asked as f64)
        });
        let set_late = set_late.collect();
        (ticks.len() >= FEWEST).then_some(Recorded { ticks, set_late })
    }

    /// In how many ticks a sign is looked for, and how long its leg is in these, ns: the median. `None`
    /// if they are too few.
    fn usual(&self, sign: Sign) -> Option<(usize, f64)> {
        let late = self.ticks.iter().filter(|tick| tick.late_ns as f64 >= sign.late_ns);
        let each: Vec<f64> = late.map(|tick| leg(tick, sign.leg)).collect();
        let usual = stats::quantile::median(&each)?;
        (each.len() >= FEWEST).then_some((each.len(), usual))
    }

    /// Why it is not the cause with this sign.
    pub fn against(&self, sign: Sign) -> Option<String> {
        let (n, usual) = self.usual(sign)?;
        (usual < sign.least_ns).then(|| {
            format!(
                "in the {n} latest ticks '{}' is {} (median), as recorded",
                sign.leg,
                fine_duration(usual)
            )
        })
    }

    /// That it is the cause with this sign.
    pub fn evidence(&self, sign: Sign) -> Option<String> {
        let (n, usual) = self.usual(sign)?;
        (usual >= sign.least_ns).then(|| {
            format!("in the {n} latest ticks '{}' is {} (median)", sign.leg, fine_duration(usual))
        })
    }

    /// For how much later than intended timers were set, as a part of the time asked for.
    pub fn set_late(&self) -> String {
        let at = |q| stats::quantile::of(&self.set_late, q).map_or_else(String::new, deviation);
        format!("{} of the time asked for (quartiles {} and {})", at(0.5), at(0.25), at(0.75))
    }
}

fn leg(tick: &LateTick, kind: LegKind) -> f64 {
    let legs = tick.legs.iter().filter(|leg| leg.kind == kind);
    legs.map(|leg| leg.ns as f64).sum()
}

#[cfg(test)]
mod tests {
    use model::{Leg, Tick};

    use super::*;

    #[test]
    fn a_leg_that_is_there_speaks_for_its_cause_and_one_that_is_not_against_it() {
        let mut series = crate::testing::timer_series("program", 10_000_000, &[]);
        for n in 1..=3u64 {
            let legs = vec![Leg::new(LegKind::SetLate, 40_000)];
            let intended_ns = n * 10_000_000;
            series.worst.push(LateTick {
                intended_ns,
                late_ns: 50_000,
                legs,
                ..LateTick::default()
            });
            series.ticks.push(Tick(intended_ns, 50_000, 10_000_000));
        }
        let recorded = Recorded::of(&[&series]).unwrap();
        let set_late = |least_ns| Sign::of_all(LegKind::SetLate, least_ns);
        assert!(recorded.evidence(set_late(5_000.0)).unwrap().contains("40.0 us"));
        assert_eq!(recorded.against(set_late(5_000.0)), None);
        assert!(recorded.against(set_late(50_000.0)).unwrap().contains("40.0 us"));
        assert!(recorded.against(Sign::of_all(LegKind::Slack, 1.0)).is_some());
        assert!(recorded.set_late().starts_with("0.400 %"), "{}", recorded.set_late());
        let later = Sign { late_ns: 60_000.0, ..Sign::of_all(LegKind::Slack, 1.0) };
        assert_eq!(recorded.against(later), None, "no tick is so late");
        series.worst.pop();
        assert!(Recorded::of(&[&series]).is_none(), "two are too few");
    }
}
