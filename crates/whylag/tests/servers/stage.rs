//! Where a situation is played: a folder, ports on loopback, servers and clients, and the recording.

use std::cell::Cell;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::disturbance::stolen;
use crate::common::{Lab, wait_until};
use crate::process::{Process, command, words};
use crate::usage::Usage;

/// How long whylag watches.
pub const WATCHED: Duration = Duration::from_secs(3);
/// How long a load goes on before.
const WARM_UP: Duration = Duration::from_millis(700);

/// One recording.
pub struct Recorded {
    /// What other programs did to it.
    pub disturbed: Option<String>,
}

pub struct Stage<'a> {
    lab: &'a Lab,
    folder: tempfile::TempDir,
    recorded: Option<Recorded>,
    ports: Cell<u16>,
}

impl<'a> Stage<'a> {
    pub fn new(lab: &'a Lab) -> Stage<'a> {
        let folder = tempfile::Builder::new().prefix("whylag-server.").tempdir_in("/tmp").unwrap();
        fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o777)).unwrap();
        Stage { lab, folder, recorded: None, ports: Cell::new(0) }
    }

    /// The folder, which anybody may write to.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// Writes a file that anybody may read and change, and says where it is.
    pub fn file(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, PermissionsExt::from_mode(0o777)).unwrap();
        path
    }

    pub fn read(&self, name: &str) -> String {
        String::from_utf8_lossy(&fs::read(self.path(name)).unwrap_or_default()).into_owned()
    }

    /// A port of loopback that nobody has.
    pub fn port(&self) -> u16 {
        // Below those that the kernel gives to clients, which could take one meanwhile.
        let from = if self.ports.get() == 0 { 21_000 } else { self.ports.get() + 1 };
        let free = (from..32_000).find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok());
        self.ports.set(free.unwrap());
        self.ports.get()
    }

    /// Starts a program as nobody in the folder; its output goes to the file `log`. Where something
    /// is to be said to it, `Command::stdin` is piped by the caller.
    pub fn start(&self, command: &mut Command) -> Process {
        let log = self.folder.path().join("log");
        let out = fs::File::options().create(true).append(true).open(&log).unwrap();
        fs::set_permissions(&log, PermissionsExt::from_mode(0o666)).unwrap();
        command.env("HOME", self.folder()).current_dir(self.folder()).stdout(out);
        Process::start(command, &log)
    }

    /// A client that is told nothing, by its words.
    pub fn client(&self, line: &str) -> Process {
        self.start(command(&words(line)).stdin(Stdio::null()))
    }

    /// The same of a server, until it answers on the port.
    pub fn server(&self, words: &[&str], port: u16) -> Process {
        let mut process = self.start(command(words).stdin(Stdio::null()));
        wait_until(words[0], || {
            assert!(process.is_running(), "{words:?} ended: {}", self.read("log"));
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        process
    }

    /// Runs a program as nobody to its end, which has to be a success, and says what it printed.
    pub fn run(&self, words: &[&str]) -> String {
        self.run_with(words, "")
    }

    pub fn run_with(&self, words: &[&str], input: &str) -> String {
        let input = self.file("input", input);
        let out = self.path("output");
        let mut all = command(words);
        all.stdin(fs::File::open(input).unwrap());
        all.env("HOME", self.folder()).current_dir(self.folder());
        all.stdout(fs::File::create(&out).unwrap());
        let mut process = Process::start(&mut all, &self.folder.path().join("log"));
        let status = process.child.wait().unwrap();
        let printed = fs::read(&out).unwrap();
        let printed = String::from_utf8_lossy(&printed).into_owned();
        assert!(status.success(), "{words:?}: {status}: {printed} {}", self.read("log"));
        printed
    }

    /// Lets the load warm up.
    pub fn warm_up(&self) {
        std::thread::sleep(WARM_UP);
    }

    /// Records the server with its descendants, and says what was written to the log meanwhile.
    pub fn record(&mut self, server: &Process) -> String {
        let before = self.read("log").len();
        self.record_pid(server.pid());
        self.read("log").split_off(before)
    }

    fn record_pid(&mut self, pid: u32) {
        let before = Usage::now();
        let time = format!("{}s", WATCHED.as_secs());
        let options = ["-p", &pid.to_string(), "--follow", "--time", &time];
        let run = self.lab.record_target(&options).run;
        let disturbed = before.disturbed().or_else(|| stolen(&run));
        self.recorded = Some(Recorded { disturbed });
    }

    /// What `record` did.
    pub fn recorded(self) -> Recorded {
        self.recorded.expect("each situation records")
    }

    /// A built program of the situation's own, from its source.
    pub fn built(&self, compiler: &[&str], name: &str, source: &str) -> PathBuf {
        self.file(name, source);
        let output = command(compiler).env("HOME", "/root").current_dir(self.folder()).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        self.folder.path().join(name).with_extension("")
    }
}
