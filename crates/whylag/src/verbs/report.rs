//! `whylag report`: one run, or two side by side, as one HTML file.

use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use model::outside::visible;
use model::{Proof, RunId};
use page::{Loaded, Page};

use crate::failure::Failure;
use crate::output::Screen;
use crate::place::Place;
use crate::stored::{self, RunName, StoreOptions};

/// Options of `report`.
#[derive(Args)]
#[command(after_help = "\
The file needs no network and asks for nothing: it can be sent, and opened from
a folder. It has names of processes and files, and command lines; give it to
whom you would give those. A run that 'whylag prove' recorded or judged has the
proof with it.

Example:
  whylag report -o slow.html               the newest run
  whylag report x.whylag -o slow.html      the run of a file
  whylag report 7 8 -o fix.html            before and after, side by side")]
pub struct Options {
    /// Number of the run, as 'whylag runs' lists it, or a file that 'export --format run' wrote
    /// [default: the newest]
    run: Option<RunName>,
    /// A second run, beside the first: the one after a change
    second: Option<RunName>,
    /// File to write
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

/// Writes the report.
pub fn run(options: &Options, store: &StoreOptions) -> Result<ExitCode, Failure> {
    let place = Place::of(Some(&options.output), store.path().ok().as_deref())?;
    let mut loaded = vec![load(store, options.run.as_ref())?];
    if let Some(second) = &options.second {
        loaded.push(load(store, Some(second))?);
    }
    let page = Page::of(&loaded, proof(options, store, &loaded)?.as_ref());
    place.fill(|out| {
        let mut out = Screen::new(BufWriter::new(out), false);
        page::html::write(&mut out, &page)?;
        Ok(out.flush()?)
    })?;
    Ok(ExitCode::SUCCESS)
}

/// The proof that these runs are part of: those of the store, as files do not have it with them.
fn proof(
    options: &Options,
    store: &StoreOptions,
    loaded: &[Loaded],
) -> Result<Option<Proof>, Failure> {
    let mut names = options.run.iter().chain(&options.second);
    if names.any(|name| matches!(name, RunName::File(_))) {
        return Ok(None);
    }
    let ids: Vec<RunId> = loaded.iter().map(|one| one.run.id).collect();
    Ok(store.open_to_read()?.proof_of(&ids)?)
}

fn load(options: &StoreOptions, name: Option<&RunName>) -> Result<Loaded, Failure> {
    let (store, id) = stored::choose(options, name)?;
    let called = name.map_or_else(|| id.to_string(), RunName::to_string);
    let loaded = Loaded::from_store(&store, id, visible(&called).into_owned())?;
    stored::must_be_recorded(&loaded.run, name)?;
    Ok(loaded)
}
