//! Whether something disturbed a recording. What noise cannot change is asserted of every
//! recording: sums, counts, names, that a cause is seen at all. Figures (how much of the time, what
//! comes first, that nothing else is found) are judged only where the recording's own evidence
//! says that nothing disturbed it.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use model::Run;

/// The hypervisor may take this part of the CPUs. Undisturbed recordings had up to 1.2 %.
const STOLEN: f64 = 0.02;
/// Threads may wait behind other people's programs for this part of their wall time. Undisturbed
/// recordings had up to 0.2 %.
const BEHIND_OTHERS: f64 = 0.01;
/// Others may use this part of the CPUs.
const BY_OTHERS: f64 = 0.06;
/// And this time anyhow: the kernel counts it in clock ticks.
const BY_OTHERS_NS: f64 = 60e6;
/// A disturbed recording is made again, until there are so many.
pub const RECORDINGS: u32 = 3;

/// Records until nothing disturbs, at most `RECORDINGS` times; the last recording, whatever it is
/// worth, and whether its figures may be judged. Where one was disturbed each time, the others of
/// the test file are made once: whatever disturbs does not go away.
pub fn undisturbed<T>(
    mut record: impl FnMut() -> T,
    run: impl Fn(&T) -> Option<&Run>,
) -> (T, Figures) {
    static IN_VAIN: AtomicBool = AtomicBool::new(false);
    let in_vain = IN_VAIN.load(Ordering::Relaxed) && !figures_are_asked_for();
    let most = if in_vain { 1 } else { RECORDINGS };
    for number in 1.. {
        let (recorded, disturbed) = observed(&mut record, &run);
        if let Some(by) = &disturbed {
            println!("recording {number} of {most} was disturbed by {by}");
        }
        if disturbed.is_none() || number == most {
            IN_VAIN.store(disturbed.is_some(), Ordering::Relaxed);
            return (recorded, Figures { are_asked_for: true, disturbed });
        }
    }
    unreachable!("the last recording is returned")
}

/// The same where figures are asked for, and else one recording of which none is judged.
pub fn recorded<T>(
    mut record: impl FnMut() -> T,
    run: impl Fn(&T) -> Option<&Run>,
) -> (T, Figures) {
    if figures_are_asked_for() {
        return undisturbed(record, run);
    }
    let (recorded, disturbed) = observed(&mut record, &run);
    (recorded, Figures { are_asked_for: false, disturbed })
}

/// A recording, and what disturbed it.
fn observed<T>(
    record: &mut impl FnMut() -> T,
    run: &impl Fn(&T) -> Option<&Run>,
) -> (T, Option<String>) {
    let before = Usage::now();
    let recorded = record();
    let disturbed = before.others_since().or_else(|| disturbance(run(&recorded)?));
    (recorded, disturbed)
}

/// True in `make test-mysteries`.
pub fn figures_are_asked_for() -> bool {
    std::env::var_os("WHYLAG_FIGURES").is_some()
}

/// Whether the figures of a recording may be judged.
pub struct Figures {
    /// False where `make test` leaves them to `make test-mysteries`.
    are_asked_for: bool,
    disturbed: Option<String>,
}

impl Figures {
    /// True if they may. The scripts count what is printed.
    pub fn judge(&self, what: &str) -> bool {
        self.are_asked_for && self.is_undisturbed(what)
    }

    /// The same for what even a recording of which no figure is asked for has to show.
    pub fn is_undisturbed(&self, what: &str) -> bool {
        match &self.disturbed {
            None => println!("judged: {what}"),
            Some(by) => println!("not judged: {what}: disturbed by {by}"),
        }
        self.disturbed.is_none()
    }

    /// What disturbed the recording.
    pub fn disturbed(&self) -> Option<&str> {
        self.disturbed.as_deref()
    }
}

/// What disturbed a recording, by its own evidence.
pub fn disturbance(run: &Run) -> Option<String> {
    stolen(run).or_else(|| waits_behind_others(run))
}

