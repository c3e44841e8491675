//! Measures whylag's own timers, one step after the other, each in a thread that does nothing else.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use model::JitterThread;
use rustix::io::Errno;

use crate::drift::Drift;
use crate::plan::{Setting, Step};
use crate::ring::{Record, Ring};
use crate::sources::Beat;
use crate::{Error, Series, facts};

/// From the setting up to the first tick, at least.
const LEAD_NS: u64 = 10_000_000;
/// Pairs of clock readings further apart than this are kept, ns.
const DRIFT_NS: u64 = 1_000_000;

/// A measurement that runs.
pub struct Timers {
    steps: Vec<Step>,
    setting: Setting,
    over_ns: Option<u64>,
    running: Option<Running>,
    series: Vec<Series>,
    drift: Drift,
    drift_read_ns: u64,
    lost: u64,
}

struct Running {
    ring: Arc<Ring>,
    stop: Arc<AtomicBool>,
    began: Receiver<(JitterThread, Beat)>,
    beat: Option<Beat>,
    thread: JoinHandle<Result<(), Errno>>,
}

impl Timers {
    /// Checks that the setting is allowed, and begins with the first step.
    pub fn start(
        steps: Vec<Step>,
        setting: Setting,
        over_ns: Option<u64>,
    ) -> Result<Timers, Error> {
        let trial = std::thread::spawn(move || setting.apply());
        trial.join().unwrap_or(Ok(()))?;
        let mut timers = Timers {
            steps,
            setting,
            over_ns,
            running: None,
            series: Vec::new(),
            drift: Drift::default(),
            drift_read_ns: 0,
            lost: 0,
        };
        timers.next();
        Ok(timers)
    }

    /// The series so far; the last one grows.
    pub fn series(&self) -> &[Series] {
        &self.series
    }

    /// The same, to take what is new.
    pub fn series_mut(&mut self) -> &mut [Series] {
        &mut self.series
    }

    /// Begins the step after those begun; false if there is none.
    fn next(&mut self) -> bool {
        let Some(step) = self.steps.get(self.series.len()).copied() else { return false };
        self.series.push(Series::new(step.source.id, step.interval_ns, self.over_ns));
        let ring = Arc::new(Ring::new(step.ticks));
        let stop = Arc::new(AtomicBool::new(false));
        let (tell, began) = channel();
        let (theirs, end, setting) = (Arc::clone(&ring), Arc::clone(&stop), self.setting);
        let thread = std::thread::spawn(move || measure(step, setting, &theirs, &end, &tell));
        self.running = Some(Running { ring, stop, began, beat: None, thread });
        true
    }

    /// Takes what was measured; true once all steps have ended.
    pub fn drain(&mut self) -> Result<bool, Error> {
        let Some(running) = &mut self.running else { return Ok(true) };
        let ended = running.thread.is_finished();
        let Some(series) = self.series.last_mut() else { return Ok(true) };
        if running.beat.is_none()
            && let Ok((thread, beat)) = running.began.try_recv()
        {
            series.begin(thread, beat.first_ns - beat.interval_ns);
            running.beat = Some(beat);
        }
        if let Some(beat) = running.beat {
            while let Some(record) = running.ring.take() {
                for number in record.number..record.number + record.ticks {
                    series.tick(beat.first_ns + number * beat.interval_ns, record.at_ns);
                }
                if record.at_ns >= self.drift_read_ns + DRIFT_NS {
                    self.drift_read_ns = record.at_ns;
                    self.drift.pair(record.at_ns, record.raw_ns);
                }
            }
        }
        if !ended {
            return Ok(false);
        }
        self.lost += running.ring.lost();
        if let Some(running) = self.running.take() {
            let result = running.thread.join().unwrap_or(Ok(()));
            result.map_err(Error::system("waiting for a timer"))?;
        }
        Ok(!self.next())
    }

    /// Ends the measurement: the series, how the clocks drifted, and the ticks that were lost
    /// because nobody took them in time.
    pub fn finish(mut self) -> Result<(Vec<Series>, Drift, u64), Error> {
        if let Some(running) = &self.running {
            // It looks at this at its next tick. If that is far away the process ends before.
            running.stop.store(true, Ordering::Relaxed);
        }
        self.steps.truncate(self.series.len());
        self.drain()?;
        Ok((self.series, self.drift, self.lost))
    }
}

/// The measuring thread.
fn measure(
    step: Step,
    setting: Setting,
    ring: &Ring,
    stop: &AtomicBool,
    tell: &Sender<(JitterThread, Beat)>,
) -> Result<(), Errno> {
    // Was tried before.
    let _ = setting.apply();
    let first_ns = clock::monotonic_ns() + step.interval_ns.max(LEAD_NS);
    let beat = Beat { first_ns, interval_ns: step.interval_ns };
    let mut ticker = (step.source.make)(beat)?;
    // Nobody listens any more only if all of it has ended.
    let _ = tell.send((facts::this_thread(), beat));
    let mut number = 0;
    while number < step.ticks && !stop.load(Ordering::Relaxed) {
        let served = ticker.wait(first_ns + number * step.interval_ns)?;
        let (at_ns, raw_ns) =
            served.at.unwrap_or_else(|| (clock::monotonic_ns(), clock::monotonic_raw_ns()));
        let ticks = served.ticks.min(step.ticks - number);
        ring.put(Record { number, ticks, at_ns, raw_ns });
        number += ticks;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{plan, sources};

    fn all_of(steps: Vec<Step>) -> Vec<Series> {
        let mut timers = Timers::start(steps, Setting::default(), None).unwrap();
        while !timers.drain().unwrap() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let (series, _, lost) = timers.finish().unwrap();
        assert_eq!(lost, 0);
        series
    }

    #[test]
    fn every_source_gives_every_tick_and_none_early() {
        let sources = sources::named("all").unwrap();
        let steps = plan::steps(&sources, &[1_000_000], Some(100_000_000)).unwrap();
        let series = all_of(steps);
        assert_eq!(series.len(), sources::ALL.len());
        for series in series {
            let summary = series.summary();
            assert_eq!(summary.intended, 100, "{}", summary.source);
            assert_eq!(summary.late.count() + summary.early.count(), 100, "{}", summary.source);
            assert_eq!(summary.early.count(), 0, "{}", summary.source);
            let thread = summary.thread.as_ref().unwrap();
            assert!(thread.slack_ns.is_some() && thread.tid != std::process::id());
        }
    }

    #[test]
    fn no_such_cpu_is_an_error_of_usage() {
        let steps = plan::steps(&sources::named("spin").unwrap(), &[], None).unwrap();
        let setting = Setting { cpu: Some(1023), fifo: None };
        let error = Timers::start(steps, setting, None).err().unwrap();
        assert!(error.is_usage() && error.to_string().contains("1023"), "{error}");
    }
}
