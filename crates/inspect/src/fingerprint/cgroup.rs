//! The cgroups of a process and the CPU quota that holds for it.

use std::path::{Path, PathBuf};

use model::Fact;

use crate::read::{fact, text, unknown};

const QUOTA: &str = "cgroup.cpu.quota_us";
const PERIOD: &str = "cgroup.cpu.period_us";
const MOUNTS: &str = "/proc/self/mountinfo";

/// `cgroup.<controller>` is the path in each version 1 hierarchy, `cgroup.v2` in the unified one.
///
/// `cgroup.cpu.quota_us` and `cgroup.cpu.period_us` are those of the tightest quota on the way from
/// the process's own cgroup to the root, the file it was read from being the source; the quota is
/// `none` when no cgroup on that way has one.
pub fn facts(process: &str) -> Vec<Fact> {
    let source = format!("/proc/{process}/cgroup");
    let memberships = match text(&source) {
        Ok(table) => memberships(&table),
        Err(reason) => return vec![unknown("cgroup", reason, source)],
    };
    let mut facts: Vec<_> = memberships
        .iter()
        .flat_map(|m| m.names().map(|name| fact(&format!("cgroup.{name}"), &*m.path, &*source)))
        .collect();
    match text(MOUNTS) {
        Ok(mounts) => facts.extend(quota(&memberships, &mounts)),
        Err(reason) => facts.push(unknown(QUOTA, reason, MOUNTS)),
    }
    facts
}

/// Directory of the cgroup that a process is in, in the hierarchy of a version 1 controller or, if
/// that is not there, in the unified one.
pub fn directory(process: &str, controller: &str) -> Option<PathBuf> {
    directory_of(&table(process)?, &mounts()?, controller)
}

/// /proc/PID/cgroup, the same of all processes in the same cgroups.
pub fn table(process: &str) -> Option<String> {
    text(format!("/proc/{process}/cgroup")).ok()
}

/// Where the hierarchies are mounted, for [`directory_of`] and [`with_quota`].
pub fn mounts() -> Option<String> {
    text(MOUNTS).ok()
}

/// The same as [`directory`], of a table of a process and the mounts.
pub fn directory_of(table: &str, mounts: &str, controller: &str) -> Option<PathBuf> {
    let memberships = memberships(table);
    let v1 = memberships.iter().find(|m| m.names().any(|name| name == controller));
    if let Some(membership) = v1 {
        return Some(directories(mounts, "cgroup", controller, &membership.path)?.1);
    }
    let unified = memberships.iter().find(|m| m.controllers.is_empty())?;
    Some(directories(mounts, "cgroup2", "", &unified.path)?.1)
}

/// Directories of the cgroups whose CPU quota can stop the processes of a table: their own, and those
/// above it that have one.
pub fn with_quota(table: &str, mounts: &str) -> Vec<PathBuf> {
    quotas_above(&memberships(table), mounts)
}

fn quotas_above(memberships: &[Membership], mounts: &str) -> Vec<PathBuf> {
    let in_v1 = |m: &&Membership| m.names().any(|name| name == "cpu");
    let found = match memberships.iter().find(in_v1) {
        Some(v1) => directories(mounts, "cgroup", "cpu", &v1.path),
        None => {
            let unified = memberships.iter().find(|m| m.controllers.is_empty());
            unified.and_then(|unified| directories(mounts, "cgroup2", "", &unified.path))
        }
    };
    let Some((top, own)) = found else { return Vec::new() };
    let on_the_way = own.ancestors().take_while(|directory| directory.starts_with(&top));
    let counts = |directory: &&Path| *directory == own || quota_in(directory).is_some();
    on_the_way.filter(counts).map(Path::to_path_buf).collect()
}

/// The quota that a cgroup has itself, of either version.
pub fn quota_in(directory: &Path) -> Option<Quota> {
    v1_quota(directory).or_else(|| v2_quota(directory))
}

/// A line of /proc/PID/cgroup.
#[derive(Debug, PartialEq)]
struct Membership {
    /// Controllers with commas between them, or `name=...`; empty for version 2.
    controllers: String,
    path: String,
}

