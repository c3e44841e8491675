//! Workers that lock a file one after another.

use crate::load::{Load, Request};
use crate::process::words;
use crate::situation::{Situation, Truth};
use crate::stage::Stage;
use std::time::Duration;

pub static SITUATION: Situation = Situation {
    name: "gunicorn_file_lock",
    software: "Gunicorn",
    version: &["gunicorn", "--version"],
    needs: &[],
    what: "4 processes; each request locks a file (flock) and sleeps for 30 ms with it",
    accepted: &[
        ("file-lock", "flock waits for the process that has the file locked"),
        ("turn-taking", "one at a time has what the others wait for"),
    ],
    play,
};

const APPLICATION: &str = r#"
import fcntl, time

def application(environ, start_response):
    with open("locked", "w") as file:
        began = time.monotonic()
        fcntl.flock(file, fcntl.LOCK_EX)
        print("waited", time.monotonic() - began, flush=True)
        time.sleep(0.03)
    start_response("200 OK", [("Content-Length", "3")])
    return [b"ok\n"]
"#;

fn play(stage: &mut Stage) -> Truth {
    stage.file("application.py", APPLICATION);
    let port = stage.port();
    let line = format!(
        "gunicorn --workers 4 --worker-tmp-dir /dev/shm --bind 127.0.0.1:{port} application"
    );
    let server = stage.server(&words(&line), port);
    let load = Load::start(6, Duration::from_millis(5), &Request::get_once(port, "/"));
    stage.warm_up();
    let logged = stage.record(&server);
    let waited =
        logged.lines().filter_map(|line| line.strip_prefix("waited ")?.parse::<f64>().ok());
    let lost_s: f64 = waited.sum();
    let text = format!(
        "the workers' own log: {lost_s:.1} s in flock(), whose holders sleep 30 ms; {}",
        load.end()
    );
    Truth { text, lost_s }
}
