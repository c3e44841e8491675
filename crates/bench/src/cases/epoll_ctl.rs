//! epoll-ctl: changing what is watched.

use rustix::event::{EventfdFlags, epoll, eventfd};

use super::{Alone, Benchmark, watched};

pub const CASE: Benchmark = Benchmark {
    id: "epoll-ctl",
    measures: "epoll_ctl() that adds a descriptor and one that deletes it, with others watched",
    ladder: watched::LADDER,
    prepare: |request| {
        let idle = request.population;
        Ok(Box::new(Alone(move |_| {
            let (set, descriptors) = watched::epoll(idle)?;
            let one = eventfd(0, EventfdFlags::CLOEXEC)?;
            Ok(Box::new(move || {
                let _open = &descriptors;
                epoll::add(&set, &one, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
                epoll::delete(&set, &one)
            }) as _)
        })))
    },
};
