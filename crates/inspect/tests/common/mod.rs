//! Programs and libraries that the tests build and run.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Compiles a C text; the file is `folder/name`.
pub fn built(folder: &Path, name: &str, source: &str, options: &[&str]) -> PathBuf {
    let (file, made) = (folder.join(format!("{name}.c")), folder.join(name));
    fs::write(&file, source).unwrap();
    compiled(&file, &made, options);
    made
}

/// Compiles tests/programs/NAME.c.
pub fn program(folder: &Path, name: &str, options: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name);
    let made = folder.join(name);
    compiled(&source.with_extension("c"), &made, options);
    made
}

fn compiled(source: &Path, made: &Path, options: &[&str]) {
    let mut cc = Command::new("cc");
    let output = cc.arg("-o").arg(made).arg(source).args(options).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A running program that says `!` when it is ready, and ends with its test.
pub struct Running(pub Child);

impl Running {
    pub fn start(command: &mut Command) -> Running {
        // What the user of the tests has set must not bind what they leave to be bound.
        command.env_remove("LD_BIND_NOW").env_remove("LD_PRELOAD");
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut running = Running(child);
        running.ready();
        running
    }

    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    pub fn ready(&mut self) {
        let mut byte = [0];
        self.0.stdout.as_mut().unwrap().read_exact(&mut byte).unwrap();
        assert_eq!(byte, *b"!");
    }

    pub fn send(&mut self, byte: u8) {
        self.0.stdin.as_mut().unwrap().write_all(&[byte]).unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
