//! Which intervals are kept together with messages.

use model::{Account, Accounts, Blocked, MessagePoint, OutlierKind, Target};

use super::*;

const MS: u64 = 1_000_000;

fn traced() -> Traced {
    let header = RunHeader {
        started_unix_ns: 0,
        started_ns: 0,
        target: Target::Host,
        follow: false,
        threshold_ns: MS,
        sampled: false,
        recorder_pid: 1,
        version: String::new(),
        ..RunHeader::default()
    };
    Traced::new(&header, None)
}

fn interval(tid: u32, start_ns: u64, duration_ns: u64) -> Outlier {
    let account = Account::Blocked(Blocked::Disk);
    Outlier {
        kind: OutlierKind::OffCpu,
        tid,
        tgid: 1,
        comm: String::new(),
        cpu: 0,
        start_ns,
        duration_ns,
        syscall: None,
        blocked: None,
        breakdown: [(account, duration_ns)].into_iter().collect::<Accounts>(),
        object: 0,
        fault_ip: None,
        kernel_stack: None,
        user_stack: None,
        waker: None,
        ran_instead: Vec::new(),
        holder: None,
        timer: None,
        interrupts: None,
        first_call: None,
    }
}

fn message(t0_ns: u64, end_ns: u64, sample: Option<u32>) -> Message {
    Message {
        program: 0,
        flow: 1,
        id: 1,
        sample,
        t0_ns,
        logic_start_ns: t0_ns,
        end_ns,
        tid: 7,
        points: vec![MessagePoint { point: 0, time_ns: t0_ns, tid: Some(8) }],
        published: Vec::new(),
        publishes: 0,
        longest_gap_ns: 0,
        depth: None,
        ahead: Vec::new(),
        kept_ns: 0,
        at_socket: None,
    }
}

fn completed(traced: &mut Traced, heartbeat_ns: u64, outliers: Vec<Outlier>) -> Vec<u64> {
    let mut batch = Batch { heartbeat_ns, outliers, ..Batch::default() };
    traced.complete(&mut batch);
    batch.outliers.iter().map(|outlier| outlier.start_ns).collect()
}

#[test]
fn short_intervals_are_kept_in_messages_whichever_comes_first() {
    let mut traced = traced();
    traced.kept.push((0, MS / 10));
    let slow = message(10 * MS, 14 * MS, None);
    let fast = message(20 * MS, 21 * MS, Some(0));
    traced.take(Messages { slow: vec![slow], fast: vec![fast], ..Messages::default() });
    let short = MS / 5;
    let outliers = vec![
        interval(9, MS, 2 * MS),     // long
        interval(9, 9 * MS, short),  // before the slow one
        interval(9, 13 * MS, short), // of another thread, but in a slow one
        interval(9, 20 * MS, short), // of another thread, and in a fast one
        interval(8, 20 * MS, short), // of a thread of the fast one
        interval(7, 30 * MS, short), // in a message that is read later
    ];
    let kept = completed(&mut traced, 40 * MS, outliers);
    assert_eq!(kept, [MS, 13 * MS, 20 * MS]);
    let later = message(29 * MS, 35 * MS, None);
    traced.take(Messages { slow: vec![later], ..Messages::default() });
    assert_eq!(completed(&mut traced, 41 * MS, Vec::new()), [30 * MS]);
}

#[test]
fn a_message_says_from_which_length_on_its_intervals_are_there() {
    let mut traced = traced();
    traced.kept.push((50 * MS, MS / 10));
    traced.kept.push((80 * MS, MS / 5));
    let kept = |traced: &Traced, from, to| traced.kept_over(&message(from * MS, to * MS, None));
    assert_eq!(kept(&traced, 10, 20), MS, "before");
    assert_eq!(kept(&traced, 40, 60), MS, "it began before");
    assert_eq!(kept(&traced, 55, 60), MS / 10);
    assert_eq!(kept(&traced, 55, 90), MS / 5, "fewer were asked for meanwhile");
    traced.forgotten_ns = 70 * MS;
    assert_eq!(kept(&traced, 55, 60), MS, "the short ones are gone");
}

#[test]
fn too_many_intervals_are_answered_by_asking_for_longer_ones() {
    let mut traced = traced();
    traced.kept.push((0, MS / 10));
    let many: Vec<Outlier> = (0..30_000).map(|n| interval(7, n, MS / 5)).collect();
    completed(&mut traced, 1_000 * MS, many);
    assert_eq!(traced.floor_ns, MS / 5);
    completed(&mut traced, 2_000 * MS, vec![interval(7, 1, MS / 5)]);
    assert_eq!(traced.floor_ns, MS / 5, "once they are few it stays");
    assert!(traced.short.len() <= WAITING);
}
