use model::{
    Account, Blocked, Call, ChainEnd, Context, Depth, OutlierKind, Run, SocketKind, Syscall,
    SyscallCall, WaitSum,
};

use super::of_a_client::POLL;
use super::of_requests::TURNS;
use super::*;
use crate::testing::requests::{MS, PEER, calls, request, served};
use crate::testing::{RunBuilder, SECOND, USER, interval, queue, wait};

const RECEIVE: Account = Account::Blocked(Blocked::SocketReceive);

fn call(from_ms: u64, ms: u64) -> Call {
    Call {
        program: PEER,
        tgid: 10,
        tid: 11,
        link: 5,
        cause: 1,
        sent_ns: from_ms * MS,
        arrived_ns: (from_ms + ms) * MS,
        read_ns: (from_ms + ms) * MS,
        answer: None,
    }
}

/// A proxy whose requests each wait for `ms` of 90 ms for a peer; it sleeps in poll meanwhile.
fn proxy(ms: u64) -> Run {
    let mut run = RunBuilder::new().thread(11, 10, &[(POLL, 3 * SECOND), (USER, SECOND)]);
    let mut requests = Vec::new();
    for n in 0..30 {
        let mut one = request(1, 11, 100 * n, 0, 90);
        one.at_socket.as_mut().unwrap().calls = vec![call(100 * n, ms)];
        requests.push(one);
        run = run.kept(interval(11, POLL, 100 * n * MS, 90 * MS, None));
    }
    calls(served(run.build(), requests), 30, ms * MS)
}

#[test]
fn a_proxy_that_sleeps_while_its_peer_is_slow_is_not_idle() {
    let run = proxy(80);
    let found = crate::explain(&run);
    let first = &found.findings[0];
    assert_eq!(first.cause, "slow-peer");
    assert!(first.title.contains("127.0.0.1:5432 (postgres, pid 90)"), "{}", first.title);
    assert_eq!(first.lost_ns, 30 * 80 * MS);
    let cost = first.requests.as_ref().unwrap();
    assert_eq!((cost.with, cost.of, cost.ns), (30, 30, 30 * 80 * MS));
    assert!(first.chain.iter().any(|link| link.text.contains("not recorded")));
}

/// Thread 12 calls for the requests that thread 11 reads, and only it sleeps meanwhile.
#[test]
fn the_thread_that_called_is_the_one_that_waits() {
    let mut run = RunBuilder::new().thread(11, 10, &[(POLL, 3 * SECOND), (USER, SECOND)]).thread(
        12,
        10,
        &[(RECEIVE, 3 * SECOND), (USER, SECOND)],
    );
    let mut requests = Vec::new();
    for n in 0..30 {
        let mut one = request(1, 11, 100 * n, 0, 90);
        one.at_socket.as_mut().unwrap().calls = vec![Call { tid: 12, ..call(100 * n, 80) }];
        requests.push(one);
        run = run.kept(interval(12, RECEIVE, 100 * n * MS, 80 * MS, None));
    }
    let run = calls(served(run.build(), requests), 30, 80 * MS);
    let claim = examine(&Case::new(&run)).unwrap();
    assert_eq!((claim.lost.get(RECEIVE), claim.lost.get(POLL)), (30 * 80 * MS, 0));
}

/// A client that asks and then does nothing until there is an answer, as one of a queue does.
#[test]
fn who_only_asks_for_something_to_do_is_idle() {
    assert!(examine(&Case::new(&consumer("127.0.0.1:6379", "redis-server"))).is_none());
    assert!(examine(&Case::new(&consumer("10.0.0.7:5672", "?"))).is_none());
    // Others have no jobs to give, as far as is known.
    let run = consumer("10.0.0.7:5432", "?");
    let claim = examine(&Case::new(&run)).unwrap();
    assert_eq!(claim.lost.get(RECEIVE), 2 * SECOND);
    assert!(claim.doubts.iter().any(|doubt| doubt.factor < 0.7), "{:?}", claim.doubts);
}

