//! Who was asked and has not answered when the recording ends is named, whether that was asked before
//! the recording or meanwhile.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::process::{Command, Stdio};

use common::programs::program;
use common::values::Values;
use common::{Helper, Lab};
use model::MessageMetric;
use serde_json::Value;

/// A second is the least that is told.
const TIME: &str = "1300ms";
const LEAST_NS: u64 = 1_200_000_000;

/// The program says where it asks once it has asked.
fn asked(arguments: &[&str]) -> (Helper, String) {
    let mut command = Command::new(program("unanswered"));
    let mut helper = Helper::spawn(command.args(arguments).stdout(Stdio::piped()));
    let mut line = String::new();
    BufReader::new(helper.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    (helper, line.trim().strip_prefix("asked ").unwrap().to_owned())
}

/// The only one that has not answered: its address, how long it has not, and whether it never did.
fn silent(answer: &Value) -> (String, u64, bool) {
    let [silent] = &answer["unanswered"].as_array().unwrap()[..] else { panic!("{answer}") };
    assert_eq!(silent["connections"], 1);
    let text = |key: &str| silent[key].as_str().unwrap().to_owned();
    (text("to"), silent["ns"].as_u64().unwrap(), silent["never"] == 1)
}

#[test]
fn what_was_asked_before_the_recording_is_told_from_what_was_answered() {
    let Some(lab) = Lab::new() else { return };
    for (heard, never) in [("0", true), ("3", false)] {
        let (client, address) = asked(&[heard, "30"]);
        lab.record_target(&["-p", &client.pid(), "--time", TIME]);
        let answer = lab.explain();
        let (to, ns, has_never) = silent(&answer);
        assert_eq!((to, has_never), (address, never), "{answer}");
        assert!(ns >= LEAST_NS, "{ns}");
        let text = String::from_utf8(lab.answer("explain", &[])).unwrap();
        assert!(text.contains("unless unanswered (pid "), "{text}");
    }
}

#[test]
fn what_is_asked_while_it_is_recorded_is_told_too() {
    let Some(lab) = Lab::new() else { return };
    let program = program("unanswered");
    for (heard, never) in [("0", true), ("3", false)] {
        let command = [program.as_os_str(), heard.as_ref(), "4".as_ref()];
        let recorded = lab.record(&["--time", "2500ms"], command);
        let answer = lab.explain();
        let (to, ns, has_never) = silent(&answer);
        let address = recorded.stdout().trim().strip_prefix("asked ").unwrap();
        assert_eq!((to.as_str(), has_never), (address, never), "{answer}");
        assert!(ns >= LEAST_NS, "{ns}");
    }
}

/// A call ends where whoever called closes the connection; what has no answer is none.
#[test]
fn calls_that_are_given_up_end_with_their_connections() {
    let Some(lab) = Lab::new() else { return };
    let program = program("gives_up");
    let recorded = lab.record(&[], [program.as_os_str(), "12".as_ref()]);
    let own = Values::of(recorded.stdout());
    assert_eq!(own.get("given_up"), 12);
    let name = format!("127.0.0.1:{}", own.get("port"));
    let services = &recorded.run.sums.services;
    let service = services.iter().find(|service| service.name == name).unwrap();
    let calls = recorded.run.messages.histogram(service.program, 1, MessageMetric::Total);
    assert_eq!((service.given_up, calls.count()), (12, 12), "{service:?}");
    assert!(calls.min().unwrap() >= 95_000_000, "{calls:?}");
    let answer = lab.explain();
    let first = &answer["findings"][0];
    assert_eq!(first["cause"], "slow-peer", "{answer}");
    assert!(first["title"].as_str().unwrap().contains(&name), "{first}");
}

/// Packets of UDP that nobody answers are told of a server that owes answers, not of one that only reports.
#[test]
fn packets_that_nobody_answers_are_told_where_an_answer_is_owed() {
    let Some(lab) = Lab::new() else { return };
    for (how, is_told) in
        [("named", true), ("connected", true), ("answers", false), ("several", false)]
    {
        let program = program("udp_relay");
        let recorded = lab.record(&[], [program.as_os_str(), how.as_ref(), "2".as_ref()]);
        let own = Values::of(recorded.stdout());
        let answer = lab.explain();
        let told = answer["unanswered"].as_array().unwrap();
        println!("{how}: {}, {told:?}", recorded.stdout().trim());
        if is_told {
            let [silent] = &told[..] else { panic!("{how}: {answer}") };
            assert_eq!(silent["to"], format!("UDP 127.0.0.1:{}", own.get("silent")));
            assert_eq!(silent["packets"], own.get("packets"));
            assert!(silent["ns"].as_u64().unwrap() > 1_900_000_000, "{silent}");
        } else {
            assert_eq!(told.len(), 0, "{how}: {answer}");
        }
    }
}

/// A thread that waits for a peer which answers no packet has lost that time, whether its socket has a peer or not.
#[test]
fn who_waits_for_packets_that_never_come_waits_for_the_peer() {
    let Some(lab) = Lab::new() else { return };
    let program = program("udp_relay");
    let recorded = lab.record(&[], [program.as_os_str(), "waits".as_ref(), "2".as_ref()]);
    let own = Values::of(recorded.stdout());
    let answer = lab.explain();
    let first = &answer["findings"][0];
    assert_eq!(first["cause"], "slow-peer", "{answer}");
    let end = format!("waits for answers of UDP 127.0.0.1:{}, which never come", own.get("silent"));
    assert!(first["title"].as_str().unwrap().ends_with(&end), "{first}");
    let lost_ns = first["lost_ns"].as_u64().unwrap();
    assert!(lost_ns > 95_000_000 * own.get("packets"), "{lost_ns}, {}", recorded.stdout());
}

/// A walk over so many files takes some milliseconds, so that searches for sockets are a second apart.
const MANY_FILES: &str = "18000";
const LOOKUPS: usize = 16;

#[test]
fn sockets_that_are_gone_before_the_next_search_for_sockets_are_seen() {
    let Some(lab) = Lab::new() else { return };
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let server = silent.local_addr().unwrap();
    let (program, port) = (program("brief_sockets"), server.port().to_string());
    let (lookups, port) = (LOOKUPS.to_string(), port.as_str());
    let command = [program.as_os_str(), MANY_FILES.as_ref(), lookups.as_ref(), port.as_ref()];
    let recorded = lab.record(&[], command);
    let used: BTreeSet<String> = recorded.stdout().lines().map(str::to_owned).collect();
    assert_eq!(used.len(), LOOKUPS);
    let sockets = recorded.run.sockets.queues.iter().map(|second| &second.socket);
    let of_server = sockets.filter(|socket| socket.address.remote == Some(server));
    let seen: BTreeSet<String> = of_server
        .filter_map(|s| Some(format!("{} {} {}", s.inode, s.fd, s.address.local?.port())))
        .collect();
    assert!(seen.is_subset(&used), "{seen:?} of {used:?}");
    let walk = recorded.run.facts.iter().find(|fact| fact.name == "recorder.socket_walk").unwrap();
    // A look comes 2 times or more in the life of each, unless others take the CPUs. Where looks go over
    // the files, too, they are as rare as searches.
    let least = if walk.value.starts_with("over the notes") { LOOKUPS * 3 / 4 } else { 1 };
    assert!(seen.len() >= least, "{seen:?} of {used:?}");
}
