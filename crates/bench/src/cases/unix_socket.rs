//! unix-socket: does a new AF_UNIX socket cost more, the more there are? (story 4)

use std::os::fd::OwnedFd;

use model::{BenchStep, StoryShape};
use rustix::net::{AddressFamily, SocketType, socket};

use super::{Case, Ladder, PROCESSES, Population, Prepared, Request};
use crate::ceiling::{self, Resource};
use crate::helpers::Helpers;
use crate::{Error, Work, cases};

pub const CASE: Case = Case {
    id: "unix-socket",
    measures: "socket(AF_UNIX) and close() beside open AF_UNIX sockets",
    ladder: Ladder {
        workers: &[1],
        population: Some(Population {
            of: "open AF_UNIX sockets",
            sizes: &[0, 1_000, 10_000, 50_000],
            uses: Resource::Descriptors,
        }),
        shape: Some(shape),
        ..PROCESSES
    },
    prepare,
};

/// The sockets stay open in helper processes.
struct BesideSockets {
    _sockets: Helpers,
}

fn prepare(request: &Request<'_>) -> Result<Box<dyn Prepared>, Error> {
    let sockets = Helpers::hold(request.population, ceiling::descriptors_each(), |share| {
        let open = |_| socket(AddressFamily::UNIX, SocketType::DGRAM, None);
        Ok(share.map(open).collect::<Result<Vec<OwnedFd>, _>>()?)
    })?;
    Ok(Box::new(BesideSockets { _sockets: sockets }))
}

impl Prepared for BesideSockets {
    fn worker(&self, _: usize) -> Result<Box<dyn Work>, Error> {
        Ok(Box::new(|| socket(AddressFamily::UNIX, SocketType::DGRAM, None).map(drop)))
    }
}

fn shape(steps: &[BenchStep]) -> StoryShape {
    cases::grows_with_population(steps, 1.5, "in the story 0.585 s instead of 0.24 s, 2.4 times")
}
