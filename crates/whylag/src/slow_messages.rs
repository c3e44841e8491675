//! The slow messages of a run, with the intervals of their threads from the store.

use model::{Run, SlowMessages};
use store::Store;

use crate::failure::Failure;

/// Loads what the threads of the messages did, and has explain say where their time went.
pub fn load(store: &impl Store, run: &Run) -> Result<SlowMessages, Failure> {
    if run.messages.slow.is_empty() {
        return Ok(SlowMessages::default());
    }
    let (outliers, stacks) = store.outliers_in(run.id, &explain::message_windows(run))?;
    Ok(explain::slow_messages(&Run { outliers, stacks: stacks.into(), ..run.clone() }))
}
