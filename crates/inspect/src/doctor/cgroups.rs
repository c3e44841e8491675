//! All cgroups with a CPU controller, as far as they can be walked in little time.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};

use super::entry::row;
use crate::read::text;

/// A host with more cgroups is looked at in part; each costs some 20 us.
const MOST: usize = 4_000;

/// What was found.
#[derive(Default)]
pub(super) struct Throttled {
    /// How many were looked at.
    pub seen: u64,
    /// True if there are more.
    pub are_more: bool,
    /// The one that was throttled most often, and how often.
    pub worst: Option<(String, u64)>,
}

/// How often cgroups were throttled since they were made.
pub(super) fn throttled() -> Result<Throttled, String> {
    let top = ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup"];
    let has_stat = |top: &&&str| Path::new(top).join("cpu.stat").exists();
    let top = top.iter().find(has_stat).ok_or("no cgroup hierarchy with a CPU controller")?;
    Ok(below(Path::new(top)))
}

/// Those above come first: users can have thousands below their own, and not above.
fn below(top: &Path) -> Throttled {
    let mut found = Throttled::default();
    let mut waiting = VecDeque::from([PathBuf::from(top)]);
    let mut met = 1;
    while let Some(directory) = waiting.pop_front() {
        found.seen += 1;
        let stat = text(directory.join("cpu.stat")).unwrap_or_default();
        let times = row(&stat, "nr_throttled").unwrap_or(0);
        if times > found.worst.as_ref().map_or(0, |(_, worst)| *worst) {
            let path = directory.strip_prefix(top).unwrap_or(&directory).to_string_lossy();
            found.worst = Some((format!("/{path}"), times));
        }
        let entries = fs::read_dir(&directory).into_iter().flatten().flatten();
        let is_directory = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
        for entry in entries.filter(is_directory) {
            if met == MOST {
                found.are_more = true;
                break;
            }
            met += 1;
            waiting.push_back(entry.path());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_above_are_looked_at_first_and_a_part_is_said_to_be_one() {
        let top = tempfile::tempdir().unwrap();
        let group = |path: &str, times: u64| {
            let directory = top.path().join(path);
            fs::create_dir_all(&directory).unwrap();
            fs::write(directory.join("cpu.stat"), format!("nr_throttled {times}\n")).unwrap();
        };
        for slice in ["a", "m", "z"] {
            group(&format!("{slice}.slice"), 0);
            group(&format!("{slice}.slice/{slice}.service"), 7);
        }
        group("z.slice/z.service", 12);
        let found = below(top.path());
        assert_eq!((found.seen, found.are_more), (7, false));
        // Wherever a walk into the depth began, it would be in these.
        for slice in ["a", "m"] {
            for n in 0..MOST {
                let own = format!("{slice}.slice/{slice}.service/{n}");
                fs::create_dir_all(top.path().join(own)).unwrap();
            }
        }
        let found = below(top.path());
        assert_eq!((found.seen, found.are_more), (MOST as u64, true));
        assert_eq!(found.worst, Some(("/z.slice/z.service".to_owned(), 12)));
    }
}
