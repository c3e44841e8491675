//! Everybody on this host can connect to the port of the served page.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use crate::common::{Helper, Lab};

/// More than the server may have files open.
const STRANGERS: usize = 300;
const FILES: u64 = 200;

/// A server with few descriptors; where it is and the token.
fn serve(lab: &Lab) -> (Helper, String, String) {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    lab.answer("import", &[fixtures.join("healthy-sleeper.whylag").to_str().unwrap()]);
    let whylag = lab.verb("serve");
    let mut command = std::process::Command::new("prlimit");
    command.arg(format!("--nofile={FILES}:{FILES}")).arg(whylag.get_program());
    command.args(whylag.get_args()).env_remove("WHYLAG_STORE").stdin(Stdio::null());
    let mut server = Helper::spawn(command.stdout(Stdio::piped()));
    let mut url = String::new();
    BufReader::new(server.0.stdout.take().unwrap()).read_line(&mut url).unwrap();
    let rest = url.trim().strip_prefix("http://").unwrap();
    let (address, token) = rest.trim_end_matches('/').split_once('/').unwrap();
    (server, address.to_owned(), token.to_owned())
}

/// What comes in answer to a request on a connection that stays open.
fn asked(stream: &mut TcpStream, address: &str, path: &str) -> String {
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let mut piece = [0; 1 << 16];
    // The end of the list of runs, or of a refusal.
    while !answer.ends_with(b"]") && !answer.ends_with(b"\n") || answer.ends_with(b"\r\n\r\n") {
        match stream.read(&mut piece).unwrap() {
            0 => break,
            read => answer.extend_from_slice(&piece[..read]),
        }
    }
    String::from_utf8(answer).unwrap()
}

fn connected(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

#[test]
fn strangers_who_stay_connected_keep_nobody_out() {
    let lab = Lab::anywhere_beside_others();
    let (mut server, address, token) = serve(&lab);
    let path = format!("/{token}/runs.json");
    let mut own = connected(&address);
    assert!(asked(&mut own, &address, &path).starts_with("HTTP/1.1 200"));
    for how in ["", "GET / HTT", "GET / HTTP/1.1\r\nHost: x\r\n\r\n"] {
        // They say nothing, a part, or ask on and on and read no answer.
        let begun = if how.ends_with("\r\n\r\n") { how.repeat(2000) } else { how.to_owned() };
        let strangers: Vec<TcpStream> = (0..STRANGERS)
            .map(|_| {
                let mut stream = connected(&address);
                stream.set_nonblocking(true).unwrap();
                let _ = stream.write(begun.as_bytes());
                stream
            })
            .collect();
        let mut new = connected(&address);
        let answer = asked(&mut new, &address, &path);
        assert!(answer.starts_with("HTTP/1.1 200"), "{how:?}: {answer}");
        // Who had the token before is not disconnected for them.
        let answer = asked(&mut own, &address, &path);
        assert!(answer.starts_with("HTTP/1.1 200"), "{how:?}: {answer}");
        assert!(server.0.try_wait().unwrap().is_none(), "{how:?}: the server has ended");
        drop(strangers);
    }
}
