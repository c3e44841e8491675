//! What a server under test talks to.

use std::fs::File;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::fs::{Advice, fadvise};

use crate::process::Process;
use crate::stage::Stage;

/// Answers each request in a thread of its own after argv[2] milliseconds.
const SLOW_BACKEND: &str = r#"
import sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
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
    std::fs::create_dir(&folder).unwrap();
    let bytes: Vec<u8> =
        (0..1 << 20).map(|at: u32| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let one = |number: usize| {
        let path = folder.join(number.to_string());
        std::fs::write(&path, &bytes).unwrap();
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
