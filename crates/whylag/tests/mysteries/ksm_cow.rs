use crate::{EXACT, Mystery, solve};

#[test]
fn ksm_cow() {
    let run = std::fs::read_to_string("/sys/kernel/mm/ksm/run").unwrap_or_default();
    if run.trim() != "1" {
        println!("skipped: ksm-cow: KSM is off here, and tests change no setting of the system");
        return;
    }
    solve(&Mystery {
        cause: "ksm-cow",
        follow: false,
        part: EXACT,
        ruled_out: &["fork-cow", "first-touch"],
    });
}
