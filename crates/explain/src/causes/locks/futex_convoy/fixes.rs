//! What to do about a lock that threads queue for.

use model::ChainEnd;

use crate::case::beyond::Whose;
use crate::case::lock_word::LockWord;
use crate::case::looks::FIX_OF_LOOKS;
use crate::case::stuck::Stuck;

const NEVER_LET_GO: &str = "Find who has the lock: attach a debugger and look at the stacks of all \
                            threads ('gdb -p PID', 'thread apply all bt', and the owner in the \
                            mutex). If threads wait for each other's locks, take them in one order.";
const WRITER_WAITS: &str = "Find who has the lock: attach a debugger and look at the stacks of all threads ('gdb -p \
                           PID', 'thread apply all bt'). If readers come and go, the writer does not get its \
                           turn among them: prefer writers (pthread_rwlockattr_setkind_np with \
                           PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP), or let readers copy what they \
                           need and hold the lock for that long only.";
const FIX_OF_CIRCLE: &str = "Take the locks in one order everywhere (or with pthread_mutex_trylock, and let \
                             go of the first where the second is taken). Until then only a restart \
                             helps: these threads never go on.";

/// What to do; `None`: what helps against every convoy.
pub(super) fn of(
    first: &LockWord,
    stuck: Option<&Stuck>,
    has_it: bool,
    whose: &Whose,
) -> Option<&'static str> {
    match stuck {
        Some(Stuck::InCircle(_)) => Some(FIX_OF_CIRCLE),
        _ if first.is_never_let_go() && is_writers(first) => Some(WRITER_WAITS),
        _ if first.is_never_let_go() => Some(NEVER_LET_GO),
        _ if has_it => Some(FIX_OF_LOOKS),
        _ => first.ends.main().and_then(|end| by_end(end, whose)),
    }
}

/// They wait to have it for writing.
fn is_writers(first: &LockWord) -> bool {
    first.function.as_ref().is_some_and(|function| function.contains("rwlock_wrlock"))
}

/// What to do follows what the holder did.
fn by_end(end: ChainEnd, whose: &Whose) -> Option<&'static str> {
    let is_held_up =
        matches!(end, ChainEnd::Timer | ChainEnd::Timeout | ChainEnd::Disk | ChainEnd::Fault);
    match end {
        _ if is_held_up && matches!(whose, Whose::Beyond(_)) => Some(
            "The holder waits for another thread with the lock in hand, and that one is held up: take \
             the lock after its answer has come, or make that one answer sooner.",
        ),
        _ if is_held_up && *whose == Whose::Unknown => Some(
            "The holder, or a thread that it waits for with the lock in hand, is held up: see which, by \
             the stacks of the longest waits, and take the lock after that.",
        ),
        ChainEnd::Timer | ChainEnd::Timeout => Some(
            "The holder sleeps with the lock in hand: let go of it before it sleeps (a pause, a retry \
             with a delay, a wait for something else belongs outside).",
        ),
        ChainEnd::Disk | ChainEnd::Fault => Some(
            "The holder waits for a disk with the lock in hand: read and write outside of it, and take \
             the lock for what is in memory only.",
        ),
        ChainEnd::Kernel => Some(
            "The holder waits in the kernel with the lock in hand: see what for (its stack, \
             /proc/TID/stack), and do that outside of the lock.",
        ),
        ChainEnd::Peer => Some(
            "The holder waits for the answer of another process with the lock in hand: take the lock \
             after the answer has come, or make that process answer sooner. If the lock is a pool of \
             connections, it has too few for so many threads.",
        ),
        ChainEnd::Outside | ChainEnd::Unwatched => Some(
            "The holder waits for another process or host with the lock in hand: take the lock after \
             the answer has come.",
        ),
        _ => None,
    }
}
