//! futex-convoy: threads queue for a user-space lock that is handed from waiter to waiter.
//!
//! A futex wait says nothing of its purpose. A futex word is taken for a lock if most waits on it expect
//! the value "locked, with waiters", or are ended by a thread that has waited on the same word.
//!
//! # Evidence
//!
//! Sleeps in futex on words that behave like locks. Of each word: how many waits asked for the
//! value that means locked with waiters, how many were ended by a thread that had waited there
//! itself, mean and longest wait. Where threads wait on words of their own, and in functions that are for a
//! lock alone, these names tell: Java's monitors, rows of InnoDB, tables of MariaDB and MySQL. Each wait is
//! broken down by what the lock holder did meanwhile (on-CPU, run queue, disk, another lock): the fix
//! follows that. Who waits until a timeout, looks, and waits again (Python, Ruby) waits for the thread that
//! ends other waits for the same words and is busy nearly all the time. A holder that waits for an answer
//! which it has asked for on a socket goes on with it, whether the peer is recorded or not: so of a pool of
//! connections that is too small for its threads. Where the holder waited for a CPU, was throttled or
//! stopped, the time is left to those causes; but where CPUs were idle and such waits short, they are what it
//! costs to hand the lock on, and so is the waiting for a CPU of those that it let go on. The longest are
//! followed from the waiter to the thread that ended the wait.
//!
//! # Without whylag
//!
//!     perf trace -s -e futex -p PID
//!     strace -f -T -e trace=futex -p PID
//!     bpftrace -e 'tracepoint:syscalls:sys_enter_futex /pid == PID/ { @[args->uaddr] = count(); }'
//!
//! # Sources
//!
//! futex(2); futex(7); kernel/futex/waitwake.c.

mod fixes;
mod handing_on;

use std::cmp::Reverse;

use model::{
    Account, Accounts, Blocked, ChainEnd, Metric, Outlier, RecorderPart, Syscall, ThreadAccounts,
    WaitSum,
};

use self::handing_on::HandingOn;
use crate::case::Case;
use crate::case::beyond::{Holders, Whose};
use crate::case::chain_ends::is_holders;
use crate::case::in_words::{in_words, stacks};
use crate::case::lock_word::LockWord;
use crate::case::looks::{HasIt, did, doubt_looks};
use crate::case::purposes::is_of_transactions;
use crate::case::stuck::{Stuck, stuck};
use crate::case::turns;
use crate::cause::{Absent, Cause, Claim, LookAlike, Needs, Verdict};
use crate::causes::ids;
use crate::text::{count, counted, duration, mean, percent, quantiles};

pub const CAUSE: Cause = Cause {
    id: ids::FUTEX_CONVOY,
    title: "threads queue for a user-space lock",
    fix: "Hold the lock for less time (no system call, no allocation, no logging inside it), split \
          it (one per shard or per thread), or let fewer threads need it.",
    reproduce: "mysteries/bin/futex-convoy-faulty 5",
    needs: Needs::parts(&[RecorderPart::Threads]),
    look_alikes: &[
        LookAlike {
            cause: ids::BLOCKED_LOG_PIPE,
            tell_apart: "send the program's output to /dev/null and record again: waits behind a \
                         thread that logs go, a convoy stays",
            mutual: true,
        },
        LookAlike {
            cause: ids::MMAP_LOCK,
            tell_apart: "see what the owner of the lock slept for: record with a lower --threshold \
                         and follow the waker of the longest futex wait",
            mutual: false,
        },
        LookAlike {
            cause: ids::FILE_LOCK,
            tell_apart: "see the call that the waiting threads sleep in ('strace -f -p PID'): \
                         flock or fcntl waits for a file, futex for a lock in memory",
            mutual: true,
        },
        LookAlike {
            cause: ids::PRIORITY_INVERSION,
            tell_apart: "give the lock PTHREAD_PRIO_INHERIT and record again: an inversion goes, a \
                         convoy stays",
            mutual: true,
        },
    ],
    symptom: true,
    examine,
};

const FUTEX: Account = Account::Blocked(Blocked::Futex);

/// What the waits for a lock are lost to whatever held it; all of them where that is not known.
fn own_ns(word: &LockWord) -> u64 {
    match word.ends.total() {
        0 => word.lost_ns(),
        _ => word.ends.part_of(word.lost_ns(), is_holders),
    }
}

