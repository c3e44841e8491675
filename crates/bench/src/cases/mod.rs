//! The cases: one file each, named after its id, listed in [`ALL`].

mod barrier;
mod condvar;
mod context_switch;
mod empty;
mod epoll;
mod epoll_ctl;
mod eventfd;
mod eventfd_ping_pong;
mod fd_table;
mod fd_table_threads;
mod fork_exit;
mod futex_hash;
mod futex_turns;
mod futex_wake;
mod futex_wake_wait;
mod futex_wake_wait_shared;
mod getpgid;
mod getpid;
mod getppid;
mod getrusage;
mod getuid;
mod growing_table;
mod locks;
mod loopback;
mod membarrier;
mod mutex;
mod mutex_contended;
mod mutex_pi_contended;
mod nanosleep;
mod ping_pong;
mod pipe;
mod pipe_ping_pong;
mod poll;
mod posix_mq;
mod posix_sem_post_wait;
mod posix_spawn;
mod rwlock_read;
mod rwlock_write;
mod sched_affinity;
mod sched_getaffinity;
mod sched_yield;
mod select;
mod setitimer;
mod shared;
mod sigaction;
mod signal_ping_pong;
mod signal_self;
mod signals;
mod sigprocmask;
mod socket_tcp;
mod socketpair;
mod socketpair_ping_pong;
mod sysv_msg;
mod tcp_connect;
mod tcp_loopback;
mod tcp_ping_pong;
mod thread_create;
mod through;
mod timer_create;
mod timerfd_settime;
mod udp_loopback;
mod udp_multicast;
mod udp_ping_pong;
mod unix_dgram;
mod unix_socket;
mod unix_stream;
mod watched;

use std::fmt;

use model::{BenchStep, StoryShape, WorkerKind};

use crate::ceiling::Resource;
use crate::tidy::Traces;
use crate::{Error, Work};

/// A micro-benchmark.
pub struct Case {
    /// Stable name, as on the command line; its file has it with `_` for `-`.
    pub id: &'static str,
    /// What one operation is, in one line.
    pub measures: &'static str,
    /// What is measured unless the user says otherwise.
    pub ladder: Ladder,
    /// Makes what all workers share, before they start.
    pub prepare: fn(&Request<'_>) -> Result<Box<dyn Prepared>, Error>,
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id)
    }
}

/// The rungs of a case.
pub struct Ladder {
    /// Threads or processes.
    pub kind: WorkerKind,
    /// How many of them.
    pub workers: &'static [u32],
    /// What exists meanwhile, for a case whose cost may depend on that.
    pub population: Option<Population>,
    /// Judges from the steps whether a story's shape is there.
    pub shape: Option<fn(&[BenchStep]) -> StoryShape>,
}

/// 1, 2 and 4 threads, no population, from no story: what most cases are.
pub const THREADS: Ladder =
    Ladder { kind: WorkerKind::Threads, workers: &[1, 2, 4], population: None, shape: None };

/// 1, 2 and 4 processes.
pub const PROCESSES: Ladder = Ladder { kind: WorkerKind::Processes, ..THREADS };

/// The objects beside which a case is measured.
pub struct Population {
    /// What they are: `open AF_UNIX sockets`.
    pub of: &'static str,
    /// How many of them, by default.
    pub sizes: &'static [u64],
    /// What they use up.
    pub uses: Resource,
}

/// What a case is asked for.
#[derive(Debug)]
pub struct Request<'a> {
    /// The largest number of workers that there will be at a time.
    pub workers: u32,
    /// Threads or processes.
    pub kind: WorkerKind,
    /// How many objects are to exist.
    pub population: u64,
    /// For files and keys.
    pub traces: &'a Traces,
}

/// What all workers of a step share. Dropping it removes it.
pub trait Prepared: Sync {
    /// The work of one worker, made in its own thread or process.
    fn worker(&self, id: usize) -> Result<Box<dyn Work>, Error>;
}

/// A case whose workers share nothing, or only what the function has captured.
pub struct Alone<F>(pub F);

