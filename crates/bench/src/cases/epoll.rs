//! epoll: asks only what is ready.

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;

use super::{Alone, Benchmark, watched};

const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

pub const CASE: Benchmark = Benchmark {
    id: "epoll",
    measures: "epoll_wait() without waiting, of eventfds of which the last is ready",
    ladder: watched::LADDER,
    prepare: |request| {
        let idle = request.population;
        Ok(Box::new(Alone(move |_| {
            let (set, descriptors) = watched::epoll(idle)?;
            let mut events = Vec::with_capacity(8);
            Ok(Box::new(move || {
                let _open = &descriptors;
                events.clear();
                match epoll::wait(&set, spare_capacity(&mut events), Some(&AT_ONCE))? {
                    1 => Ok(()),
                    _ => Err(Errno::IO),
                }
            }) as _)
        })))
    },
};
