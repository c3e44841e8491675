//! Timers that sample what runs on each CPU.
//!
//! CPUs come and go while a recording lasts (hot-plug, a machine that is resized). The kernel gives
//! a CPU that comes no timer, and takes that of a CPU that goes: the list of the online ones is
//! read again with every batch. A CPU that goes and comes back between two looks is not sampled.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd};
use std::time::{Duration, Instant};

use libbpf_rs::libbpf_sys::{
    PERF_COUNT_SW_CPU_CLOCK, PERF_FLAG_FD_CLOEXEC, PERF_TYPE_SOFTWARE, perf_event_attr,
};
use libbpf_rs::{Link, ProgramMut};
use rustix::ioctl::{self, Setter};

use crate::Error;

/// How often each CPU is sampled.
///
/// Where a hypervisor has to act at each timer, 997 samples a second alone take a tenth of a busy
/// server's requests (`perf record -F 997` beside nginx on such a machine: 7 to 12 %; `-F 99`: 4 %, -2
/// to 10), and on a CPU without idle time each takes 9 to 16 us (the kernel's statistics), for the stacks that
/// it copies. A short recording needs that many; a longer one has enough of them without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampling {
    /// 997 times a second for [`AT_FIRST`], 99 times from then on.
    Usual,
    /// 49 times a second.
    Cheap,
}

/// So long CPUs are sampled often.
const AT_FIRST: Duration = Duration::from_secs(2);

impl Sampling {
    /// From one sample of a CPU to the next at first, ns. No period is in step with the timer ticks of
    /// the kernel (100, 250 or 1,000 a second) or of a program.
    pub fn period_ns(self) -> u32 {
        match self {
            Sampling::Usual => 1_003_009,
            Sampling::Cheap => 20_408_167,
        }
    }

    /// The same later.
    fn later_ns(self) -> u32 {
        match self {
            Sampling::Usual => 10_101_011,
            Sampling::Cheap => self.period_ns(),
        }
    }
}

/// The timers of the CPUs that are online.
pub struct SampleTimers {
    sampling: Sampling,
    began: Instant,
    period_ns: u32,
    links: BTreeMap<i32, Timer>,
}

/// That of one CPU.
struct Timer {
    /// The same as the link has, to change the period: some kernels open no other one once the recorder has
    /// given up its privileges (Debian's, with kernel.perf_event_paranoid at 3).
    event: OwnedFd,
    /// Calls the program as long as it is there.
    _link: Link,
}

/// PERF_EVENT_IOC_PERIOD of linux/perf_event.h.
const SET_PERIOD: ioctl::Opcode = ioctl::opcode::write::<u64>(b'$', 4);

impl SampleTimers {
    /// None yet.
    pub fn new(sampling: Sampling) -> SampleTimers {
        let period_ns = sampling.period_ns();
        SampleTimers { sampling, began: Instant::now(), period_ns, links: BTreeMap::new() }
    }

    /// Once it is time to sample less often: sets the period of all timers, and gives it.
    pub fn slow_down(&mut self) -> Result<Option<u32>, Error> {
        let later_ns = self.sampling.later_ns();
        if self.period_ns == later_ns || self.began.elapsed() < AT_FIRST {
            return Ok(None);
        }
        self.period_ns = later_ns;
        for timer in self.links.values() {
            // SAFETY: the operation reads a number of 64 bits, and changes that event alone.
            let set = unsafe {
                let period = Setter::<SET_PERIOD, u64>::new(u64::from(later_ns));
                ioctl::ioctl(&timer.event, period)
            };
            set.map_err(std::io::Error::from)
                .map_err(Error::io("setting the period of a sampling timer"))?;
        }
        Ok(Some(later_ns))
    }

    /// Samples no CPU any more.
    pub fn stop(&mut self) {
        self.links.clear();
    }

