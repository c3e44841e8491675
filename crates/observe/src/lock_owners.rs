//! Who has a lock for which threads wait since before the recording: the kernel side looks when a wait
//! begins, within the thread that waits, and a walk over sleeping threads cannot read their memory.

use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};

use inspect::live::Process;
use model::{Account, Blocked, ChainEnd, ThreadAccounts, WaitSum};

/// Processes that are looked at, and locks of each, at most: one that hangs has a few.
const PROCESSES: usize = 16;
const LOCKS: usize = 64;
/// No further process is asked after so long: each can keep its reader waiting for a second, and the
/// recording ends only then.
const LONGEST: Duration = Duration::from_secs(1);

/// "Locked, and others wait" in the words of glibc and Rust, and the bit for the latter in those that have
/// their owner in them (FUTEX_WAITERS, FUTEX_TID_MASK of linux/futex.h).
const LOCKED_WITH_WAITERS: u32 = 2;
const WAITERS: u32 = 0x8000_0000;
const TID: u32 = 0x3fff_ffff;
/// In bytes from the word that the waiters of a glibc mutex sleep in.
const MUTEX_OWNER: u64 = 8;

/// Names the owners in waits for locks that nobody has ended, as the locks have them now. The program's
/// memory says what it likes: only threads of the process count.
pub fn name(waits: &mut [WaitSum], threads: &[ThreadAccounts]) {
    let mut of_processes: BTreeMap<u32, Vec<&mut WaitSum>> = BTreeMap::new();
    for wait in waits.iter_mut().filter(|wait| is_without_owner(wait)) {
        of_processes.entry(wait.tgid).or_default().push(wait);
    }
    let began = Instant::now();
    for (tgid, mut waits) in of_processes.into_iter().take(PROCESSES) {
        if began.elapsed() > LONGEST {
            break;
        }
        waits.truncate(LOCKS);
        let of_it = threads.iter().filter(|thread| thread.tgid == tgid);
        let tids: HashSet<u32> = of_it.map(|thread| thread.tid).collect();
        let addresses: Vec<u64> = waits
            .iter()
            .flat_map(|wait| [wait.object, wait.object.wrapping_add(MUTEX_OWNER)])
            .collect();
        let Ok(words) = Process::open(tgid).and_then(|process| process.own_words(&addresses))
        else {
            continue;
        };
        for (wait, words) in waits.into_iter().zip(words.chunks_exact(2)) {
            let owner = words[0].and_then(|word| owner(word as u32, words[1]));
            wait.longest_end =
                owner.filter(|owner| tids.contains(owner)).map(|owner| (owner, ChainEnd::Unknown));
        }
    }
}

/// All waits there are for this lock have not ended, and nobody is known to have it.
fn is_without_owner(wait: &WaitSum) -> bool {
    wait.account == Account::Blocked(Blocked::Futex)
        && wait.open > 0
        && wait.open == wait.count
        && wait.lock_like > 0
        && wait.longest_end.is_none()
}

/// As a locked word says, or what is beside it.
fn owner(word: u32, beside: Option<u64>) -> Option<u32> {
    match word {
        LOCKED_WITH_WAITERS => beside.map(|beside| beside as u32 & TID),
        _ if word & WAITERS != 0 => Some(word & TID),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_names_its_owner_in_its_word_or_beside_it() {
        assert_eq!(owner(LOCKED_WITH_WAITERS, Some(7 << 32 | 1234)), Some(1234));
        assert_eq!(owner(LOCKED_WITH_WAITERS, None), None);
        assert_eq!(owner(WAITERS | 1234, Some(99)), Some(1234));
        // FUTEX_OWNER_DIED is no part of the number.
        assert_eq!(owner(WAITERS | 0x4000_0000 | 1234, None), Some(1234));
        // Let go of meanwhile, or nobody waits.
        assert_eq!(owner(0, Some(1234)), None);
        assert_eq!(owner(1, Some(1234)), None);
    }
}
