//! Without privilege: thread states sampled from /proc, marked as such.
//!
//! Between two samples a thread is assumed to have been in the state of the second one, except that
//! its time on the CPU and waiting for one comes from /proc/PID/task/TID/schedstat where the
//! kernel has it.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use inspect::read::text;
use model::{Account, Accounts, Batch, Blocked, Cost, Syscall, ThreadAccounts};

use crate::watch::Found;
use crate::wire::{CallKind, TargetKind};
use crate::{Error, cgroups, cost, host};

/// From one sample to the next.
const INTERVAL: Duration = Duration::from_millis(10);

/// Accounts by (tid, first sample).
type Threads = HashMap<(u32, u64), Sampled>;

struct Sampled {
    thread: ThreadAccounts,
    run_ns: u64,
    wait_ns: u64,
}

/// The sampling thread.
pub struct Sampler {
    threads: Arc<Mutex<Threads>>,
    stop: Arc<AtomicBool>,
    handle: Option<JoinHandle<()>>,
    since_ns: u64,
}

/// Which threads: of one process (and its children), one, all, or those of a cgroup.
#[derive(Clone)]
enum Scope {
    Process(u32, bool),
    Thread(u32),
    Host,
    Cgroup(PathBuf),
}

impl Sampler {
    /// Begins to sample.
    pub fn start(target: &Found, follow: bool) -> Result<Sampler, Error> {
        let scope = match (target.kind, &target.cgroup) {
            (_, Some(cgroup)) => Scope::Cgroup(cgroup.directory.clone()),
            (TargetKind::Thread, _) => Scope::Thread(target.pid),
            (TargetKind::Host, _) => Scope::Host,
            _ => Scope::Process(target.pid, follow),
        };
        let threads = Arc::new(Mutex::new(Threads::new()));
        let stop = Arc::new(AtomicBool::new(false));
        let (theirs, stopped) = (Arc::clone(&threads), Arc::clone(&stop));
        let since_ns = clock::monotonic_ns();
        let handle = std::thread::Builder::new()
            .name("sample".into())
            .spawn(move || {
                while !stopped.load(Ordering::Acquire) {
                    sample(&scope, &theirs);
                    std::thread::sleep(INTERVAL);
                }
            })
            .map_err(Error::io("starting the sampling thread"))?;
        Ok(Sampler { threads, stop, handle: Some(handle), since_ns })
    }

    /// Nothing was sampled before.
    pub fn since_ns(&self) -> u64 {
        self.since_ns
    }

    /// Accounts so far, which is until `heartbeat_ns`.
    pub fn batch(&mut self, heartbeat_ns: u64) -> Batch {
        let threads = lock(&self.threads).values().map(|sampled| sampled.thread.clone()).collect();
        Batch {
            heartbeat_ns,
            threads,
            cost: Some(Cost {
                cpu_ns: clock::process_cpu_ns(),
                peak_rss_bytes: cost::peak_rss_bytes(),
                ..Cost::default()
            }),
            ..Batch::default()
        }
    }

    /// Ends the thread, and gives the moment when it had ended.
    pub fn stop(&mut self) -> u64 {
        self.stop.store(true, Ordering::Release);
        if let Some(handle) = self.handle.take() {
            // A panic there has been printed.
            let _ = handle.join();
        }
        clock::monotonic_ns()
    }
}

fn lock(threads: &Mutex<Threads>) -> MutexGuard<'_, Threads> {
    threads.lock().unwrap_or_else(PoisonError::into_inner)
}

fn sample(scope: &Scope, threads: &Mutex<Threads>) {
    let mut seen = HashSet::new();
    let mut threads = lock(threads);
    for (tgid, tid) in tasks(scope) {
        let Some(state) = state(tgid, tid) else { continue };
        seen.insert(tid);
        let now = clock::monotonic_ns();
        let key = threads.iter().find(|((t, _), s)| *t == tid && s.thread.alive).map(|(k, _)| *k);
        let sampled = threads.entry(key.unwrap_or((tid, now))).or_insert_with(|| Sampled {
            thread: begin(tgid, tid, now, state.account),
            run_ns: state.run_ns.unwrap_or(0),
            wait_ns: state.wait_ns.unwrap_or(0),
        });
        advance(sampled, &state, now);
    }
    for ((tid, _), sampled) in threads.iter_mut() {
        sampled.thread.alive &= seen.contains(tid);
    }
}

