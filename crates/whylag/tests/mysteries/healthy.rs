use crate::Case;

#[test]
fn healthy() {
    let Some(case) = Case::record("healthy", false) else { return };
    if !case.figures.judge("a healthy program has no cause") {
        return;
    }
    // The kernel's own count of waiting for a CPU, which is not the program's fault.
    let waited = case.share_of_wall(case.truth.get("runq_ns"));
    for finding in &case.findings {
        let found = case.share_of_wall(finding.lost_ns);
        assert!(found < 0.05 + waited, "{}", case.summary());
    }
}
