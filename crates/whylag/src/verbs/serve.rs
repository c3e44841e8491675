//! `whylag serve`: the stored runs as pages, on this host only.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use page::listen::Listener;
use page::serve::Server;

use crate::failure::Failure;
use crate::output;
use crate::stored::StoreOptions;
use crate::verbs::doctor;

/// Options of `serve`.
#[derive(Args)]
#[command(after_help = "\
Only programs on this host can ask, and only with the token that is in the
address; nothing can be written. It runs until it is interrupted.

A socket can be opened by its owner alone. To see it elsewhere, forward it with
'ssh -L 8000:PATH HOST' and open the address with port 8000 in it.

Example:
  whylag serve                        then open the address that it prints
  whylag serve --socket /tmp/w.sock   the same at a socket, for no other user")]
pub struct Options {
    /// Listen at a Unix socket that is made at this path, not at a port
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

/// Serves until the process ends.
pub fn run(options: &Options, store: &StoreOptions) -> Result<ExitCode, Failure> {
    let store = store.open_to_read()?;
    let listener = match &options.socket {
        Some(path) => Listener::socket(path)?,
        None => Listener::port()?,
    };
    let server = Server::new(listener)?;
    // Before anybody learns of it: everybody on this host can connect to a port.
    observe::keep_for(observe::Work::Host);
    let (mut out, _) = output::stdout();
    writeln!(out, "{}", server.url())?;
    out.flush()?;
    let look = || doctor::checkup(None).map_err(|failure| failure.to_string());
    server.run(store, look)?;
    Ok(ExitCode::SUCCESS)
}
