//! Runs that are there already.

use model::{Trial, TrialSide};

use crate::failure::Failure;
use crate::stored::{self, RunName, StoreOptions};

/// The first before with the first after, and so on.
pub fn trials(
    store: &StoreOptions,
    before: &[RunName],
    after: &[RunName],
) -> Result<Vec<Trial>, Failure> {
    let (before, after) = (stored::named(store, before)?, stored::named(store, after)?);
    if before.len() != after.len() {
        return Err(Failure::Usage(format!(
            "{} runs before and {} after: give as many on both sides, each next to the one that \
             was recorded nearest to it",
            before.len(),
            after.len()
        )));
    }
    let trial = |side, pair, name: &RunName| {
        let (store, run) = stored::choose(store, Some(name))?;
        let figures = stored::figures(&store, run)?;
        let wall_ns = figures.length_ns;
        Ok(Trial { side, pair, run: Some(run), wall_ns, metric: None, figures: Some(figures) })
    };
    let pairs = before.iter().zip(&after).enumerate();
    let both = pairs.flat_map(|(pair, (before, after))| {
        [trial(TrialSide::Before, pair, before), trial(TrialSide::After, pair, after)]
    });
    both.collect()
}