/// Workers that were forked call one peer: one of them has the calls of all.
#[test]
fn what_forked_workers_wait_for_is_added_up() {
    let of_worker = |tgid, peer: bool| {
        let sum = WaitSum {
            asked: true,
            ends: [(ChainEnd::Outside, SECOND)].into(),
            ..wait(tgid, RECEIVE, 0, 50, SECOND)
        };
        let accounts = [(RECEIVE, SECOND), (USER, SECOND)];
        let run = waiting_client().thread(tgid, tgid, &accounts).wait(sum);
        let mut run = calls(run.build(), 100, 20 * MS);
        if peer {
            let other = run.sums.services[0].clone();
            run.sums.services.push(model::Service { tgid, ..other });
        }
        run.processes.iter_mut().for_each(|process| process.comm = "worker".into());
        examine(&Case::new(&run)).unwrap().lost.get(RECEIVE)
    };
    assert_eq!(of_worker(77, false), 3 * SECOND);
    // One with calls of its own counts by itself.
    assert_eq!(of_worker(77, true), 2 * SECOND);
}

/// It does nothing but wait for the answers of this peer.
fn consumer(name: &str, comm: &str) -> Run {
    let mut run = client(20 * MS);
    run.threads[0].accounts =
        [(RECEIVE, 39 * SECOND / 10), (USER, SECOND / 20)].into_iter().collect();
    run.sums.services[0].peer = Some(model::Peer { tgid: 90, comm: comm.into() });
    for program in &mut run.messages.programs {
        program.flows.iter_mut().for_each(|flow| flow.name = name.into());
    }
    run
}

/// The same with a probe of its health now and then.
#[test]
fn some_requests_beside_its_calls_make_no_server_of_who_asks_for_something_to_do() {
    let run = consumer("127.0.0.1:6379", "redis-server");
    let run = served(run, (0..4).map(|n| request(9, 11, 900 * n, 0, 1)).collect());
    assert!(examine(&Case::new(&run)).is_none());
}

/// Thread 12 sends what 11 asks for, to a peer that has `worked` ms with each of 40 calls of 50 ms.
fn through_a_sender(worked: u64, requests: u64) -> Run {
    let pause = Account::Blocked(Blocked::TimerSleep);
    through_a_sender_to(pause, worked, requests)
}

/// The same to a peer that is in `rest` meanwhile.
fn through_a_sender_to(rest: Account, worked: u64, requests: u64) -> Run {
    let by_peer = WaitSum {
        waker_tgid: 90,
        ends: [(ChainEnd::Timer, 2 * SECOND)].into(),
        longest_end: Some((91, ChainEnd::Timer)),
        ..wait(10, POLL, 0, 40, 2 * SECOND)
    };
    let mut run = RunBuilder::new()
        .thread(11, 10, &[(POLL, 2 * SECOND)])
        .thread(12, 10, &[(POLL, 3 * SECOND)])
        .thread(91, 90, &[(rest, 2 * SECOND)])
        .wait(by_peer);
    for n in 0..40 {
        let mut of_sender = interval(12, POLL, 100 * n * MS, 49 * MS, Some(91));
        of_sender.waker.as_mut().unwrap().tgid = 90;
        run = run.kept(interval(11, POLL, 100 * n * MS, 50 * MS, Some(12))).kept(of_sender);
        // Its pause, which a timer ends while the peer has the CPU.
        let timer = Account::Blocked(Blocked::TimerSleep);
        let mut pause = interval(11, timer, (100 * n + 51) * MS, 9 * MS, Some(91));
        let waker = pause.waker.as_mut().unwrap();
        (waker.tgid, waker.context) = (90, Context::HardIrq);
        run = run.kept(pause);
    }
    let mut run = calls(run.build(), 40, 50 * MS);
    let at_peer = (0..requests).map(|n| {
        let mut one = request(1, 91, 100 * n, 0, worked);
        one.at_socket.as_mut().unwrap().tgid = 90;
        one
    });
    run = served(run, at_peer.collect());
    run.messages.programs.last_mut().unwrap().tgid = 90;
    run
}

