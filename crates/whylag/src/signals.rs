//! SIGINT and SIGTERM end a measurement, not whylag: what was measured is stored and judged.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use anyhow::Context;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::failure::Failure;

/// Number of the signal that asked for the end; 0 as long as none did.
///
/// A command that is to be measured has to be started before: it inherits that a signal is ignored
/// (nohup, `&` in a script), but not that it is handled.
pub fn asking_for_the_end() -> Result<Arc<AtomicUsize>, Failure> {
    let signal = Arc::new(AtomicUsize::new(0));
    for number in [SIGINT, SIGTERM] {
        signal_hook::flag::register_usize(number, Arc::clone(&signal), number as usize)
            .context("cannot handle signals")?;
    }
    Ok(signal)
}

/// As the reason for the end of a run.
pub fn name(number: usize) -> &'static str {
    if number == SIGINT as usize { "Ctrl-C (SIGINT)" } else { "SIGTERM" }
}
