//! A process in a user namespace of its own, with thousands of mounts and many files mapped.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use inspect::files::{self, FileError};
use inspect::mappings::Mapping;

use crate::common::built;

/// Each step mounts all that is mounted there once more: 2^STEPS mounts.
const ATTACKER: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	char name[64];
	int i, steps;

	if (chdir(argv[1]) || sscanf(argv[2], "%d", &steps) != 1 ||
	    mount("none", ".", "tmpfs", 0, NULL) || chdir(argv[1]))
		return 1;
	for (i = 0; i < 300; i++) {
		int file;

		snprintf(name, sizeof(name), "mapped-%d", i);
		file = open(name, O_RDWR | O_CREAT, 0700);
		if (file < 0 || ftruncate(file, 4096) ||
		    mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file,
			 0) == MAP_FAILED)
			return 1;
	}
	for (i = 0; i < steps; i++) {
		snprintf(name, sizeof(name), "%d", i);
		if (mkdir(name, 0700))
			return 1;
	}
	for (i = 0; i < steps; i++) {
		snprintf(name, sizeof(name), "%d", i);
		if (mount(".", name, NULL, MS_BIND | MS_REC, NULL))
			return 1;
	}
	puts("ready");
	fflush(stdout);
	getchar();
	return 0;
}
"#;

const STEPS: u32 = 12;

/// Bytes that this thread has read by system calls so far.
fn read_so_far() -> u64 {
    let io = fs::read_to_string("/proc/thread-self/io").unwrap();
    io.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap().parse().unwrap()
}

/// The attacker, when it has mapped everything; `None` where there are no user namespaces.
fn attacker(folder: &std::path::Path) -> Option<Child> {
    let program = built(folder, "many_mounts", ATTACKER, &[]);
    let mut command = Command::new("unshare");
    command.args(["-r", "-m"]).arg(program).arg(folder).arg(STEPS.to_string());
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    if line == "ready\n" {
        return Some(child);
    }
    child.wait().unwrap();
    None
}

/// Those of the files in memory.
fn mapped(pid: u32) -> Vec<Mapping> {
    let all = inspect::mappings::read(pid).unwrap().all;
    all.into_iter().filter(|mapping| mapping.path.contains("/mapped-")).collect()
}

/// Its list of mounts is read once, and not for each file: 300 times half a megabyte.
#[test]
fn the_list_of_many_mounts_is_not_read_for_each_file() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut child) = attacker(folder.path()) else {
        return println!("skipped: no user namespaces here");
    };
    let pid = child.id();
    let list = fs::read(format!("/proc/{pid}/mountinfo")).unwrap().len() as u64;
    assert!(list > 64 << STEPS, "{list} bytes");
    let before = read_so_far();
    let results: Vec<_> =
        mapped(pid).iter().map(|mapping| files::mapped(pid, &mapping.file())).collect();
    let opened = results.iter().filter(|result| result.is_ok()).count();
    let read = read_so_far() - before;
    println!("{opened} of {} opened, {read} bytes, the list has {list}", results.len());
    drop(child.stdin.take());
    child.wait().unwrap();
    assert_eq!(results.len(), 300);
    let may_not = |result: &Result<_, FileError>| matches!(result, Err(FileError::MountsOfOthers));
    if results.iter().all(may_not) {
        return println!("skipped: map_files may not be read");
    }
    assert_eq!(opened, 300);
    if number_is_unique() {
        assert!(read < 3 * list, "{read} bytes for a list of {list}");
    }
}

/// Linux 6.8 and later.
fn number_is_unique() -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(6), Some(8))
}
