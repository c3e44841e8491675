use crate::{EXACT, Mystery, solve};

#[test]
fn dns_timeout() {
    solve(&Mystery {
        cause: "dns-timeout",
        follow: false,
        part: EXACT,
        ruled_out: &["a slow name server", "udp-rcvbuf-stall"],
    });
}