impl<F: Fn(usize) -> Result<Box<dyn Work>, Error> + Sync> Prepared for Alone<F> {
    fn worker(&self, id: usize) -> Result<Box<dyn Work>, Error> {
        self.0(id)
    }
}

/// Prepares a case of one repeated operation that needs nothing.
macro_rules! operation {
    ($operation:expr) => {
        |_| Ok(Box::new($crate::cases::Alone(|_| Ok(Box::new($operation) as _))))
    };
}
use operation;

/// Why the call of the C library failed that has just returned -1.
fn last_error() -> rustix::io::Errno {
    let error = std::io::Error::last_os_error();
    rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO)
}

/// The story's shape, where it is that an operation becomes dearer the more objects there are:
/// present if the last step costs at least `times` as much as the first. `told` is what the story
/// saw.
fn grows_with_population(steps: &[BenchStep], times: f64, told: &str) -> StoryShape {
    let (Some(first), Some(last)) = (steps.first(), steps.last()) else {
        return StoryShape { present: false, text: "nothing was measured".to_owned() };
    };
    let ratio = last.net_ns / first.net_ns.max(1.0);
    let text = format!(
        "{ratio:.1} times the cost beside {} as beside {}; {told}",
        last.population, first.population
    );
    StoryShape { present: ratio >= times, text }
}

/// Every case.
#[rustfmt::skip]
pub const ALL: &[&Case] = &[
    &barrier::CASE,
    &condvar::CASE,
    &context_switch::CASE,
    &epoll::CASE,
    &epoll_ctl::CASE,
    &eventfd::CASE,
    &eventfd_ping_pong::CASE,
    &fd_table::CASE,
    &fd_table_threads::CASE,
    &fork_exit::CASE,
    &futex_hash::CASE,
    &futex_wake::CASE,
    &futex_wake_wait::CASE,
    &futex_wake_wait_shared::CASE,
    &getpgid::CASE,
    &getpid::CASE,
    &getppid::CASE,
    &getrusage::CASE,
    &getuid::CASE,
    &membarrier::CASE,
    &mutex::CASE,
    &mutex_contended::CASE,
    &mutex_pi_contended::CASE,
    &nanosleep::CASE,
    &pipe::CASE,
    &pipe_ping_pong::CASE,
    &poll::CASE,
    &posix_mq::CASE,
    &posix_sem_post_wait::CASE,
    &posix_spawn::CASE,
    &rwlock_read::CASE,
    &rwlock_write::CASE,
    &sched_affinity::CASE,
    &sched_getaffinity::CASE,
    &sched_yield::CASE,
    &select::CASE,
    &setitimer::CASE,
    &sigaction::CASE,
    &signal_ping_pong::CASE,
    &signal_self::CASE,
    &sigprocmask::CASE,
    &socket_tcp::CASE,
    &socketpair::CASE,
    &socketpair_ping_pong::CASE,
    &sysv_msg::CASE,
    &tcp_connect::CASE,
    &tcp_loopback::CASE,
    &tcp_ping_pong::CASE,
    &thread_create::CASE,
    &timer_create::CASE,
    &timerfd_settime::CASE,
    &udp_loopback::CASE,
    &udp_multicast::CASE,
    &udp_ping_pong::CASE,
    &unix_dgram::CASE,
    &unix_socket::CASE,
    &unix_stream::CASE,
];

/// What clock and harness cost: a row of every run.
pub const EMPTY: &Case = &empty::CASE;

/// The case of this name; without one, the names most like it.
///
/// # Errors
/// The nearest names, best first.
pub fn named(id: &str) -> Result<&'static Case, Vec<&'static str>> {
    if let Some(case) = ALL.iter().find(|case| case.id == id) {
        return Ok(case);
    }
    let mut near: Vec<(f64, &'static str)> = ALL
        .iter()
        .map(|case| {
            (if case.id.contains(id) { 1.0 } else { strsim::jaro_winkler(case.id, id) }, case.id)
        })
        .collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0));
    Err(near.into_iter().take(3).map(|(_, id)| id).collect())
}
