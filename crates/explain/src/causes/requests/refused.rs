//! Connections that are refused, again and again: the peer does not listen.

use std::net::SocketAddr;

use model::{Accounts, Retry, ServiceRole};

use crate::case::Case;
use crate::cause::Claim;
use crate::causes::tries::Tries;
use crate::text::{counted, duration, percent};

const FIX: &str = "See why nobody listens there ('ss -ltnp', the log of the service): start it before those \
                   that need it, and let it listen while it starts again (a second one on the same port with \
                   SO_REUSEPORT, or sockets that the service manager keeps). Shorter sleeps between tries \
                   save the last of them alone.";
const ENOENT: i32 = 2;

/// `None` if no thread slept between connections that were refused.
pub(super) fn examine(case: &Case) -> Option<Claim> {
    let tries = Tries::of(case, Retry::is_of_connection);
    if tries.ns == 0 {
        return None;
    }
    let name = case.process_name(tries.process);
    let at = tries.name().map_or(String::new(), |address| format!(" at {address}"));
    let title = format!("{name} waits until somebody listens{at}: its connections are refused");
    let mut claim = Claim::new(title, Accounts::new(), 0);
    claim.fix = Some(FIX);
    claim.mechanism(format!(
        "asleep for {} between connections that were refused: {}",
        duration(tries.ns),
        counted(tries.count, "sleep")
    ));
    let why = match tries.errno() {
        ENOENT => "there was no socket of that path (ENOENT)",
        _ => "nobody listened there (ECONNREFUSED)",
    };
    let in_the_end = tries.name().and_then(|address| listener(case, address));
    claim.trigger(format!(
        "{why}; for {} of that time a connection was made in the end{}",
        percent(tries.won_ns, tries.ns),
        in_the_end
            .map_or(String::new(), |by| format!(", with {by}, which listened there at times"))
    ));
    tries.add_to(
        &mut claim,
        "a connection that was refused",
        "peer",
        "failed calls of connect, or SO_ERROR, and the sleeps up to the next to the same address, or \
         of the same command of a script",
    );
    let (factor, doubt) = match tries.won_ns {
        0 => (
            0.6,
            "no connection was made in the end: who can do without the service (an exporter), or only \
             looks whether it is there, looks the same",
        ),
        _ => (0.9, "who only looks now and then whether the service is there looks the same"),
    };
    claim.doubt(factor, doubt);
    Some(claim)
}

/// The recorded process that has listened at the address.
fn listener(case: &Case, address: &str) -> Option<String> {
    let port = address.parse::<SocketAddr>().map(|address| format!("port {}", address.port()));
    let name = port.unwrap_or_else(|_| address.to_owned());
    let services = case.run.sums.services.iter();
    let mut servers = services.filter(|service| service.role == ServiceRole::Server);
    let server = servers.find(|service| service.name == name)?;
    Some(case.process_name(server.tgid))
}

#[cfg(test)]
mod tests {
    use model::Syscall;

    use super::*;
    use crate::causes::tries::SLEEP;
    use crate::testing::{RunBuilder, SECOND, USER};

    fn retry(call: &str, won_ns: u64) -> Retry {
        Retry {
            tgid: 10,
            call: Syscall::named(call).unwrap(),
            errno: 111,
            object: 1 << 40,
            pipe: false,
            name: Some("127.0.0.1:5432".into()),
            account: SLEEP,
            count: 8,
            ns: 2 * SECOND,
            max_ns: SECOND / 2,
            won_ns,
        }
    }

    #[test]
    fn sleeps_after_refused_connections_are_waiting_for_the_service() {
        let mut run =
            RunBuilder::new().thread(10, 10, &[(USER, SECOND), (SLEEP, 3 * SECOND)]).build();
        run.sums.retries = vec![retry("openat", SECOND)];
        assert!(examine(&Case::new(&run)).is_none());
        run.sums.retries = vec![retry("connect", 0)];
        let never = examine(&Case::new(&run)).unwrap();
        run.sums.retries = vec![retry("connect", SECOND)];
        let claim = examine(&Case::new(&run)).unwrap();
        assert!(never.doubts[0].factor < claim.doubts[0].factor);
        assert!(claim.takes_idle);
        let found = &crate::explain(&run).findings[0];
        assert_eq!((found.cause.as_str(), found.lost_ns), ("slow-peer", 2 * SECOND));
        assert!(found.title.contains("somebody listens at 127.0.0.1:5432"), "{}", found.title);
        assert!(found.chain.iter().any(|link| link.text.contains("for 50")), "{found:?}");
    }
}
