//! All cgroups with a CPU controller, as far as they can be walked in little time.

use std::fs;
use std::path::{Path, PathBuf};

use super::entry::row;
use crate::read::text;

/// A host with more cgroups is looked at in part; each costs some 20 us.
const MOST: u64 = 4_000;

/// What was found.
pub(super) struct Throttled {
    /// How many were looked at.
    pub seen: u64,
    /// The one that was throttled most often, and how often.
    pub worst: Option<(String, u64)>,
}

/// How often cgroups were throttled since they were made.
pub(super) fn throttled() -> Result<Throttled, String> {
    let top = ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup"];
    let has_stat = |top: &&&str| Path::new(top).join("cpu.stat").exists();
    let top = top.iter().find(has_stat).ok_or("no cgroup hierarchy with a CPU controller")?;
    let mut found = Throttled { seen: 0, worst: None };
    let mut waiting = vec![PathBuf::from(top)];
    while let Some(directory) = waiting.pop() {
        if found.seen == MOST {
            break;
        }
        found.seen += 1;
        let stat = text(directory.join("cpu.stat")).unwrap_or_default();
        let times = row(&stat, "nr_throttled").unwrap_or(0);
        if times > found.worst.as_ref().map_or(0, |(_, worst)| *worst) {
            let path = directory.strip_prefix(top).unwrap_or(&directory).to_string_lossy();
            found.worst = Some((format!("/{path}"), times));
        }
        let entries = fs::read_dir(&directory).into_iter().flatten().flatten();
        let is_directory = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
        waiting.extend(entries.filter(is_directory).map(|entry| entry.path()));
    }
    Ok(found)
}
