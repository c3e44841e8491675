use crate::{EXACT, Mystery, solve};

#[test]
fn listen_overflow() {
    solve(&Mystery {
        cause: "listen-overflow",
        follow: false,
        part: EXACT,
        ruled_out: &["loss on the way to the socket"],
    });
}
