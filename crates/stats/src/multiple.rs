//! Many tests at once.

/// p-values adjusted for the false discovery rate (Benjamini and Hochberg 1995), in the order of
/// `ps`: calling those at most 0.05 different makes at most 5 % of the calls wrong on average.
pub fn benjamini_hochberg(ps: &[f64]) -> Vec<f64> {
    let n = ps.len();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|a, b| ps[*b].total_cmp(&ps[*a]));
    let mut adjusted = vec![1.0; n];
    let mut smallest = 1.0f64;
    for (back, index) in order.into_iter().enumerate() {
        let rank = n - back;
        smallest = smallest.min(ps[index] * n as f64 / rank as f64);
        adjusted[index] = smallest;
    }
    adjusted
}

/// p-values corrected for the chance that any of them is wrong (Holm 1979), in the order of `ps`:
/// calling those at most 0.05 different makes a wrong call in 5 % of families at most, however the
/// tests depend on each other.
pub fn holm(ps: &[f64]) -> Vec<f64> {
    let n = ps.len();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|a, b| ps[*a].total_cmp(&ps[*b]));
    let mut corrected = vec![1.0; n];
    let mut largest = 0.0f64;
    for (place, index) in order.into_iter().enumerate() {
        largest = largest.max((ps[index] * (n - place) as f64).min(1.0));
        corrected[index] = largest;
    }
    corrected
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holm_corrects_the_smallest_by_all_and_keeps_the_order() {
        let corrected = holm(&[0.04, 0.01, 0.03, 0.9]);
        let expected = [0.09, 0.04, 0.09, 0.9];
        assert!(
            corrected.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12),
            "{corrected:?}"
        );
        assert!(holm(&[]).is_empty());
    }

    #[test]
    fn agrees_with_the_worked_example() {
        // By hand: 0.01*4/1, 0.02*4/2, 0.03*4/3, 0.5*4/4, each at most the next.
        let adjusted = benjamini_hochberg(&[0.5, 0.01, 0.03, 0.02]);
        let expected = [0.5, 0.04, 0.04, 0.04];
        for (a, e) in adjusted.iter().zip(expected) {
            assert!((a - e).abs() < 1e-12, "{adjusted:?}");
        }
        assert!(benjamini_hochberg(&[]).is_empty());
    }
}
