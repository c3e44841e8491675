//! The law of a source's lateness, in words.

use model::{Estimate, JitterLaw, LawModel, Tick};
use stats::Interval;
use stats::law::{Comparison, Fit, Law, Point, Steps, compare};

use model::units::{deviation, fine_duration};

/// What a law may be made of.
pub struct Surroundings {
    /// One jiffy.
    pub jiffy_ns: u64,
    /// Timer slack of the threads, if it is known and the same.
    pub slack_ns: Option<u64>,
    /// True if the timers may be timeouts of poll, select or epoll.
    pub may_poll: bool,
    /// What waking up costs here.
    pub waking_ns: i64,
}

/// Fits the laws to the ticks of a source; without figures if there are too few.
pub fn of<'a>(
    source: &str,
    ticks: impl Iterator<Item = &'a Tick>,
    around: &Surroundings,
) -> (JitterLaw, Option<Comparison>) {
    let point = |tick: &Tick| Point {
        asked: tick.2 as f64,
        late: tick.1 as f64,
        phase: (tick.0 % around.jiffy_ns.max(1)) as f64,
    };
    let points: Vec<Point> = ticks.map(point).collect();
    let jiffy = around.jiffy_ns as f64;
    let slack = around.slack_ns.filter(|_| around.may_poll).map(|ns| ns as f64);
    let comparison = compare(&points, &Steps { jiffy, slack, waking: around.waking_ns as f64 });
    (in_words(source, comparison.as_ref(), jiffy, around.slack_ns), comparison)
}

fn in_words(
    source: &str,
    comparison: Option<&Comparison>,
    jiffy: f64,
    slack_ns: Option<u64>,
) -> JitterLaw {
    let mut law = JitterLaw {
        source: source.to_owned(),
        best: None,
        text: "too few ticks for a law: at least 20 are needed".to_owned(),
        n: 0,
        intervals: 0,
        spread: 1.0,
        models: Vec::new(),
    };
    let Some(found) = comparison else { return law };
    (law.n, law.intervals, law.spread) = (found.n as u64, found.intervals as u64, found.spread);
    let mut fits: Vec<&Fit> = found.fits.iter().collect();
    fits.sort_by(|a, b| {
        (a.law != found.best).cmp(&(b.law != found.best)).then(a.left.total_cmp(&b.left))
    });
    let least = fits.first().map_or(0.0, |fit| fit.left);
    law.models = fits.iter().map(|fit| model(fit, found.best, least, jiffy, slack_ns)).collect();
    let formula = law.models.first().map_or_else(String::new, |model| model.formula.clone());
    if found.best == Law::Constant && !found.has_spread() {
        law.text = format!(
            "{formula}; not enough spread of intervals to tell constant from proportional: at \
             least 3 different ones are needed, the longest twice the shortest"
        );
        return law;
    }
    law.best = Some(name(found.best).to_owned());
    law.text = format!("{}: {formula}", name(found.best));
    law
}

fn model(fit: &Fit, best: Law, least: f64, jiffy: f64, slack_ns: Option<u64>) -> LawModel {
    let estimate = |i: &Interval| Estimate { value: i.estimate, low: i.low, high: i.high };
    let mut figures = vec![("constant, ns".to_owned(), estimate(&fit.constant))];
    if let Some(factor) = &fit.factor {
        let what = if fit.law == Law::Proportional { "factor" } else { "growth, ns" };
        figures.push((what.to_owned(), estimate(factor)));
    }
    if let Some(half) = fit.half_at {
        let at = Estimate { value: half, low: half, high: half };
        figures.push(("half of it at, ns".to_owned(), at));
    }
    let because = if fit.law == best {
        String::new()
    } else if fit.left > least * 1.1 {
        format!(
            "leaves {} of a tick unexplained, not {}",
            fine_duration(fit.left),
            fine_duration(least)
        )
    } else {
        format!("leaves {}, which is no better, and is less simple", fine_duration(fit.left))
    };
    LawModel {
        name: name(fit.law).to_owned(),
        formula: formula(fit, jiffy, slack_ns),
        figures,
        left_ns: fit.left,
        because,
    }
}

/// What a law is called.
fn name(law: Law) -> &'static str {
    match law {
        Law::Constant => "constant",
        Law::Milliseconds => "stepped 1 ms",
        Law::Jiffies => "stepped jiffy",
        Law::PollSlack => "poll slack",
        Law::Proportional => "proportional",
        Law::Saturating => "saturating",
    }
}

fn formula(fit: &Fit, jiffy: f64, slack_ns: Option<u64>) -> String {
    let constant = with_bounds(&fit.constant, fine_duration);
    match (fit.law, &fit.factor) {
        (Law::Milliseconds, _) => {
            let way = if fit.rounds_down { "down" } else { "up" };
            format!("the time asked for rounded {way} to whole milliseconds, and {constant}")
        }
        (Law::Jiffies, _) => format!("up to a tick of {}, and {constant}", fine_duration(jiffy)),
        (Law::PollSlack, _) => format!(
            "a thousandth of the time asked for, at least the slack of {}, and {constant}",
            fine_duration(slack_ns.unwrap_or(0) as f64)
        ),
        (Law::Proportional, Some(factor)) => {
            format!("{} of the time asked for, and {constant}", with_bounds(factor, deviation))
        }
        (Law::Saturating, Some(growth)) => format!(
            "{constant}, growing by up to {} (half of it at {})",
            with_bounds(growth, fine_duration),
            fine_duration(fit.half_at.unwrap_or(0.0))
        ),
        _ => constant,
    }
}

/// `57.1 us (56.9 us to 57.4 us)`.
fn with_bounds(interval: &Interval, show: fn(f64) -> String) -> String {
    let (low, high) = (show(interval.low), show(interval.high));
    format!("{} ({low} to {high})", show(interval.estimate))
}
