//! The kinds of timers, one file each.

mod clock_nanosleep;
mod condvar;
mod epoll;
mod poll;
mod posix_timer;
mod posix_timer_thread;
mod spin;
mod timerfd;

use rustix::io::Errno;

use crate::Error;

pub(crate) use clock_nanosleep::absolute_sleep;

/// Waits for ticks, in the thread that made it.
pub trait Ticker {
    /// Waits for the tick of this moment of CLOCK_MONOTONIC, the next one of its beat. Returns at
    /// once if it has passed.
    fn wait(&mut self, intended_ns: u64) -> Result<Served, Errno>;
}

/// What a wait has brought.
pub struct Served {
    /// Ticks that came at once: this one, and those after it that have passed as well.
    pub ticks: u64,
    /// CLOCK_MONOTONIC and CLOCK_MONOTONIC_RAW when it was served, if that was in another thread;
    /// `None`: now.
    pub at: Option<(u64, u64)>,
}

impl Served {
    /// One tick, now.
    const ONE: Served = Served { ticks: 1, at: None };

    /// Several, now.
    fn now(ticks: u64) -> Served {
        Served { ticks, at: None }
    }
}

/// When ticks are intended.
#[derive(Clone, Copy, Debug)]
pub struct Beat {
    /// The first, CLOCK_MONOTONIC.
    pub first_ns: u64,
    /// From one to the next.
    pub interval_ns: u64,
}

/// Interval if none is given.
const USUAL_NS: u64 = 20_000_000;

/// A kind of timer.
pub struct Source {
    /// Its name on the command line.
    pub id: &'static str,
    /// What it is, in one line.
    pub says: &'static str,
    /// Interval if none is given: short for a loop, which is late only at its ticks.
    pub usual_ns: u64,
    /// Sets it up.
    pub make: fn(Beat) -> Result<Box<dyn Ticker>, Errno>,
}

/// Every kind.
pub const ALL: [&Source; 8] = [
    &clock_nanosleep::SOURCE,
    &timerfd::SOURCE,
    &posix_timer::SOURCE,
    &posix_timer_thread::SOURCE,
    &epoll::SOURCE,
    &poll::SOURCE,
    &condvar::SOURCE,
    &spin::SOURCE,
];

/// The sources of a name: one, or `all`.
pub fn named(name: &str) -> Result<Vec<&'static Source>, Error> {
    if name == "all" {
        return Ok(ALL.to_vec());
    }
    if let Some(source) = ALL.into_iter().find(|source| source.id == name) {
        return Ok(vec![source]);
    }
    let likely = ALL.into_iter().map(|source| (strsim::jaro_winkler(name, source.id), source.id));
    let nearest = likely.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|(alike, _)| *alike > 0.7);
    let hint = match nearest {
        Some((_, id)) => format!("did you mean '{id}'?"),
        None => {
            let names: Vec<&str> = ALL.iter().map(|source| source.id).collect();
            format!("there are {} and all", names.join(", "))
        }
    };
    Err(Error::UnknownSource { name: name.to_owned(), hint })
}

/// Milliseconds until a moment, rounded up as event loops do; `None` once it has passed.
fn whole_ms_until(moment_ns: u64) -> Option<i32> {
    let left = moment_ns.checked_sub(clock::monotonic_ns()).filter(|left| *left > 0)?;
    Some(left.div_ceil(1_000_000).min(i32::MAX as u64) as i32)
}

/// The error of the system call just made.
fn last_error() -> Errno {
    let number = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
    Errno::from_raw_os_error(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart_and_nearly_right_ones_are_understood() {
        assert_eq!(named("all").unwrap().len(), ALL.len());
        assert_eq!(named("timerfd").unwrap()[0].id, "timerfd");
        let near = named("timer_fd").err().unwrap().to_string();
        assert!(near.contains("did you mean 'timerfd'?"), "{near}");
        let far = named("xyz").err().unwrap().to_string();
        assert!(ALL.iter().all(|source| far.contains(source.id)), "{far}");
    }
}
