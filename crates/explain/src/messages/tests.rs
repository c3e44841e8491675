//! Breakdowns of made-up messages.

use model::{Blocked, MessageFlow, MessagePoint, MessagePublish, Messages, TracedProgram};

use super::*;
use crate::testing::{RunBuilder, interval};

const DISK: Account = Account::Blocked(Blocked::Disk);

/// Receipt at `t0`; journalled by thread 3 10 us later, logic 5 us after that, which
/// publishes at once and ends after `logic`.
fn message(id: u64, t0: u64, logic: u64) -> Message {
    Message {
        program: 0,
        flow: 1,
        id,
        sample: None,
        t0_ns: t0,
        logic_start_ns: t0 + 15_000,
        end_ns: t0 + 15_000 + logic,
        tid: 9,
        points: vec![MessagePoint { point: 0, time_ns: t0 + 10_000, tid: Some(3) }],
        published: vec![MessagePublish { publish: Some(0), time_ns: t0 + 16_000 }],
        publishes: 1,
        longest_gap_ns: 1_000,
        depth: None,
        ahead: Vec::new(),
        kept_ns: 1_000,
        at_socket: None,
    }
}

fn traced(messages: Vec<Message>) -> Run {
    let flow = MessageFlow {
        flow: 1,
        name: "order".into(),
        points: vec!["journalled".into()],
        publishes: vec!["fill".into()],
        ..MessageFlow::default()
    };
    let program = TracedProgram { flows: vec![flow], ..TracedProgram::default() };
    let mut run = RunBuilder::new().build();
    run.messages = Messages { programs: vec![program], slow: messages, ..Messages::default() };
    run
}

#[test]
fn the_accounts_of_a_message_sum_to_its_total() {
    let mut run = traced(vec![message(7, 100_000, 4_000_000)]);
    // Of the logic, then of the journaller before it had the message, and of a third thread.
    run.outliers = vec![
        interval(9, DISK, 200_000, 3_600_000, None),
        interval(9, Account::RunnableWakeup, 3_800_000, 100_000, None),
        interval(3, DISK, 90_000, 15_000, None),
        interval(5, DISK, 100_000, 4_000_000, None),
    ];
    let all = break_down(&run, &run.messages.slow);
    let parts: Vec<(&str, u64)> = all[0].parts.iter().map(|p| (p.name.as_str(), p.ns)).collect();
    assert_eq!(
        parts,
        [
            ("to journalled", 10_000),
            ("to logic start", 5_000),
            ("gap to fill", 1_000),
            ("to the end", 3_999_000)
        ]
    );
    for part in &all[0].parts {
        assert_eq!(part.time.iter().map(|time| time.ns).sum::<u64>(), part.ns, "{part:?}");
    }
    let sum: u64 = all[0].parts.iter().map(|part| part.ns).sum();
    assert_eq!(sum, all[0].message.total_ns());
    let of = |part: usize| -> Vec<(Option<Account>, u64)> {
        all[0].parts[part].time.iter().map(|time| (time.account, time.ns)).collect()
    };
    assert_eq!(of(0), [(Some(DISK), 5_000), (None, 5_000)], "cut to the part");
    assert_eq!(
        of(3),
        [(Some(DISK), 3_600_000), (None, 299_000), (Some(Account::RunnableWakeup), 100_000)]
    );
}

#[test]
fn slow_messages_are_told_apart_by_what_the_others_lack() {
    let slow = [message(1, 1_000_000, 900_000), message(2, 5_000_000, 1_100_000)];
    let fast = [message(3, 9_000_000, 50_000), message(4, 9_500_000, 50_000)];
    let mut run = traced(Vec::new());
    run.outliers = vec![
        interval(9, DISK, 1_100_000, 800_000, None),
        interval(9, DISK, 5_100_000, 1_000_000, None),
        // All journal alike.
        interval(3, DISK, 1_000_000, 9_000, None),
        interval(3, DISK, 5_000_000, 9_000, None),
        interval(3, DISK, 9_000_000, 9_000, None),
        interval(3, DISK, 9_500_000, 9_000, None),
    ];
    let contrast = contrast(&break_down(&run, &slow), &break_down(&run, &fast));
    let first = &contrast[0];
    assert_eq!((first.part.to_string().as_str(), first.account), ("to the end", Some(DISK)));
    assert_eq!((first.slow.with, first.slow.n), (2, 2));
    assert_eq!((first.fast.with, first.fast.n), (0, 2));
    assert!((first.difference_ns() - 900_000.0).abs() < 1.0, "{first:?}");
    assert!(contrast.iter().all(|c| c.part.to_string() != "to journalled"), "{contrast:?}");
}

#[test]
fn each_flow_of_a_run_is_compared_with_its_own_control_group() {
    let slow = vec![message(1, 1_000_000, 900_000), message(2, 5_000_000, 1_100_000)];
    let other_flow = Message { flow: 2, tid: 8, ..message(9, 20_000_000, 700_000) };
    let mut run = traced([slow, vec![other_flow]].concat());
    let second =
        MessageFlow { flow: 2, name: "quote".into(), ..run.messages.programs[0].flows[0].clone() };
    run.messages.programs[0].flows.push(second);
    run.messages.fast = vec![message(3, 9_000_000, 50_000)];
    let windows = run.messages.windows();
    assert!(windows.iter().any(|window| window.tid == Some(9) && window.from_ns == 1_010_000));
    assert!(windows.iter().any(|window| window.to_ns == 9_000_000 + 15_000 + 50_000), "control");

    run.outliers = vec![interval(9, DISK, 1_100_000, 800_000, None)];
    let found = slow_messages(&run);
    let ids: Vec<u64> = found.slowest.iter().map(|one| one.message.id).collect();
    assert_eq!(ids, [1, 2, 9]);
    let [(order, more), (quote, none)] = &found.contrasts[..] else { panic!("{found:#?}") };
    assert_eq!((order.as_str(), quote.as_str()), ("order", "quote"));
    let disk = more.iter().find(|one| one.account == Some(DISK)).unwrap();
    assert_eq!((disk.slow.n, disk.slow.with, disk.fast.n), (2, 1, 1));
    assert!(none.is_empty(), "a flow without a control group: {none:?}");
}
