//! A directory whose two threads each wait for the program that answers searches.

use std::process::Stdio;

use crate::process::command;
use crate::situation::{Situation, Truth};
use crate::stage::{Stage, WATCHED};

pub static SITUATION: Situation = Situation {
    name: "slapd_threads_full",
    software: "OpenLDAP",
    version: &["slapd", "-VV"],
    needs: &["ldapsearch", "/usr/bin/python3"],
    what: "8 clients search a directory with 2 threads (threads 2), which ask a program by back-sock; it \
           takes 20 ms for each search, however many it has at once",
    accepted: &[
        ("worker-pool-full", "both threads are busy, searches wait in their connections"),
        ("slow-peer", "what the threads wait for is the answer of another process"),
    ],
    play,
};

/// Answers searches, and prints for each how many it had at that moment.
const BACKEND: &str = r#"
import socket, sys, threading, time

lock = threading.Lock()
at_once = 0

def answer(connection):
    global at_once
    with lock:
        at_once += 1
        print("searches", at_once, flush=True)
    for line in connection.makefile("rb"):
        if line == b"\n":
            break
    time.sleep(0.02)
    with lock:
        at_once -= 1
    connection.sendall(b"RESULT\ncode: 0\n\n")
    connection.close()

listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen(64)
while True:
    threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()
"#;

const CLIENTS: usize = 8;
const SEARCHES: usize = 10_000;

fn play(stage: &mut Stage) -> Truth {
    let (backend, socket) = (stage.file("backend.py", BACKEND), stage.path("backend.sock"));
    let _backend = stage.client(&format!("/usr/bin/python3 -u {backend} {socket}"));
    let port = stage.port();
    let text = format!(
        "include /etc/ldap/schema/core.schema\nmodulepath /usr/lib/ldap\nmoduleload back_sock\n\
         pidfile {}\nthreads 2\ndatabase sock\nsuffix \"dc=x\"\nsocketpath {socket}\n",
        stage.path("pid")
    );
    let configuration = stage.file("slapd.conf", &text);
    let url = format!("ldap://127.0.0.1:{port}");
    let server = stage.server(&["slapd", "-f", &configuration, "-h", &url, "-d", "0"], port);
    let names: String = (0..SEARCHES).map(|n| format!("n{n}\n")).collect();
    let names = stage.file("names", &names);
    let search = ["ldapsearch", "-x", "-H", &url, "-b", "dc=x", "-f", &names, "-c", "(cn=%s)"];
    let quiet = || Stdio::null();
    let client = |_| stage.start(command(&search).stdin(quiet()).stderr(quiet()));
    let _clients: Vec<_> = (0..CLIENTS).map(client).collect();
    stage.warm_up();
    let log = stage.record(&server);
    let at_once = log.lines().filter_map(|line| line.strip_prefix("searches ")?.parse().ok());
    let at_once: Vec<usize> = at_once.collect();
    let most = at_once.iter().max().copied().unwrap_or(0);
    let lost_s = CLIENTS.saturating_sub(most) as f64 * WATCHED.as_secs_f64();
    let text = format!(
        "the backend's own count: {} searches of 20 ms in about {} s, at most {most} at once, of {CLIENTS} \
         clients: so many others waited",
        at_once.len(),
        WATCHED.as_secs()
    );
    Truth { text, lost_s }
}
