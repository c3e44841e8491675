//! Sends to a full socket of this host: they sleep until its reader has read, like writes to a full
//! pipe. So do a service's standard output and syslog(3) where journald or a syslog daemon is slow.

use std::collections::BTreeMap;

use model::{Account, Accounts, Blocked, WaitSum};

use crate::case::chain_ends::ChainEnds;
use crate::case::in_words::{in_words, stacks};
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
    let ((tgid, reader), waits) = largest.filter(|_| total.ns > 0)?;
    let of_pair = sum_of(waits.iter().copied());
    let mut ends = ChainEnds::default();
    waits.iter().for_each(|wait| ends.add(wait));
    let name = waits.first().map_or("", |wait| wait.waker_comm.as_str());
    let reader = format!("{name} (pid {reader})");
    let did = ends.main().map_or_else(String::new, |end| format!(", which {end}"));
    let title =
        format!("{} waits for {reader} to read from a socket{did}", case.process_name(tgid));
    let lost: Accounts = [(SEND, total.ns.min(case.accounts.get(SEND)))].into_iter().collect();
    let mut claim = Claim::new(title, lost, total.count);
    claim.fix = Some(FIX);
    claim.mechanism(format!(
        "asleep in sends to a full socket of this host: {}, {}, mean {}, longest {}",
        counted(total.count, "wait"),
        duration(total.ns),
        mean(total.ns, total.count),
        duration(total.max_ns)
    ));
    match ends.in_words(&format!("meanwhile {reader}, or whoever it waited for,")) {
        Some(ends) => claim.trigger(ends),
        None => claim.trigger(format!("{reader} reads more slowly than is sent")),
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
    use model::ChainEnd;

    fn sender(waker_tgid: u32) -> RunBuilder {
        let sum = WaitSum {
            waker_tgid,
            waker_comm: "journal".into(),
            ends: [(ChainEnd::Disk, 2 * SECOND)].into(),
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
    fn what_a_network_makes_slow_is_not_this() {
        assert!(claim(&Case::new(&sender(0).build())).is_none());
    }
}
