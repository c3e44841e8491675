//! The Mann-Whitney test: is a value of one sample likely to be above one of the other?

/// Result of a test on two samples of runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MannWhitney {
    /// Two-sided.
    pub p: f64,
    /// Probability that a run of the second sample is above one of the first, ties as a half.
    pub superiority: f64,
    /// True if p comes from all arrangements, not from the normal approximation.
    pub exact: bool,
}

/// Samples up to this size each are tested exactly if they have no ties.
const EXACT_SIZE: usize = 20;

/// Compares two samples of independent runs; `None` if one is empty.
///
/// The exact p of 3 + 3 runs is at least 0.10, of 4 + 4 0.029, of 5 + 5 0.0079: fewer than 5 + 5
/// cannot show much.
pub fn mann_whitney(a: &[f64], b: &[f64]) -> Option<MannWhitney> {
    if a.is_empty() || b.is_empty() {
        return None;
    }
    let mut u = 0.0;
    let mut ties = false;
    for x in a {
        for y in b {
            u += if y > x {
                1.0
            } else if y == x {
                0.5
            } else {
                0.0
            };
            ties |= x == y;
        }
    }
    let pairs = (a.len() * b.len()) as f64;
    let exact = !ties && a.len() <= EXACT_SIZE && b.len() <= EXACT_SIZE;
    let p = if exact { exact_p(a.len(), b.len(), u) } else { normal_p(a, b, u) };
    Some(MannWhitney { p, superiority: u / pairs, exact })
}

/// Two-sided p from the number of arrangements with each U, counted by recursion on the largest
/// value: it is of the first sample, or of the second and then above all `n` of the first.
fn exact_p(n: usize, m: usize, u: f64) -> f64 {
    // ways[i][j] has the arrangements of i and j values by U.
    let mut ways: Vec<Vec<Vec<f64>>> = vec![vec![vec![1.0]; m + 1]; n + 1];
    for i in 1..=n {
        for j in 1..=m {
            let mut counts = vec![0.0; i * j + 1];
            for (k, w) in ways[i - 1][j].iter().enumerate() {
                counts[k] += w;
            }
            for (k, w) in ways[i][j - 1].iter().enumerate() {
                counts[k + i] += w;
            }
            ways[i][j] = counts;
        }
    }
    let counts = &ways[n][m];
    let all: f64 = counts.iter().sum();
    let smaller = u.min((n * m) as f64 - u) as usize;
    let tail: f64 = counts.iter().take(smaller + 1).sum();
    (2.0 * tail / all).min(1.0)
}

/// Normal approximation with correction for ties and continuity.
fn normal_p(a: &[f64], b: &[f64], u: f64) -> f64 {
    let (n, m) = (a.len() as f64, b.len() as f64);
    let all = n + m;
    let mut values: Vec<f64> = a.iter().chain(b).copied().collect();
    values.sort_by(f64::total_cmp);
    let ties: f64 =
        values.chunk_by(|x, y| x == y).map(|group| group.len() as f64).map(|t| t * t * t - t).sum();
    let variance = n * m / 12.0 * (all + 1.0 - ties / (all * (all - 1.0)));
    if variance <= 0.0 {
        return 1.0;
    }
    let z = ((u - n * m / 2.0).abs() - 0.5).max(0.0) / variance.sqrt();
    (2.0 * upper_tail(z)).min(1.0)
}

/// P(Z > z) of the standard normal distribution for z >= 0, to 1e-7 (Abramowitz and Stegun
/// 26.2.17).
pub(crate) fn upper_tail(z: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * z);
    let series = [0.319_381_530, -0.356_563_782, 1.781_477_937, -1.821_255_978, 1.330_274_429];
    let sum = series.iter().rev().fold(0.0, |sum, c| (sum + c) * t);
    sum * (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn p(a: &[f64], b: &[f64]) -> f64 {
        mann_whitney(a, b).unwrap().p
    }

    #[test]
    fn the_smallest_exact_p_is_known() {
        assert!((p(&[1., 2., 3.], &[4., 5., 6.]) - 0.1).abs() < 1e-12);
        let five = (p(&[1., 2., 3., 4., 5.], &[6., 7., 8., 9., 10.]) - 2.0 / 252.0).abs();
        assert!(five < 1e-12);
    }

    #[test]
    fn exact_and_normal_agree_in_the_middle() {
        let a: Vec<f64> = (0..20).map(|i| (i * 7 % 20) as f64).collect();
        let b: Vec<f64> = (0..20).map(|i| (i * 7 % 20) as f64 + 3.5).collect();
        let u: f64 = a.iter().flat_map(|x| b.iter().map(move |y| f64::from(y > x))).sum();
        assert!((exact_p(20, 20, u) - normal_p(&a, &b, u)).abs() < 0.01);
    }

    #[test]
    fn the_normal_tail_is_the_tables() {
        assert!((upper_tail(1.959_964) - 0.025).abs() < 1e-6);
        assert!((upper_tail(0.0) - 0.5).abs() < 1e-6);
    }

    #[test]
    fn equal_samples_are_not_different_and_no_sample_is_no_answer() {
        assert_eq!(p(&[1., 1., 1., 1.], &[1., 1., 1., 1.]), 1.0);
        assert!(mann_whitney(&[], &[1.0]).is_none());
    }

    #[test]
    fn false_alarms_are_as_many_as_promised() {
        let mut rng = fastrand::Rng::with_seed(1);
        let mut alarms = 0;
        for _ in 0..1000 {
            let mut sample = || (0..8).map(|_| rng.f64()).collect::<Vec<_>>();
            let (a, b) = (sample(), sample());
            alarms += usize::from(p(&a, &b) <= 0.05);
        }
        assert!((25..=75).contains(&alarms), "{alarms} of 1000 at 5 %");
    }
}
