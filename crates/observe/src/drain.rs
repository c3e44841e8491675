//! Empties the ring buffers in a thread of its own into the inbox.

use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use libbpf_rs::{RingBuffer, RingBufferBuilder};

use crate::Error;
use crate::inbox::Inbox;
use crate::mappings;
use crate::probes::Probes;
use crate::squeezed::Squeezed;
use crate::thread_room::ThreadRoom;
use crate::wakeup::Bell;

/// How long an event may wait in its ring while little happens; when much happens the kernel
/// side wakes us.
const PATIENCE: Duration = Duration::from_millis(50);
/// Programs begun whose mappings are read in one round, about 100 us each.
const LOOKS_PER_ROUND: usize = 32;

/// The draining thread.
pub struct Drain {
    inbox: Arc<Mutex<Inbox>>,
    bell: Arc<Bell>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drain {
    /// Begins to drain.
    pub fn start(probes: &mut Probes) -> Result<Drain, Error> {
        let looks_early = !probes.shows_mappings_at_exit();
        let room = probes.take_room().map(ThreadRoom::follow).transpose()?;
        let inbox = Arc::new(Mutex::new(Inbox::new(looks_early)));
        let stop = Arc::new(AtomicBool::new(false));
        let mut builder = RingBufferBuilder::new();
        let maps = &probes.skel().maps;
        for map in [&maps.outliers, &maps.rare] {
            let inbox = Arc::clone(&inbox);
            builder
                .add(map, move |bytes| {
                    lock(&inbox).put(bytes);
                    0
                })
                .map_err(Error::bpf("opening a ring buffer"))?;
        }
        let rings = builder.build().map_err(Error::bpf("opening a ring buffer"))?;
        let stopped = Arc::clone(&stop);
        let theirs = Arc::clone(&inbox);
        let urgent = Arc::clone(&inbox);
        let bell = Arc::new(Bell::new()?);
        let rung = Arc::clone(&bell);
        let thread = std::thread::Builder::new()
            .name("drain".into())
            .spawn(move || {
                let mut looks = looks_early.then(|| Looks::new(theirs));
                drain(&rings, &stopped, || {
                    let mut inbox = lock(&urgent);
                    // It ends where there is no memory.
                    if let (Some(room), Some(slot)) = (&room, inbox.thread_slot.take()) {
                        let _ = room.send(slot);
                    }
                    if inbox.is_urgent() {
                        rung.ring();
                    }
                    drop(inbox);
                    looks.iter_mut().for_each(Looks::look);
                });
            })
            .map_err(Error::io("starting the draining thread"))?;
        Ok(Drain { inbox, bell, stop, thread: Some(thread) })
    }

    /// Takes everything that has come, but of the outliers only so many.
    pub fn take(&self, outliers: usize) -> Inbox {
        lock(&self.inbox).take(outliers)
    }

    /// Takes so many outliers and nothing else.
    pub fn take_outliers(&self, outliers: usize) -> Vec<Squeezed> {
        lock(&self.inbox).some_outliers(outliers)
    }

    /// Takes the processes that began to run a program.
    pub fn take_begun(&self) -> Vec<u32> {
        mem::take(&mut lock(&self.inbox).begun)
    }

    /// True when outliers come faster than they are taken once a second.
    pub fn is_pressed(&self) -> bool {
        lock(&self.inbox).is_pressed()
    }

    /// The same of rare records.
    pub fn is_crowded(&self) -> bool {
        lock(&self.inbox).is_crowded()
    }

    /// Rung when something should be taken soon.
    pub fn bell(&self) -> &Bell {
        &self.bell
    }

    /// Drains what is left and ends the thread.
    pub fn finish(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed; what came before it is still good.
            let _ = thread.join();
        }
    }
}

impl Drop for Drain {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
    }
}

fn drain(rings: &RingBuffer<'_>, stop: &AtomicBool, mut after_each: impl FnMut()) {
    while !stop.load(Ordering::Acquire) {
        // Errors are interrupted system calls; the next round comes anyway.
        let _ = rings.poll(PATIENCE);
        let _ = rings.consume();
        after_each();
    }
    let _ = rings.consume();
}

/// Reads the mappings of processes soon after they began to run a program: where the kernel does
/// not show them at its end, that is the only time when they can be seen of one that soon ends.
struct Looks {
    inbox: Arc<Mutex<Inbox>>,
    /// Looked at in the last round: the linker may have gone on to map libraries.
    again: Vec<u32>,
}

impl Looks {
    fn new(inbox: Arc<Mutex<Inbox>>) -> Looks {
        Looks { inbox, again: Vec::new() }
    }

    fn look(&mut self) {
        let fresh: Vec<u32> = {
            let mut inbox = lock(&self.inbox);
            inbox.some_executed(LOOKS_PER_ROUND)
        };
        let again = mem::replace(&mut self.again, fresh);
        for tgid in again.into_iter().chain(self.again.iter().copied()) {
            let seen = mappings::of_process(tgid);
            lock(&self.inbox).put_early(tgid, seen);
        }
    }
}

/// A poisoned inbox still holds whole records: each is put in one step.
fn lock(inbox: &Mutex<Inbox>) -> MutexGuard<'_, Inbox> {
    inbox.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