/// All of these waits and what handing the locks on costs, of each account no more than was lost in it.
fn claimed(case: &Case, locks: &[&LockWord], handing_on: &HandingOn) -> Accounts {
    let mut all: Accounts = locks.iter().map(|word| (word.account, own_ns(word))).collect();
    all.merge(&handing_on.accounts());
    all.iter().map(|(account, ns)| (account, ns.min(case.lost.get(account)))).collect()
}

/// `; longest in such a wait: transfer-0 (tid 12), ...`.
fn stuck_in_words(case: &Case, word: &LockWord) -> String {
    let of_word = |wait: &&WaitSum| {
        (wait.tgid, wait.account, wait.object) == (word.tgid, word.account, word.address)
    };
    let waits = || case.run.sums.waits.iter().filter(of_word);
    // Of several threads that have waited so none has its number in the sums.
    let are_known = waits().next().is_some() && waits().all(|wait| wait.waiter_tid != 0);
    let waited = |t: &&ThreadAccounts| {
        t.tgid == word.tgid
            && t.accounts.get(word.account) > 0
            && (!are_known || waits().any(|wait| wait.waiter_tid == t.tid))
    };
    let mut longest: Vec<_> = case.run.threads.iter().filter(waited).collect();
    longest.sort_by_key(|thread| Reverse(thread.accounts.get(word.account)));
    if longest.is_empty() {
        return String::new();
    }
    let named = longest.iter().take(STUCK_SHOWN).map(|t| format!("{} (tid {})", t.comm, t.tid));
    let more = if longest.len() > STUCK_SHOWN { ", ..." } else { "" };
    format!("; longest in such a wait: {}{more}", named.collect::<Vec<_>>().join(", "))
}

const HELD_BACK: &str = "the holder may have asked for something to do, and its peer have nothing: then those \
                         behind it wait for work";

/// Words worth a line.
const WORDS_SHOWN: usize = 3;
/// Threads worth a name.
const STUCK_SHOWN: usize = 5;

fn examine(case: &Case) -> Verdict {
    let all = case.accounts.get(FUTEX);
    let locks: Vec<&LockWord> = case.locks.iter().filter(|word| own_ns(word) > 0).collect();
    let asleep_ns = locks.iter().map(|word| own_ns(word)).fold(0, u64::saturating_add);
    let handing_on = HandingOn::of(case, &locks, asleep_ns);
    let claimed = claimed(case, &locks, &handing_on);
    let lost = claimed.sum_of(|account| !account.is_runnable());
    let Some(first) = locks.first().filter(|_| lost > 0) else {
        return Err(Absent(match case.locks.first() {
            None => format!(
                "of {} in futex waits, none was on a word that behaves like a contended lock",
                duration(all)
            ),
            Some(word) => format!(
                "who had the {} could not go on all that time: it {}",
                described(word),
                word.ends.in_words("").unwrap_or_default().trim_start()
            ),
        }));
    };

    let lock = described(first);
    let end = first.ends.main();
    let holders = Holders::of(case.whole(), first);
    let whose = end.map_or(Whose::Unknown, |end| holders.whose(&first.ends, end, case.whole()));
    let has_it = end.and_then(|end| HasIt::of(&first.ends, end, first.tgid, case.whole()));
    let did = end.map_or_else(String::new, |end| did(end, has_it.as_ref()));
    let holder = holder_in_words(first, &whose, &did);
    let title =
        format!("threads of {} queue for the {lock}{holder}", case.process_name(first.tgid));
    let waits = locks.iter().fold(0u64, |sum, word| sum.saturating_add(word.count));
    let mut claim = Claim::new(title, claimed, waits);
    let stuck = if first.is_never_let_go() { stuck(case, first) } else { None };
    claim.fix = fixes::of(first, stuck.as_ref(), has_it.is_some(), &whose);
    let until = match handed_on(first) >= first.count / 2 {
        true => "each wait lasts for the turns of all who queue in front",
        false => "each wait lasts until whoever has it lets go",
    };
    claim.mechanism(format!(
        "{} asleep for {}; {until} (mean {})",
        duration(lost),
        counted(locks.len() as u64, "user-space lock"),
        mean(first.ns, first.count)
    ));
    handing_on.explain(&mut claim);
    who_lets_go(case, first, stuck, &mut claim);
    let is_known = end != Some(ChainEnd::Unknown);
    let whoever = whose.or_beyond("while others waited, whoever had the lock");
    let ends = first.ends.in_words(&whoever);
    if let Some(ends) = ends.filter(|_| is_known) {
        claim.trigger(ends);
    }
    if let Some(longest) = first.ends.longest_in_words(case.whole()) {
        claim.trigger(longest);
    }
    doubt_looks(has_it.as_ref(), &mut claim);
    if end == Some(ChainEnd::Peer) {
        claim.doubt(0.9, HELD_BACK);
    }
    words(case, &locks, (lock, &whose), &mut claim);
    longest_waits(case, first, &mut claim);
    rule_out(case, first, lost, &mut claim);
    Ok(claim)
}

