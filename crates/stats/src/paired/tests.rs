use super::*;

fn normal(rng: &mut fastrand::Rng) -> f64 {
    (0..12).map(|_| rng.f64()).sum::<f64>() - 6.0
}

/// One time series of 20 measurements without any difference between sides.
fn series(kind: &str, rng: &mut fastrand::Rng) -> Vec<f64> {
    let mut previous = 0.0;
    let step_at = rng.usize(..20);
    (0..20)
        .map(|n| {
            let noise = 0.02 * normal(rng);
            match kind {
                // Pareto with infinite variance: a run in some is many times as long.
                "heavy tails" => 100.0 * rng.f64().max(1e-6).powf(-1.0 / 1.5),
                "AR(1)" => {
                    previous = 0.8 * previous + noise;
                    100.0 * f64::exp(previous)
                }
                "drift" => 100.0 * (1.0 + 0.01 * n as f64) * (1.0 + noise),
                "step" => 100.0 * (1.0 + noise) * if n < step_at { 1.0 } else { 1.3 },
                _ => 100.0 * (1.0 + noise),
            }
        })
        .collect()
}

/// The series as pairs, in an order that is drawn by lot inside each pair.
fn in_pairs(values: &[f64], rng: &mut fastrand::Rng) -> Vec<(f64, f64)> {
    let pair = |two: &[f64]| if rng.bool() { (two[0], two[1]) } else { (two[1], two[0]) };
    values.chunks_exact(2).map(pair).collect()
}

#[test]
fn equal_sides_differ_in_at_most_5_percent_whatever_the_noise() {
    let mut rng = fastrand::Rng::with_seed(11);
    for kind in ["normal", "heavy tails", "AR(1)", "drift", "step"] {
        let alarms = (0..1000)
            .filter(|_| {
                let values = series(kind, &mut rng);
                compare(&in_pairs(&values, &mut rng)).unwrap().p <= ALPHA
            })
            .count();
        // 4.9 % are expected of the exact test at 10 pairs; three deviations of 1,000 draws are 2.1 %.
        assert!(alarms <= 70, "{kind}: {alarms} of 1000");
    }
}

#[test]
fn five_percent_at_two_percent_of_noise_are_found_with_ten_pairs() {
    let mut rng = fastrand::Rng::with_seed(12);
    let mut noisy = || 1.0 + 0.02 * normal(&mut rng);
    let found = (0..500)
        .filter(|_| {
            let pairs: Vec<(f64, f64)> = (0..10).map(|_| (noisy(), 1.05 * noisy())).collect();
            let paired = compare(&pairs).unwrap();
            paired.p <= ALPHA && paired.ratio.low > 1.0
        })
        .count();
    assert!(found >= 450, "{found} of 500");
}

#[test]
fn the_interval_covers_as_often_as_it_says() {
    let mut rng = fastrand::Rng::with_seed(13);
    let mut noisy = || 1.0 + 0.02 * normal(&mut rng);
    let covered = (0..1000)
        .filter(|_| {
            let pairs: Vec<(f64, f64)> = (0..10).map(|_| (noisy(), 1.2 * noisy())).collect();
            compare(&pairs).unwrap().ratio.contains(1.2)
        })
        .count();
    assert!(covered >= 930, "{covered} of 1000");
}

#[test]
fn the_exact_p_of_few_pairs_is_known() {
    let all_up = |n: usize| signed_rank_p(&(1..=n).map(|v| v as f64).collect::<Vec<_>>());
    assert!((all_up(5) - 2.0 / 32.0).abs() < 1e-12);
    assert!((all_up(6) - 2.0 / 64.0).abs() < 1e-12);
    // 1, 2, 3, 4, 5, 6 with the sign of 2 turned: sums of at most 2 are {}, {1}, {2}.
    assert!((signed_rank_p(&[1., -2., 3., 4., 5., 6.]) - 2.0 * 3.0 / 64.0).abs() < 1e-12);
    // All distances are the same: the signs alone count.
    assert!((signed_rank_p(&[1., 1., 1., 1., 1., 1.]) - 2.0 / 64.0).abs() < 1e-12);
    assert_eq!(signed_rank_p(&[0.0; 6]), 1.0);
}

#[test]
fn the_interval_and_the_test_agree() {
    let mut rng = fastrand::Rng::with_seed(14);
    for _ in 0..300 {
        let pairs: Vec<(f64, f64)> =
            (0..8).map(|_| (1.0 + 0.1 * rng.f64(), 1.05 + 0.1 * rng.f64())).collect();
        let paired = compare(&pairs).unwrap();
        let excludes_one = !paired.ratio.contains(1.0);
        assert_eq!(excludes_one, paired.p <= ALPHA, "{paired:?}");
    }
}

#[test]
fn too_few_pairs_and_values_without_a_logarithm_are_no_answer() {
    assert!(compare(&[(1.0, 2.0); 5]).is_none());
    assert!(compare(&[(1.0, 2.0); 6]).is_some());
    let mut pairs = vec![(1.0, 2.0); 6];
    pairs[3].1 = 0.0;
    assert!(compare(&pairs).is_none());
}

#[test]
fn how_many_pairs_it_takes_goes_with_the_square_of_the_noise() {
    let paired = |noise| Paired {
        ratio: Interval { estimate: 1.0, low: 0.9, high: 1.1, confidence: 0.95 },
        p: 1.0,
        n: 10,
        noise,
    };
    assert_eq!(paired(0.02).pairs_for(0.05), LEAST_PAIRS);
    assert_eq!(paired(0.10).pairs_for(0.01), 387);
}
