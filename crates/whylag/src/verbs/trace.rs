//! `whylag trace`: programs that trace their own messages, looked at from outside.

mod files;
mod live;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::failure::Failure;
use crate::stored::StoreOptions;

/// Options of `trace`.
#[derive(Args)]
#[command(
    args_conflicts_with_subcommands = true,
    arg_required_else_help = true,
    after_help = "\
A program traces with the Rust crate, the C header or the Java library of
whylag. 'whylag record' reads such traces by itself, and says for each slow
message what its threads waited for.

Example:
  whylag trace ls                     the traces on this host
  whylag trace -p 1234                its messages, second by second
  whylag trace harvest                keeps what crashed programs left, as runs"
)]
pub struct Options {
    #[command(subcommand)]
    what: Option<What>,
    /// The process to follow, until it ends or Ctrl-C
    #[arg(short, long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pid: Option<u32>,
    /// How often to print
    #[arg(long, value_name = "D", default_value = "1s", requires = "pid",
          value_parser = model::units::parse_duration)]
    every: u64,
    /// Print one JSON object per line
    #[arg(long, requires = "pid")]
    json: bool,
}

#[derive(Subcommand)]
enum What {
    /// The traces on this host: of running programs, and what crashed ones left
    Ls {
        /// Print one JSON array
        #[arg(long)]
        json: bool,
    },
    /// Store what crashed programs left, each as a run, and remove those files
    Harvest {
        /// The files [default: all that 'trace ls' shows as left behind]
        #[arg(value_name = "FILE")]
        files: Vec<PathBuf>,
    },
}

/// Looks at traces.
pub fn run(options: &Options, store: &StoreOptions) -> Result<ExitCode, Failure> {
    match (&options.what, options.pid) {
        (Some(What::Ls { json }), _) => files::list(*json),
        (Some(What::Harvest { files }), _) => files::harvest(files, store),
        (None, Some(pid)) => live::follow(pid, options.every, options.json),
        (None, None) => Err(Failure::Usage(
            "name a process: 'whylag trace -p PID'; 'whylag trace ls' shows those that trace"
                .to_owned(),
        )),
    }
}
