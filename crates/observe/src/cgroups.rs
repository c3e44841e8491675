//! Finds a cgroup by its path, by the systemd unit or by the container that it belongs to.
//!
//! Version 2 is looked at first, then each hierarchy of version 1: on a hybrid host a unit is in
//! several, and with version 1 a container in all.
//!
//! A user whom a part of the tree was delegated to can make cgroups of any name in it, also of that of
//! a container of root's. So those whose name root has chosen come first, in whatever hierarchy.

use std::fmt;
use std::fs;
use std::os::linux::fs::MetadataExt;
use std::path::{Path, PathBuf};

use inspect::read::text;
use model::Target;

use crate::Error;

/// Which cgroup, as a user names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CgroupName {
    /// A systemd unit; `.service` may be left out.
    Unit(String),
    /// A directory under a cgroup mount, or the path of a cgroup.
    Path(String),
    /// The beginning of a container's id.
    Container(String),
}

impl CgroupName {
    /// How a run names it.
    pub fn target(&self) -> Target {
        match self {
            CgroupName::Unit(unit) => Target::Unit(with_suffix(unit)),
            CgroupName::Path(path) => Target::Cgroup(path.clone()),
            CgroupName::Container(id) => Target::Container(id.clone()),
        }
    }
}

/// The option with its value.
impl fmt::Display for CgroupName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CgroupName::Unit(unit) => write!(f, "--unit {unit}"),
            CgroupName::Path(path) => write!(f, "--cgroup {path}"),
            CgroupName::Container(id) => write!(f, "--container {id}"),
        }
    }
}

/// A cgroup of this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cgroup {
    /// Its directory.
    pub directory: PathBuf,
    /// What the kernel calls it: the inode number of the directory.
    pub id: u64,
    /// Number of its hierarchy, 0 for version 2.
    pub hierarchy: i32,
}

/// A mounted hierarchy.
#[derive(Debug, PartialEq, Eq)]
struct Mount {
    place: PathBuf,
    hierarchy: i32,
}

/// Candidates listed in an error.
const LISTED: usize = 8;

/// What runtimes write before the id of a container, if anything. With `conmon` in it, it is the cgroup of the
/// process that looks after the container.
const RUNTIMES: [&str; 6] =
    ["docker", "libpod", "libpod-payload", "cri-containerd", "crio", "nerdctl"];
/// Hexadecimal digits of an id.
const ID_LENGTH: usize = 64;

/// The cgroup of this name.
pub fn find(name: &CgroupName) -> Result<Cgroup, Error> {
    let read = |path| text(path).unwrap_or_default();
    let mounts = mounts(&read("/proc/self/mountinfo"), &read("/proc/self/cgroup"));
    if mounts.is_empty() {
        return Err(Error::NoCgroups(name.clone()));
    }
    find_in(&mounts, name)
}

fn find_in(mounts: &[Mount], name: &CgroupName) -> Result<Cgroup, Error> {
    let mut of_users = None;
    for mount in mounts {
        let found: Vec<PathBuf> = match name {
            CgroupName::Path(path) => at(mount, path).into_iter().collect(),
            CgroupName::Unit(unit) => of_unit(&mount.place, &with_suffix(unit)),
            CgroupName::Container(id) => of_container(&mount.place, id),
        };
        let is_path = matches!(name, CgroupName::Path(_));
        match found.first() {
            None => {}
            Some(first) if is_path || is_named_by_root(&mount.place, first) => {
                return the_one(name, &found, mount);
            }
            Some(_) => _ = of_users.get_or_insert((found, mount)),
        }
    }
    match of_users {
        Some((found, mount)) => the_one(name, &found, mount),
        None => Err(Error::NoCgroup(name.clone())),
    }
}

/// The only one that was found.
fn the_one(name: &CgroupName, found: &[PathBuf], mount: &Mount) -> Result<Cgroup, Error> {
    if let [directory] = found {
        return open(directory, mount.hierarchy);
    }
    let listed = found.iter().take(LISTED).map(|path| path.display().to_string()).collect();
    Err(Error::SeveralCgroups { name: name.clone(), count: found.len(), listed })
}

fn open(directory: &Path, hierarchy: i32) -> Result<Cgroup, Error> {
    let data = fs::metadata(directory).map_err(Error::io("looking at a cgroup"))?;
    Ok(Cgroup { directory: directory.to_path_buf(), id: data.st_ino(), hierarchy })
}

