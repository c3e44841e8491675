//! Where threads stand that sleep when recording stops, and have done so for long. The kernel side takes
//! the stack of a wait when it ends, within the thread that has waited: of one that hangs it has none.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use inspect::live::Process;
use model::{Account, Stack, StackId, StackSum, Sums, ThreadAccounts, WaitSum};

use crate::bpf::thread_record;
use crate::inbox::Words;
use crate::names::Names;
use crate::stacks::Stacks;

/// Whoever has slept for a shorter part of the recording is not looked at: one in so many.
const LONG: u64 = 10;
/// Threads and processes that are looked at, at most.
const THREADS: usize = 128;
const PROCESSES: usize = 16;
/// No further process is asked after so long: each can keep its reader waiting for a second, and the
/// recording ends only then.
const LONGEST: Duration = Duration::from_secs(1);

/// Words of a stack that are looked at: as many as the kernel side copies.
const WORDS: usize = 1024;

/// A thread that sleeps.
struct Sleeper {
    tgid: u32,
    account: Account,
    object: u64,
    ns: u64,
    ip: u64,
    stack: u64,
    frame: u64,
}

/// Those that were met at the last look.
#[derive(Default)]
pub struct Standing {
    sleepers: Vec<Sleeper>,
}

impl Standing {
    /// Takes a thread, if it sleeps and has done so for long.
    pub fn meet(&mut self, record: &thread_record, thread: &ThreadAccounts, recorded_ns: u64) {
        let ns = thread.last_ns.saturating_sub(record.since);
        if record.sp != 0 && ns >= recorded_ns / LONG {
            self.sleepers.push(Sleeper {
                tgid: record.tgid,
                account: thread.open,
                object: record.object,
                ns,
                ip: record.ip,
                stack: record.sp,
                frame: record.fp,
            });
        }
    }

    /// Reads their stacks, says in `sums` where which wait stands, and gives the stacks that are new.
    pub fn find(mut self, stacks: &mut Stacks, names: &mut Names, sums: &mut Sums) -> Vec<Stack> {
        self.sleepers.sort_by_key(|sleeper| std::cmp::Reverse(sleeper.ns));
        self.sleepers.truncate(THREADS);
        let mut of_processes: BTreeMap<u32, Vec<Sleeper>> = BTreeMap::new();
        for sleeper in self.sleepers {
            of_processes.entry(sleeper.tgid).or_default().push(sleeper);
        }
        let until = Instant::now() + LONGEST;
        let mut fresh = Vec::new();
        let mut found = Vec::new();
        for (tgid, sleepers) in of_processes.into_iter().take(PROCESSES) {
            if Instant::now() >= until {
                break;
            }
            let Ok(process) = Process::open(tgid) else { continue };
            for sleeper in sleepers {
                let Some(words) = words(&process, &sleeper) else { break };
                let Some((id, stack)) = stacks.standing(names, &words, until) else { continue };
                fresh.extend(stack);
                found.push((sleeper, id));
            }
        }
        sums.stack_sums.extend(by_stack(&found));
        say_where(&mut sums.waits, &found);
        fresh
    }
}

/// The top of its stack; `None` if the process does not let it be read.
fn words(process: &Process, sleeper: &Sleeper) -> Option<Words> {
    let words = process.own_words_from(sleeper.stack & !7, WORDS).ok()?;
    Some(Words {
        tgid: sleeper.tgid,
        id: 0,
        walked: 0,
        ip: sleeper.ip,
        stack: sleeper.stack,
        frame: sleeper.frame,
        entries: Vec::new(),
        words,
    })
}

fn by_stack(found: &[(Sleeper, StackId)]) -> impl Iterator<Item = StackSum> {
    let mut sums = HashMap::new();
    for (sleeper, id) in found {
        let key = (sleeper.tgid, sleeper.account, *id);
        let (count, ns) = sums.entry(key).or_insert((0u64, 0u64));
        *count += 1;
        *ns = ns.saturating_add(sleeper.ns);
    }
    sums.into_iter().map(|((tgid, account, id), (count, ns))| StackSum {
        tgid,
        account,
        kernel: None,
        user: Some(id),
        count,
        ns,
    })
}

/// Those that slept longest come first.
fn say_where(waits: &mut [WaitSum], found: &[(Sleeper, StackId)]) {
    for wait in waits.iter_mut().filter(|wait| wait.open > 0) {
        let is_its = |sleeper: &Sleeper| {
            (sleeper.tgid, sleeper.account, sleeper.object)
                == (wait.tgid, wait.account, wait.object)
        };
        let longest = found.iter().find(|(sleeper, _)| is_its(sleeper));
        wait.open_at = longest.map(|(_, id)| *id);
    }
}