fn begin(tgid: u32, tid: u32, now: u64, open: Account) -> ThreadAccounts {
    ThreadAccounts {
        tid,
        tgid,
        comm: String::new(),
        first_ns: now,
        last_ns: now,
        alive: true,
        open,
        accounts: Accounts::new(),
        realtime: 0,
        minor_faults: 0,
        major_faults: 0,
        sleeps: 0,
        preemptions: 0,
        migrations: 0,
    }
}

struct State {
    comm: String,
    account: Account,
    run_ns: Option<u64>,
    wait_ns: Option<u64>,
}

/// Distributes the time since the last sample.
fn advance(sampled: &mut Sampled, state: &State, now: u64) {
    let mut left = now.saturating_sub(sampled.thread.last_ns);
    let mut take = |counter: Option<u64>, before: &mut u64, account: Account| {
        let Some(counter) = counter else { return };
        let ns = counter.saturating_sub(*before).min(left);
        *before = counter;
        left -= ns;
        sampled.thread.accounts.add(account, ns);
    };
    take(state.run_ns, &mut sampled.run_ns, Account::Running);
    take(state.wait_ns, &mut sampled.wait_ns, Account::RunnableWakeup);
    sampled.thread.accounts.add(state.account, left);
    sampled.thread.last_ns = now;
    sampled.thread.open = state.account;
    sampled.thread.comm.clone_from(&state.comm);
}

/// (process, thread) of all threads in scope.
fn tasks(scope: &Scope) -> Vec<(u32, u32)> {
    let processes = match scope {
        Scope::Thread(tid) => {
            return host::process_of(*tid).map(|tgid| (tgid, *tid)).into_iter().collect();
        }
        Scope::Process(pid, false) => vec![*pid],
        Scope::Process(pid, true) => {
            std::iter::once(*pid).chain(children_of(*pid)).collect::<Vec<_>>()
        }
        Scope::Host => others(numbers_in("/proc")),
        Scope::Cgroup(directory) => others(cgroups::processes(directory).into_iter()),
    };
    let threads = |tgid: u32| numbers_in(&format!("/proc/{tgid}/task")).map(move |tid| (tgid, tid));
    processes.into_iter().flat_map(threads).collect()
}

fn others(processes: impl Iterator<Item = u32>) -> Vec<u32> {
    processes.filter(|pid| *pid != std::process::id()).collect()
}

/// The children of a process that run now, and theirs.
pub fn children_of(pid: u32) -> Vec<u32> {
    let mut found = vec![pid];
    let mut position = 0;
    while let Some(pid) = found.get(position).copied() {
        position += 1;
        for tid in numbers_in(&format!("/proc/{pid}/task")) {
            let children = text(format!("/proc/{pid}/task/{tid}/children"));
            let children = children.unwrap_or_default();
            found.extend(children.split_ascii_whitespace().filter_map(|c| c.parse::<u32>().ok()));
        }
    }
    found.retain(|child| *child != pid);
    found
}

fn numbers_in(directory: &str) -> impl Iterator<Item = u32> + use<> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn state(tgid: u32, tid: u32) -> Option<State> {
    let place = format!("/proc/{tgid}/task/{tid}");
    let stat = text(format!("{place}/stat")).ok()?;
    let (head, rest) = stat.rsplit_once(')')?;
    let comm = head.split_once('(')?.1.to_owned();
    let letter = rest.trim_start().chars().next()?;
    let read = |name: &str| text(format!("{place}/{name}")).unwrap_or_default();
    let schedstat = read("schedstat");
    let mut times = schedstat.split_ascii_whitespace().map(|word| word.parse::<u64>().ok());
    let (run_ns, wait_ns) = (times.next().flatten(), times.next().flatten());
    let account = match letter {
        'R' => Account::Running,
        'T' | 't' => Account::Blocked(Blocked::Stopped),
        'S' | 'D' => sleep_account(letter, &read("wchan"), &read("syscall")),
        // Dead, and only not fetched yet by its parent.
        'Z' | 'X' => return None,
        _ => Account::Unaccounted,
    };
    Some(State { comm, account, run_ns, wait_ns })
}

