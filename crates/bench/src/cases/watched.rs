//! What the cases share that watch many descriptors of which one is ready.

use std::os::fd::OwnedFd;

use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::io::Errno;

use super::{Ladder, PROCESSES, Population};
use crate::ceiling::Resource;

/// One process, because each worker has descriptors of its own, and 1000 are what most may have.
pub const LADDER: Ladder = Ladder {
    workers: &[1],
    population: Some(Population {
        of: "watched descriptors that are idle",
        sizes: &[1, 10, 100, 1000],
        uses: Resource::Descriptors,
    }),
    ..PROCESSES
};

/// So many eventfds that never are ready, then one that always is.
pub fn eventfds(idle: u64) -> Result<Vec<OwnedFd>, Errno> {
    (0..=idle).map(|nth| eventfd(u32::from(nth == idle), EventfdFlags::CLOEXEC)).collect()
}

/// An epoll set of such eventfds, and these.
pub fn epoll(idle: u64) -> Result<(OwnedFd, Vec<OwnedFd>), Errno> {
    let set = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let descriptors = eventfds(idle)?;
    for descriptor in &descriptors {
        epoll::add(&set, descriptor, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
    }
    Ok((set, descriptors))
}
