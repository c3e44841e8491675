//! What the tests share: a folder in memory, and one tracer at a time.
#![allow(clippy::unwrap_used, reason = "for tests")]
#![allow(dead_code, reason = "each test file uses some of it")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tempfile::TempDir;
use trace::reader::TraceFile;
use trace::{Builder, Tracer};

static ONE_TRACER: Mutex<()> = Mutex::new(());

/// A folder of its own, and the right to be the one tracer of the process.
pub struct Place {
    pub folder: Folder,
    _alone: MutexGuard<'static, ()>,
}

pub fn place() -> Place {
    let alone = ONE_TRACER.lock().unwrap_or_else(PoisonError::into_inner);
    Place { folder: Folder::Own(memory_folder()), _alone: alone }
}

/// A folder that a test made, or that was given to a role.
pub enum Folder {
    Own(TempDir),
    Given(PathBuf),
}

impl Folder {
    pub fn path(&self) -> &Path {
        match self {
            Folder::Own(folder) => folder.path(),
            Folder::Given(path) => path,
        }
    }
}

pub fn memory_folder() -> TempDir {
    tempfile::Builder::new().prefix("whylag-test-").tempdir_in("/dev/shm").unwrap()
}

impl Place {
    pub fn given(folder: String) -> Place {
        Place { folder: Folder::Given(folder.into()), ..place() }
    }

    pub fn builder(&self) -> Builder {
        Tracer::builder().folder(self.folder.path()).keep(false).threads(4).histograms(4)
    }
}

pub fn open(tracer: &Tracer) -> TraceFile {
    TraceFile::open(tracer.path().unwrap()).unwrap()
}

/// The part of a test that runs in a process of its own: the same test, called with a role.
pub fn role() -> Option<String> {
    std::env::var("TRACE_TEST_ROLE").ok()
}

/// Runs a test of this file again, in a role.
pub fn in_role(test: &str, role: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]);
    command.env("TRACE_TEST_ROLE", role);
    command
}

pub fn expect_success(output: Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    text
}