#[test]
fn who_waits_for_a_thread_that_sends_for_it_waits_for_the_peer_that_works_on_it() {
    let run = through_a_sender(48, 40);
    let claim = examine(&Case::new(&run)).unwrap();
    assert_eq!((claim.lost.get(POLL), claim.waits), (2 * SECOND, 40));
    // An event loop that rests until a time is over may hold answers back until then.
    assert!(examine(&Case::new(&through_a_sender_to(POLL, 48, 40))).is_none());
    assert!(claim.title.ends_with("127.0.0.1:5432 (main-90, pid 90)"), "{}", claim.title);
    assert!(claim.chain.iter().any(|link| link.text.contains("slept by a timer of its own")));
    assert!(claim.doubts.is_empty(), "{:?}", claim.doubts);
}

/// The peer has jobs in a queue: nobody works on who waits for one.
#[test]
fn who_waits_for_a_thread_that_asks_for_something_to_do_is_idle() {
    assert!(examine(&Case::new(&through_a_sender(1, 40))).is_none());
    // Many quick requests of others, which take as long together.
    assert!(examine(&Case::new(&through_a_sender(2, 1200))).is_none());
}

#[test]
fn a_peer_that_takes_little_of_the_requests_is_none_to_blame() {
    assert!(crate::explain(&proxy(10)).findings.is_empty());
}

/// A proxy that has one connection for its requests, of which six are always in progress, for half of the
/// recording.
#[test]
fn requests_that_take_turns_at_a_peer_wait_for_it_all() {
    let mut run = RunBuilder::new().length(8 * SECOND);
    run = run.thread(11, 10, &[(POLL, 79 * SECOND / 10)]);
    let mut requests = Vec::new();
    for n in 0..120 {
        let mut one = request(n % 6, 11, 30 * n, 0, 180);
        one.at_socket.as_mut().unwrap().calls = vec![call(30 * n + 150, 30)];
        requests.push(one);
        run = run.kept(interval(11, POLL, 30 * n * MS, 30 * MS, None));
    }
    let run = calls(served(run.build(), requests), 120, 30 * MS);
    let found = crate::explain(&run);
    assert_eq!(found.findings[0].cause, "slow-peer");
    assert!(found.findings[0].title.contains("one call at a time"), "{:?}", found.findings);
    assert_eq!(found.findings[0].fix, TURNS);
    assert!(
        found.findings[0].requests.as_ref().unwrap().share() > 0.8,
        "they wait for those in front"
    );
}

/// The same with two connections, which are in use for so long one by one and both at once.
fn pool_of_two(one: u64, both: u64) -> Run {
    let mut run = RunBuilder::new().length(8 * SECOND);
    run = run.thread(11, 10, &[(POLL, 79 * SECOND / 10)]);
    let mut requests = Vec::new();
    for n in 0..120 {
        let mut request = request(n % 12, 11, 15 * n, 0, 180);
        request.at_socket.as_mut().unwrap().calls = vec![call(15 * n + 150, 30)];
        requests.push(request);
        run = run.kept(interval(11, POLL, 15 * n * MS, 15 * MS, None));
    }
    let mut run = calls(served(run.build(), requests), 120, 30 * MS);
    run.sums.services.last_mut().unwrap().calls_at_once = vec![one * MS, both * MS];
    run
}

#[test]
fn a_pool_whose_connections_are_all_in_use_makes_requests_wait_for_their_turn() {
    let found = crate::explain(&pool_of_two(100, 1_750)).findings;
    assert!(found[0].title.ends_with("2 calls at a time"), "{found:?}");
    assert!(found[0].requests.as_ref().unwrap().share() > 0.8, "{found:?}");
    let titles = |run| -> Vec<String> {
        crate::explain(&run).findings.into_iter().map(|finding| finding.title).collect()
    };
    let seldom = titles(pool_of_two(1_800, 900));
    assert!(seldom.iter().all(|title| !title.contains("turn")), "{seldom:?}");
    let mut made_up = pool_of_two(100, 1_750);
    made_up.sums.services.last_mut().unwrap().calls_at_once = vec![u64::MAX; 100];
    assert!(titles(made_up).iter().all(|title| !title.contains("turn")));
    let few_known = titles(pool_of_two(50, 900));
    assert!(few_known.iter().all(|title| !title.contains("turn")), "{few_known:?}");
}

