//! poll: asks each descriptor in turn.

use std::os::fd::AsRawFd;

use rustix::io::Errno;

use super::{Alone, Benchmark, watched};

pub const CASE: Benchmark = Benchmark {
    id: "poll",
    measures: "poll() without waiting, of eventfds of which the last is ready",
    ladder: watched::LADDER,
    prepare: |request| {
        let idle = request.population;
        Ok(Box::new(Alone(move |_| {
            let descriptors = watched::eventfds(idle)?;
            let asked = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
            let mut list: Vec<_> = descriptors.iter().map(|fd| asked(fd.as_raw_fd())).collect();
            Ok(Box::new(move || {
                let _open = &descriptors;
                // SAFETY: a list of so many entries.
                match unsafe { libc::poll(list.as_mut_ptr(), list.len() as libc::nfds_t, 0) } {
                    1 => Ok(()),
                    _ => Err(Errno::IO),
                }
            }) as _)
        })))
    },
};
