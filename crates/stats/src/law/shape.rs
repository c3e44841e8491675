//! A law as a curve through ticks.

use super::{Law, Point, Steps};
use crate::quantile;

const MS: f64 = 1e6;

/// What saturates has four fifths of its growth behind it at the longest time asked for: a curve that bends
/// less is not told from a line whose noise differs from one time to the next.
const FLATTENED: f64 = 4.0;

/// A law with its figures.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub law: Law,
    pub constant: f64,
    pub factor: f64,
    /// Saturating: where half is reached. Milliseconds: time between the moment known and the call
    /// itself. Jiffies: phase of the ticks.
    pub theta: f64,
    /// Milliseconds: rounded down. Jiffies: counted from the moment of asking.
    pub down: bool,
    jiffy: f64,
    slack: f64,
}

impl Shape {
    /// The best of the candidates for theta; only those near `like`, if given.
    pub fn fit(law: Law, points: &[Point], steps: &Steps, like: Option<&Shape>) -> Shape {
        let blank = Shape {
            law,
            constant: 0.0,
            factor: 0.0,
            theta: 0.0,
            down: false,
            jiffy: steps.jiffy,
            slack: steps.slack.unwrap_or(0.0),
        };
        let mut best: Option<(f64, Shape)> = None;
        for mut shape in blank.candidates(points, like) {
            shape.fit_lines(points);
            let left = points.iter().map(|p| (p.late - shape.at(p)).abs()).sum::<f64>();
            if best.as_ref().is_none_or(|(least, _)| left < *least) {
                best = Some((left, shape));
            }
        }
        best.map_or(blank, |(_, shape)| shape)
    }

    fn candidates(self, points: &[Point], like: Option<&Shape>) -> Vec<Shape> {
        match (self.law, like) {
            (Law::Milliseconds | Law::Jiffies, Some(like)) => vec![*like],
            (Law::Saturating, Some(like)) => {
                [0.6, 0.8, 1.0, 1.25, 1.6].map(|by| Shape { theta: like.theta * by, ..self }).into()
            }
            (Law::Saturating, None) => {
                let asked = |least: bool| {
                    let of = |a: f64, b: f64| if least { a.min(b) } else { a.max(b) };
                    points.iter().map(|p| p.asked).reduce(of).unwrap_or(1.0)
                };
                let (low, high) = (asked(true), asked(false));
                // Four to the decade.
                let last = ((high / FLATTENED / low).log10() * 4.0).floor() as i32;
                (0..=last.max(0))
                    .map(|n| Shape { theta: low * 10f64.powf(f64::from(n) / 4.0), ..self })
                    .collect()
            }
            (Law::Milliseconds, _) => [0.0, 2e3, 5e3, 1e4, 2e4, 5e4]
                .into_iter()
                .flat_map(|theta| [false, true].map(|down| Shape { theta, down, ..self }))
                .collect(),
            (Law::Jiffies, _) => {
                let theta = phase_of(points, self.jiffy);
                [false, true].map(|down| Shape { theta, down, ..self }).into()
            }
            _ => vec![self],
        }
    }

    /// What is fixed of the lateness.
    fn offset(&self, p: &Point) -> f64 {
        match self.law {
            Law::Milliseconds => {
                let asked = (p.asked - self.theta) / MS;
                (if self.down { asked.floor() } else { asked.ceil() } - asked) * MS
            }
            // To the next tick from the intended time on.
            Law::Jiffies if !self.down => (self.theta - p.phase).rem_euclid(self.jiffy),
            // As many whole jiffies as were asked for, from the last tick before it was asked.
            Law::Jiffies => {
                let since_tick = (p.phase - p.asked - self.theta).rem_euclid(self.jiffy);
                (p.asked / self.jiffy).ceil() * self.jiffy - p.asked - since_tick
            }
            Law::PollSlack => (p.asked / 1000.0).clamp(self.slack, self.slack.max(100.0 * MS)),
            _ => 0.0,
        }
    }

    /// Periodic ticks at whole milliseconds that are always late by the same look rounded: the tick
    /// before was as late, so this one asked for that much less than the period. But a sleep that
    /// was rounded still has to wake up after that.
    pub fn leaves_no_time_to_wake(&self, steps: &Steps) -> bool {
        let rest = self.constant - (self.constant / MS).round() * MS;
        rest < steps.waking / 2.0
    }

    fn feature(&self, p: &Point) -> f64 {
        match self.law {
            Law::Proportional => p.asked,
            Law::Saturating => p.asked / (p.asked + self.theta),
            _ => 0.0,
        }
    }

    pub fn at(&self, p: &Point) -> f64 {
        self.constant + self.factor * self.feature(p) + self.offset(p)
    }

    fn fit_lines(&mut self, points: &[Point]) {
        let y: Vec<f64> = points.iter().map(|p| p.late - self.offset(p)).collect();
        self.constant = quantile::median(&y).unwrap_or(0.0);
        if !matches!(self.law, Law::Proportional | Law::Saturating) {
            return;
        }
        let x: Vec<f64> = points.iter().map(|p| self.feature(p)).collect();
        (self.constant, self.factor) = least_absolute(&x, &y);
    }
}

/// Line of least absolute residuals by reweighted least squares: (constant, factor).
fn least_absolute(x: &[f64], y: &[f64]) -> (f64, f64) {
    const ROUNDS: usize = 25;
    // Residuals below a nanosecond all weigh the same.
    const LEAST: f64 = 1.0;
    let mut weights = vec![1.0; x.len()];
    let mut line = (0.0, 0.0);
    for _ in 0..ROUNDS {
        let sum: f64 = weights.iter().sum();
        let weighted = |v: &[f64]| v.iter().zip(&weights).map(|(v, w)| v * w).sum::<f64>() / sum;
        let (mean_x, mean_y) = (weighted(x), weighted(y));
        let (mut xy, mut xx) = (0.0, 0.0);
        for ((x, y), w) in x.iter().zip(y).zip(&weights) {
            xy += w * (x - mean_x) * (y - mean_y);
            xx += w * (x - mean_x) * (x - mean_x);
        }
        let factor = if xx > 0.0 { xy / xx } else { 0.0 };
        line = (mean_y - factor * mean_x, factor);
        for ((x, y), w) in x.iter().zip(y).zip(&mut weights) {
            *w = 1.0 / (y - line.0 - line.1 * x).abs().max(LEAST);
        }
    }
    line
}

/// Where in a period the ticks were served, by the direction of the mean vector.
fn phase_of(points: &[Point], period: f64) -> f64 {
    let angle = |p: &Point| (p.phase + p.late) / period * std::f64::consts::TAU;
    let (sin, cos) = points
        .iter()
        .map(angle)
        .fold((0.0, 0.0), |(sin, cos), angle| (sin + angle.sin(), cos + angle.cos()));
    (sin.atan2(cos) / std::f64::consts::TAU).rem_euclid(1.0) * period
}
