//! Ends that sleep on futexes: what the cases with futexes share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io::Errno;
use rustix::thread::futex::{self, Flags};

use super::ping_pong::{Ball, End};
use super::shared::Shared;
use crate::Error;

/// Two words: on each one end waits. Zero while there is no ball.
type Words = [Padded; 2];

/// On two lines of its own, because processors fetch them in pairs.
#[repr(align(128))]
struct Padded(AtomicU32);

/// Sleeps on one word and wakes who sleeps on the other.
pub struct Futexes {
    words: Arc<Shared<Words>>,
    own: usize,
    flags: Flags,
}

/// Two ends; with `Flags::PRIVATE` they are for threads of one process only.
pub fn ends(flags: Flags) -> Result<(Futexes, Futexes), Error> {
    let words = Arc::new(Shared::new([const { Padded(AtomicU32::new(0)) }; 2])?);
    let end = |own| Futexes { words: Arc::clone(&words), own, flags };
    Ok((end(0), end(1)))
}

impl End for Futexes {
    fn send(&mut self, ball: Ball) -> Result<(), Errno> {
        let word = &self.words[1 - self.own].0;
        word.store(ball as u32, Ordering::Release);
        futex::wake(word, self.flags, 1).map(drop)
    }

    fn receive(&mut self) -> Result<Ball, Errno> {
        let word = &self.words[self.own].0;
        loop {
            match word.swap(0, Ordering::Acquire) {
                0 => match futex::wait(word, self.flags, 0, None) {
                    Ok(()) | Err(Errno::AGAIN | Errno::INTR) => {}
                    Err(error) => return Err(error),
                },
                ball => return Ok(Ball::of(u64::from(ball))),
            }
        }
    }
}
