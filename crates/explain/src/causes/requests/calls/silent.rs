//! Peers that answer none of the packets of UDP that they are sent, and the threads that wait for that.

use model::{Account, Accounts, ChainEnd, Service, part_of};

use super::called::called;
use crate::case::Case;
use crate::case::lost::{Class, class};
use crate::case::silent_peers::{is_name_server, silent_peers};
use crate::cause::Claim;
use crate::text::{counted, duration, mean};

/// By peer; name servers have a cause of their own (dns-timeout). Of a process that waits for answers of others as
/// well, what is left of its waits.
pub fn of_silent<'a>(case: &'a Case<'_>) -> impl Iterator<Item = Claim> + 'a {
    let silent = silent_peers(case.run).filter(|peer| !is_name_server(peer));
    silent.filter_map(|peer| claim(case, peer))
}

fn claim(case: &Case, peer: &Service) -> Option<Claim> {
    let (waits, waited) = waited(case, peer);
    if waited.total() == 0 {
        return None;
    }
    let (process, name) = (case.process_name(peer.tgid), &peer.name);
    let title = format!("{process} waits for answers of {name}, which never come");
    let mut claim = Claim::new(title, waited.clone(), waits);
    claim.takes_idle = true;
    claim.mechanism(format!(
        "asleep for {} for the answer to what had been sent: {}, mean {}",
        duration(waited.total()),
        counted(waits, "wait"),
        mean(waited.total(), waits)
    ));
    claim.trigger(
        "nothing came back: nobody who listens there, one that hangs, or one that drops what it gets"
            .to_owned(),
    );
    claim.saw(
        format!("{} sent to {name}, none was answered", counted(peer.packets, "packet")),
        "sends and receives of the sockets",
    );
    claim.exclude(
        "waiting for the next request",
        "only waits of threads that had sent something at the same socket count".to_owned(),
    );
    Some(claim)
}

/// Waits for what had been asked for, that nobody recorded ended, as far as no answers of others took them; of
/// several silent peers each has the part of its packets.
fn waited(case: &Case, peer: &Service) -> (u64, Accounts) {
    let beyond = |end| matches!(end, ChainEnd::Outside | ChainEnd::Unwatched | ChainEnd::Timeout);
    let waits = case.run.sums.waits.iter().filter(|wait| wait.tgid == peer.tgid && wait.asked);
    let waits: Vec<_> = waits.filter(|wait| class(wait.account) == Class::Idle).collect();
    let all: Accounts = waits.iter().map(|wait| (wait.account, wait.ends_in(beyond))).collect();
    let others = called(case.run).into_iter().filter(|called| called.service.tgid == peer.tgid);
    let others = others.map(|called| called.total.sum()).fold(0, u64::saturating_add);
    let alike = silent_peers(case.run).filter(|other| other.tgid == peer.tgid);
    let packets = alike.map(|other| other.packets).fold(0, u64::saturating_add);
    let left = part_of(all.total().saturating_sub(others), peer.packets, packets);
    let part = |(account, ns): (Account, u64)| (account, part_of(ns, left, all.total()));
    // Each packet was waited for once at most.
    let count = waits.iter().map(|wait| wait.count).fold(0, u64::saturating_add);
    (count.min(peer.packets), all.iter().map(part).collect())
}

#[cfg(test)]
mod tests {
    use model::{Blocked, Run, WaitSum};

    use super::*;
    use crate::testing::requests::calls;
    use crate::testing::{RunBuilder, SECOND, USER, wait};

    const RECEIVE: Account = Account::Blocked(Blocked::SocketReceive);

    /// Process 10 has sent twelve packets and waited for three seconds for what it had asked.
    fn run(name: &str, answers: usize, asked: bool) -> Run {
        let wait = WaitSum {
            waiter_tid: 10,
            asked,
            ends: [(ChainEnd::Outside, 3 * SECOND)].into(),
            ..wait(10, RECEIVE, 0, 12, 3 * SECOND)
        };
        let run = RunBuilder::new().thread(10, 10, &[(RECEIVE, 3 * SECOND), (USER, SECOND)]);
        let mut run = calls(run.wait(wait).build(), answers, SECOND / 100);
        let peer = run.sums.services.last_mut().unwrap();
        (peer.name, peer.packets) = (name.into(), 12);
        run
    }

    #[test]
    fn waits_for_a_peer_that_answers_nothing_are_claimed() {
        let run = run("UDP 10.0.0.1:1812", 0, true);
        let found = crate::explain(&run);
        let first = &found.findings[0];
        assert_eq!((first.cause.as_str(), first.lost_ns), ("slow-peer", 3 * SECOND));
        assert!(first.title.ends_with("of UDP 10.0.0.1:1812, which never come"), "{}", first.title);
    }

    #[test]
    fn several_that_answer_nothing_share_the_waits() {
        let mut run = run("UDP 10.0.0.1:1812", 0, true);
        let first = run.sums.services[0].clone();
        run.sums.services.push(Service { name: "UDP 10.0.0.2:1812".into(), packets: 36, ..first });
        let claims: Vec<_> = of_silent(&Case::new(&run)).collect();
        let lost = claims.iter().map(|claim| claim.lost.total()).collect::<Vec<_>>();
        assert_eq!(lost, [3 * SECOND / 4, 9 * SECOND / 4]);
    }

    #[test]
    fn who_waits_for_nothing_or_is_answered_is_none() {
        let silent = |name, answers, asked| {
            let run = run(name, answers, asked);
            of_silent(&Case::new(&run)).count()
        };
        assert_eq!(silent("UDP 10.0.0.1:1812", 0, false), 0);
        assert_eq!(silent("UDP 10.0.0.1:1812", 12, true), 0);
        assert_eq!(silent("UDP 10.0.0.1:53", 0, true), 0);
    }
}
