//! Whether the measurement is to end: the user wants it, or the process that asked for it ended.

use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// True once the process has got SIGINT or SIGTERM: long preparations look here.
pub fn requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}

/// From now on SIGINT and SIGTERM only set the flag.
pub(crate) fn on_signals() -> std::io::Result<()> {
    for signal in [SIGINT, SIGTERM] {
        // SAFETY: storing to an atomic is allowed in a signal handler.
        unsafe {
            signal_hook::low_level::register(signal, || REQUESTED.store(true, Ordering::Relaxed))
        }?;
    }
    Ok(())
}
