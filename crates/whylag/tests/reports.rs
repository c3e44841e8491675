//! The report and the served page, without a browser: what is in the file, and who is answered.
//! What a browser makes of them is tested by `make test-page`.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use common::{assert_refused, whylag};
use flate2::read::GzDecoder;
use serde_json::Value;
use tempfile::TempDir;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name).with_extension("whylag")
}

/// The report of these runs, and its data.
fn report(runs: &[PathBuf]) -> (String, Value) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.html");
    let made = whylag().arg("report").args(runs).arg("-o").arg(&file).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let html = fs::read_to_string(&file).unwrap();
    let (_, data) = html.split_once("id=\"data\">").unwrap();
    let packed = STANDARD.decode(data.split_once("</script>").unwrap().0).unwrap();
    // Behind the line of JSON are the intervals.
    let mut json = String::new();
    BufReader::new(GzDecoder::new(packed.as_slice())).read_line(&mut json).unwrap();
    let data = serde_json::from_str(&json).unwrap();
    (html, data)
}

fn json(verb: &str, run: &Path) -> Value {
    let output = whylag().arg(verb).arg(run).arg("--json").output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_findings_of_a_report_are_those_of_explain() {
    for name in ["mmap-lock-faulty", "slow-peer-faulty", "healthy", "timer-slack-faulty"] {
        let run = fixture(name);
        let (html, data) = report(std::slice::from_ref(&run));
        let (shown, explained) = (&data["runs"][0], json("explain", &run));
        assert_eq!(shown["explanation"]["findings"], explained["findings"], "{name}");
        for key in ["wall_ns", "lost_ns", "idle_ns", "unaccounted_ns", "rhythms", "losses"] {
            assert_eq!(shown["explanation"][key], explained[key], "{name} {key}");
        }
        let ns = |rows: &Value| rows.as_array().unwrap().iter().map(|r| r["ns"].clone()).collect();
        let (accounts, theirs): (Vec<_>, Vec<_>) =
            (ns(&shown["accounts"]), ns(&explained["accounts"]));
        assert_eq!(accounts, theirs, "{name}");
        assert!(html.len() < 5_000_000, "{name}: {} bytes", html.len());
    }
}

#[test]
fn of_every_value_that_was_measured_the_map_has_its_place() {
    let run = fixture("proc-scan-vs-fork-faulty");
    let (_, data) = report(std::slice::from_ref(&run));
    let whole = json("show", &run);
    let seconds = whole["seconds"].as_array().unwrap();
    let latencies = data["runs"][0]["latencies"].as_array().unwrap();
    let is_counted = |l: &&Value| seconds.iter().any(|second| second["metric"] == l["metric"]);
    let counted: Vec<&Value> = latencies.iter().filter(is_counted).collect();
    assert!(counted.len() > 5);
    for latency in counted {
        let of_it = seconds.iter().filter(|second| second["metric"] == latency["metric"]);
        let (mut n, mut most) = (0, 0);
        for second in of_it {
            n += second["histogram"]["count"].as_u64().unwrap();
            most = most.max(second["histogram"]["max"].as_u64().unwrap());
        }
        let columns = latency["columns"].as_array().unwrap();
        let cells = columns.iter().flat_map(|column| column["cells"].as_array().unwrap());
        assert_eq!(cells.map(|cell| cell[1].as_u64().unwrap()).sum::<u64>(), n, "{latency}");
        let highest = columns.iter().map(|column| column["max_ns"].as_u64().unwrap()).max();
        assert_eq!((latency["n"].as_u64(), highest), (Some(n), Some(most)));
    }
}

#[test]
fn a_finding_that_an_interval_shows_has_its_picture() {
    let (_, data) = report(&[fixture("mmap-lock-faulty")]);
    let run = &data["runs"][0];
    let picture = &run["pictures"][0];
    assert_eq!(picture["finding"], 0);
    let lanes = picture["lanes"].as_array().unwrap();
    assert_eq!(
        (&lanes[0]["role"], lanes.len() > 1),
        (&Value::from("was held up"), true),
        "{picture}"
    );
    // The command under it says the same cause.
    let command = picture["command"].as_str().unwrap();
    let number = command.rsplit(' ').next().unwrap();
    let run_file = fixture("mmap-lock-faulty");
    let output =
        whylag().arg("explain").arg(run_file).args(["--outlier", number, "--json"]).output();
    let answer: Value = serde_json::from_slice(&output.unwrap().stdout).unwrap();
    assert_eq!(answer["findings"][0]["cause"], run["explanation"]["findings"][0]["cause"]);
}

#[test]
fn two_runs_stand_side_by_side() {
    let (_, data) = report(&[fixture("mmap-lock-faulty"), fixture("mmap-lock-fixed")]);
    assert_eq!(data["runs"].as_array().unwrap().len(), 2);
    let of = |run: usize, account: &str| -> u64 {
        let rows = data["runs"][run]["accounts"].as_array().unwrap().iter();
        rows.filter(|row| row["account"] == account).map(|row| row["ns"].as_u64().unwrap()).sum()
    };
    let wall = |run: usize| data["runs"][run]["explanation"]["wall_ns"].as_u64().unwrap();
    for row in data["differences"].as_array().unwrap() {
        let account = row["account"].as_str().unwrap();
        for run in [0, 1] {
            let share = of(run, account) as f64 / wall(run) as f64;
            assert!((row["share"][run].as_f64().unwrap() - share).abs() < 1e-9, "{row}");
        }
    }
}

#[test]
fn how_two_runs_differ_is_what_compare_says() {
    let runs = [fixture("mmap-lock-faulty"), fixture("mmap-lock-fixed")];
    let (_, data) = report(&runs);
    let shown = &data["comparison"];
    let output = whylag().arg("compare").args(&runs).arg("--json").output().unwrap();
    let compared: Value = serde_json::from_slice(&output.stdout).unwrap();
    let latencies = compared["latencies"].as_array().unwrap();
    let shifts = shown["shifts"].as_array().unwrap();
    assert!(!shifts.is_empty());
    for (shift, latency) in shifts.iter().zip(latencies) {
        assert_eq!(shift["metric"], latency["name"]);
        let ratios = |points: &Value| -> Vec<Value> {
            points.as_array().unwrap().iter().map(|point| point["ratio"].clone()).collect()
        };
        assert_eq!(ratios(&shift["points"]), ratios(&latency["shift"]), "{shift}");
    }
    // What became faster and what is gone is what the accounts lost, less what they gained.
    let tree = &shown["flames"]["trees"][0];
    let column = |name: &str| tree[name].as_array().unwrap().iter().map(|v| v.as_i64().unwrap());
    let branches =
        column("depth").zip(column("kind")).zip(column("ns")).filter(|((d, _), _)| *d == 1);
    let sum = |kinds: &[i64]| -> i64 {
        branches.clone().filter(|((_, kind), _)| kinds.contains(kind)).map(|(_, ns)| ns).sum()
    };
    let wall = |side: &str| compared[side]["wall_ns"].as_i64().unwrap();
    let (grown, shrunk, grey) = (sum(&[4, 5]), sum(&[6, 7]), sum(&[8]));
    let off = (grown - shrunk) - (wall("b") - wall("a"));
    assert!(shrunk > 0 && off.abs() <= grey + 1000, "{grown} {shrunk} {grey} {off}");
}

#[test]
fn what_cannot_be_reported_is_refused_in_a_line() {
    let file = tempfile::tempdir().unwrap();
    let file = file.path().join("x.html");
    let refused = |run: &str| whylag().args(["report", run, "-o"]).arg(&file).output().unwrap();
    assert_refused(&refused("/no/such/run"), &["/no/such/run"]);
    assert!(!file.exists());
}

/// A store with the run of a fixture. No turn is taken (`Lab`): nothing is recorded or measured.
struct Stored(TempDir);

impl Stored {
    fn new(name: &str) -> Stored {
        let stored = Stored(tempfile::tempdir().unwrap());
        stored.answer("import", &[fixture(name).to_str().unwrap()]);
        stored
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("whylag.db")
    }

    fn verb(&self, verb: &str) -> Command {
        let mut command = whylag();
        command.arg("--store").arg(self.path()).arg(verb);
        command
    }

    fn answer(&self, verb: &str, options: &[&str]) -> Vec<u8> {
        let output = self.verb(verb).args(options).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }
}

/// A server that ends with the test.
struct Served {
    child: Child,
    address: String,
    token: String,
}

impl Served {
    fn of(lab: &Stored) -> Served {
        let mut child = lab.verb("serve").stdout(Stdio::piped()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut url).unwrap();
        let rest = url.trim().strip_prefix("http://").unwrap();
        let (address, token) = rest.trim_end_matches('/').split_once('/').unwrap();
        Served { child, address: address.to_owned(), token: token.to_owned() }
    }

    /// Status and all that came.
    fn asked(&self, line: &str, headers: &[&str]) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let headers = headers.join("\r\n");
        write!(stream, "{line} HTTP/1.1\r\n{headers}\r\nConnection: close\r\n\r\n").unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        let answer = String::from_utf8_lossy(&bytes).into_owned();
        (answer.split(' ').nth(1).unwrap().parse().unwrap(), answer)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

#[test]
fn only_who_knows_the_token_is_answered_and_only_here() {
    let lab = Stored::new("mmap-lock-faulty");
    let before = fs::read(lab.path()).unwrap();
    let served = Served::of(&lab);
    let host = format!("Host: {}", served.address);
    let path = format!("/{}/run/1", served.token);
    let get = format!("GET {path}");

    let (status, answer) = served.asked(&get, &[&host]);
    assert_eq!(status, 200, "{answer}");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let page: Value = serde_json::from_str(body.lines().next().unwrap()).unwrap();
    let explained: Value = serde_json::from_slice(&lab.answer("explain", &["--json"])).unwrap();
    assert_eq!(page["runs"][0]["explanation"]["findings"], explained["findings"]);
    let policy = head.lines().find(|line| line.starts_with("content-security-policy")).unwrap();
    assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");

    let port = served.address.rsplit(':').next().unwrap();
    let wrong_token = format!("GET /{}/run/1", "0".repeat(served.token.len()));
    let own = format!("Origin: http://{}", served.address);
    for (line, headers, wanted) in [
        (get.as_str(), vec![host.as_str(), own.as_str()], 200),
        (get.as_str(), vec![&format!("Host: localhost:{port}")], 200),
        ("GET /", vec![host.as_str()], 403),
        ("GET /run/1", vec![host.as_str()], 403),
        (wrong_token.as_str(), vec![host.as_str()], 403),
        (get.as_str(), vec!["Host: whylag.example"], 403),
        (get.as_str(), vec![&format!("Host: whylag.example:{port}")], 403),
        (get.as_str(), vec![host.as_str(), "Origin: http://whylag.example"], 403),
        (get.as_str(), vec![host.as_str(), "Origin: null"], 403),
        (get.as_str(), vec![host.as_str(), own.as_str(), "Origin: http://b.example"], 403),
        (&format!("POST {path}"), vec![host.as_str()], 405),
        (&format!("DELETE {path}"), vec![host.as_str()], 405),
        (&format!("GET /{}/run/99", served.token), vec![host.as_str()], 404),
        (&format!("GET /{}/../../etc/passwd", served.token), vec![host.as_str()], 404),
    ] {
        let (status, answer) = served.asked(line, &headers);
        assert_eq!(status, wanted, "{line} {headers:?}: {answer}");
        assert!(wanted == 200 || !answer.contains("findings"), "{answer}");
    }
    assert!(before == fs::read(lab.path()).unwrap(), "nothing was written");
}

#[test]
fn a_socket_is_for_its_owner_alone_and_a_left_one_is_replaced() {
    use std::os::unix::fs::PermissionsExt;
    let lab = Stored::new("mmap-lock-faulty");
    let path = lab.0.path().join("page.sock");
    for round in 0..2 {
        let mut served = lab.verb("serve");
        let served = served.arg("--socket").arg(&path).stdout(Stdio::piped()).spawn().unwrap();
        let mut served = Served { child: served, address: String::new(), token: String::new() };
        let mut url = String::new();
        BufReader::new(served.child.stdout.as_mut().unwrap()).read_line(&mut url).unwrap();
        let token = url.trim().strip_prefix("http://localhost/").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let status = |host: &str, token: &str| {
            let mut stream = std::os::unix::net::UnixStream::connect(&path).unwrap();
            let line =
                format!("GET /{token}runs.json HTTP/1.1\r\nHost: {host}\r\nConnection: close");
            write!(stream, "{line}\r\n\r\n").unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer.split(' ').nth(1).unwrap().parse::<u16>().unwrap()
        };
        // Forwarded from a port of another host.
        assert_eq!((status("localhost:8000", token), status("localhost", token)), (200, 200));
        assert_eq!((status("whylag.example", token), status("localhost", "0/")), (403, 403));
        let second = lab.verb("serve").arg("--socket").arg(&path).output().unwrap();
        assert_refused(&second, &["page.sock", "--socket"]);
        assert!(path.exists(), "round {round}");
    }
    fs::remove_file(&path).unwrap();
    fs::write(&path, "mine").unwrap();
    let refused = lab.verb("serve").arg("--socket").arg(&path).output().unwrap();
    assert_refused(&refused, &["page.sock"]);
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
}

#[test]
fn the_window_that_is_asked_about_is_explained_as_explain_does() {
    let lab = Stored::new("mmap-lock-faulty");
    let served = Served::of(&lab);
    let host = format!("Host: {}", served.address);
    let line = format!("GET /{}/explain/1?from=200000000&to=400000000", served.token);
    let (status, answer) = served.asked(&line, &[&host]);
    assert_eq!(status, 200, "{answer}");
    let body = &answer[answer.find("\r\n\r\n{").unwrap() + 4..];
    let shown: Value = serde_json::from_str(body).unwrap();
    let explained = lab.answer("explain", &["--window", "0.2..0.4s", "--json"]);
    let explained: Value = serde_json::from_slice(&explained).unwrap();
    assert_eq!(shown["explanation"]["findings"], explained["findings"]);
    assert_eq!(shown["explanation"]["scope"], explained["scope"]);
}
