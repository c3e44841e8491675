//! Calls to peers, as sockets show them: whom a program waits for that it does not record.

mod called;
mod many;
mod of_a_client;
mod of_requests;
mod recorded;
mod silent;
mod turns;

use self::called::{called, is_long};
pub(crate) use self::many::many_calls;
use self::of_a_client::of_a_client;
use self::of_requests::of_requests;
use self::silent::of_silent;
use crate::case::Case;
use crate::cause::{Claim, OfRequests};

/// The peer that requests, or threads, wait for most; `None` if none is slow. One that takes too little
/// of the requests to be named hides no other.
pub(super) fn examine(case: &Case) -> Option<Claim> {
    let claims = called(case.run)
        .into_iter()
        .filter(|called| is_long(case, called))
        .filter_map(|called| of_a_client(case, &called).or_else(|| of_requests(case, &called)));
    claims.chain(of_silent(case)).max_by_key(|claim| (is_felt(claim), claim.lost.total()))
}

/// It takes enough of the requests, or is no claim of requests.
pub(super) fn is_felt(claim: &Claim) -> bool {
    claim.requests.as_ref().is_none_or(OfRequests::is_felt)
}

#[cfg(test)]
mod tests;
