//! tcp-connect: the life of a TCP connection.

use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{accept, sockopt::set_socket_linger};

use super::{Alone, Benchmark, THREADS, loopback};

pub const CASE: Benchmark = Benchmark {
    id: "tcp-connect",
    measures: "connect() over lo, accept(), and close() of both by reset, in the same thread",
    ladder: THREADS,
    prepare: |_| {
        Ok(Box::new(Alone(|_| {
            let failed = loopback::refused("TCP");
            let listener = TcpListener::bind(loopback::ANY).map_err(&failed)?;
            let at = listener.local_addr().map_err(&failed)?;
            // What is accepted inherits it: closed by reset, a connection leaves no TIME_WAIT,
            // of which there would soon be one on each port.
            set_socket_linger(&listener, Some(Duration::ZERO))?;
            Ok(Box::new(move || {
                let client = TcpStream::connect(at)
                    .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
                let server = accept(&listener)?;
                drop(server);
                drop(client);
                Ok(())
            }) as _)
        })))
    },
};
