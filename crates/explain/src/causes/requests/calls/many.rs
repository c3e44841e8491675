//! Requests that make many calls each: every one may be short, and all together long.

use model::{ManyCalls, MessageMetric};

use super::called::{Called, called, peer, requests};
use crate::case::Case;
use crate::judge::FEWEST_REQUESTS;

/// Calls for each request from which on they are many: a few are one for each thing that is asked.
const MANY: u64 = 10;
/// From this part of the time of the requests on they are worth a line, by their own times: what it takes to
/// send them and to read their answers comes on top.
const WORTH: u64 = 10;

/// The peer whose calls take most of the requests' time, if each request makes many.
pub(crate) fn many_calls(case: &Case) -> Option<ManyCalls> {
    let called = called(case.run);
    let many = called.iter().filter_map(|called| of_peer(case, called));
    many.max_by_key(|many| (many.per_request as u64).saturating_mul(many.mean_ns))
}

fn of_peer(case: &Case, called: &Called) -> Option<ManyCalls> {
    let of_requests = requests(case, called, MessageMetric::Total);
    let (requests, calls) = (of_requests.count(), called.total.count());
    let is_many = requests >= FEWEST_REQUESTS && calls / requests.max(1) >= MANY;
    if !is_many || called.total.sum() < of_requests.sum() / WORTH {
        return None;
    }
    Some(ManyCalls {
        process: case.process_name(called.service.tgid),
        peer: peer(case, called),
        per_request: calls as f64 / requests as f64,
        mean_ns: called.total.mean()? as u64,
        request_ns: of_requests.mean()? as u64,
    })
}

#[cfg(test)]
mod tests {
    use crate::testing::RunBuilder;
    use crate::testing::requests::{MS, calls, request, served};
    use model::{ManyCalls, Run};

    /// 30 requests of 40 ms, and so many calls of a millisecond.
    fn run(n: usize) -> Run {
        let requests = (0..30).map(|n| request(1, 11, 100 * n, 0, 40)).collect();
        calls(served(RunBuilder::new().thread(11, 10, &[]).build(), requests), n, MS)
    }

    fn found(n: usize) -> Option<ManyCalls> {
        crate::explain(&run(n)).many_calls
    }

    #[test]
    fn many_calls_for_each_request_are_told_with_their_time() {
        let many = found(600).unwrap();
        assert!((many.per_request - 20.0).abs() < 0.01, "{many:?}");
        assert!((many.mean_ns as f64 / MS as f64 - 1.0).abs() < 0.1, "{many:?}");
        assert!((many.request_ns as f64 / MS as f64 - 40.0).abs() < 4.0, "{many:?}");
        assert!(many.peer.contains("127.0.0.1:5432"), "{many:?}");
    }

    #[test]
    fn a_few_are_not() {
        assert_eq!(found(200), None);
    }
}
