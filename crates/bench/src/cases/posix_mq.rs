//! posix-mq: a message through a POSIX queue.

use std::path::Path;

use rustix::io::Errno;

use super::{Alone, Benchmark, THREADS, last_error};
use crate::{Error, Work, tidy};

/// Bytes of a message; the queue has room for one, so that many workers fit the limit of a user
/// (`ulimit -q`).
const MESSAGE: usize = 64;

pub const CASE: Benchmark = Benchmark {
    id: "posix-mq",
    measures: "mq_send() of 64 bytes and mq_receive() of them, each worker a queue of its own",
    ladder: THREADS,
    prepare: |request| {
        let folder = request.traces.folder().to_owned();
        drop(Queue::make(&folder, 0)?);
        Ok(Box::new(Alone(move |id| Ok(Box::new(Queue::make(&folder, id)?) as _))))
    },
};

struct Queue(libc::mqd_t);

impl Queue {
    /// A queue without a name: that is removed at once.
    fn make(folder: &Path, id: usize) -> Result<Queue, Error> {
        let name = tidy::posix_queue(folder, id)?;
        // SAFETY: zero is a value of this structure of integers.
        let mut attributes: libc::mq_attr = unsafe { std::mem::zeroed() };
        (attributes.mq_maxmsg, attributes.mq_msgsize) = (1, MESSAGE as libc::c_long);
        let flags = libc::O_CREAT | libc::O_EXCL | libc::O_RDWR | libc::O_CLOEXEC;
        // SAFETY: a name that ends with zero, and valid attributes.
        let queue = unsafe { libc::mq_open(name.as_ptr(), flags, 0o600, &raw const attributes) };
        if queue == -1 {
            let why = last_error();
            let text = format!("making a POSIX queue: {why} (fs.mqueue.queues_max, ulimit -q)");
            return Err(Error::Refused(text));
        }
        // SAFETY: as above.
        unsafe { libc::mq_unlink(name.as_ptr()) };
        Ok(Queue(queue))
    }
}

impl Work for Queue {
    fn operate(&mut self) -> Result<(), Errno> {
        let mut message = [7; MESSAGE];
        let place = (&raw mut message).cast::<libc::c_char>();
        // SAFETY: a message of so many bytes, to read from and then to write to.
        let done = unsafe {
            libc::mq_send(self.0, place, MESSAGE, 0) == 0
                && libc::mq_receive(self.0, place, MESSAGE, std::ptr::null_mut()) >= 0
        };
        if done { Ok(()) } else { Err(last_error()) }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // SAFETY: opened in make(), and nobody else has it.
        unsafe { libc::mq_close(self.0) };
    }
}
