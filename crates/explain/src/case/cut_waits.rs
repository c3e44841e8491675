//! Waits that an edge of the recording cuts: they began before it, or go on when it ends. No call is
//! known of them, and of the latter no interval was kept; what lies within the recording is as lost as
//! that of other waits.

use std::collections::BTreeMap;

use model::{Account, Outlier, OutlierKind, Run, ThreadAccounts};

use crate::text::{count, duration};

/// The first interval of a thread that slept when the recording began begins with its accounts, but
/// for the time that looking at all threads took.
const AT_ONCE_NS: u64 = 1_000_000;

/// A wait in an account that one of these edges cut.
#[derive(Clone, Copy)]
pub(crate) struct CutWait<'a> {
    pub thread: &'a ThreadAccounts,
    /// What of it lies within the recording.
    pub ns: u64,
    /// Its interval, if it has ended.
    pub ended: Option<&'a Outlier>,
}

/// Those in `account`; of one that did not end in the recording, it is not known what it was for.
pub(crate) fn cut_waits(run: &Run, account: Account) -> Vec<CutWait<'_>> {
    let is_of_it = |thread: &&ThreadAccounts| thread.accounts.get(account) > 0;
    let mut kept: BTreeMap<u32, Vec<&Outlier>> =
        run.threads.iter().filter(is_of_it).map(|thread| (thread.tid, Vec::new())).collect();
    for outlier in run.outliers.iter().filter(|o| o.kind.is_own_time()) {
        if let Some(own) = kept.get_mut(&outlier.tid) {
            own.push(outlier);
        }
    }
    let mut waits = Vec::new();
    for thread in run.threads.iter().filter(is_of_it) {
        let own = kept.get(&thread.tid).map_or(&[][..], Vec::as_slice);
        waits.extend(begun_before(thread, own, account));
        waits.extend(still_open(thread, own, account));
    }
    waits
}

/// Its begin was not seen, so that there is no call around it.
fn begun_before<'a>(
    thread: &'a ThreadAccounts,
    own: &[&'a Outlier],
    account: Account,
) -> Option<CutWait<'a>> {
    let sleeps = own.iter().filter(|o| o.kind == OutlierKind::OffCpu);
    let first = sleeps.min_by_key(|o| o.start_ns)?;
    let calls = || own.iter().filter(|o| o.kind == OutlierKind::Syscall);
    let has_call = calls().any(|o| o.start_ns <= first.start_ns && first.end_ns() <= o.end_ns());
    let is_first = first.start_ns.saturating_sub(thread.first_ns) < AT_ONCE_NS;
    let ns = first.breakdown.get(account);
    let is_cut = is_first && !has_call && ns > 0;
    is_cut.then_some(CutWait { thread, ns, ended: Some(first) })
}

/// All that its thread was in the account after the last interval that was kept.
fn still_open<'a>(
    thread: &'a ThreadAccounts,
    own: &[&'a Outlier],
    account: Account,
) -> Option<CutWait<'a>> {
    if !thread.alive || thread.open != account {
        return None;
    }
    let last_ns = own.iter().map(|o| o.end_ns()).max().unwrap_or(0).max(thread.first_ns);
    let sleeps = own.iter().filter(|o| o.kind == OutlierKind::OffCpu);
    let ended = sleeps.fold(0u64, |sum, o| sum.saturating_add(o.breakdown.get(account)));
    let rest = thread.accounts.get(account).saturating_sub(ended);
    let ns = rest.min(thread.last_ns.saturating_sub(last_ns));
    (ns > 0).then_some(CutWait { thread, ns, ended: None })
}

/// `3 of them began before the recording or had not ended at its end: 1.2 s within it`, of these times
/// within it; nothing of none.
pub fn cut_in_words(waits: impl Iterator<Item = u64> + Clone) -> Option<String> {
    let number = waits.clone().count() as u64;
    let text = format!(
        "{} of them began before the recording or had not ended at its end: {} within it",
        count(number),
        duration(waits.sum())
    );
    (number > 0).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RunBuilder, SECOND, USER, interval};
    use model::Blocked;

    const CONNECT: Account = Account::Blocked(Blocked::SocketConnect);

    fn found(run: RunBuilder) -> Vec<(u64, bool)> {
        let run = run.build();
        let waits = cut_waits(&run, CONNECT);
        waits.iter().map(|wait| (wait.ns, wait.ended.is_some())).collect()
    }

    fn thread(connecting: u64) -> RunBuilder {
        RunBuilder::new().thread(10, 10, &[(USER, SECOND), (CONNECT, connecting)])
    }

    #[test]
    fn both_edges_cut_waits() {
        let begun = interval(10, CONNECT, 200_000, SECOND / 2, None);
        let run = thread(SECOND).kept(begun).open(CONNECT);
        assert_eq!(found(run), [(SECOND / 2, true), (SECOND / 2, false)]);
        // All the time of the recording.
        assert_eq!(found(thread(SECOND).open(CONNECT)), [(SECOND, false)]);
    }

    #[test]
    fn a_wait_that_lies_within_the_recording_is_not_cut() {
        let mut call = interval(10, CONNECT, 100_000, SECOND, None);
        call.kind = OutlierKind::Syscall;
        let sleep = interval(10, CONNECT, 200_000, SECOND - 200_000, None);
        assert_eq!(found(thread(SECOND - 200_000).kept(call).kept(sleep)), []);
        assert_eq!(found(thread(SECOND).interval(10, CONNECT, SECOND, SECOND, None)), []);
        assert_eq!(found(thread(SECOND).open(CONNECT).dead()), []);
    }

    #[test]
    fn an_open_wait_is_not_longer_than_since_the_thread_did_something_else() {
        let last = interval(10, USER, SECOND, SECOND / 2, None);
        assert_eq!(found(thread(SECOND).kept(last).open(CONNECT)), [(SECOND / 2, false)]);
    }
}