/// `, whose holder slept by a timer of its own`; nothing if it only ran, or is not known.
fn holder_in_words(first: &LockWord, whose: &Whose, did: &str) -> String {
    match first.ends.main() {
        // Of these it is only known that they wait.
        _ if first.is_never_let_go() && first.function.is_some() => {
            ", which none of them got".to_owned()
        }
        _ if first.is_never_let_go() => ", which nobody let go of".to_owned(),
        Some(end) if !matches!(end, ChainEnd::Cpu | ChainEnd::Unknown) && is_holders(end) => {
            match whose {
                Whose::Holders => format!(", whose holder {did}"),
                Whose::Beyond(who) => format!(", whose holder waited for {who}, which {did}"),
                Whose::Unknown => format!(", whose holder, or whoever that one waited for, {did}"),
            }
        }
        _ => String::new(),
    }
}

/// Waits that ended when a thread let go that had waited itself.
fn handed_on(word: &LockWord) -> u64 {
    let handed_on = if word.parked > 0 { word.by_parked } else { word.by_waiter };
    handed_on.min(word.count)
}

fn who_lets_go(case: &Case, first: &LockWord, stuck: Option<Stuck>, claim: &mut Claim) {
    let lock = described(first);
    if !first.is_never_let_go() {
        claim.trigger(format!(
            "{lock}: {} of its waits ended when a thread that had queued itself let go",
            percent(handed_on(first), first.count)
        ));
        return;
    }
    claim.trigger(format!(
        "{lock}: {} of {} had not ended when recording stopped, and none had before: a deadlock, or a \
         holder that does something else for that long{}",
        count(first.open),
        counted(first.count, "wait"),
        stuck_in_words(case, first)
    ));
    if let Some(Stuck::InCircle(owners) | Stuck::Busy(owners)) = stuck {
        claim.trigger(format!("{lock}, as it says itself: {owners}"));
    }
}

/// The turns of the first lock, and a line for each of the longest.
fn words(case: &Case, locks: &[&LockWord], (name, whose): (String, &Whose), claim: &mut Claim) {
    claim.turns = locks.first().and_then(|first| turns::turns(first, name, case.run.length_ns()));
    claim.saw_if(
        claim.turns.as_ref().map(|turns| turns::in_words(turns, whose)),
        "turns at sched_waking: from when a thread got the lock to when it let the next one in",
    );
    for word in locks.iter().take(WORDS_SHOWN) {
        let (sign, source) = sign(word);
        claim.saw(
            format!(
                "{}: {}, {} asleep, mean {}, longest {}; {sign}",
                described(word),
                counted(word.count, "wait"),
                duration(word.ns),
                mean(word.ns, word.count),
                duration(word.max_ns),
            ),
            source,
        );
    }
}

/// What shows that it is a lock, and where that was seen.
fn sign(word: &LockWord) -> (String, &'static str) {
    if let Some(function) = &word.function {
        let sign = format!("they wait in {function}, which is for a lock");
        return (sign, "user stacks of waits, waker at sched_waking");
    }
    if word.parked > 0 {
        let sign = format!(
            "each thread parks on a futex word of its own; {} were ended by a thread that had parked so \
             itself",
            percent(word.by_parked.min(word.count), word.count)
        );
        return (sign, "waker at sched_waking");
    }
    let sign = format!(
        "in {} of them the word was marked as locked with waiters, {} were ended by a thread that \
         had waited there itself",
        percent(word.lock_like.min(word.count), word.count),
        percent(word.by_waiter.min(word.count), word.count)
    );
    (sign, "futex arguments at sched_switch, waker at sched_waking")
}

