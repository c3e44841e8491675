//! The page: a run to look at before it is read, or two side by side.
//!
//! [`Page`] is all that the page shows, and [`Page::of`] makes it of loaded runs; [`html::write`]
//! puts it into one file that opens without a network, [`serve`] gives it out on loopback. The
//! findings are those of `explain --json`, to the last bit. TypeScript (`web/`) only draws: every
//! judgement, sum, quantile, selection and sentence is made here or in explain and report.
//!
//! The types that TypeScript reads are written from these structs (`types.rs`), and the built page
//! (`web/dist`) is part of the source, so that building whylag needs no Node.
//!
//! Caveats. Texts of a run come from the store with escapes ([`model::outside`]); the page sets all
//! of them as text nodes, never as markup. Of a run with more than a million intervals the longest are
//! drawn, and the page says what is left out; the maps of what was counted are of all values.

pub mod accounts;
pub mod chain;
pub mod checkup;
pub mod compare;
mod connections;
mod error;
pub mod flame;
pub mod heat;
pub mod html;
pub mod listen;
pub mod overview;
pub mod proof;
pub mod recorder;
pub mod requests;
pub mod run;
pub mod scope;
pub mod serve;
pub mod timeline;
#[cfg(test)]
mod types;
pub mod wire;

use model::{CheckupDiff, Proof};
use report::Class;
use serde::Serialize;

pub use error::PageError;
pub use run::{Loaded, RunPage};

/// All that a page shows.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Page {
    /// Version of whylag.
    pub version: String,
    /// Classes of accounts, in the order in which they are stacked. A class is known by its place here.
    pub classes: Vec<ClassColors>,
    /// One run, or two that are compared: the first is the one before.
    pub runs: Vec<RunPage>,
    /// Accounts of two runs beside each other; empty for one.
    pub differences: Vec<accounts::Difference>,
    /// How latencies and stacks of two runs differ; none for one.
    pub comparison: Option<compare::Comparison>,
    /// How their hosts and programs differ; none for one run.
    pub surroundings: Option<CheckupDiff>,
    /// What `prove` said of these runs; none if they are in no proof.
    pub proof: Option<proof::ProofPage>,
}

/// A class of accounts.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ClassColors {
    /// What people read.
    pub name: String,
    /// Colour on a light ground.
    pub light: String,
    /// Colour on a dark ground.
    pub dark: String,
}

impl Page {
    /// The page of one run, or of two, and of the proof that they are part of.
    pub fn of(runs: &[Loaded], proof: Option<&Proof>) -> Page {
        let pages: Vec<RunPage> = runs.iter().map(RunPage::of).collect();
        let (differences, comparison, surroundings) = match (runs, &pages[..]) {
            ([a, b], [x, y]) => (
                accounts::differences(&a.run, &b.run),
                Some(compare::comparison([a, b], [x, y])),
                Some(checkup::of_runs(&a.run, &b.run)),
            ),
            _ => (Vec::new(), None, None),
        };
        Page {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            classes: classes(),
            runs: pages,
            differences,
            comparison,
            surroundings,
            proof: proof.map(proof::page),
        }
    }
}

/// Those of report, with their colours.
fn classes() -> Vec<ClassColors> {
    let colors = |class: Class| ClassColors {
        name: class.name().to_owned(),
        light: class.on_light().to_owned(),
        dark: class.on_dark().to_owned(),
    };
    Class::ALL.into_iter().map(colors).collect()
}
