//! What the cases share that send something and receive it themselves, in the same thread.

use std::os::fd::OwnedFd;

use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::{Alone, Prepared, Request};
use crate::{Error, Work};

/// Bytes of a message.
pub const MESSAGE: usize = 64;

/// Each worker has two sockets made by `pair`; an operation sends from the second to the first.
pub fn prepare(
    _: &Request<'_>,
    pair: fn() -> Result<(OwnedFd, OwnedFd), Error>,
) -> Result<Box<dyn Prepared>, Error> {
    // If it cannot be had, it is known before anybody works.
    drop(pair()?);
    Ok(Box::new(Alone(move |_| {
        let (at, from) = pair()?;
        let work: Box<dyn Work> = Box::new(move || {
            send(&from, &[7; MESSAGE], SendFlags::empty())?;
            recv(&at, &mut [0; MESSAGE], RecvFlags::empty()).map(drop)
        });
        Ok(work)
    })))
}