/// What a peer may need is no reason to look at it.
#[test]
fn answers_that_come_soon_and_alike_are_doubted() {
    let doubts = |calls_ms: u64| {
        let found = crate::explain(&proxy(calls_ms)).findings;
        found[0].doubts.iter().any(|doubt| doubt.contains("what they need"))
    };
    assert!(!doubts(80));
    let mut quick = proxy(80);
    let totals = quick.messages.seconds.iter_mut();
    let total = totals.filter(|s| s.metric == model::MessageMetric::Total && s.program == PEER);
    for second in total {
        second.histogram = model::Histogram::new(model::histogram::PRECISION_KERNEL);
        (0..30).for_each(|_| second.histogram.record(6 * MS));
    }
    let found = crate::explain(&quick).findings;
    let is_doubted = |text: &String| text.contains("what they need");
    assert!(found[0].doubts.iter().any(is_doubted), "{:?}", found[0]);
}

/// Three in four requests are their call, and the others wait for something else, so that one call at a time is on
/// its way while four requests are in progress.
#[test]
fn requests_that_are_as_long_as_their_calls_wait_for_no_turn() {
    let titles = |call_ms: u64| -> Vec<String> {
        let mut run = RunBuilder::new().length(8 * SECOND);
        run = run.thread(11, 10, &[(POLL, 79 * SECOND / 10)]);
        let mut requests = Vec::new();
        for n in 0..120 {
            let mut one = request(n % 6, 11, 60 * n, 0, 60);
            one.at_socket.as_mut().unwrap().calls = vec![call(60 * n + 60 - call_ms, call_ms)];
            requests.push(one);
            requests.extend((n % 3 == 0).then(|| request(7, 11, 60 * n, 0, 900)));
            run = run.kept(interval(11, POLL, 60 * n * MS, 60 * MS, None));
        }
        let run = calls(served(run.build(), requests), 120, call_ms * MS);
        crate::explain(&run).findings.into_iter().map(|finding| finding.title).collect()
    };
    assert!(titles(59).iter().all(|title| !title.contains("turn")), "{:?}", titles(59));
    assert!(
        titles(30).iter().any(|title| title.contains("one call at a time")),
        "{:?}",
        titles(30)
    );
}

/// An event loop with two connections: what reads an answer sends the call of another request, so that
/// hardly a request has a call of its own. Its requests are there for `ms` each, and it sleeps for
/// `idle_ms` of 4 s.
fn loop_with_two(ms: u64, idle_ms: u64, both_ms: u64) -> Run {
    let accounts = [(POLL, idle_ms * MS), (USER, 4 * SECOND - idle_ms * MS)];
    let run = RunBuilder::new().thread(11, 10, &accounts).build();
    let mut requests: Vec<_> = (0..200).map(|n| request(n, 11, 19 * n, 0, ms)).collect();
    requests[100].at_socket.as_mut().unwrap().calls = vec![call(1_900, 15)];
    let mut run = calls(served(run, requests), 200, 35 * MS);
    let service = run.sums.services.last_mut().unwrap();
    service.calls_at_once = vec![7_000 * MS - 2 * both_ms * MS, both_ms * MS];
    run
}

#[test]
fn turns_are_seen_where_it_is_not_known_which_request_called() {
    let found = crate::explain(&loop_with_two(150, 3_500, 3_400)).findings;
    assert_eq!(found[0].cause, "slow-peer");
    assert!(found[0].title.ends_with("2 calls at a time"), "{found:?}");
    // Calls were on their way for 3.6 s: for so much of 3.5 s of sleep is no room beside them.
    assert_eq!(found[0].lost_ns, 3_100 * MS);
    assert!(found[0].requests.as_ref().unwrap().share() > 0.8, "{found:?}");
    assert!(found[0].chain.iter().any(|link| link.text.contains("only 1 of 200 requests")));
    // No more requests than calls, a loop that computes, connections that are seldom all in use.
    for run in [(36, 3_500, 3_400), (150, 300, 3_400), (150, 3_500, 1_000)] {
        let found = crate::explain(&loop_with_two(run.0, run.1, run.2)).findings;
        assert!(found.iter().all(|found| !found.title.contains("turn")), "{run:?}: {found:?}");
    }
}

