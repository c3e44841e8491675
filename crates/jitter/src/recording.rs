//! Records in the kernel what happens to the threads whose ticks are judged.
//!
//! The recorder gives up what it may do and does not need, and that holds for the thread that it
//! runs in: so it has one of its own, and the timers keep their right to a real-time priority.

use std::ffi::OsString;
use std::process::Child;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use model::{Batch, Outlier, RecorderPart};
use observe::capability::{HostFacts, Plan, decide};
use observe::{Detail, Recorder, SlowRequests, Timers, Watch, WatchTarget};

use crate::intervals::Intervals;
use crate::{Error, Series};

/// How often what was recorded is taken: rarely, because that takes a CPU for milliseconds.
const STEP: Duration = Duration::from_secs(5);
/// How often it is looked at whether so much waits that it must be taken before.
const LOOK: Duration = Duration::from_millis(500);
/// Of the recorder's thread: what is judged comes first.
const NICE: i32 = 19;

/// A running recording.
pub struct Recording {
    stop: Sender<()>,
    batches: Receiver<Batch>,
    thread: JoinHandle<Result<(), observe::Error>>,
    intervals: Intervals,
}

/// A recording that began, or why there is none.
pub type Started = Result<Recording, String>;

impl Recording {
    /// Records whylag's own threads that are started from now on; a late tick is one later than
    /// `over_ns`.
    pub fn of_ourselves(over_ns: u64) -> Result<Started, Error> {
        let target = WatchTarget::Process(std::process::id());
        Ok(start(watch(target, over_ns, Timers::LateOnly))?.0)
    }

    /// Starts a command and records it from its first instruction on; its standard output is a
    /// pipe. Without a child it was not started, and can be started only without a recording.
    pub fn of_command(words: &[OsString]) -> Result<(Started, Option<Child>), Error> {
        start(watch(WatchTarget::Command(words.to_vec()), 0, Timers::On))
    }

    /// Takes what was recorded, and keeps what lies in the latest ticks.
    pub fn take(&mut self, series: &[Series]) {
        let new: Vec<Batch> = self.batches.try_iter().collect();
        if !new.is_empty() {
            new.into_iter().for_each(|batch| self.intervals.add(batch));
            self.intervals.find(series);
        }
    }

    /// Ends it: what was recorded of the latest ticks, and what failed, if anything did.
    pub fn finish(mut self, series: &[Series]) -> (Vec<Outlier>, Option<String>) {
        // It has ended already if it failed.
        let _ = self.stop.send(());
        let failed = match self.thread.join() {
            Ok(result) => result.err().map(|error| error.to_string()),
            Err(_) => Some("the recorder panicked".to_owned()),
        };
        self.batches.try_iter().for_each(|batch| self.intervals.add(batch));
        (self.intervals.of_latest(series), failed)
    }
}

fn watch(target: WatchTarget, threshold_ns: u64, timers: Timers) -> Watch {
    Watch {
        target,
        follow: false,
        threshold_ns,
        budget_percent: None,
        detail: Detail::All,
        timers,
        keep_secrets: false,
        requests: SlowRequests::Off,
        pipe_stdout: true,
    }
}

fn start(watch: Watch) -> Result<(Started, Option<Child>), Error> {
    if let Plan::Sample(because) = decide(&HostFacts::of_this_host()) {
        return Ok((Err(because), None));
    }
    let (stop, stopped) = channel();
    let (give, batches) = channel();
    let (sender, receiver) = channel();
    let thread = std::thread::Builder::new().name("recorder".to_owned());
    let thread = thread
        .spawn(move || {
            let mut recorder = Recorder::start(&watch, Instant::now())?;
            let refused =
                recorder.capabilities().iter().find(|part| part.part == RecorderPart::Timers);
            let refused = refused.filter(|part| !part.on).map(|part| part.because.clone());
            let is_refused = refused.is_some();
            // Nobody listens only if the process ends.
            let _ = sender.send((recorder.take_child(), refused));
            if is_refused { Ok(()) } else { record(recorder, &stopped, &give) }
        })
        .map_err(Error::system("starting the recorder"))?;
    match receiver.recv() {
        Ok((child, None)) => {
            let intervals = Intervals::default();
            Ok((Ok(Recording { stop, batches, thread, intervals }), child))
        }
        Ok((child, Some(because))) => Ok((Err(because), child)),
        Err(_) => match thread.join() {
            Ok(Err(observe::Error::Command { program, source })) => {
                Err(Error::Command { program, source })
            }
            Ok(Err(error)) => Ok((Err(error.to_string()), None)),
            _ => Ok((Err("the recorder ended at once".to_owned()), None)),
        },
    }
}

fn record(
    mut recorder: Recorder,
    stopped: &Receiver<()>,
    give: &Sender<Batch>,
) -> Result<(), observe::Error> {
    // Refused, it disturbs a little more.
    let _ = rustix::process::nice(NICE);
    let mut taken = Instant::now();
    while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(LOOK) {
        let batch = if taken.elapsed() >= STEP {
            taken = Instant::now();
            Some(recorder.batch()?)
        } else {
            recorder.early_outliers()
        };
        // As above.
        batch.into_iter().for_each(|batch| drop(give.send(batch)));
    }
    recorder.finish(|batch| drop(give.send(batch)))
}