/// Evidence from the waits for a lock that were kept whole.
fn longest_waits(case: &Case, lock: &LockWord, claim: &mut Claim) {
    let queued_here = |o: &Outlier| {
        o.kind.is_own_time()
            && o.object == lock.address
            && o.blocked.map(Account::Blocked) == Some(lock.account)
    };
    let threads = case.threads_among(queued_here);
    if threads > 0 {
        let threads = counted(threads, "thread");
        claim.saw(
            format!("{threads} among the longest waits for the {}", described(lock)),
            "outliers",
        );
    }
    let calls = Syscall::named("futex").and_then(|c| case.histogram(&Metric::Syscall(c)));
    claim.saw_if(
        calls.map(|h| format!("all calls of futex: {}", quantiles(&h))),
        "system call histogram (sys_enter, sys_exit)",
    );
    let longest = case.run.outliers.iter().filter(|o| queued_here(o)).max_by_key(|o| o.duration_ns);
    claim.saw_if(longest.map(|o| in_words(case, o)), "longest wait for this lock");
    let behind = case.behind_holders(queued_here, |_, _| true);
    claim.saw_if(behind.longest_chain, "outliers, from waiter to waker");
    claim.saw_if(case.stops_at(queued_here), "waker at sched_waking");
    let (_, user) = stacks(case, FUTEX, |o| o.object == lock.address, "");
    claim.saw_if(user.map(|s| format!("the lock is taken in {s}")), "user stack");
}

fn rule_out(case: &Case, first: &LockWord, lost: u64, claim: &mut Claim) {
    claim.exclude(
        "waiting for work",
        format!(
            "other futex waits, {}, count as idle; on this word {} show a lock",
            duration(case.accounts.get(FUTEX).saturating_sub(lost)),
            percent(first.lock_like.max(first.by_waiter).min(first.count), first.count)
        ),
    );
    let holders = first.ends.total();
    if holders > 0 {
        let queued = first.ends.sum_of(|end| end == ChainEnd::RunQueue);
        // What is not known may have been that, too.
        if queued + first.ends.unknown() < holders / 5 {
            for cause in [ids::CPU_RUNQUEUE, ids::PRIORITY_INVERSION] {
                let because = format!(
                    "whoever had the lock was ready and had no CPU for {} of {} only",
                    duration(queued),
                    duration(holders)
                );
                claim.rule_out(cause, because);
            }
        }
        doubt_kind(first, claim);
        return;
    }
    // Whoever had the lock may be no part of what is asked about.
    let could_hold = case.whole().threads.iter().filter(|thread| thread.tgid == first.tgid);
    let queued = could_hold.map(|t| t.accounts.sum_of(|account| account.is_waiting_for_cpu()));
    let queued = queued.fold(0, u64::saturating_add);
    let against = format!("{} against {} in the lock", duration(queued), duration(lost));
    if queued < lost / 5 {
        for cause in [ids::CPU_RUNQUEUE, ids::PRIORITY_INVERSION] {
            let because = format!("threads that could hold it hardly waited for a CPU: {against}");
            claim.rule_out(cause, because);
        }
    } else {
        let text = format!(
            "threads also waited for a CPU ({against}): the lock may be held by one that does not \
             run (cpu-runqueue, priority-inversion)"
        );
        claim.doubt(0.8, &text);
    }
    doubt_kind(first, claim);
}

/// How sure it is that the word is a lock, and is not to be had all that time.
fn doubt_kind(first: &LockWord, claim: &mut Claim) {
    if let Some(function) = first.function.as_deref().filter(|name| is_of_transactions(name)) {
        claim.doubt(
            0.8,
            &format!(
                "known by the name of {function} alone: a lock that a client keeps on purpose \
                 (GET_LOCK) looks the same"
            ),
        );
    }
    if first.lock_like < first.count.div_ceil(2) {
        claim.doubt(
            0.6,
            "known as a lock only by who ended the waits: a barrier, or threads that take turns \
             by one condition variable, look the same",
        );
    }
}

/// `lock at 0x7f...` or its name; `locks that 16 threads park for`, each on a futex word of its own, or
/// `... wait for in MDL_wait::timed_wait`; `token in
/// the pipe with inode 7`.
fn described(word: &LockWord) -> String {
    match word.account {
        FUTEX if word.parked > 0 => {
            let threads = counted(word.parked, "thread");
            return match &word.function {
                Some(function) => format!("locks that {threads} wait for in {function}"),
                None => format!("locks that {threads} park for"),
            };
        }
        FUTEX => {}
        Account::Blocked(Blocked::PipeRead) => {
            return format!("token in the pipe with inode {}", word.address);
        }
        _ => return format!("System V semaphores {}", word.address as u32),
    }
    match &word.name {
        Some(name) => format!("lock {name} at {:#x}", word.address),
        None => format!("lock at {:#x}", word.address),
    }
}

#[cfg(test)]
mod tests;
