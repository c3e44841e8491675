//! A program of nobody, who means harm, and root who records it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use model::{Frame, Run, Space};
use tempfile::TempDir;

use crate::common::nobody::as_nobody;
use crate::common::programs::program;
use crate::common::{Helper, Lab, copy_program, wait_for};

/// Whose programs attack.
pub const NOBODY: u32 = 65_534;

/// Longer than any recording here takes, on a slow machine too.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A folder of nobody's with a program of tests/programs in it that belongs to nobody.
pub struct Den {
    pub folder: TempDir,
    pub program: PathBuf,
}

impl Den {
    pub fn of(name: &str) -> Den {
        let folder = tempfile::tempdir_in("/tmp").unwrap();
        let own = folder.path().join(name);
        copy_program(program(name), &own);
        let den = Den { folder, program: own };
        for path in [den.folder.path(), &den.program] {
            std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        den
    }

    /// A second copy of the program.
    pub fn copy(&self) -> PathBuf {
        let copy = self.folder.path().join("copy");
        copy_program(&self.program, &copy);
        std::os::unix::fs::chown(&copy, Some(NOBODY), Some(NOBODY)).unwrap();
        copy
    }

    /// Runs the program as nobody until it has set everything up; gives the number that it printed.
    pub fn attack(&self, arguments: &[&str]) -> (Helper, u64) {
        started(&mut as_nobody(self.command(arguments)))
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments);
        command
    }
}

/// Starts an attacker, and waits for its line.
pub fn started(command: &mut Command) -> (Helper, u64) {
    let mut helper = Helper::spawn(command.stdout(Stdio::piped()));
    let mut line = String::new();
    BufReader::new(helper.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let number = line.trim().strip_prefix("ready ");
    let number = number.unwrap_or_else(|| panic!("the attack did not begin: {line:?}"));
    (helper, u64::from_str_radix(number, 16).unwrap())
}

/// Records a process for a second, which has to end by itself and well.
pub fn record(lab: &Lab, pid: &str) -> (Run, String) {
    record_target(lab, &["-p", pid])
}

/// The same of any target.
pub fn record_target(lab: &Lab, target: &[&str]) -> (Run, String) {
    let mut command = lab.verb("record");
    command.args(target).args(["--threshold", "5ms", "--time", "1s"]);
    let errors = lab.folder.path().join("errors");
    command.stdout(Stdio::null()).stderr(fs::File::create(&errors).unwrap());
    let mut recorder = Helper::spawn(&mut command);
    let status = wait_for(&mut recorder.0, PATIENCE);
    let errors = fs::read_to_string(errors).unwrap();
    assert!(status.success(), "{status}: {errors}");
    (lab.run(), errors)
}

/// The frames of user stacks.
pub fn frames(run: &Run) -> Vec<&Frame> {
    let stacks = run.stacks.values().filter(|stack| stack.space == Space::User);
    stacks.flat_map(|stack| &stack.frames).collect()
}

pub fn has_symbol(run: &Run, name: &str) -> bool {
    frames(run).iter().any(|frame| frame.symbol.as_deref() == Some(name))
}

/// Why frames of a module have no symbol.
pub fn unknown_in<'a>(run: &'a Run, module: &str) -> Vec<&'a str> {
    let of_module = |frame: &&Frame| frame.module.ends_with(module);
    let frames = frames(run).into_iter().filter(of_module);
    frames.filter_map(|frame| frame.unknown_because.as_deref()).collect()
}

/// Attacks of nobody need root to defend itself. Alone, for tests of what an attack costs.
pub fn lab() -> Option<Lab> {
    can_be_nobody().then(Lab::new)?
}

/// Beside others, for attacks whose cost is not measured.
pub fn lab_beside_others() -> Option<Lab> {
    can_be_nobody().then(Lab::beside_others)?
}

pub fn can_be_nobody() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        println!("skipped: only root can start programs of nobody");
    }
    is_root
}

/// Memory that the recorder needs for a process that means no harm, bytes.
pub fn innocent_memory(lab: &Lab) -> u64 {
    let sleeper = Helper::spawn(Command::new("sleep").arg("60"));
    record(lab, &sleeper.pid()).0.cost.peak_rss_bytes
}

/// A file that is removed in the end.
pub struct Removed(pub PathBuf);

impl Drop for Removed {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Makes a file as nobody.
pub fn nobodys_file(path: &Path, contents: impl AsRef<[u8]>) -> Removed {
    let _ = fs::remove_file(path);
    fs::write(path, contents).unwrap();
    std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    Removed(path.to_owned())
}
