//! A program whose calls are bound one by one, when it is told to.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use super::Helper;

/// What tests/programs/lazy.c calls, in its order.
pub const CALLS: [&str; 6] = ["getppid", "getuid", "geteuid", "getgid", "getegid", "sched_yield"];

/// tests/programs/lazy.c, running, after so many of its calls.
pub fn lazy(folder: &Path, called: usize) -> Helper {
    let mut helper = Helper::spawn(&mut lazy_command(folder, called));
    ready(&mut helper);
    helper
}

pub fn lazy_command(folder: &Path, called: usize) -> Command {
    let program = folder.join("lazy");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/lazy.c");
    let cc =
        Command::new("cc").args(["-O1", "-Wl,-z,lazy", "-o"]).arg(&program).arg(source).output();
    assert!(cc.unwrap().status.success());
    let mut command = Command::new(program);
    command.arg(called.to_string()).env_remove("LD_BIND_NOW");
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

pub fn ready(helper: &mut Helper) {
    helper.0.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
}

pub fn call_one_more(helper: &mut Helper) {
    helper.0.stdin.as_mut().unwrap().write_all(b".").unwrap();
    ready(helper);
}