    /// Runs `program` on every CPU that is online now, each time its clock has moved on by the
    /// period.
    pub fn follow_cpus(&mut self, program: &ProgramMut<'_>) -> Result<(), Error> {
        let online = std::fs::read_to_string("/sys/devices/system/cpu/online")
            .map_err(Error::io("reading the online CPUs"))?;
        let online = listed(online.trim());
        let change = Change::between(&self.links.keys().copied().collect(), &online);
        for cpu in change.gone {
            self.links.remove(&cpu);
        }
        for cpu in change.new {
            // It may be gone again since the list was read.
            let Some(timer) = timer(cpu, self.period_ns)? else { continue };
            let event = timer.try_clone().map_err(Error::io("sharing a sampling timer"))?;
            // The link closes the descriptor when it is dropped.
            let link = program.attach_perf_event(timer.into_raw_fd());
            let link = link.map_err(Error::bpf("attaching the sampling timer"))?;
            self.links.insert(cpu, Timer { event, _link: link });
        }
        Ok(())
    }
}

/// What is different between the CPUs that have a timer and those that are online.
#[derive(Debug, PartialEq, Eq)]
struct Change {
    gone: Vec<i32>,
    new: Vec<i32>,
}

impl Change {
    fn between(timed: &BTreeSet<i32>, online: &BTreeSet<i32>) -> Change {
        Change {
            gone: timed.difference(online).copied().collect(),
            new: online.difference(timed).copied().collect(),
        }
    }
}

/// The CPUs of a list such as `0-3,8`.
fn listed(list: &str) -> BTreeSet<i32> {
    let range = |text: &str| {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        Some(first.parse::<i32>().ok()?..=last.parse().ok()?)
    };
    list.split(',').filter_map(range).flatten().collect()
}

/// `None` if the CPU is not online.
fn timer(cpu: i32, period_ns: u32) -> Result<Option<OwnedFd>, Error> {
    // SAFETY: a structure of integers and unions of integers, for which zero is a value.
    let mut attr: perf_event_attr = unsafe { std::mem::zeroed() };
    attr.type_ = PERF_TYPE_SOFTWARE;
    attr.size = size_of::<perf_event_attr>() as u32;
    attr.config = u64::from(PERF_COUNT_SW_CPU_CLOCK);
    attr.__bindgen_anon_1.sample_period = u64::from(period_ns);
    // SAFETY: `attr` lives through the call and says its own size; -1: any process, no group.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attr,
            -1,
            cpu,
            -1,
            u64::from(PERF_FLAG_FD_CLOEXEC),
        )
    };
    if fd < 0 {
        let error = std::io::Error::last_os_error();
        if error.raw_os_error() == Some(libc::ENODEV) {
            return Ok(None);
        }
        return Err(Error::io("opening a sampling timer (perf_event_open)")(error));
    }
    // SAFETY: a descriptor that was just opened and that nobody else has.
    Ok(Some(unsafe { OwnedFd::from_raw_fd(fd as i32) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpus(numbers: &[i32]) -> BTreeSet<i32> {
        numbers.iter().copied().collect()
    }

    #[test]
    fn lists_of_cpus_are_read() {
        assert_eq!(listed("0-3,8"), cpus(&[0, 1, 2, 3, 8]));
        assert_eq!(listed("5"), cpus(&[5]));
        assert_eq!(listed(""), cpus(&[]));
    }

    #[test]
    fn a_cpu_that_comes_gets_a_timer_and_one_that_goes_loses_it() {
        let change = |timed: &[i32], online: &str| {
            let Change { gone, new } = Change::between(&cpus(timed), &listed(online));
            (gone, new)
        };
        assert_eq!(change(&[], "0-1"), (vec![], vec![0, 1]));
        assert_eq!(change(&[0, 1], "0-1"), (vec![], vec![]));
        assert_eq!(change(&[0, 1], "0-1,3"), (vec![], vec![3]));
        assert_eq!(change(&[0, 1, 2], "0,2-3"), (vec![1], vec![3]));
    }
}
