//! Kernel records into model types.

use std::collections::HashMap;

use model::{
    Account, Accounts, FirstCall, Holder, Interrupts, Outlier, OutlierKind, Runner, StackId,
    Syscall, SyscallCall, ThreadAccounts, TimerLegs, Waker,
};

use crate::bpf::{self, outlier_record, sleep, thread_record};
use crate::wire;

/// Time in calls that were evicted from a thread's slots: (tid, first_ns) -> (call, ns).
pub type EvictedCalls = HashMap<(u32, u64), Vec<(u16, u64)>>;

/// A thread's accounts up to the moment of the record, or to `until_ns` if recording stopped before.
///
/// `None` if the parts were read while the thread moved on, so that they do not belong together:
/// the next record will be right. For a thread that stands still they always do.
pub fn thread(
    record: &thread_record,
    evicted: &EvictedCalls,
    until_ns: u64,
) -> Option<ThreadAccounts> {
    let mut accounts = Accounts::new();
    for (number, ns) in record.accounts.iter().enumerate() {
        accounts.add(wire::account(number as u64, wire::call(record.open_call)), *ns);
    }
    for slot in record.calls.iter().filter(|slot| slot.used != 0) {
        accounts.add(Account::Syscall(Syscall(slot.nr)), slot.ns);
    }
    for (call, ns) in evicted.get(&(record.tid, record.first_ns)).into_iter().flatten() {
        accounts.add(Account::Syscall(Syscall(*call)), *ns);
    }
    if record.first_ns.checked_add(accounts.total())? != record.since {
        return None;
    }
    let open = wire::account(record.open, wire::call(record.open_call));
    let last_ns = record.now.min(until_ns).max(record.since);
    if record.alive != 0 {
        accounts.add(open, last_ns.saturating_sub(record.since));
    }
    Some(ThreadAccounts {
        tid: record.tid,
        tgid: record.tgid,
        comm: bpf::text(&record.comm),
        first_ns: record.first_ns,
        last_ns: record.first_ns.saturating_add(accounts.total()),
        alive: record.alive != 0,
        open,
        accounts,
        minor_faults: record.minor_faults,
        major_faults: record.major_faults,
        sleeps: record.sleeps,
        preemptions: record.preemptions,
        migrations: record.migrations,
        realtime: record.realtime,
    })
}

/// An outlier; `None` if its kind is not known.
pub fn outlier(record: &outlier_record) -> Option<Outlier> {
    let kind = wire::outlier_kind(record.kind)?;
    let call = wire::call(record.call);
    let sleep = &record.sleep;
    Some(Outlier {
        kind,
        tid: record.tid,
        tgid: record.tgid,
        comm: bpf::text(&record.comm),
        cpu: record.cpu,
        start_ns: record.start_ns,
        duration_ns: record.duration_ns,
        syscall: call.map(|call| SyscallCall {
            call,
            args: record.args,
            result: (record.has_result != 0).then_some(record.result),
        }),
        blocked: match wire::account(sleep.account, call) {
            Account::Blocked(kind) => Some(kind),
            _ => None,
        },
        breakdown: match kind {
            OutlierKind::OffCpu | OutlierKind::RunQueue => sleep_breakdown(record),
            OutlierKind::LockHold => {
                Accounts::from_iter([(Account::Unaccounted, record.duration_ns)])
            }
            _ => breakdown(record),
        },
        object: sleep.object,
        fault_ip: (sleep.fault_ip != 0).then_some(sleep.fault_ip),
        kernel_stack: stack_id(sleep.kernel_stack),
        user_stack: stack_id(record.user_stack),
        waker: waker(sleep),
        ran_instead: ran_instead(sleep),
        holder: holder(sleep, record.start_ns),
        timer: timer(sleep),
        interrupts: interrupts(sleep),
        first_call: (kind == OutlierKind::FirstCall).then_some(FirstCall {
            minor_faults: record.minor_faults,
            major_faults: record.major_faults,
            left: None,
        }),
    })
}

fn breakdown(record: &outlier_record) -> Accounts {
    let numbered = record.breakdown.iter().enumerate();
    let call = wire::call(record.call);
    numbered.map(|(number, ns)| (wire::account(number as u64, call), *ns)).collect()
}

/// Asleep, then ready to run; one that was never asleep was ready all the time.
fn sleep_breakdown(record: &outlier_record) -> Accounts {
    let sleep = &record.sleep;
    let account = wire::account(sleep.account, wire::call(record.call));
    let asleep = match account {
        Account::Blocked(_) => sleep.wake.saturating_sub(sleep.start).min(sleep.ns),
        _ => sleep.ns,
    };
    let ready = sleep.ns - asleep;
    let throttled = record.throttled.min(ready);
    let parts = [
        (account, asleep),
        (Account::Throttled, throttled),
        (Account::RunnableWakeup, ready - throttled),
    ];
    parts.into_iter().filter(|(_, ns)| *ns > 0).collect()
}

/// Identity of a stack; 0 is none.
pub fn stack_id(id: u64) -> Option<StackId> {
    (id != 0).then_some(StackId(id))
}

fn waker(sleep: &sleep) -> Option<Waker> {
    let slept = matches!(wire::account(sleep.account, None), Account::Blocked(_));
    (slept && sleep.waker.comm[0] != 0).then(|| Waker {
        tid: sleep.waker.tid,
        tgid: sleep.waker.tgid,
        comm: bpf::text(&sleep.waker.comm),
        context: wire::context(sleep.waker_context),
    })
}

