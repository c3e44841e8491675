//! `whylag serve`: the stored runs as pages, on this host only.

use std::io::Write;
use std::process::ExitCode;

use clap::Args;
use page::serve::Server;

use crate::failure::Failure;
use crate::output;
use crate::stored::StoreOptions;

/// Options of `serve`.
#[derive(Args)]
#[command(after_help = "\
Only programs on this host can ask, and only with the token that is in the
address; nothing can be written. It runs until it is interrupted.

Example:
  whylag serve      then open the address that it prints")]
pub struct Options {}

/// Serves until the process ends.
pub fn run(_: &Options, store: &StoreOptions) -> Result<ExitCode, Failure> {
    let store = store.open_to_read()?;
    let server = Server::bind()?;
    let (mut out, _) = output::stdout();
    writeln!(out, "{}", server.url())?;
    out.flush()?;
    server.run(store)?;
    Ok(ExitCode::SUCCESS)
}
