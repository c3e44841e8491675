//! What a server under test talks to.

use std::fs::{self, File};
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::fs::{Advice, fadvise};

use crate::common::family::descendants;
use crate::common::wait_until;
use crate::process::{Process, command};
use crate::stage::Stage;

/// Answers each request in a thread of its own after argv[2] milliseconds.
const SLOW_BACKEND: &str = r#"
import sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    def do_GET(self):
        time.sleep(int(sys.argv[2]) / 1000)
        self.send_response(200)
        self.send_header("Content-Length", "3")
        self.end_headers()
        self.wfile.write(b"ok\n")
    def log_message(self, *arguments):
        pass

ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"#;

/// An HTTP server that takes so long for each request, and its port.
pub fn slow_backend(stage: &Stage, takes_ms: u32) -> (Process, u16) {
    let port = stage.port();
    let source = stage.file("backend.py", SLOW_BACKEND);
    let words = ["/usr/bin/python3", &source, &port.to_string(), &takes_ms.to_string()];
    (stage.server(&words, port), port)
}

/// Listens at argv[1] for packets that have passed no router, of a time to live that those of loopback do not have:
/// they are dropped, as a firewall does that does not refuse them.
const DEAD_BACKEND: &str = r#"
import signal, socket, sys

IP_MINTTL = 21
listening = socket.socket()
listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listening.setsockopt(socket.IPPROTO_IP, IP_MINTTL, 255)
listening.bind(("127.0.0.1", int(sys.argv[1])))
listening.listen(128)
signal.pause()
"#;

/// A server that nothing comes back from, and its port.
pub fn dead_backend(stage: &Stage) -> (Process, u16) {
    let port = stage.port();
    let source = stage.file("dead.py", DEAD_BACKEND);
    let mut words = command(&["/usr/bin/python3", &source, &port.to_string()]);
    let mut process = stage.start(&mut words);
    // It answers nobody; but nobody else can have its port once it listens.
    wait_until("the dead server", || {
        assert!(process.is_running(), "it ended: {}", stage.read("log"));
        TcpListener::bind(("127.0.0.1", port)).is_err()
    });
    (process, port)
}

/// Does something again and again until it is dropped.
pub struct Repeated {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Repeated {
    pub fn start(mut what: impl FnMut() + Send + 'static) -> Repeated {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                what();
            }
        });
        Repeated { stop, thread: Some(thread) }
    }
}

impl Drop for Repeated {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(std::thread::panicking() || ended.is_some_and(|ended| ended.is_ok()));
    }
}

/// So many files of a megabyte each, `0`, `1` ..., in a folder of that name.
pub fn files(stage: &Stage, folder: &str, count: usize) -> Vec<File> {
    let folder = stage.folder().join(folder);
    fs::create_dir(&folder).unwrap();
    let bytes: Vec<u8> =
        (0..1 << 20).map(|at: u32| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let one = |number: usize| {
        let path = folder.join(number.to_string());
        fs::write(&path, &bytes).unwrap();
        let file = File::open(path).unwrap();
        file.sync_all().unwrap();
        file
    };
    (0..count).map(one).collect()
}

/// Puts the files out of the page cache again and again.
pub fn evicted(files: Vec<File>) -> Repeated {
    Repeated::start(move || {
        for file in &files {
            fadvise(file.as_fd(), 0, None, Advice::DontNeed).unwrap();
        }
        std::thread::sleep(Duration::from_millis(5));
    })
}

/// How often a process or one of its children was found asleep for a disk (state D).
pub struct DiskSleeps {
    counts: Arc<[AtomicU32; 2]>,
    _sampler: Repeated,
}

impl DiskSleeps {
    pub fn watch(pid: u32) -> DiskSleeps {
        let counts = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
        let counted = counts.clone();
        let sampler = Repeated::start(move || {
            let family = descendants(pid).into_iter().chain([pid]);
            let files = family.map(|pid| format!("/proc/{pid}/stat"));
            let stats = files.filter_map(|file| fs::read_to_string(file).ok());
            let sleeps = stats.filter(|stat| stat.contains(") D ")).count();
            counted[0].fetch_add(1, Ordering::Relaxed);
            counted[1].fetch_add(u32::from(sleeps > 0), Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(20));
        });
        DiskSleeps { counts, _sampler: sampler }
    }

    /// So many of its samples, 0 to 1.
    pub fn part(&self) -> f64 {
        let [all, sleeps] = [0, 1].map(|at| f64::from(self.counts[at].load(Ordering::Relaxed)));
        sleeps / all.max(1.0)
    }
}

/// Bytes that a process and its children have read from disks.
pub fn read_from_disk(pid: u32) -> u64 {
    let family = descendants(pid).into_iter().chain([pid]);
    let io = family
        .filter_map(|pid| procfs::process::Process::new(pid as i32).and_then(|p| p.io()).ok());
    io.map(|io| io.read_bytes).sum()
}

/// A cgroup of this test's own with a CPU quota.
pub struct Quota(PathBuf);

impl Quota {
    /// So many CPUs; `None` where no hierarchy has the CPU controller.
    pub fn of_cpu(cpus: f64) -> Option<Quota> {
        let name = format!("whylag-server-{}", std::process::id());
        let first = Path::new("/sys/fs/cgroup/cpu");
        let second = Path::new("/sys/fs/cgroup");
        let quota = (cpus * 100_000.0) as u64;
        let (parent, file, value) = if first.join("cpu.cfs_quota_us").exists() {
            (first, "cpu.cfs_quota_us", quota.to_string())
        } else {
            (second, "cpu.max", format!("{quota} 100000"))
        };
        let folder = parent.join(name);
        fs::create_dir(&folder).ok()?;
        let group = Quota(folder);
        fs::write(group.0.join(file), value).ok()?;
        Some(group)
    }

    pub fn take(&self, pid: u32) {
        fs::write(self.0.join("cgroup.procs"), pid.to_string()).unwrap();
    }

    pub fn throttled_s(&self) -> f64 {
        let stat = fs::read_to_string(self.0.join("cpu.stat")).unwrap();
        let values = stat.lines().filter_map(|line| line.split_once(' '));
        let seconds = values.filter_map(|(key, value)| match key {
            "throttled_time" => Some(value.parse::<f64>().unwrap() / 1e9),
            "throttled_usec" => Some(value.parse::<f64>().unwrap() / 1e6),
            _ => None,
        });
        seconds.sum()
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        // What was killed leaves a little later.
        let removed = (0..200).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            fs::remove_dir(&self.0).is_ok()
        });
        assert!(removed || std::thread::panicking(), "{} stays", self.0.display());
    }
}