/// What the hypervisor took, if that was too much.
pub fn stolen(run: &Run) -> Option<String> {
    let stolen: u64 = run.sums.cpus.iter().map(|cpu| cpu.stolen_ns).sum();
    let all: u64 = run.sums.cpus.iter().map(|cpu| cpu.idle_ns + cpu.busy_ns + cpu.stolen_ns).sum();
    let part = stolen as f64 / all.max(1) as f64;
    (part > STOLEN).then(|| format!("the hypervisor, which took {:.1} % of the CPUs", part * 100.0))
}

/// Kernel threads and processes that ended at once have no known executable; the CPU time of the
/// latter is in `Usage`.
fn waits_behind_others(run: &Run) -> Option<String> {
    let is_foreign = |tgid: u32| {
        let process = run.processes.iter().find(|process| process.tgid == tgid);
        process.is_some_and(|process| !process.watched && is_foreign(run, &process.exe))
    };
    let behind = run.sums.runners.iter().filter(|runner| is_foreign(runner.runner_tgid));
    let longest = behind.clone().max_by_key(|runner| runner.ns)?;
    let part = behind.map(|runner| runner.ns).sum::<u64>() as f64 / run.wall_ns().max(1) as f64;
    (part > BEHIND_OTHERS).then(|| {
        format!(
            "{} and others that ran for {:.1} % of the wall time instead",
            longest.runner_comm,
            part * 100.0
        )
    })
}

/// Neither whylag, nor a program of the tests, nor the same as a watched one.
fn is_foreign(run: &Run, exe: &str) -> bool {
    let own = [env!("CARGO_TARGET_TMPDIR"), env!("CARGO_BIN_EXE_whylag")];
    let mysteries = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../mysteries/bin");
    let is_watched = || run.processes.iter().any(|process| process.watched && process.exe == exe);
    !exe.is_empty()
        && own.iter().all(|path| !exe.starts_with(path))
        && !mysteries.canonicalize().is_ok_and(|path| Path::new(exe).starts_with(path))
        && !is_watched()
}

/// CPU time used since boot, in clock ticks: by all, by the children of this process that it has
/// waited for, and by the kernel's own threads (a disk, a loop device), which work for those.
#[derive(Clone, Copy)]
struct Usage {
    at: Instant,
    all: u64,
    children: u64,
    kernel: u64,
}

impl Usage {
    fn now() -> Usage {
        let stat = fs::read_to_string("/proc/stat").unwrap();
        let fields = stat.lines().next().unwrap().split_ascii_whitespace().skip(1);
        let ticks: Vec<u64> = fields.map(|field| field.parse().unwrap()).collect();
        // user nice system idle iowait irq softirq steal; what is stolen is missing, too.
        let all = ticks[..3].iter().sum::<u64>() + ticks[5..8].iter().sum::<u64>();
        let own = procfs::process::Process::myself().unwrap().stat().unwrap();
        let children = (own.cutime + own.cstime) as u64;
        Usage { at: Instant::now(), all, children, kernel: kernel_threads() }
    }

    /// What others than this test have used since, if that was too much.
    fn others_since(self) -> Option<String> {
        let now = Usage::now();
        let known = (now.children - self.children) + now.kernel.saturating_sub(self.kernel);
        let others = (now.all - self.all).saturating_sub(known);
        let used_ns = others as f64 / procfs::ticks_per_second() as f64 * 1e9;
        let cpus = std::thread::available_parallelism().unwrap().get() as f64;
        let part = used_ns / ((now.at - self.at).as_nanos() as f64 * cpus);
        (part > BY_OTHERS && used_ns > BY_OTHERS_NS)
            .then(|| format!("other programs, which used {:.0} % of the CPUs", part * 100.0))
    }
}

/// CPU time of kernel threads, which all are children of process 2.
fn kernel_threads() -> u64 {
    let processes = procfs::process::all_processes().unwrap().flatten();
    let stats = processes.filter_map(|process| process.stat().ok());
    stats.filter(|stat| stat.ppid == 2).map(|stat| stat.utime + stat.stime).sum()
}
