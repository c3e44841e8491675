//! What this host adds to any timer: short sleeps of our own with next to no slack, for the times
//! that were asked for.

use std::time::Duration;

use model::JitterControl;

use crate::Series;
use crate::plan::Setting;
use crate::sources::absolute_sleep;

/// Different times that are tried, and all sleeps together.
const TIMES: usize = 4;
const BUDGET: Duration = Duration::from_millis(1500);
/// Sleeps of each.
const FEWEST: u64 = 5;
const MOST: u64 = 25;
/// Longer times are not tried.
const LONGEST_NS: u64 = 200_000_000;

/// Measures, in a thread of its own with a slack of 1 ns; nothing, if no sleep was asked for.
pub fn measure(series: &[Series], setting: Setting) -> Vec<JitterControl> {
    let sleeps = series.iter().filter(|series| series.summary().source != "spin");
    let times = asked_for(sleeps);
    let measuring = std::thread::spawn(move || {
        // It has worked for the threads that were measured.
        let _ = setting.apply();
        // SAFETY: changes a number of this thread, which ends soon. If it could not, the slack of
        // 50 us would be seen as the host's.
        if unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) } != 0 {
            return Vec::new();
        }
        controls(&times)
    });
    measuring.join().unwrap_or_default()
}

/// In turns, so that a machine that is busy for a while is busy for all of them.
fn controls(times: &[u64]) -> Vec<JitterControl> {
    let budget = BUDGET.as_nanos() as u64 / times.len().max(1) as u64;
    let sleeps = |asked: u64| (budget / asked.max(1)).clamp(FEWEST, MOST) as usize;
    let mut late = vec![Vec::new(); times.len()];
    for turn in 0..FEWEST as usize {
        for (asked, late) in times.iter().zip(&mut late) {
            let until_turn = sleeps(*asked) * (turn + 1) / FEWEST as usize;
            while late.len() < until_turn {
                late.push(sleep_late(*asked));
            }
        }
    }
    times.iter().zip(&late).filter_map(|(asked, late)| control(*asked, late)).collect()
}

/// How late a sleep ends, ns.
fn sleep_late(asked_ns: u64) -> f64 {
    let until = clock::monotonic_ns() + asked_ns;
    // Interrupted by a signal: early, which the median does not mind.
    let _ = absolute_sleep(until);
    clock::monotonic_ns() as f64 - until as f64
}

fn control(asked_ns: u64, late: &[f64]) -> Option<JitterControl> {
    let median = stats::quantile::median(late)?;
    let away: Vec<f64> = late.iter().map(|late| (late - median).abs()).collect();
    let away_ns = stats::quantile::median(&away)? as i64;
    Some(JitterControl { asked_ns, late_ns: median as i64, away_ns, n: late.len() as u64 })
}

/// Times asked for, from the shortest to the longest: rare ones at both ends are what tells
/// proportional from constant.
fn asked_for<'a>(series: impl Iterator<Item = &'a Series>) -> Vec<u64> {
    let mut asked: Vec<u64> = series
        .flat_map(|series| series.summary().ticks.iter().map(|tick| tick.2))
        .filter(|asked| (1_000..=LONGEST_NS).contains(asked))
        .collect();
    asked.sort_unstable();
    let (Some(least), Some(most)) = (asked.first(), asked.last()) else { return Vec::new() };
    let (low, high) = (*least as f64, *most as f64);
    let mut times: Vec<u64> = (0..TIMES)
        .map(|n| low * (high / low).powf(n as f64 / (TIMES - 1) as f64))
        // The nearest that was really asked for.
        .map(|time| {
            let after = asked.partition_point(|asked| (*asked as f64) < time).min(asked.len() - 1);
            asked[after]
        })
        .collect();
    times.dedup_by(|b, a| *b as f64 / *a as f64 <= 1.2);
    times
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::JitterThread;

    #[test]
    fn the_times_are_those_that_were_asked_for() {
        let mut series = Series::new("program", 0, None);
        series.begin(JitterThread::default(), 0);
        let mut now = 0;
        for n in 0..100u64 {
            let asked = if n % 50 == 7 { 5_500_000 } else { 20_000_000 };
            series.tick(now + asked, now + asked + 80_000);
            now += asked + 80_000;
        }
        assert_eq!(asked_for([series].iter()), [5_500_000, 20_000_000]);
        assert!(asked_for([].iter()).is_empty());
    }

    #[test]
    fn without_slack_a_sleep_is_late_by_less_than_with_it() {
        let measured = controls(&[1_000_000, 200_000_000]);
        let asked: Vec<u64> = measured.iter().map(|control| control.asked_ns).collect();
        assert_eq!(asked, [1_000_000, 200_000_000]);
        assert_eq!(measured[1].n, FEWEST);
        assert!(measured[0].n > FEWEST && measured[0].n <= MOST, "{measured:?}");
        assert!(measured.iter().all(|control| control.late_ns > 0), "{measured:?}");
    }
}
