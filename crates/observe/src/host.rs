//! Small facts of the host that a recording needs while it runs.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::Path;

use inspect::files;
use inspect::read::{is_of_the_ended, text};
use model::{Batch, CpuTime, EventDetail, EventKind, OtherThreads, Process};

/// CPUs that are online.
pub fn cpu_count() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Process of a thread. An error that [`is_of_the_ended`] knows if there is no such thread.
pub fn process_of(tid: u32) -> io::Result<u32> {
    let status = text(format!("/proc/{tid}/status"))?;
    let number = status.lines().find_map(|line| line.strip_prefix("Tgid:")?.trim().parse().ok());
    number.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// True if a process has ended, or is a zombie that its parent has not fetched yet. Asked of its
/// main thread: /proc/PID/stat sums over all threads, under a lock that threads need to end.
pub fn is_gone(pid: u32) -> bool {
    // A main thread that ended before the others is a zombie, too: then there are others.
    match state(pid, pid) {
        None => true,
        Some('Z') => fs::read_dir(format!("/proc/{pid}/task"))
            .map_or_else(|error| is_of_the_ended(&error), |threads| threads.count() <= 1),
        Some(_) => false,
    }
}

/// True if a thread has ended, or is a zombie.
pub fn thread_has_ended(pid: u32, tid: u32) -> bool {
    matches!(state(pid, tid), None | Some('Z' | 'X'))
}

/// The letter that /proc has for the state of a thread, `?` if it cannot be read now; `None` if there
/// is no such thread.
fn state(pid: u32, tid: u32) -> Option<char> {
    match text(format!("/proc/{pid}/task/{tid}/stat")) {
        Ok(stat) => stat.rsplit(')').next()?.trim_start().chars().next(),
        Err(error) => (!is_of_the_ended(&error)).then_some('?'),
    }
}

/// Times of the CPUs that are online, since boot, from /proc/stat (resolution: 10 ms).
pub fn cpu_times() -> Vec<CpuTime> {
    let stat = text("/proc/stat").unwrap_or_default();
    let tick_ns = 1_000_000_000 / procfs::ticks_per_second();
    stat.lines().filter_map(|line| cpu_time(line, tick_ns)).collect()
}

/// A line `cpu3 USER NICE SYSTEM IDLE IOWAIT IRQ SOFTIRQ STEAL ...`. CPUs that are offline have
/// none, so the number counts and not the place.
fn cpu_time(line: &str, tick_ns: u64) -> Option<CpuTime> {
    let (cpu, times) = line.strip_prefix("cpu")?.split_once(' ')?;
    let cpu = cpu.parse().ok()?;
    let ticks: Vec<u64> = times.split_ascii_whitespace().map_while(|n| n.parse().ok()).collect();
    let ns = |places: &[usize]| {
        places.iter().filter_map(|place| ticks.get(*place)).sum::<u64>() * tick_ns
    };
    Some(CpuTime { cpu, idle_ns: ns(&[3, 4]), busy_ns: ns(&[0, 1, 2, 5, 6]), stolen_ns: ns(&[7]) })
}

/// The same since an earlier reading; of a CPU that came later, since it was first seen.
pub fn cpu_times_since(before: &mut Vec<CpuTime>) -> Vec<CpuTime> {
    since(before, cpu_times())
}

fn since(before: &mut Vec<CpuTime>, now: Vec<CpuTime>) -> Vec<CpuTime> {
    let mut since = Vec::new();
    for now in now {
        let place = before.iter().position(|first| first.cpu == now.cpu).unwrap_or_else(|| {
            before.push(now.clone());
            before.len() - 1
        });
        let first = &before[place];
        since.push(CpuTime {
            cpu: now.cpu,
            idle_ns: now.idle_ns.saturating_sub(first.idle_ns),
            busy_ns: now.busy_ns.saturating_sub(first.busy_ns),
            stolen_ns: now.stolen_ns.saturating_sub(first.stolen_ns),
        });
    }
    since
}

/// Processes that are remembered, some 250 bytes each, before those that have ended are forgotten.
const PROCESSES_KEPT: usize = 65_536;

/// Processes that this batch mentions and earlier ones did not, or that have a new name.
pub fn processes(batch: &Batch, known: &mut HashMap<u32, Process>) -> Vec<Process> {
    let mut new = Vec::new();
    let executed: HashMap<u32, &str> = batch
        .events
        .iter()
        .filter_map(|event| match (event.kind, &event.detail) {
            (EventKind::Exec, EventDetail::Program(path)) => Some((event.tgid, path.as_str())),
            _ => None,
        })
        .collect();
    let mut see = |tgid: u32, comm: &str, a_thread: &str, watched: bool| {
        let program = executed.get(&tgid).copied();
        let same = known.get(&tgid).is_some_and(|p| {
            (p.watched || !watched) && program.is_none() && (p.comm == comm || comm.is_empty())
        });
        if tgid == 0 || OtherThreads::is_group(tgid) || same {
            return;
        }
        let mut process = process(tgid, comm, watched, program, known.get(&tgid));
        if process.comm.is_empty() {
            process.comm = a_thread.to_owned();
        }
        known.insert(tgid, process.clone());
        new.push(process);
    };
    for thread in batch.threads.iter().filter(|thread| thread.tid == thread.tgid) {
        see(thread.tgid, &thread.comm, "", true);
    }
    for thread in batch.threads.iter().filter(|thread| thread.tid != thread.tgid) {
        see(thread.tgid, "", &thread.comm, true);
    }
    for wait in &batch.sums.waits {
        see(wait.waker_tgid, "", &wait.waker_comm, false);
    }
    for hold in &batch.sums.holds {
        see(hold.holder_tgid, "", &hold.holder_comm, false);
    }
    for runner in &batch.sums.runners {
        see(runner.runner_tgid, "", &runner.runner_comm, false);
    }
    forget_ended(known);
    new
}

/// Where processes come and go by the thousand, all of them would be too many. One that is mentioned
/// once more is then seen as if for the first time.
fn forget_ended(known: &mut HashMap<u32, Process>) {
    if known.len() > PROCESSES_KEPT {
        known.retain(|tgid, _| Path::new("/proc").join(tgid.to_string()).exists());
    }
}

/// A process as /proc shows it now, else as it was known before, else as its exec said.
fn process(
    tgid: u32,
    comm: &str,
    watched: bool,
    program: Option<&str>,
    before: Option<&Process>,
) -> Process {
    let exe = fs::read_link(format!("/proc/{tgid}/exe")).ok();
    let exe = exe.map(|path| path.to_string_lossy().into_owned());
    let exe = exe.or_else(|| program.map(str::to_owned));
    let exe = exe.or_else(|| before.map(|p| p.exe.clone())).unwrap_or_default();
    let in_proc = text(format!("/proc/{tgid}/comm")).ok();
    let name = || {
        let last = Path::new(&exe).file_name()?.to_string_lossy().into_owned();
        Some(last).filter(|name| !name.is_empty())
    };
    let comm = match comm {
        "" => in_proc.or_else(name).unwrap_or_default(),
        comm => comm.to_owned(),
    };
    // Its path names another file here, or none, if it is in a container.
    let build_id = files::program(tgid).ok().and_then(|program| program.build_id());
    let same = before.filter(|before| before.exe == exe);
    let build_id = build_id.or_else(|| same.map(|p| p.build_id.clone())).unwrap_or_default();
    let watched = watched || before.is_some_and(|p| p.watched);
    Process { tgid, comm, exe, build_id, watched }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_thread_belongs_to_this_process_and_lives() {
        let tid = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        assert_eq!(process_of(tid).unwrap(), std::process::id());
        assert!(!is_gone(std::process::id()));
        assert!(!thread_has_ended(std::process::id(), tid));
        assert!(thread_has_ended(std::process::id(), u32::MAX));
        assert!(is_of_the_ended(&process_of(u32::MAX).unwrap_err()));
    }

    /// Gives a thread of this process a name that is not UTF-8, and what asks about it an answer.
    #[test]
    fn a_thread_is_there_whatever_its_name() {
        let me = std::process::id();
        std::thread::spawn(move || {
            fs::write("/proc/thread-self/comm", b"\xff) Z (\xfe").unwrap();
            let tid = rustix::thread::gettid().as_raw_nonzero().get() as u32;
            assert!(!thread_has_ended(me, tid));
            assert_eq!(process_of(tid).unwrap(), me);
            assert_eq!(crate::namespace::innermost(tid), tid);
            let own = rustix::process::geteuid().as_raw();
            assert_eq!(crate::mappings::of_process(tid).user, Some(own));
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_lack_of_descriptors_is_not_an_end() {
        let failed = |number| is_of_the_ended(&io::Error::from_raw_os_error(number));
        assert_eq!([libc::ENOENT, libc::ESRCH].map(failed), [true, true]);
        assert_eq!([libc::EMFILE, libc::ENOMEM, libc::EACCES].map(failed), [false; 3]);
    }

    #[test]
    fn an_unfetched_child_that_ended_is_gone() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        while !is_gone(child.id()) {
            std::thread::yield_now();
        }
        assert!(thread_has_ended(child.id(), child.id()));
        assert!(child.wait().unwrap().success());
    }

    #[test]
    fn the_cpus_are_counted_and_their_time_advances() {
        let mut before = cpu_times();
        assert!(before.len() >= cpu_count());
        let start = clock::monotonic_ns();
        while clock::monotonic_ns() - start < 50_000_000 {}
        let since = cpu_times_since(&mut before);
        assert!(since.iter().map(|cpu| cpu.busy_ns).sum::<u64>() > 0);
    }

    #[test]
    fn cpus_are_told_apart_by_their_numbers() {
        let line = "cpu3 1 2 4 8 16 32 64 128 256 512";
        let time = cpu_time(line, 10).unwrap();
        let busy_ns = 10 * (1 + 2 + 4 + 32 + 64);
        assert_eq!(time, CpuTime { cpu: 3, idle_ns: 240, busy_ns, stolen_ns: 1280 });
        assert_eq!(cpu_time("cpu  1 2 3 4 5 6 7 8", 10), None);
        assert_eq!(cpu_time("intr 1 2", 10), None);
    }

    #[test]
    fn a_cpu_that_came_later_counts_since_then() {
        let at = |cpu, busy_ns| CpuTime { cpu, idle_ns: 0, busy_ns, stolen_ns: 0 };
        let mut before = vec![at(0, 100), at(1, 100), at(2, 100)];
        let busy = |since: Vec<CpuTime>| -> Vec<_> {
            since.into_iter().map(|time| (time.cpu, time.busy_ns)).collect()
        };
        // CPU 1 went away, 3 came.
        let first = since(&mut before, vec![at(0, 110), at(2, 120), at(3, 5_000)]);
        assert_eq!(busy(first), [(0, 10), (2, 20), (3, 0)]);
        let second = since(&mut before, vec![at(0, 110), at(1, 101), at(2, 130), at(3, 5_007)]);
        assert_eq!(busy(second), [(0, 10), (1, 1), (2, 30), (3, 7)]);
    }

    #[test]
    fn of_too_many_processes_those_that_have_ended_are_forgotten() {
        let me = std::process::id();
        let process = |tgid| Process {
            tgid,
            comm: String::new(),
            exe: String::new(),
            build_id: String::new(),
            watched: true,
        };
        let mut known = HashMap::from([(me, process(me)), (u32::MAX, process(u32::MAX))]);
        forget_ended(&mut known);
        assert_eq!(known.len(), 2, "there is room");
        // Beyond every possible pid.
        let ended = (0..PROCESSES_KEPT as u32).map(|n| u32::MAX - n);
        known.extend(ended.map(|tgid| (tgid, process(tgid))));
        forget_ended(&mut known);
        assert_eq!(known.into_keys().collect::<Vec<_>>(), [me]);
    }
}
