//! condvar: two wait for each other at condition variables of one mutex.

use std::mem::zeroed;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use model::WorkerKind;
use rustix::io::Errno;

use super::locks::{self, Lock, Mutex, checked};
use super::ping_pong::{self, Ball, End};
use super::shared::Shared;
use super::{Alone, Benchmark, THREADS};
use crate::Error;

pub const CASE: Benchmark = Benchmark {
    id: "condvar",
    measures: "pthread_cond_signal() of a waiting partner and pthread_cond_wait() for its answer",
    ladder: THREADS,
    prepare: |request| {
        let kind = request.kind;
        Ok(Box::new(Alone(move |_| ping_pong::player(kind, ends(kind)?))))
    },
};

type Condition = Lock<libc::pthread_cond_t>;

struct Table {
    mutex: Arc<Mutex>,
    conditions: [Arc<Condition>; 2],
    /// The ball that lies before each end, 0 for none.
    balls: Shared<[AtomicU32; 2]>,
}

struct Waiting {
    table: Arc<Table>,
    own: usize,
}

fn ends(kind: WorkerKind) -> Result<(Waiting, Waiting), Error> {
    let table = Arc::new(Table {
        mutex: locks::mutex(kind, libc::PTHREAD_PRIO_NONE)?,
        conditions: [condition(kind)?, condition(kind)?],
        balls: Shared::new([const { AtomicU32::new(0) }; 2])?,
    });
    let end = |own| Waiting { table: Arc::clone(&table), own };
    Ok((end(0), end(1)))
}

fn condition(kind: WorkerKind) -> Result<Arc<Condition>, Error> {
    // SAFETY: zero is a value of this opaque structure, which init() replaces.
    let mut attributes: libc::pthread_condattr_t = unsafe { zeroed() };
    Lock::new(|condition| {
        // SAFETY: valid addresses; the condition is nobody else's yet.
        unsafe {
            libc::pthread_condattr_init(&raw mut attributes);
            libc::pthread_condattr_setpshared(&raw mut attributes, locks::scope(kind));
            libc::pthread_cond_init(condition, &raw const attributes)
        }
    })
}

impl End for Waiting {
    fn send(&mut self, ball: Ball) -> Result<(), Errno> {
        let (table, other) = (&self.table, 1 - self.own);
        table.mutex.lock()?;
        table.balls[other].store(ball as u32, Ordering::Relaxed);
        table.mutex.unlock()?;
        // SAFETY: an initialised condition.
        checked(unsafe { libc::pthread_cond_signal(table.conditions[other].get()) })
    }

    fn receive(&mut self) -> Result<Ball, Errno> {
        let table = &self.table;
        table.mutex.lock()?;
        loop {
            match table.balls[self.own].swap(0, Ordering::Relaxed) {
                // SAFETY: both are initialised, and this thread holds the mutex.
                0 => checked(unsafe {
                    libc::pthread_cond_wait(table.conditions[self.own].get(), table.mutex.get())
                })?,
                ball => {
                    table.mutex.unlock()?;
                    return Ok(Ball::of(u64::from(ball)));
                }
            }
        }
    }
}