impl Membership {
    /// Names of its hierarchy: the controllers, `name=...`, or `v2`.
    fn names(&self) -> impl Iterator<Item = &str> {
        let names = if self.controllers.is_empty() { "v2" } else { &self.controllers };
        names.split(',')
    }
}

fn memberships(table: &str) -> Vec<Membership> {
    let membership = |line: &str| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?.to_owned(), fields.next()?.to_owned());
        Some(Membership { controllers, path })
    };
    table.lines().filter_map(membership).collect()
}

fn quota(memberships: &[Membership], mounts: &str) -> Vec<Fact> {
    let in_v1 = |m: &&Membership| m.names().any(|name| name == "cpu");
    let v1 = memberships.iter().find(in_v1);
    let Some(membership) = v1.or_else(|| memberships.iter().find(|m| m.controllers.is_empty()))
    else {
        return vec![unknown(QUOTA, "in no cgroup with a CPU controller", MOUNTS)];
    };
    let (kind, option) = if v1.is_some() { ("cgroup", "cpu") } else { ("cgroup2", "") };
    let Some((top, own)) = directories(mounts, kind, option, &membership.path) else {
        let reason = format!("no mount of {kind} {option} shows {}", membership.path);
        return vec![unknown(QUOTA, reason, MOUNTS)];
    };
    let read = if v1.is_some() { v1_quota } else { v2_quota };
    let on_the_way = own.ancestors().take_while(|directory| directory.starts_with(&top));
    let tightest = on_the_way.filter_map(read).min_by(|a, b| a.cpus().total_cmp(&b.cpus()));
    match tightest {
        Some(quota) => vec![
            fact(QUOTA, quota.quota_us.to_string(), &*quota.source),
            fact(PERIOD, quota.period_us.to_string(), &*quota.source),
        ],
        None => vec![fact(QUOTA, "none", own.to_string_lossy())],
    }
}

/// Mount point of the hierarchy, and the directory of the cgroup `path` in it.
fn directories(mounts: &str, kind: &str, option: &str, path: &str) -> Option<(PathBuf, PathBuf)> {
    mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut before = before.split(' ').skip(3);
        let (root, point) = (unescaped(before.next()?), unescaped(before.next()?));
        let mut after = after.split(' ');
        let (fs_type, super_options) = (after.next()?, after.nth(1)?);
        if fs_type != kind || !(option.is_empty() || super_options.split(',').any(|o| o == option))
        {
            return None;
        }
        let below = Path::new(path).strip_prefix(&root).ok()?;
        // From another cgroup namespace the path can lead out of what is mounted.
        let leads_out = below.components().any(|c| c == std::path::Component::ParentDir);
        let point = PathBuf::from(point);
        (!leads_out).then(|| (point.clone(), point.join(below)))
    })
}

/// mountinfo writes space, tab, newline and backslash as `\` and three octal digits.
fn unescaped(field: &str) -> String {
    let escapes = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
    escapes.iter().fold(field.to_owned(), |text, (code, plain)| text.replace(code, plain))
}

/// So much CPU time in each period.
#[derive(Debug, PartialEq)]
pub struct Quota {
    pub quota_us: u64,
    pub period_us: u64,
    /// File it was read from.
    pub source: String,
}

impl Quota {
    fn cpus(&self) -> f64 {
        self.quota_us as f64 / self.period_us as f64
    }
}

/// A quota of -1 is none, and so no number here.
fn v1_quota(directory: &Path) -> Option<Quota> {
    let source = directory.join("cpu.cfs_quota_us");
    let quota_us = text(&source).ok()?.parse().ok()?;
    let period_us = text(directory.join("cpu.cfs_period_us")).ok()?.parse().ok()?;
    Some(Quota { quota_us, period_us, source: source.to_string_lossy().into_owned() })
}

