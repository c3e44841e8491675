//! select: asks each descriptor in turn, named by bits.

use std::os::fd::AsRawFd;

use rustix::event::{FdSetElement, Timespec, fd_set_insert, fd_set_num_elements, select};
use rustix::io::Errno;

use super::{Alone, Benchmark, watched};

const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

pub const CASE: Benchmark = Benchmark {
    id: "select",
    measures: "select() without waiting, of eventfds of which the last is ready",
    ladder: watched::LADDER,
    prepare: |request| {
        let idle = request.population;
        Ok(Box::new(Alone(move |_| {
            let descriptors = watched::eventfds(idle)?;
            let most = descriptors.iter().map(AsRawFd::as_raw_fd).max().unwrap_or(0) + 1;
            // As long as it needs to be: the kernel knows no limit of 1024.
            let mut all =
                vec![FdSetElement::default(); fd_set_num_elements(descriptors.len(), most)];
            for descriptor in &descriptors {
                fd_set_insert(&mut all, descriptor.as_raw_fd());
            }
            let mut asked = all.clone();
            Ok(Box::new(move || {
                asked.copy_from_slice(&all);
                let _open = &descriptors;
                // SAFETY: all descriptors in the set are open as long as this closure has them.
                match unsafe { select(most, Some(&mut asked), None, None, Some(&AT_ONCE)) }? {
                    1 => Ok(()),
                    _ => Err(Errno::IO),
                }
            }) as _)
        })))
    },
};
