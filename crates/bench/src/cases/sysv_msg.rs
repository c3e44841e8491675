//! sysv-msg: a message through a System V queue.

use rustix::io::Errno;

use super::{Alone, Benchmark, THREADS, last_error};
use crate::{Error, Work, tidy};

pub const CASE: Benchmark = Benchmark {
    id: "sysv-msg",
    measures: "msgsnd() of 64 bytes and msgrcv() of them, each worker a queue of its own",
    ladder: THREADS,
    prepare: |request| {
        let keys: Vec<i32> =
            (0..request.workers).map(|id| request.traces.key(0xf000 + id as u16)).collect();
        Ok(Box::new(Alone(move |id| Ok(Box::new(Queue::make(keys[id])?) as _))))
    },
};

struct Queue(i32);

/// As msgbuf of msgop(2).
#[repr(C)]
struct MsgBuf {
    /// Must not be 0.
    kind: libc::c_long,
    text: [u8; 64],
}

impl Queue {
    fn make(key: i32) -> Result<Queue, Error> {
        // SAFETY: takes no address.
        match unsafe { libc::msgget(key, libc::IPC_CREAT | libc::IPC_EXCL | 0o600) } {
            -1 => Err(Error::os("making a System V queue (kernel.msgmni)")),
            id => Ok(Queue(id)),
        }
    }
}

impl Work for Queue {
    fn operate(&mut self) -> Result<(), Errno> {
        let mut message = MsgBuf { kind: 1, text: [7; 64] };
        let (place, bytes) = ((&raw mut message).cast(), size_of_val(&message.text));
        // SAFETY: a message of so many bytes after its kind, to read from and then to write to.
        let done = unsafe {
            libc::msgsnd(self.0, place, bytes, 0) == 0
                && libc::msgrcv(self.0, place, bytes, 0, 0) >= 0
        };
        if done { Ok(()) } else { Err(last_error()) }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        tidy::remove_queue(self.0);
    }
}
