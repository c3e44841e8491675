//! `whylag doctor -p PID --watch`: calls as they become bound.

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use inspect::live::{Library, LiveError, Process, Watch};
use serde_json::json;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::failure::Failure;
use crate::output;

/// A look every so often: so late a line can be.
const LOOK: Duration = Duration::from_millis(10);
/// Between two looks at least this many times as long as one takes: at most 5 % of a CPU.
const PAUSE: u32 = 20;
/// Libraries that are loaded meanwhile are found so often.
const REFRESH: Duration = Duration::from_secs(1);

/// Watches until a signal, the end of the process, or `time_ns`.
pub fn run(pid: u32, time_ns: Option<u64>, as_json: bool) -> Result<ExitCode, Failure> {
    let is_over = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&is_over))
            .context("cannot handle signals")?;
    }
    let mut watch = Watch::new(Process::open(pid)?)?;
    let waiting: usize = watch.libraries().iter().map(|library| library.unbound().count()).sum();
    let libraries = watch.libraries().iter().filter(|library| library.counts().is_some()).count();
    eprintln!(
        "whylag: {waiting} calls of {libraries} files are not bound yet; looking every {} ms; \
         Ctrl-C ends it",
        LOOK.as_millis()
    );
    tell_unknown(watch.libraries());

    let limit = time_ns.map(Duration::from_nanos);
    let (began, mut refreshed) = (Instant::now(), Instant::now());
    while !is_over.load(Ordering::Relaxed) && limit.is_none_or(|limit| began.elapsed() < limit) {
        let looked = Instant::now();
        match look(&mut watch, &mut refreshed, as_json) {
            Err(Failure::Failed(error)) if error.is::<LiveError>() => {
                eprintln!("whylag: {error}");
                return Ok(ExitCode::SUCCESS);
            }
            looked => looked?,
        }
        std::thread::sleep(LOOK.max(looked.elapsed() * PAUSE));
    }
    Ok(ExitCode::SUCCESS)
}

fn look(watch: &mut Watch, refreshed: &mut Instant, as_json: bool) -> Result<(), Failure> {
    let bound = watch.look()?;
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = i64::try_from(since_1970.as_nanos()).unwrap_or(i64::MAX);
    if refreshed.elapsed() > REFRESH {
        watch.refresh()?;
        *refreshed = Instant::now();
    }
    if bound.is_empty() {
        return Ok(());
    }
    let (mut out, _) = output::stdout();
    for one in bound {
        let (library, symbol, provider) = (&one.library, &one.symbol, one.provider.as_deref());
        if as_json {
            let line = json!({
                "unix_ns": now, "library": library, "symbol": symbol, "provider": provider,
            });
            writeln!(out, "{line}")?;
        } else {
            writeln!(out, "{}", report::doctor::bound(now, library, symbol, provider))?;
        }
    }
    Ok(out.flush()?)
}

fn tell_unknown(libraries: &[Library]) {
    for library in libraries {
        let because = match &library.slots {
            Err(because) => because,
            Ok(slots) => match &slots.unbound {
                Err(because) => because,
                Ok(_) => continue,
            },
        };
        eprintln!("whylag: {}: {because}", library.path);
    }
}
