//! A system call that is made so often, for so little each time, that to make it is most of what it costs: a file
//! that is read byte by byte.

use model::{Account, FrequentCall, RecorderPart};

use super::finding::share;
use crate::case::Case;
use crate::cause::Needs;

/// The part of the wall time that it takes at least, one in so many.
const WORTH: u64 = 4;
/// Entry and exit take some 100 to 300 ns; what takes much longer does something.
const SHORT_NS: u64 = 3_000;

/// The one with most of the wall time, if each is that short.
pub(super) fn frequent_call(case: &Case) -> Option<FrequentCall> {
    let calls = case.accounts.iter().filter_map(|(account, ns)| match account {
        Account::Syscall(call) => Some((call, ns)),
        _ => None,
    });
    let (call, ns) = calls.max_by_key(|(_, ns)| *ns)?;
    let name = call.to_string();
    let (count, all_ns) = case.calls(&name);
    let mean_ns = all_ns.checked_div(count)?;
    let is_worth = case.scope().is_none() && ns >= case.wall_ns / WORTH && mean_ns < SHORT_NS;
    is_worth.then(|| FrequentCall {
        call: name,
        count,
        is_estimate: !case.off(Needs::parts(&[RecorderPart::SystemCalls])).is_empty(),
        per_second: count as f64 * 1e9 / case.run.length_ns().max(1) as f64,
        mean_ns,
        share: share(ns, case.wall_ns),
    })
}

#[cfg(test)]
mod tests {
    use crate::testing::{RunBuilder, SECOND, USER};
    use model::histogram::PRECISION_KERNEL;
    use model::{Account, FrequentCall, Metric, Syscall};

    /// A second in read, 1,000 calls of `ns`, beside `user_ns` of other work.
    fn found(ns: u64, user_ns: u64) -> Option<FrequentCall> {
        let read = Syscall::named("read").unwrap();
        let run = RunBuilder::new()
            .length(2 * SECOND)
            .thread(10, 10, &[(Account::Syscall(read), SECOND), (USER, user_ns)])
            .values(Metric::Syscall(read), PRECISION_KERNEL, &[ns; 1_000]);
        crate::explain(&run.build()).frequent_call
    }

    #[test]
    fn a_short_call_with_much_of_the_time_is_told_with_its_rate() {
        let call = found(300, SECOND).unwrap();
        assert_eq!((call.call.as_str(), call.per_second, call.count), ("read", 500.0, 1_000));
        assert!(!call.is_estimate);
        assert!((call.share - 0.5).abs() < 0.01 && (280..=320).contains(&call.mean_ns), "{call:?}");
    }

    #[test]
    fn one_that_does_something_or_takes_little_is_not() {
        assert_eq!(found(20_000, SECOND), None);
        assert_eq!(found(300, 9 * SECOND), None);
    }
}
