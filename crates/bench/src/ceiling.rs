//! How much of the machine a population may take: half of what is free, and no more.

use std::fs;

use crate::Error;

/// What objects of a population use up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// Open files of the host, and memory of about 2 kB each.
    Descriptors,
    /// Threads or processes: ids, and memory of about 32 kB each.
    Tasks,
    /// Sets of System V semaphores.
    Semaphores,
    /// Segments of System V shared memory.
    Segments,
    /// Mappings of one process.
    Mappings,
    /// Memory, this many bytes each.
    Memory(u64),
}

/// The part of what is free that a population may take.
const SHARE: u64 = 2;

/// The most objects, and why no more.
pub fn of(resource: Resource) -> (u64, String) {
    let mut limits = match resource {
        Resource::Descriptors => vec![free_files(), memory(2_000)],
        Resource::Tasks => tasks(),
        Resource::Semaphores => vec![semaphores()],
        Resource::Segments => vec![segments(), memory(4096)],
        Resource::Mappings => {
            vec![number("/proc/sys/vm/max_map_count", "mappings of a process (vm.max_map_count)")]
        }
        Resource::Memory(each) => vec![memory(each)],
    };
    limits.sort_by_key(|(free, _)| *free);
    let (free, what) = limits.swap_remove(0);
    (free / SHARE, format!("half of the {free} {what} that are free"))
}

/// Refuses more objects than that.
pub fn check(resource: Resource, n: u64, what: &str) -> Result<(), Error> {
    let (most, why) = of(resource);
    match n <= most {
        true => Ok(()),
        false => Err(Error::Refused(format!("no more than {most} {what}: {why}"))),
    }
}

type Limit = (u64, &'static str);

fn memory(each: u64) -> Limit {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kb = line.and_then(|rest| rest.split_ascii_whitespace().next()?.parse::<u64>().ok());
    (kb.unwrap_or(0) * 1024 / each, "objects' worth of memory")
}

fn number(path: &str, what: &'static str) -> Limit {
    let text = fs::read_to_string(path).unwrap_or_default();
    // "max" where a cgroup sets no limit.
    (text.trim().parse().unwrap_or(u64::MAX), what)
}

fn free_files() -> Limit {
    let text = fs::read_to_string("/proc/sys/fs/file-nr").unwrap_or_default();
    let mut fields = text.split_ascii_whitespace().filter_map(|field| field.parse::<u64>().ok());
    let (used, _, most) =
        (fields.next().unwrap_or(0), fields.next(), fields.next().unwrap_or(u64::MAX));
    (most.saturating_sub(used), "open files of the host")
}

fn tasks() -> Vec<Limit> {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let running = load.split(['/', ' ']).nth(4).and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
    let less_running = |(most, what): Limit| (most.saturating_sub(running), what);
    let own = rustix::process::getrlimit(rustix::process::Resource::Nproc).current;
    vec![
        less_running(number("/proc/sys/kernel/threads-max", "threads (kernel.threads-max)")),
        less_running(number("/proc/sys/kernel/pid_max", "pids (kernel.pid_max)")),
        less_running((own.unwrap_or(u64::MAX), "tasks of this user (ulimit -u)")),
        cgroup_pids(),
        memory(32 * 1024),
    ]
}

/// Of every cgroup above this process, the one with the least room.
fn cgroup_pids() -> Limit {
    let what = "pids of the cgroup (pids.max)";
    let text = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mut least = u64::MAX;
    for line in text.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let root = match controllers {
            "" => "/sys/fs/cgroup",
            list if list.split(',').any(|name| name == "pids") => "/sys/fs/cgroup/pids",
            _ => continue,
        };
        let mut folder = Some(std::path::Path::new(path));
        while let Some(path) = folder {
            let at = format!("{root}{}", path.display());
            let most = number(&format!("{at}/pids.max"), what).0;
            let used = number(&format!("{at}/pids.current"), what).0;
            if most != u64::MAX && used != u64::MAX {
                least = least.min(most.saturating_sub(used));
            }
            folder = path.parent();
        }
    }
    (least, what)
}

/// Field 4 of /proc/sys/kernel/sem is the number of sets.
fn semaphores() -> Limit {
    let text = fs::read_to_string("/proc/sys/kernel/sem").unwrap_or_default();
    let most = text.split_ascii_whitespace().nth(3).and_then(|n| n.parse().ok()).unwrap_or(0);
    (less_used(most, "sem"), "sets of semaphores (kernel.sem)")
}

fn segments() -> Limit {
    let (most, what) = number("/proc/sys/kernel/shmmni", "segments (kernel.shmmni)");
    (less_used(most, "shm"), what)
}

fn less_used(most: u64, table: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/sysvipc/{table}")).unwrap_or_default();
    most.saturating_sub(text.lines().skip(1).count() as u64)
}

/// Descriptors that one helper process may hold.
pub fn descriptors_each() -> u64 {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    limit.unwrap_or(1024).saturating_sub(64).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_for_some_and_never_for_more_than_the_kernel_allows() {
        for resource in [Resource::Descriptors, Resource::Tasks, Resource::Semaphores] {
            let (limit, why) = of(resource);
            assert!(limit > 100, "{resource:?}: {why}");
        }
        let most = number("/proc/sys/kernel/threads-max", "").0;
        assert!(of(Resource::Tasks).0 <= most / 2);
        let bytes = memory(1).0;
        assert!(of(Resource::Memory(bytes)).0 <= 1);
    }
}