/// From the kernel function it sleeps in, else from its system call.
fn sleep_account(letter: char, wchan: &str, syscall: &str) -> Account {
    let from_wchan = match wchan {
        w if w.contains("rwsem") => Some(Blocked::Rwsem),
        w if w.contains("mutex") => Some(Blocked::Mutex),
        w if w.contains("pipe_write") => Some(Blocked::PipeWrite),
        w if w.contains("pipe_read") => Some(Blocked::PipeRead),
        w if w.contains("balance_dirty") => Some(Blocked::DirtyThrottle),
        w if w.contains("folio_wait") || w.contains("io_schedule") => Some(Blocked::Disk),
        _ => None,
    };
    let call = syscall.split_ascii_whitespace().next().and_then(|word| word.parse::<u16>().ok());
    let kind = from_wchan.or_else(|| call.and_then(|number| by_call(Syscall(number))));
    Account::Blocked(kind.unwrap_or(match letter {
        'D' => Blocked::Uninterruptible,
        _ => Blocked::Other,
    }))
}

/// What a call sleeps for, where its arguments do not decide.
fn by_call(call: Syscall) -> Option<Blocked> {
    Some(match CallKind::of_call(call) {
        CallKind::Futex => Blocked::Futex,
        CallKind::Poll | CallKind::Completion => Blocked::Poll,
        CallKind::Timer => Blocked::TimerSleep,
        CallKind::Child => Blocked::ChildWait,
        CallKind::Accept => Blocked::SocketAccept,
        CallKind::Connect => Blocked::SocketConnect,
        CallKind::Receive => Blocked::SocketReceive,
        CallKind::Send => Blocked::SocketSend,
        CallKind::FileLock => Blocked::FileLock,
        CallKind::Disk => Blocked::Disk,
        CallKind::Other
        | CallKind::Fcntl
        | CallKind::Read
        | CallKind::Write
        | CallKind::Yield
        | CallKind::Semaphores
        | CallKind::Messages
        | CallKind::MessageSend
        | CallKind::Signals
        | CallKind::Path1
        | CallKind::Path2
        | CallKind::Path3
        | CallKind::Path4
        | CallKind::SocketOption => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_is_named_by_its_kernel_function_or_its_call() {
        let futex = Syscall::named("futex").unwrap().0;
        let account = |letter, wchan, call: String| sleep_account(letter, wchan, &call).to_string();
        assert_eq!(account('S', "0", format!("{futex} 0x7f 0x80")), "blocked:futex");
        assert_eq!(account('D', "rwsem_down_write_slowpath", "9 0".into()), "blocked:lock:rwsem");
        assert_eq!(account('D', "0", "-1".into()), "blocked:uninterruptible");
        assert_eq!(account('S', "", "".into()), "blocked:other");
    }

    #[test]
    fn samples_of_a_sleeping_child_sum_to_the_time_between_them() {
        let mut child = std::process::Command::new("sleep").arg("30").spawn().unwrap();
        let threads = Mutex::new(Threads::new());
        let scope = Scope::Process(child.id(), false);
        while host::process_of(child.id()).is_err() {}
        for _ in 0..5 {
            sample(&scope, &threads);
            std::thread::sleep(INTERVAL);
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let threads = threads.into_inner().unwrap();
        let thread = &threads.values().next().unwrap().thread;
        assert_eq!(thread.accounts.total(), thread.wall_ns());
        let asleep = thread.accounts.get(Account::Blocked(Blocked::TimerSleep));
        assert!(asleep * 2 > thread.wall_ns(), "{:?}", thread.accounts);
    }
}