/// Each of 30 requests calls five times in turn, for 75 of 90 ms; half of them have the calls of the others.
#[test]
fn where_it_is_not_known_which_request_called_the_part_is_that_of_all() {
    let slowest = |with: u64| {
        let mut run = RunBuilder::new().thread(11, 10, &[(POLL, 3 * SECOND), (USER, SECOND)]);
        let mut requests = Vec::new();
        for n in 0..30 {
            let mut one = request(n % 3, 11, 100 * n, 0, 90);
            if n < with {
                one.at_socket.as_mut().unwrap().calls = vec![call(100 * n, 30)];
            }
            requests.push(one);
            run = run.kept(interval(11, POLL, 100 * n * MS, 90 * MS, None));
        }
        let run = calls(served(run.build(), requests), 150, 15 * MS);
        let mut found = crate::explain(&run).findings;
        assert_eq!(found[0].cause, "slow-peer");
        (found[0].requests.take().unwrap().share() * 100.0).round()
    };
    assert_eq!(slowest(15), 83.0);
    assert_eq!(slowest(30), 33.0);
}

/// Two requests in five make all calls, ten each.
#[test]
fn few_requests_with_many_calls_are_no_calls_of_unknown_requests() {
    let mut run = RunBuilder::new().thread(11, 10, &[(POLL, 3 * SECOND), (USER, SECOND)]);
    let mut requests = Vec::new();
    for n in 0..60 {
        let takes = if n < 12 {
            55
        } else if n < 36 {
            25
        } else {
            2
        };
        let mut one = request(n % 3, 11, 60 * n, 0, takes);
        if (12..36).contains(&n) {
            let calls = (0..10).map(|k| call(60 * n + 2 * k, 2)).collect();
            one.at_socket.as_mut().unwrap().calls = calls;
        }
        requests.push(one);
        run = run.kept(interval(11, POLL, 60 * n * MS, 20 * MS, None));
    }
    let run = calls(served(run.build(), requests), 240, 2 * MS);
    let found = crate::explain(&run).findings;
    assert_eq!(found[0].cause, "slow-peer");
    let of_unknown = found[0].doubts.iter().any(|doubt| doubt.contains("which request"));
    assert!(!of_unknown, "{:?}", found[0].doubts);
}

/// Of 110 requests 30 were kept.
#[test]
fn an_event_loop_that_sleeps_while_calls_are_on_their_way_waits_for_them() {
    let lost = |at_once: Vec<u64>, calls_to_peer: usize| {
        let mut run = proxy(80);
        let totals = run.messages.seconds.iter_mut();
        let totals = totals.filter(|second| second.metric == model::MessageMetric::Total);
        totals.for_each(|second| (0..80).for_each(|_| second.histogram.record(90 * MS)));
        run.messages.seconds.retain(|second| second.program != PEER);
        run.messages.programs.retain(|program| program.program != PEER);
        run.sums.services.clear();
        let mut run = calls(run, calls_to_peer, 80 * MS);
        run.sums.services.last_mut().unwrap().calls_at_once = at_once;
        crate::explain(&run).findings[0].lost_ns
    };
    // It slept for 3 of 4 s, and calls were on their way for 3.8 s.
    assert_eq!(lost(vec![800 * MS, 800 * MS, 2_200 * MS], 110), 2_800 * MS);
    assert_eq!(lost(vec![800 * MS], 110), 30 * 80 * MS, "of few calls it is known");
}

/// Each request has the calls of others, as those of an event loop whose connections are all in use.
#[test]
fn calls_that_count_for_several_requests_are_of_one_each() {
    let mut run = proxy(80);
    let sample = run.messages.slow.iter().take(15).cloned();
    run.messages.fast =
        sample.map(|request| model::Message { sample: Some(0), ..request }).collect();
    let cost = |run: &Run| crate::explain(run).findings[0].requests.clone().unwrap();
    assert_eq!(cost(&run).ns, 30 * 80 * MS);
    let mut half = model::Histogram::new(model::histogram::PRECISION_KERNEL);
    (0..30).for_each(|_| half.record(40 * MS));
    run.messages.seconds.last_mut().unwrap().histogram = half;
    assert_eq!(cost(&run).ns / MS, 30 * 40);
}

