//! A process with children and grandchildren, and what /proc says of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::{Command, Stdio};

use super::programs::program;
use super::{Helper, wait_until};

/// tests/programs/family.c.
pub fn family(children: u32, more: u32) -> Helper {
    let mut command = Command::new(program("family"));
    let numbers = [children.to_string(), more.to_string()];
    Helper::spawn(command.args(numbers).stdout(Stdio::null()))
}

/// Waits until it has so many children and grandchildren.
pub fn grown(parent: &Helper, count: usize) {
    wait_until("all children to be there", || descendants(parent.0.id()).len() == count);
}

/// Children of a process, and theirs, by their parents in /proc/PID/stat.
pub fn descendants(pid: u32) -> BTreeSet<u32> {
    let parents: BTreeMap<u32, u32> = processes().filter_map(|p| Some((p, parent(p)?))).collect();
    let mut found = BTreeSet::from([pid]);
    loop {
        let before = found.len();
        found.extend(
            parents.iter().filter(|(_, p)| found.contains(p)).map(|(c, _)| *c).collect::<Vec<_>>(),
        );
        if found.len() == before {
            found.remove(&pid);
            return found;
        }
    }
}

/// Number of a process in the innermost PID namespace that it is in.
pub fn number_inside(pid: u32) -> u32 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:")).unwrap();
    line.split_whitespace().last().unwrap().parse().unwrap()
}

fn processes() -> impl Iterator<Item = u32> {
    fs::read_dir("/proc").unwrap().flatten().filter_map(|e| e.file_name().to_str()?.parse().ok())
}

fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}
