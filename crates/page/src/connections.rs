//! Connections of the server: so many at a time, and strangers make room.
//!
//! Everybody on this host can connect to a port of loopback, and say nothing, or a byte an hour, or read
//! no answer. Who has not named the token is a stranger: when all places are taken, the stranger that
//! came first is disconnected for the one who comes. So nobody can keep others out, and the server
//! needs no clock for the slow.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::task::AbortHandle;

use crate::listen::Listener;

/// Connections at a time. A browser has six; a process may have 1,024 files open, and often fewer.
const MOST: usize = 64;

/// Bytes of a request, and what of an answer waits to be sent at once.
const BUFFER: usize = 64 << 10;

/// How long nobody is let in when there is no memory or no descriptor for another connection.
const REST: Duration = Duration::from_millis(100);

/// Who asks on a connection: known once a request on it had the token.
#[derive(Clone, Debug, Default)]
pub struct Visitor(Arc<AtomicBool>);

impl Visitor {
    /// A request had the token.
    pub fn is_welcome(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_stranger(&self) -> bool {
        !self.0.load(Ordering::Relaxed)
    }
}

/// Answers all who come until the process ends.
///
/// # Errors
/// If the listener is no good.
pub async fn answer(listener: Listener, app: Router) -> io::Result<()> {
    let mut places = Places::default();
    match listener {
        Listener::Port(listener, _) => {
            let listener = TcpListener::from_std(listener)?;
            loop {
                places.take(listener.accept().await, &app).await;
            }
        }
        Listener::Socket(listener, _) => {
            let listener = UnixListener::from_std(listener)?;
            loop {
                places.take(listener.accept().await, &app).await;
            }
        }
    }
}

/// Those who are connected, who came first in front.
#[derive(Default)]
struct Places(VecDeque<(AbortHandle, Visitor)>);

impl Places {
    async fn take<S, A>(&mut self, accepted: io::Result<(S, A)>, app: &Router)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        self.0.retain(|(task, _)| !task.is_finished());
        let Ok((stream, _)) = accepted else {
            // Who came is gone again, or there are too many open files.
            self.make_room();
            tokio::time::sleep(REST).await;
            return;
        };
        if self.0.len() >= MOST && !self.make_room() {
            return;
        }
        let visitor = Visitor::default();
        let service = TowerToHyperService::new(app.clone().layer(Extension(visitor.clone())));
        let mut http = http1::Builder::new();
        let connection = http.max_buf_size(BUFFER).serve_connection(TokioIo::new(stream), service);
        // How it ended is of no interest to anybody else.
        let task = tokio::spawn(async move { drop(connection.await) });
        self.0.push_back((task.abort_handle(), visitor));
    }

    /// Disconnects a stranger, if there is one.
    fn make_room(&mut self) -> bool {
        let first = self.0.iter().position(|(_, visitor)| visitor.is_stranger());
        let gone = first.and_then(|first| self.0.remove(first));
        gone.is_some_and(|(task, _)| {
            task.abort();
            true
        })
    }
}
