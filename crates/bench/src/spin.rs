//! Noise of the machine: a reference computation, steal, throttling.

use std::time::{Duration, Instant};

use model::units::{duration, number, percentage};
use stats::ab;

/// Length of the reference, about.
const ROUNDS: u64 = 50_000;
/// Independent chains, more than a core can work on at a time: a single chain leaves most of a core
/// unused and does not notice that somebody on the sibling hyper-thread uses it.
const CHAINS: usize = 8;
/// Stolen time worth a warning, as a part of the step.
const STOLEN: f64 = 0.01;

/// Time of a fixed computation in registers that keeps all of a core busy: the shortest of several,
/// ns.
pub fn reference() -> f64 {
    let once = || {
        let mut chains = [88_172_645_463_325_252u64; CHAINS];
        for (n, chain) in chains.iter_mut().enumerate() {
            *chain += n as u64;
        }
        let began = Instant::now();
        for _ in 0..ROUNDS {
            for x in &mut chains {
                *x ^= *x << 13;
                *x ^= *x >> 7;
                *x ^= *x << 17;
            }
        }
        std::hint::black_box(chains);
        began.elapsed().as_nanos() as f64
    };
    (0..5).map(|_| once()).fold(f64::MAX, f64::min)
}

/// Says so if the machine became faster or slower from round to round.
pub fn drift(references: impl Iterator<Item = f64>) -> Option<String> {
    let (least, most) =
        references.fold((f64::MAX, 0.0f64), |(least, most), ns| (least.min(ns), most.max(ns)));
    let ratio = most / least;
    (ratio > 1.0 + ab::DISTURBED).then(|| {
        format!(
            "the machine itself changed: a reference computation took {} times as long \
             around one round as around another",
            number(ratio)
        )
    })
}

/// What the hypervisor and the cgroup's quota took from this machine so far.
pub struct Disturbance {
    at: Instant,
    stolen: Duration,
    throttled_ns: u64,
}

impl Disturbance {
    /// As of now.
    pub fn now() -> Disturbance {
        Disturbance { at: Instant::now(), stolen: stolen(), throttled_ns: throttled_ns() }
    }

    /// A warning for what was taken since.
    pub fn since(&self) -> Vec<String> {
        let now = Disturbance::now();
        let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let stolen = now.stolen.saturating_sub(self.stolen);
        let part = stolen.as_secs_f64() / (now.at - self.at).as_secs_f64() / cpus as f64;
        let mut warnings = Vec::new();
        if part > STOLEN {
            warnings.push(format!("the hypervisor took {} of the CPUs", percentage(part)));
        }
        let throttled = now.throttled_ns.saturating_sub(self.throttled_ns);
        if throttled > 0 {
            let time = duration(throttled);
            warnings.push(format!("the cgroup's CPU quota stopped us for {time}"));
        }
        warnings
    }
}

fn stolen() -> Duration {
    let Ok(stat) = std::fs::read_to_string("/proc/stat") else { return Duration::ZERO };
    let ticks =
        stat.lines().next().and_then(|all| all.split_ascii_whitespace().nth(8)?.parse().ok());
    Duration::from_secs(ticks.unwrap_or(0)) / procfs::ticks_per_second() as u32
}

fn throttled_ns() -> u64 {
    let readings = inspect::counters::process(std::process::id());
    let throttled = readings.iter().find(|r| r.name == "cgroup.cpu.throttled_ns");
    throttled.map_or(0, |reading| reading.value)
}

/// Binds the calling thread to one of the CPUs it may use.
pub fn bind_to(worker: usize) {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    let Ok(allowed) = sched_getaffinity(None) else { return };
    let cpus: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect();
    if let Some(cpu) = cpus.get(worker % cpus.len().max(1)) {
        let mut one = CpuSet::new();
        one.set(*cpu);
        // Without it the step is noisier, not wrong.
        let _ = sched_setaffinity(None, &one);
    }
}