/// Who was on the CPU between being ready to run and running.
fn ran_instead(sleep: &sleep) -> Vec<Runner> {
    let end = sleep.start.saturating_add(sleep.ns);
    let mut runners: Vec<Runner> = Vec::new();
    for ran in sleep.ran.iter().take(usize::from(sleep.ran_count)) {
        let ns = ran.until.min(end).saturating_sub(ran.since.max(sleep.wake));
        match runners
            .iter_mut()
            .find(|runner| runner.tid == ran.who.tid && runner.realtime == ran.realtime)
        {
            Some(runner) => runner.ns = runner.ns.saturating_add(ns),
            None if ns > 0 => runners.push(Runner {
                tid: ran.who.tid,
                tgid: ran.who.tgid,
                comm: bpf::text(&ran.who.comm),
                realtime: ran.realtime,
                ns,
            }),
            None => {}
        }
    }
    runners.sort_by_key(|runner| std::cmp::Reverse(runner.ns));
    runners
}

fn holder(sleep: &sleep, start_ns: u64) -> Option<Holder> {
    let hold = &sleep.holder;
    (hold.until > hold.since && hold.since >= start_ns).then(|| Holder {
        tid: hold.who.tid,
        tgid: hold.who.tgid,
        comm: bpf::text(&hold.who.comm),
        write: hold.write != 0,
        call: wire::call(hold.call),
        overlap_ns: hold.until - hold.since,
    })
}

fn timer(sleep: &sleep) -> Option<TimerLegs> {
    let timer = &sleep.timer;
    (timer.fired != 0).then(|| TimerLegs {
        softexpires_ns: (timer.jiffies == 0).then_some(timer.softexpires),
        expires_ns: timer.expires,
        fired_ns: timer.fired,
        was_idle: timer.was_idle != 0,
    })
}

fn interrupts(sleep: &sleep) -> Option<Interrupts> {
    let longest = &sleep.longest;
    (sleep.served_ns != 0).then(|| Interrupts {
        ns: sleep.served_ns,
        longest: wire::interrupt_name(longest.kind, longest.id),
        longest_ns: longest.until.saturating_sub(longest.since),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> thread_record {
        let mut record = thread_record { tid: 5, first_ns: 1_000, alive: 1, ..Default::default() };
        record.accounts[wire::Account::User as usize] = 300;
        record.accounts[wire::Account::Poll as usize] = 150;
        record.calls[0].nr = 0;
        record.calls[0].used = 1;
        record.calls[0].ns = 50;
        record.since = 1_500;
        record.now = 1_700;
        record.open = wire::Account::Futex as u32;
        record.open_call = 202;
        record
    }

    #[test]
    fn accounts_sum_to_the_wall_time_and_the_open_one_is_extended() {
        let thread = thread(&record(), &EvictedCalls::new(), u64::MAX).unwrap();
        assert_eq!(thread.accounts.total(), thread.wall_ns());
        assert_eq!(thread.wall_ns(), 700);
        assert_eq!(thread.accounts.get(thread.open), 200);
        assert_eq!(thread.open.to_string(), "blocked:futex");
    }

    #[test]
    fn parts_that_do_not_belong_together_are_refused() {
        let mut torn = record();
        torn.accounts[1] += 1;
        assert!(thread(&torn, &EvictedCalls::new(), u64::MAX).is_none());
        let evicted = EvictedCalls::from([((5, 1_000), vec![(7, 100)])]);
        assert!(thread(&record(), &evicted, u64::MAX).is_none());
        let mut whole = record();
        whole.since += 100;
        assert!(thread(&whole, &evicted, u64::MAX).is_some());
    }

    #[test]
    fn times_that_no_clock_gives_are_no_panic() {
        let mut record = outlier_record { kind: 1, ..Default::default() };
        record.sleep.start = 5_000;
        record.sleep.wake = 4_000;
        record.sleep.ns = u64::MAX - 10;
        record.sleep.ran_count = 2;
        for ran in &mut record.sleep.ran[..2] {
            (ran.since, ran.until) = (0, u64::MAX);
        }
        assert_eq!(outlier(&record).unwrap().ran_instead[0].ns, u64::MAX);
    }

    #[test]
    fn a_sleep_is_divided_where_it_was_woken() {
        let of = |account: wire::Account, throttled| {
            let mut record = outlier_record { kind: 1, throttled, ..Default::default() };
            record.sleep = sleep {
                start: 100,
                wake: 400,
                ns: 500,
                account: account as u32,
                ..sleep::default()
            };
            outlier(&record).unwrap().breakdown
        };
        let futex = Account::Blocked(model::Blocked::Futex);
        let parts = |accounts: &Accounts| {
            [futex, Account::Throttled, Account::RunnableWakeup]
                .map(|account| accounts.get(account))
        };
        assert_eq!(parts(&of(wire::Account::Futex, 150)), [300, 150, 50]);
        assert_eq!(parts(&of(wire::Account::Futex, 900)), [300, 200, 0], "no more than there was");
        let ready = of(wire::Account::RunnableWakeup, 0);
        assert_eq!((parts(&ready), ready.total()), ([0, 0, 500], 500));
    }

    #[test]
    fn only_the_part_after_the_wakeup_counts_as_run_instead() {
        let mut sleep =
            sleep { start: 100, wake: 200, ns: 400, ran_count: 3, ..Default::default() };
        sleep.ran[0].who.tid = 8;
        (sleep.ran[0].since, sleep.ran[0].until) = (300, 500);
        sleep.ran[1].who.tid = 9;
        (sleep.ran[1].since, sleep.ran[1].until) = (250, 300);
        sleep.ran[2].who.tid = 8;
        (sleep.ran[2].since, sleep.ran[2].until) = (50, 250);
        let runners = ran_instead(&sleep);
        assert_eq!(runners.len(), 2);
        assert_eq!((runners[0].tid, runners[0].ns), (8, 250));
        assert_eq!((runners[1].tid, runners[1].ns), (9, 50));
    }
}
