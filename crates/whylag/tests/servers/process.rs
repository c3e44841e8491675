//! Processes that end with their test, whatever ends it.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::common::family::descendants;

const NOBODY: u32 = 65_534;

/// A server, a client or a helper with all its descendants, each in a process group of its own.
pub struct Process {
    pub child: Child,
    /// A shell that ends the group if this test dies.
    guardian: Child,
}

impl Process {
    /// As nobody, with standard error going to the file.
    pub fn start(command: &mut Command, log: &Path) -> Process {
        command.uid(NOBODY).gid(NOBODY);
        let log = std::fs::File::options().create(true).append(true).open(log).unwrap();
        let child = command.stderr(log).process_group(0).spawn();
        let child = child.unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let script = "read -r word; [ \"$word\" = done ] || kill -KILL \"-$1\"";
        let mut guardian = Command::new("sh");
        guardian.args(["-c", script, "sh", &child.id().to_string()]);
        let guardian = guardian.process_group(0).stdin(Stdio::piped()).stdout(Stdio::null());
        Process { child, guardian: guardian.spawn().unwrap() }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Writes a line to its standard input.
    pub fn say(&mut self, line: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let family = descendants(self.pid());
        if self.is_running() {
            let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
            let until = Instant::now() + Duration::from_secs(2);
            while self.is_running() && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        let _ = self.child.kill();
        // Descendants that did not end with it; one whose parent is another by now is no longer
        // that process only if its number was given away within these two seconds.
        for pid in family {
            if is_in_group_or_orphan(pid, self.pid()) {
                let pid = Pid::from_raw(pid as i32).unwrap();
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        let _ = self.child.wait();
        let _ = self.guardian.stdin.take().unwrap().write_all(b"done\n");
        let _ = self.guardian.wait();
    }
}

fn is_in_group_or_orphan(pid: u32, group: u32) -> bool {
    let stat = procfs::process::Process::new(pid as i32).and_then(|process| process.stat());
    stat.is_ok_and(|stat| stat.pgrp as u32 == group || stat.ppid == 1 || stat.ppid as u32 == group)
}

/// A program and its arguments.
pub fn command(words: &[&str]) -> Command {
    let program = find(words[0]).unwrap_or_else(|| panic!("no {} here", words[0]));
    let mut command = Command::new(program);
    command.args(&words[1..]);
    command
}

/// The words of a line; what stands in them has no spaces.
pub fn words(line: &str) -> Vec<&str> {
    line.split_ascii_whitespace().collect()
}

/// Where a program is, also one that only root or only Debian's wrappers look for.
pub fn find(program: &str) -> Option<PathBuf> {
    let paths = std::env::var("PATH").unwrap_or_default();
    let postgres = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let postgres = postgres.map(|version| version.path().join("bin"));
    let folders = paths.split(':').chain(["/usr/sbin", "/sbin"]).map(PathBuf::from);
    let mut files = folders.chain(postgres).map(|folder| folder.join(program));
    files.find(|file| file.is_file())
}