/// `max 100000` is none, and so no number here.
fn v2_quota(directory: &Path) -> Option<Quota> {
    let source = directory.join("cpu.max");
    let max = text(&source).ok()?;
    let (quota, period) = max.split_once(' ')?;
    let (quota_us, period_us) = (quota.parse().ok()?, period.parse().ok()?);
    Some(Quota { quota_us, period_us, source: source.to_string_lossy().into_owned() })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn mount(kind: &str, root: &str, point: &Path, options: &str) -> String {
        format!("31 23 0:28 {root} {} rw,relatime shared:9 - {kind} x {options}\n", point.display())
    }

    fn value<'f>(facts: &'f [Fact], name: &str) -> &'f str {
        &facts.iter().find(|fact| fact.name == name).unwrap().value
    }

    #[test]
    fn memberships_keep_colons_of_paths() {
        let found = memberships("4:cpu,cpuacct:/a:b\n1:name=systemd:/\n0::/user.slice\nrubbish");
        let pairs: Vec<_> =
            found.iter().flat_map(|m| m.names().map(|name| (name, m.path.as_str()))).collect();
        let expected =
            [("cpu", "/a:b"), ("cpuacct", "/a:b"), ("name=systemd", "/"), ("v2", "/user.slice")];
        assert_eq!(pairs, expected);
    }

    #[test]
    fn the_tightest_quota_on_the_way_up_holds() {
        let top = tempfile::tempdir().unwrap();
        let own = top.path().join("slice/service");
        fs::create_dir_all(&own).unwrap();
        fs::write(own.join("cpu.max"), "400000 100000\n").unwrap();
        fs::write(top.path().join("slice/cpu.max"), "20000 50000\n").unwrap();
        let mounts = mount("cgroup2", "/", top.path(), "rw");
        let facts = quota(&memberships("0::/slice/service"), &mounts);
        assert_eq!(value(&facts, QUOTA), "20000");
        assert_eq!(value(&facts, PERIOD), "50000");
        assert!(facts[0].source.ends_with("slice/cpu.max"), "{}", facts[0].source);

        fs::write(top.path().join("slice/cpu.max"), "max 100000\n").unwrap();
        let facts = quota(&memberships("0::/slice/service"), &mounts);
        assert_eq!(value(&facts, QUOTA), "400000");
    }

    #[test]
    fn a_cgroup_above_can_stop_a_process_too() {
        let top = tempfile::tempdir().unwrap();
        let own = top.path().join("slice/service");
        fs::create_dir_all(&own).unwrap();
        fs::write(own.join("cpu.max"), "max 100000\n").unwrap();
        let mounts = mount("cgroup2", "/", top.path(), "rw");
        let found = || quotas_above(&memberships("0::/slice/service"), &mounts);
        assert_eq!(found(), std::slice::from_ref(&own));
        fs::write(top.path().join("slice/cpu.max"), "20000 50000\n").unwrap();
        assert_eq!(found(), [own, top.path().join("slice")]);
    }

    #[test]
    fn version_1_has_the_cpu_controller_even_beside_version_2() {
        let top = tempfile::tempdir().unwrap();
        let own = top.path().join("with space");
        fs::create_dir_all(&own).unwrap();
        fs::write(own.join("cpu.cfs_quota_us"), "-1\n").unwrap();
        fs::write(own.join("cpu.cfs_period_us"), "100000\n").unwrap();
        let other = mount("cgroup", "/", Path::new("/nowhere"), "rw,cpuset");
        let mounts = other + &mount("cgroup", "/docker\\040x", top.path(), "rw,cpu,cpuacct");
        let members = memberships("0::/\n2:cpu,cpuacct:/docker x/with space");
        let facts = quota(&members, &mounts);
        assert_eq!(value(&facts, QUOTA), "none");
        assert_eq!(facts.len(), 1);

        fs::write(own.join("cpu.cfs_quota_us"), "20000\n").unwrap();
        assert_eq!(value(&quota(&members, &mounts), QUOTA), "20000");
    }

    #[test]
    fn a_cgroup_that_is_not_mounted_is_unknown() {
        let mounts = mount("cgroup2", "/", Path::new("/sys/fs/cgroup"), "rw");
        let facts = quota(&memberships("0::/../../other"), &mounts);
        assert!(value(&facts, QUOTA).starts_with("unknown: no mount of cgroup2"));
        let facts = quota(&memberships("1:cpu:/"), &mounts);
        assert!(value(&facts, QUOTA).starts_with("unknown: no mount of cgroup cpu"));
        let facts = quota(&[], &mounts);
        assert!(value(&facts, QUOTA).starts_with("unknown: in no cgroup"));
    }
}
