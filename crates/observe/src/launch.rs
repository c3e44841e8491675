//! Starts a command and holds it before its first instruction until the probes are attached.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};

use crate::{Error, privilege};

/// A child process that has been created and waits for [`Held::release`].
pub struct Held {
    /// Its process id.
    pub pid: u32,
    gate: Option<io::PipeWriter>,
    spawned: Option<Receiver<io::Result<Child>>>,
    program: String,
}

/// Without [`Held::release`] the child ends without having run anything; it is waited for, since
/// it still reports to its starting thread.
impl Drop for Held {
    fn drop(&mut self) {
        self.gate = None;
        if let Some(spawned) = self.spawned.take() {
            let _ = spawned.recv();
        }
    }
}

/// Creates the child; it inherits everything from us, but its standard output if that goes to a
/// pipe, and waits before exec.
///
/// `Command::spawn` returns only after exec, so it runs in a thread of its own, and the child
/// reports its pid through a pipe. That thread stays as long as whylag: the kernel takes it for the
/// parent, and whoever asked for a signal when his parent ends (PR_SET_PDEATHSIG) would get it.
pub fn hold(words: &[OsString], pipe_stdout: bool) -> Result<Held, Error> {
    let program = words.first().cloned().unwrap_or_default();
    let (mut pid_reader, pid_writer) = io::pipe().map_err(Error::io("making a pipe"))?;
    let (gate_reader, gate) = io::pipe().map_err(Error::io("making a pipe"))?;
    let mut command = Command::new(&program);
    command.args(&words[1..]);
    if pipe_stdout {
        command.stdout(Stdio::piped());
    }
    let gate_number = gate.as_raw_fd();
    // SAFETY: runs between fork and exec; it only reads, writes and closes file descriptors,
    // which is async-signal-safe, and allocates nothing. The descriptor closed is the child's
    // copy, which nothing else in the child uses.
    unsafe {
        command.pre_exec(move || {
            libc::close(gate_number);
            (&pid_writer).write_all(&std::process::id().to_ne_bytes())?;
            // A closed gate (0 bytes) means that the recorder gave up or died.
            let mut go = [0];
            match (&gate_reader).read(&mut go)? {
                1 => Ok(()),
                _ => Err(io::Error::from(io::ErrorKind::Interrupted)),
            }
        });
    }
    let (sender, spawned) = mpsc::channel();
    std::thread::Builder::new()
        .name("command".into())
        .spawn(move || start_and_stay(command, &sender))
        .map_err(Error::io("starting the command's thread"))?;
    let mut pid = [0; 4];
    if let Err(source) = pid_reader.read_exact(&mut pid) {
        let source = match spawned.recv() {
            Ok(Err(error)) => error,
            _ => source,
        };
        return Err(Error::Command { program: program.to_string_lossy().into_owned(), source });
    }
    let program = program.to_string_lossy().into_owned();
    Ok(Held { pid: u32::from_ne_bytes(pid), gate: Some(gate), spawned: Some(spawned), program })
}

impl Held {
    /// Lets it go on to exec; an error says that the program could not be run.
    pub fn release(mut self) -> Result<Child, Error> {
        let program = self.program.clone();
        let failed = |source| Error::Command { program, source };
        let started = match (self.gate.take(), self.spawned.take()) {
            (Some(mut gate), Some(spawned)) => match gate.write_all(&[1]) {
                Ok(()) => spawned.recv(),
                Err(error) => Ok(Err(error)),
            },
            _ => Ok(Err(io::ErrorKind::NotFound.into())),
        };
        match started {
            Ok(child) => child.map_err(failed),
            Err(_) => Err(failed(io::Error::other("the starting thread panicked"))),
        }
    }
}

fn start_and_stay(mut command: Command, started: &Sender<io::Result<Child>>) {
    let child = command.spawn();
    let is_there = child.is_ok();
    // What is inherited was needed until now.
    privilege::drop_all();
    // Nobody waits for it any more where recording could not begin.
    let _ = started.send(child);
    if is_there {
        stay();
    }
}

/// A thread that is unparked for no reason parks again.
fn stay() -> ! {
    loop {
        std::thread::park();
    }
}

/// Exit status as a shell reports it: 128 + the number of the signal that killed it.
pub fn shell_status(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// The thread of this process that the kernel takes for the parent of `child`.
    fn parent(child: u32) -> String {
        for task in fs::read_dir("/proc/self/task").unwrap() {
            let task = task.unwrap().path();
            let children = fs::read_to_string(task.join("children")).unwrap_or_default();
            if children.split_whitespace().any(|pid| pid == child.to_string()) {
                return fs::read_to_string(task.join("comm")).unwrap().trim().to_owned();
            }
        }
        String::new()
    }

    #[test]
    fn the_thread_that_is_the_commands_parent_does_not_end_before_it() {
        let words = ["sleep", "60"].map(OsString::from);
        let mut child = hold(&words, false).unwrap().release().unwrap();
        // Longer than a thread takes to end.
        std::thread::sleep(std::time::Duration::from_millis(300));
        let parent = parent(child.id());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(parent, "command");
    }
}