#[test]
fn requests_that_do_not_show_how_long_they_took_are_known_by_their_calls() {
    let run = RunBuilder::new().thread(11, 10, &[(POLL, 39 * SECOND / 10)]).build();
    let requests = (0..100).map(|n| request(1, 11, 30 * n, 0, 1)).collect();
    let run = calls(served(run, requests), 90, 120 * MS);
    let found = crate::explain(&run);
    assert_eq!(found.findings[0].cause, "slow-peer");
    assert_eq!(found.findings[0].lost_ns, 39 * SECOND / 10, "no more than it slept");
    let beside = RunBuilder::new().thread(11, 10, &[(POLL, 39 * SECOND / 10)]).build();
    let requests = (0..100).map(|n| request(1, 11, 30 * n, 0, 1)).collect();
    let beside = calls(served(beside, requests), 4, 900 * MS);
    assert!(crate::explain(&beside).findings.is_empty(), "a long poll beside the requests");
}

/// A client whose waits for answers nobody ended who was recorded.
fn client(mean_ns: u64) -> Run {
    calls(waiting_client().build(), 100, mean_ns)
}

fn waiting_client() -> RunBuilder {
    let sum = WaitSum {
        asked: true,
        ends: [(ChainEnd::Outside, 2 * SECOND)].into(),
        ..wait(10, RECEIVE, 0, 100, 2 * SECOND)
    };
    RunBuilder::new().thread(10, 10, &[(RECEIVE, 3 * SECOND), (USER, SECOND)]).wait(sum)
}

/// Of a peer that nobody records it is not known whether it works on a call that long.
#[test]
fn calls_as_long_as_an_event_may_take_to_come_have_a_doubt() {
    let told = |ms: u64| {
        let mut requests = Vec::new();
        for n in 0..30 {
            let mut one = request(1, 11, 100 * n, 0, 2 * ms);
            one.at_socket.as_mut().unwrap().calls = vec![call(100 * n, ms)];
            requests.push(one);
        }
        let run = RunBuilder::new().thread(11, 10, &[(POLL, 3 * SECOND), (USER, SECOND)]);
        let claim = examine(&Case::new(&calls(served(run.build(), requests), 30, ms * MS)));
        claim.unwrap().doubts.iter().any(|doubt| doubt.text.contains("long polls"))
    };
    assert!(told(1_500) && !told(900));
}

/// 20 of its waits took as long as an acknowledgement is delayed, with a part still to be sent.
#[test]
fn the_peer_is_not_blamed_for_what_tcp_kept_from_it() {
    let mut connection = queue(SocketKind::Tcp, 0, 0, 0);
    connection.send = Depth { mean: 232, max: 232, ..Depth::default() };
    let run = waiting_client().counter("net.tcp_delayed_acks", 100, 125).queue(connection);
    let run = (0..20).fold(run, |run, n| {
        let mut wait = interval(10, RECEIVE, n * SECOND / 10, 44 * MS, None);
        wait.kind = OutlierKind::Syscall;
        let call = Syscall::named("recvfrom").unwrap();
        wait.syscall = Some(SyscallCall { call, args: [3, 0, 0, 0, 0, 0], result: Some(2) });
        run.kept(wait)
    });
    let run = calls(run.build(), 100, 20 * MS);
    let claim = examine(&Case::new(&run)).unwrap();
    assert_eq!(claim.lost.get(RECEIVE), 2 * SECOND - 20 * 44 * MS);
}

#[test]
fn a_client_of_a_slow_server_that_nobody_records_is_told_who_it_is() {
    let found = crate::explain(&client(20 * MS));
    assert_eq!(
        (found.findings[0].cause.as_str(), found.findings[0].lost_ns),
        ("slow-peer", 2 * SECOND)
    );
    assert!(found.findings[0].title.contains("(postgres, pid 90)"));
    assert!(found.findings[0].doubts.iter().any(|doubt| doubt.contains("long poll")));
    assert!(examine(&Case::new(&client(5_000))).is_none(), "that is what a call costs");
}
