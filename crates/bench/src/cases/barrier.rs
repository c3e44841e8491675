//! barrier: two meet at a barrier.

use std::mem::zeroed;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use model::WorkerKind;
use rustix::io::Errno;

use super::locks::{self, Lock};
use super::ping_pong::{self, Ball, End};
use super::shared::Shared;
use super::{Alone, Benchmark, THREADS};
use crate::Error;

pub const CASE: Benchmark = Benchmark {
    id: "barrier",
    measures: "pthread_barrier_wait() together with a partner that does the same",
    ladder: THREADS,
    prepare: |request| {
        let kind = request.kind;
        Ok(Box::new(Alone(move |_| ping_pong::player(kind, ends(kind)?))))
    },
};

type Barrier = Lock<libc::pthread_barrier_t>;

/// The worker's end meets the partner when it sends, the partner's when it receives: one meeting
/// an operation.
struct Meeting {
    barrier: Arc<Barrier>,
    /// For every other meeting one: the worker may be on its way to the next before the partner
    /// has looked.
    balls: Arc<Shared<[AtomicU32; 2]>>,
    /// Of the next meeting.
    turn: usize,
    is_worker: bool,
}

fn ends(kind: WorkerKind) -> Result<(Meeting, Meeting), Error> {
    // SAFETY: zero is a value of this opaque structure, which init() replaces.
    let mut attributes: libc::pthread_barrierattr_t = unsafe { zeroed() };
    let barrier = Lock::new(|barrier| {
        // SAFETY: valid addresses; the barrier is nobody else's yet.
        unsafe {
            libc::pthread_barrierattr_init(&raw mut attributes);
            libc::pthread_barrierattr_setpshared(&raw mut attributes, locks::scope(kind));
            libc::pthread_barrier_init(barrier, &raw const attributes, 2)
        }
    })?;
    let balls = Arc::new(Shared::new([const { AtomicU32::new(Ball::Play as u32) }; 2])?);
    let end = |is_worker| Meeting {
        barrier: Arc::clone(&barrier),
        balls: Arc::clone(&balls),
        turn: 0,
        is_worker,
    };
    Ok((end(true), end(false)))
}

impl Meeting {
    fn meet(&self) -> Result<(), Errno> {
        // SAFETY: an initialised barrier.
        match unsafe { libc::pthread_barrier_wait(self.barrier.get()) } {
            0 | libc::PTHREAD_BARRIER_SERIAL_THREAD => Ok(()),
            code => Err(Errno::from_raw_os_error(code)),
        }
    }
}

impl End for Meeting {
    fn send(&mut self, ball: Ball) -> Result<(), Errno> {
        if self.is_worker {
            self.balls[self.turn].store(ball as u32, Ordering::Release);
            self.turn = 1 - self.turn;
            self.meet()?;
        }
        Ok(())
    }

    fn receive(&mut self) -> Result<Ball, Errno> {
        if self.is_worker {
            return Ok(Ball::Play);
        }
        self.meet()?;
        let ball = self.balls[self.turn].load(Ordering::Acquire);
        self.turn = 1 - self.turn;
        Ok(Ball::of(u64::from(ball)))
    }
}
