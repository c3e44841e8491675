//! Files and the file systems that they are on.

use std::fs;
use std::path::Path;
use std::process::Command;

/// Names and contents of all files in a folder.
pub fn contents(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())
        })
        .collect();
    files.sort();
    files
}

/// A small file system in memory, unmounted when dropped.
pub struct Tmpfs(tempfile::TempDir);

impl Tmpfs {
    /// `None`, and the reason printed, if this test may not mount.
    pub fn mount(size: &str) -> Option<Tmpfs> {
        let folder = tempfile::tempdir().unwrap();
        let options = format!("size={size},mode=0700");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &options, "whylag-test"]).arg(folder.path());
        let output = mount.output().unwrap();
        if !output.status.success() {
            println!("skipped: {}", String::from_utf8_lossy(&output.stderr).trim());
            return None;
        }
        Some(Tmpfs(folder))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn make_read_only(&self) {
        let mut remount = Command::new("mount");
        assert!(remount.args(["-o", "remount,ro"]).arg(self.path()).status().unwrap().success());
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        // At once, but lazily: a process that another test starts has this one's files until it
        // executes its program.
        let unmounted = Command::new("umount").arg("--lazy").arg(self.path()).status();
        if !std::thread::panicking() {
            assert!(unmounted.unwrap().success());
        }
    }
}
