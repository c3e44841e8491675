//! Sends to a full socket of this host: they sleep until its reader has read, like writes to a full
//! pipe. So do a service's standard output and syslog(3) where journald or a syslog daemon is slow.

use std::collections::BTreeMap;

use model::{Account, Accounts, Blocked, ChainEnd, WaitSum};

use crate::case::beyond::Holders;
use crate::case::chain_ends::ChainEnds;
use crate::case::in_words::{in_words, stacks};
use crate::case::looks::{HasIt, did, doubt_looks};
use crate::case::{Case, sum_of};
use crate::cause::Claim;
use crate::text::{counted, duration, mean, percent};

const SEND: Account = Account::Blocked(Blocked::SocketSend);

const FIX: &str = "Never let the critical thread send to a local socket that can fill: log through a \
                   bounded queue and a thread of its own, drop or count what does not fit, or make the \
                   reader faster. A larger send buffer (SO_SNDBUF), or queue of datagrams \
                   (net.unix.max_dgram_qlen), only helps with bursts.";

/// The sends that a thread of this host let go on, because it read: what a network makes slow is let go
/// on by interrupts. `None` if there are none.
pub(super) fn claim(case: &Case) -> Option<Claim> {
    let waits: Vec<&WaitSum> = case.waits(SEND).filter(|wait| wait.waker_tgid != 0).collect();
    let total = sum_of(waits.iter().copied());
    let mut pairs = BTreeMap::<(u32, u32), Vec<&WaitSum>>::new();
    for wait in waits {
        pairs.entry((wait.tgid, wait.waker_tgid)).or_default().push(wait);
    }
    let largest = pairs.into_iter().max_by_key(|(_, waits)| sum_of(waits.iter().copied()).ns);
    let ((tgid, reader_pid), waits) = largest.filter(|_| total.ns > 0)?;
    let of_pair = sum_of(waits.iter().copied());
    let mut ends = ChainEnds::default();
    waits.iter().for_each(|wait| ends.add(wait));
    let name = waits.first().map_or("", |wait| wait.waker_comm.as_str());
    let reader = format!("{name} (pid {reader_pid})");
    let is_recorded = case.process(reader_pid).is_some();
    let readers =
        Holders::new(case.whole(), |process, account, _| (process, account) == (tgid, SEND));
    let end = ends.main().filter(|end| is_recorded || *end != ChainEnd::Unwatched);
    let has_it = end.and_then(|end| HasIt::of(&ends, end, reader_pid, case.whole()));
    let meanwhile = end.map_or_else(String::new, |end| {
        let whose = readers.whose(&ends, end, case.whole());
        format!(", {}", whose.which(&did(end, has_it.as_ref())))
    });
    let whom = if is_recorded || end.is_some() { "" } else { ", which is not recorded," };
    let waiter = case.process_name(tgid);
    let title = format!("{waiter} waits for {reader}{whom} to read from a socket{meanwhile}");
    let lost: Accounts = [(SEND, total.ns.min(case.accounts.get(SEND)))].into_iter().collect();
    let mut claim = Claim::new(title, lost, total.count);
    claim.fix = Some(FIX);
    doubt_looks(has_it.as_ref(), &mut claim);
    claim.mechanism(format!(
        "asleep in sends to a full socket of this host: {}, {}, mean {}, longest {}",
        counted(total.count, "wait"),
        duration(total.ns),
        mean(total.ns, total.count),
        duration(total.max_ns)
    ));
    let did = ends.in_words(&format!("meanwhile {reader}, or whoever it waited for,"));
    match did.filter(|_| end.is_some()) {
        Some(ends) => claim.trigger(ends),
        None if is_recorded => claim.trigger(format!("{reader} reads more slowly than is sent")),
        None => claim.trigger(format!(
            "{reader} reads more slowly than is sent; record it, too (-p {reader_pid}, --follow for a \
             child, -a for all), to see why"
        )),
    }
    claim.saw(
        format!(
            "{reader} ended {} by reading ({} of the waiting)",
            counted(of_pair.count, "wait"),
            percent(of_pair.ns, total.ns)
        ),
        "waker at sched_waking",
    );
    claim.saw_if(case.worst(SEND).map(|o| in_words(case, o)), "longest wait of the run");
    let (_, user) = stacks(case, SEND, |_| true, "");
    claim.saw_if(user.map(|s| format!("sent in {s}")), "user stack");
    Some(claim)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RunBuilder, SECOND, USER, wait};

    fn sender(waker_tgid: u32) -> RunBuilder {
        let sum = WaitSum {
            waker_tgid,
            waker_comm: "journal".into(),
            ends: [(ChainEnd::Disk, 2 * SECOND)].into(),
            waker_tid: 56,
            longest_end: Some((56, ChainEnd::Disk)),
            ..wait(10, SEND, 777, 300, 2 * SECOND)
        };
        RunBuilder::new().thread(10, 10, &[(USER, SECOND), (SEND, 3 * SECOND)]).wait(sum)
    }

    #[test]
    fn the_reader_is_named_and_what_it_did() {
        let run = sender(55).build();
        let claim = claim(&Case::new(&run)).unwrap();
        assert_eq!(claim.lost.get(SEND), 2 * SECOND);
        let title = "main-10 (pid 10) waits for journal (pid 55) to read from a socket, which waited \
                     for a disk";
        assert_eq!(claim.title, title);
        assert!(claim.evidence[0].text.starts_with("journal (pid 55) ended 300 waits by reading"));
        assert_eq!(crate::explain(&run).findings[0].cause, "blocked-log-pipe");
    }

    #[test]
    fn of_a_reader_that_is_not_recorded_nothing_but_its_name_is_said() {
        let mut run = sender(55).build();
        run.sums.waits[0].ends = [(ChainEnd::Unwatched, 2 * SECOND)].into();
        let claim = claim(&Case::new(&run)).unwrap();
        let title = "main-10 (pid 10) waits for journal (pid 55), which is not recorded, to read from \
                     a socket";
        assert_eq!(claim.title, title);
    }

    #[test]
    fn what_a_network_makes_slow_is_not_this() {
        assert!(claim(&Case::new(&sender(0).build())).is_none());
    }
}