/// Processes in a cgroup and below it.
pub fn processes(directory: &Path) -> Vec<u32> {
    let of = |directory: &Path| {
        // Those of a threaded cgroup are listed by the one above it.
        let list = text(directory.join("cgroup.procs")).unwrap_or_default();
        list.lines().filter_map(|line| line.parse().ok()).collect::<Vec<u32>>()
    };
    let mut all = of(directory);
    visit(directory, &mut |below| {
        all.extend(of(below));
        true
    });
    all.sort_unstable();
    all.dedup();
    all.retain(|pid| *pid != 0); // not visible in this PID namespace
    all
}

/// Version 2 first.
fn mounts(mountinfo: &str, own: &str) -> Vec<Mount> {
    let mut mounts: Vec<Mount> = mountinfo.lines().filter_map(|line| mount(line, own)).collect();
    mounts.sort_by_key(|mount| mount.hierarchy);
    mounts
}

/// A line of /proc/PID/mountinfo: `ID PARENT DEVICE ROOT PLACE OPTIONS ... - TYPE SOURCE OPTIONS`.
fn mount(line: &str, own: &str) -> Option<Mount> {
    let (head, tail) = line.split_once(" - ")?;
    let place = PathBuf::from(head.split(' ').nth(4)?);
    let mut tail = tail.split(' ');
    let (kind, options) = (tail.next()?, tail.nth(1)?);
    let hierarchy = match kind {
        "cgroup2" => 0,
        "cgroup" => number_of(options, own)?,
        _ => return None,
    };
    Some(Mount { place, hierarchy })
}

/// Number of a hierarchy of version 1, by a line `NUMBER:CONTROLLERS:PATH` of /proc/PID/cgroup.
fn number_of(options: &str, own: &str) -> Option<i32> {
    own.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (number, controllers) = (fields.next()?, fields.next()?);
        let mut controllers = controllers.split(',');
        let has_all = controllers.all(|name| options.split(',').any(|option| option == name));
        (has_all && number != "0").then(|| number.parse().ok())?
    })
}

/// A directory as it is, if it lies in this mount, else as a path from the mount on.
fn at(mount: &Mount, path: &str) -> Option<PathBuf> {
    let given = Path::new(path);
    let below = mount.place.join(path.trim_start_matches('/'));
    let places = [given.starts_with(&mount.place).then(|| given.to_path_buf()), Some(below)];
    places.into_iter().flatten().find(|directory| directory.join("cgroup.procs").exists())
}

fn with_suffix(unit: &str) -> String {
    const KINDS: [&str; 5] = [".service", ".scope", ".slice", ".socket", ".mount"];
    let has_kind = KINDS.iter().any(|kind| unit.ends_with(kind));
    if has_kind { unit.to_owned() } else { format!("{unit}.service") }
}

/// Those of the system's manager, else those of users' managers.
fn of_unit(mount: &Path, unit: &str) -> Vec<PathBuf> {
    let found = named(mount, &|name| name == unit);
    let of_user = |path: &PathBuf| path.to_string_lossy().contains("/user@");
    if found.iter().any(|path| !of_user(path)) {
        return found.into_iter().filter(|path| !of_user(path)).collect();
    }
    found
}

fn of_container(mount: &Path, id: &str) -> Vec<PathBuf> {
    named(mount, &|name| container_of(name).is_some_and(|whole| whole.starts_with(id)))
}

/// The id of the container that a cgroup of this name is of: `docker-ID.scope`, `libpod-ID.scope`,
/// `crio-ID`, `ID`, `kubepods-pod7.slice:cri-containerd:ID`.
fn container_of(name: &str) -> Option<&str> {
    let name = name.strip_suffix(".scope").unwrap_or(name);
    let (before, id) = name.split_at_checked(name.len().checked_sub(ID_LENGTH)?)?;
    let of_runtime = before.strip_suffix(['-', ':']).and_then(|before| before.rsplit(':').next());
    let is_known = of_runtime.is_some_and(|runtime| RUNTIMES.contains(&runtime));
    let is_id = id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    (is_id && (before.is_empty() || is_known)).then_some(id)
}

/// Those with such a name, but none below one; only those of root if there are any.
fn named(mount: &Path, is_it: &impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let mut found = Vec::new();
    visit(mount, &mut |directory| {
        let name = directory.file_name().unwrap_or_default().to_string_lossy();
        let is_it = is_it(&name);
        if is_it {
            found.push(directory.to_path_buf());
        }
        !is_it
    });
    if found.iter().any(|path| is_named_by_root(mount, path)) {
        found.retain(|path| is_named_by_root(mount, path));
    }
    found
}

