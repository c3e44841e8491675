//! Where the served page is asked for: a port of loopback, or a socket in the file system.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fs::Mode;

use crate::PageError;

/// What listens and answers nobody yet.
#[derive(Debug)]
pub enum Listener {
    /// A port of 127.0.0.1.
    Port(TcpListener, SocketAddr),
    /// A socket that its owner alone can open.
    Socket(UnixListener, PathBuf),
}

impl Listener {
    /// A free port of 127.0.0.1.
    ///
    /// # Errors
    /// If there is none.
    pub fn port() -> Result<Listener, PageError> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        Ok(Listener::Port(listener, address))
    }

    /// A socket at this path, for its owner alone. One that nobody listens at any more is replaced,
    /// if it belongs to the same user.
    ///
    /// # Errors
    /// If something else is there, or a socket cannot be made there.
    pub fn socket(path: &Path) -> Result<Listener, PageError> {
        let failed = |error| PageError::Socket(path.to_owned(), error);
        let listener = match bind(path) {
            Err(error) if error.kind() == ErrorKind::AddrInUse && is_left_over(path) => {
                std::fs::remove_file(path).map_err(failed)?;
                bind(path)
            }
            bound => bound,
        };
        let listener = listener.map_err(failed)?;
        listener.set_nonblocking(true)?;
        Ok(Listener::Socket(listener, path.to_owned()))
    }

    /// The host that an address of it names.
    pub fn host(&self) -> String {
        match self {
            Listener::Port(_, address) => address.to_string(),
            Listener::Socket(..) => "localhost".to_owned(),
        }
    }

    /// The names that requests may ask for. What is forwarded to a socket comes from any port, but
    /// never by another name: that would be a page elsewhere (DNS rebinding).
    pub fn hosts(&self) -> Hosts {
        match self {
            Listener::Port(_, address) => Hosts::Port(address.port()),
            Listener::Socket(..) => Hosts::AnyPort,
        }
    }
}

/// Names of this host.
#[derive(Clone, Copy, Debug)]
pub enum Hosts {
    /// With this port.
    Port(u16),
    /// With any port, or none.
    AnyPort,
}

impl Hosts {
    /// True if a request's Host is one of them.
    pub fn has(self, host: &str) -> bool {
        let (name, port) = match host.split_once(':') {
            Some((name, port)) => (name, port.parse::<u16>().map_err(drop).map(Some)),
            None => (host, Ok(None)),
        };
        let is_port = match (self, port) {
            (Hosts::Port(own), Ok(port)) => port == Some(own),
            (Hosts::AnyPort, Ok(_)) => true,
            (_, Err(())) => false,
        };
        is_port && matches!(name, "127.0.0.1" | "localhost")
    }
}

/// A socket that others cannot open from its first moment on.
fn bind(path: &Path) -> io::Result<UnixListener> {
    let before = rustix::process::umask(Mode::RWXG | Mode::RWXO | Mode::XUSR);
    let bound = UnixListener::bind(path);
    rustix::process::umask(before);
    bound
}

/// True of an own socket that nobody listens at.
fn is_left_over(path: &Path) -> bool {
    let own = rustix::process::geteuid().as_raw();
    let is_own = |found: std::fs::Metadata| found.file_type().is_socket() && found.uid() == own;
    path.symlink_metadata().is_ok_and(is_own)
        && UnixStream::connect(path).is_err_and(|e| e.kind() == ErrorKind::ConnectionRefused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_this_host_are_accepted_and_no_others() {
        for (hosts, host, is) in [
            (Hosts::Port(80), "127.0.0.1:80", true),
            (Hosts::Port(80), "localhost:80", true),
            (Hosts::Port(80), "localhost:81", false),
            (Hosts::Port(80), "localhost", false),
            (Hosts::Port(80), "whylag.example:80", false),
            (Hosts::AnyPort, "localhost", true),
            (Hosts::AnyPort, "localhost:8000", true),
            (Hosts::AnyPort, "127.0.0.1:8000", true),
            (Hosts::AnyPort, "whylag.example", false),
            (Hosts::AnyPort, "whylag.example:8000", false),
            (Hosts::AnyPort, "localhost:x", false),
            (Hosts::AnyPort, "localhost:80@whylag.example", false),
            (Hosts::AnyPort, "", false),
        ] {
            assert_eq!(hosts.has(host), is, "{hosts:?} {host}");
        }
    }
}
