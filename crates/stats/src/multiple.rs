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

#[cfg(test)]
mod tests {
    use super::*;

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
