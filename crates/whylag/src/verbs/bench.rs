//! `whylag bench`: what operations of the kernel cost here, over ladders.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use bench::cases::{self, Case};
use bench::ladder::Settings;
use bench::{Message, Session};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use model::{Batch, Bench, BenchCase, BenchStep, RunEnd, RunHeader, Target, WorkerKind};
use store::{Sqlite, Store, location};

use crate::failure::Failure;
use crate::output;

/// Options of `bench`.
#[derive(Args)]
#[command(after_help = "\
Without a case: a fast tour of all of them, under 3 minutes.

Example:
  whylag bench --list
  whylag bench sem-sysv --processes 1,2,4
  whylag bench unix-socket --population 0,1k,10k")]
pub struct Options {
    /// The cases, as --list names them
    #[arg(value_name = "CASE")]
    cases: Vec<String>,
    /// Say what each case measures
    #[arg(long)]
    list: bool,
    /// Measure with so many threads, one after the other, such as 1,2,4
    #[arg(long, value_name = "N,..", value_delimiter = ',', conflicts_with = "processes")]
    threads: Vec<u32>,
    /// Measure with so many processes, one after the other
    #[arg(long, value_name = "N,..", value_delimiter = ',')]
    processes: Vec<u32>,
    /// Measure beside so many objects, such as 0,1k,10k
    #[arg(long, value_name = "N,..", value_delimiter = ',', value_parser = size)]
    population: Vec<u64>,
    /// For each case, all its steps together [default: 2s; 1s in the tour]
    #[arg(long, value_name = "D", value_parser = report::units::parse_duration)]
    time: Option<u64>,
    /// Bind each worker to a CPU
    #[arg(long)]
    pin: bool,
    /// Show the distribution of each step, on a linear and on a logarithmic axis
    #[arg(long)]
    histogram: bool,
    /// Record the workers meanwhile, to see where slow operations wait
    #[arg(long)]
    with_kernel: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}
