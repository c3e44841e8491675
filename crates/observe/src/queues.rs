//! Looks at the queues of the target's sockets every 20 ms, with `--cheap` every 100 ms, in a thread of its
//! own.
//!
//! A look costs what the target's sockets cost, finding new ones a walk over the open files of the
//! target (of all processes, when several are watched). Both become rarer when they take long, so
//! that neither has more than a two-hundredth of a CPU. While the target has no socket, looks are as far
//! apart as searches are at least: one on which it asks is there without a search. Measured with 990 sockets of the target among
//! 99,000 (bench-peers/sockets.sh): 4.7 looks a second, 0.8 % of a CPU for both walks, which is
//! 0.9 us for each socket or file; nearly all of it is waiting for memory.

use std::io::Read;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use libbpf_rs::{Iter, Link, MapHandle};
use model::Sockets;

use crate::Error;
use crate::bpf::{self, queue_record};
use crate::queue_state::State;

/// At most one part in so many of the time is spent looking, and searching.
const SHARE: u32 = 200;

/// How often.
#[derive(Clone, Copy)]
pub struct Pace {
    /// From one look to the next.
    look: Duration,
    /// From one search for new sockets to the next.
    search: Duration,
}

impl Pace {
    pub const USUAL: Pace =
        Pace { look: Duration::from_millis(20), search: Duration::from_millis(100) };
    /// Beside PostgreSQL with no CPU idle the usual pace takes 10 ms a second.
    pub const CHEAP: Pace =
        Pace { look: Duration::from_millis(100), search: Duration::from_millis(500) };
}

/// The two walks, attached, and what is looked at with them.
pub struct Walks {
    /// Finds sockets.
    pub search: Link,
    /// Reads their queues.
    pub look: Link,
    /// Counts of sends that found no room.
    pub sends: MapHandle,
}

/// The thread that looks.
pub struct Queues {
    state: Arc<Mutex<State>>,
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Queues {
    /// Begins to look. The sockets that there are have been found when this returns: what was dropped
    /// at them so far is not of the recording.
    pub fn start(walks: Walks, pace: Pace) -> Result<Queues, Error> {
        walk(&walks.search, &mut Vec::new())?;
        let state = Arc::new(Mutex::new(State::new()));
        let theirs = Arc::clone(&state);
        let (stop, stopped) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("queues".into())
            .spawn(move || run(&walks, pace, &theirs, &stopped))
            .map_err(Error::io("starting the thread that looks at queues"))?;
        Ok(Queues { state, stop: Some(stop), thread: Some(thread) })
    }

    /// What was seen since the last time; intervals began at `start_ns`.
    pub fn take(&self, start_ns: u64) -> Sockets {
        lock(&self.state).take(start_ns)
    }

    /// Sockets of a second that were left out because there were too many, since the last call.
    pub fn left_out(&self) -> u64 {
        lock(&self.state).left_out()
    }

    /// Looks once more and ends the thread.
    pub fn finish(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed; what was seen before it is still good.
            let _ = thread.join();
        }
    }
}

impl Drop for Queues {
    fn drop(&mut self) {
        self.finish();
    }
}

fn run(walks: &Walks, pace: Pace, state: &Mutex<State>, stopped: &mpsc::Receiver<()>) {
    let mut next_search = Instant::now() + pace.search;
    let mut bytes = Vec::new();
    loop {
        let (began, before) = (Instant::now(), cpu_time());
        if began >= next_search {
            // A walk that fails finds nothing new; the next one comes.
            let _ = walk(&walks.search, &mut bytes);
            next_search = began + pace.search.max((cpu_time() - before) * SHARE);
        }
        let searched = cpu_time();
        let any = look(walks, state, &mut bytes);
        let looked = cpu_time() - searched;
        let pause = if any { pace.look } else { pace.search };
        let rest = pause.max(looked * SHARE).saturating_sub(began.elapsed());
        if stopped.recv_timeout(rest) != Err(mpsc::RecvTimeoutError::Timeout) {
            look(walks, state, &mut bytes);
            lock(state).end();
            return;
        }
    }
}

/// Of this thread. A look that waits for a CPU takes long, and costs nobody anything meanwhile.
fn cpu_time() -> Duration {
    Duration::from_nanos(clock::thread_cpu_ns())
}

/// True if there was a socket, or if it is not known.
fn look(walks: &Walks, state: &Mutex<State>, bytes: &mut Vec<u8>) -> bool {
    // What a walk that failed has seen is true; the next one comes.
    let walked = walk(&walks.look, bytes);
    let records = bytes.chunks_exact(size_of::<queue_record>());
    let any = records.len() > 0 || walked.is_err();
    let mut state = lock(state);
    records.filter_map(bpf::read).for_each(|record| state.note(&record));
    // Sums, too: what could not be read now is read with the next ones.
    let _ = state.sends.look(&walks.sends);
    any
}

/// Replaces what was known by the result of a walk.
fn walk(link: &Link, bytes: &mut Vec<u8>) -> Result<(), Error> {
    bytes.clear();
    let mut iter = Iter::new(link).map_err(Error::bpf("opening an iterator"))?;
    iter.read_to_end(bytes).map_err(Error::io("walking over sockets"))?;
    Ok(())
}

/// A poisoned state still holds whole looks, except one.
fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