/// True if nobody but root could make a cgroup of this name there: names are given by those who own
/// what is above. What is below the mount belongs to root or was given away by him.
fn is_named_by_root(mount: &Path, directory: &Path) -> bool {
    let mut above = directory.ancestors().skip(1).take_while(|above| above.starts_with(mount));
    above.all(|above| fs::symlink_metadata(above).is_ok_and(|data| data.st_uid() == 0))
}

/// All directories below, parents first; those below one for which `enter` says false are left out.
fn visit(directory: &Path, enter: &mut impl FnMut(&Path) -> bool) {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        let below = entry.path();
        if enter(&below) {
            visit(&below, enter);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
22 1 0:21 / /sys rw - sysfs sysfs rw
30 22 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
31 22 0:27 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct
32 22 0:28 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd
33 22 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
34 22 0:30 / /sys/fs/cgroup/gone rw - cgroup cgroup rw,hugetlb
";
    const OWN: &str = "9:name=systemd:/\n4:memory:/a:b\n2:cpu,cpuacct:/\n0::/\n";

    #[test]
    fn hierarchies_are_known_by_their_controllers() {
        let found = mounts(MOUNTS, OWN);
        let found: Vec<_> =
            found.iter().map(|m| (m.hierarchy, m.place.to_str().unwrap())).collect();
        let expected = [
            (0, "/sys/fs/cgroup/unified"),
            (2, "/sys/fs/cgroup/cpu,cpuacct"),
            (4, "/sys/fs/cgroup/memory"),
            (9, "/sys/fs/cgroup/systemd"),
        ];
        assert_eq!(found, expected);
    }

    /// A tree like the one of a host with systemd, docker and podman.
    fn tree() -> tempfile::TempDir {
        let tree = tempfile::tempdir().unwrap();
        let groups = [
            "system.slice/web.service".to_owned(),
            format!("system.slice/docker-{}.scope/init.scope", id("4f5e6a")),
            "user.slice/user-7.slice/user@7.service/app.slice/web.service".to_owned(),
            "user.slice/user-7.slice/user@7.service/app.slice/editor.service".to_owned(),
            format!("machine.slice/libpod-{}.scope/container", id("aa11bb")),
            format!("machine.slice/libpod-conmon-{}.scope", id("aa11bb")),
            format!("kubepods.slice/cri-containerd-{}.scope", id("4f5e00")),
        ];
        for group in groups {
            let directory = tree.path().join(group);
            fs::create_dir_all(&directory).unwrap();
            fs::write(directory.join("cgroup.procs"), "").unwrap();
        }
        tree
    }

    fn names(tree: &tempfile::TempDir, found: Vec<PathBuf>) -> Vec<String> {
        let below = |path: PathBuf| path.strip_prefix(tree.path()).unwrap().to_owned();
        let mut names: Vec<_> =
            found.into_iter().map(|path| below(path).to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_unit_of_the_system_comes_before_those_of_users() {
        let tree = tree();
        let found = |unit| names(&tree, of_unit(tree.path(), &with_suffix(unit)));
        assert_eq!(found("web"), ["system.slice/web.service"]);
        assert_eq!(found("editor.service").len(), 1);
        assert_eq!(found("system.slice"), ["system.slice"]);
        assert_eq!(found("we"), [""; 0]);
    }

    #[test]
    fn a_container_is_found_by_the_beginning_of_its_id() {
        let tree = tree();
        let found = |id: &str| names(&tree, of_container(tree.path(), id));
        let docker = format!("system.slice/docker-{}.scope", id("4f5e6a"));
        assert_eq!(found("4f5e6a"), [docker.as_str()]);
        assert_eq!(found(&id("4f5e6a")), [docker]);
        assert_eq!(found("aa11bb"), [format!("machine.slice/libpod-{}.scope", id("aa11bb"))]);
        assert_eq!(found("4f5e").len(), 2, "ambiguous");
        assert_eq!(found("5e6a"), [""; 0], "a part, but not the beginning");
        assert_eq!(found("docker"), [""; 0]);
    }

    #[test]
    fn cgroups_of_containers_are_those_that_runtimes_make() {
        let id = id("4f");
        for name in [
            format!("docker-{id}.scope"),
            format!("libpod-{id}.scope"),
            format!("libpod-payload-{id}"),
            format!("cri-containerd-{id}.scope"),
            format!("crio-{id}.scope"),
            format!("nerdctl-{id}.scope"),
            format!("kubepods-burstable-pod7.slice:cri-containerd:{id}"),
            id.clone(),
        ] {
            assert_eq!(container_of(&name), Some(&*id), "{name}");
        }
        for name in [
            format!("libpod-conmon-{id}.scope"),
            format!("crio-conmon-{id}.scope"),
            format!("app-{id}.scope"),
            format!("docker{id}"),
            format!("-{id}"),
            format!("a{id}"),
            id.to_uppercase(),
            id[1..].to_owned(),
            format!("docker-\u{e9}{}.scope", &id[1..]),
            "web.service".to_owned(),
        ] {
            assert_eq!(container_of(&name), None, "{name}");
        }
    }

    /// An id that begins like that.
    fn id(beginning: &str) -> String {
        format!("{beginning:0<64}")
    }

    /// Who has a part of the tree can name a cgroup there like that of anybody's container or unit.
    #[test]
    fn what_root_named_comes_before_what_users_named() {
        let tree = tree();
        let theirs = tree.path().join("system.slice/bob.service");
        let made = |name: &str| fs::create_dir_all(theirs.join(name)).unwrap();
        made(&format!("docker-{}.scope", id("4f5e6a")));
        made(&format!("docker-{}.scope", id("dd")));
        made("web.service");
        if std::os::unix::fs::chown(&theirs, Some(1_000), None).is_err() {
            return println!("skipped: it takes root");
        }
        let container = |id| names(&tree, of_container(tree.path(), id));
        let unit = |unit| names(&tree, of_unit(tree.path(), unit));
        let docker = format!("system.slice/docker-{}.scope", id("4f5e6a"));
        assert_eq!(container("4f5e6a"), [docker]);
        assert_eq!(unit("web.service"), ["system.slice/web.service"]);
        let of_bob = format!("system.slice/bob.service/docker-{}.scope", id("dd"));
        assert_eq!(container("dd"), [of_bob], "nothing of root has this id");
        assert_eq!(unit("bob.service"), ["system.slice/bob.service"], "root named it");
    }

    /// As on a hybrid host, where users have a part of version 2, and containers are in version 1.
    #[test]
    fn what_root_named_comes_first_in_whatever_hierarchy() {
        let (first, second) = (tempfile::tempdir().unwrap(), tree());
        let name = CgroupName::Container("aa11bb".to_owned());
        let theirs = first.path().join("user@7.service");
        fs::create_dir_all(theirs.join(id("aa11bb"))).unwrap();
        if std::os::unix::fs::chown(&theirs, Some(7), None).is_err() {
            return println!("skipped: it takes root");
        }
        let mount = |tree: &tempfile::TempDir, hierarchy| Mount {
            place: tree.path().to_owned(),
            hierarchy,
        };
        let (first, second) = (mount(&first, 0), mount(&second, 4));
        let found = |mounts: &[&Mount]| {
            let all: Vec<Mount> =
                mounts.iter().map(|m| Mount { place: m.place.clone(), ..**m }).collect();
            find_in(&all, &name).unwrap().hierarchy
        };
        assert_eq!(found(&[&first, &second]), 4);
        assert_eq!(found(&[&first]), 0, "no other has this id");
    }

    #[test]
    fn a_path_is_taken_as_it_is_or_from_the_mount_on() {
        let tree = tree();
        let mount = Mount { place: tree.path().to_owned(), hierarchy: 0 };
        let wanted = tree.path().join("system.slice/web.service");
        assert_eq!(at(&mount, wanted.to_str().unwrap()), Some(wanted.clone()));
        assert_eq!(at(&mount, "/system.slice/web.service"), Some(wanted.clone()));
        assert_eq!(at(&mount, "system.slice/web.service/"), Some(wanted));
        assert_eq!(at(&mount, "system.slice/none.service"), None);
    }

    #[test]
    fn processes_below_count_too() {
        let tree = tree();
        let write = |group: &str, text| fs::write(tree.path().join(group), text).unwrap();
        write("system.slice/web.service/cgroup.procs", "12\n7\n");
        write("system.slice/cgroup.procs", "3\n0\n");
        assert_eq!(processes(&tree.path().join("system.slice")), [3, 7, 12]);
    }
}
