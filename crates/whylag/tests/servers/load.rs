//! Clients that send a request, wait for its answer, think, and send the next.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How the end of an answer is known.
#[derive(Clone, Copy)]
pub enum Answer {
    /// Headers with a Content-Length, and so many bytes.
    Http,
    /// The connection's end; each request has a connection of its own.
    Closed,
    /// These bytes at the end.
    Ends(&'static str),
}

/// What they all send.
#[derive(Clone)]
pub struct Request {
    pub port: u16,
    /// In it `{n}` is a number that goes round.
    pub text: String,
    /// How far it goes.
    pub round: usize,
    pub answer: Answer,
}

impl Request {
    /// GET over a connection that stays.
    pub fn get(port: u16, path: &str) -> Request {
        let text = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        Request { port, text, round: 1, answer: Answer::Http }
    }

    /// GET over a connection of its own.
    pub fn get_once(port: u16, path: &str) -> Request {
        let text = format!("GET {path} HTTP/1.0\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        Request { port, text, round: 1, answer: Answer::Closed }
    }

    /// A line of a protocol of lines.
    pub fn line(port: u16, line: &str, answer: &'static str) -> Request {
        Request { port, text: format!("{line}\r\n"), round: 1, answer: Answer::Ends(answer) }
    }

    pub fn round(self, round: usize) -> Request {
        Request { round, ..self }
    }

    fn next(&self) -> String {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed) % self.round;
        self.text.replace("{n}", &number.to_string())
    }

    /// The answer, as text.
    pub fn ask(&self) -> String {
        let mut stream = connect(self.port);
        String::from_utf8_lossy(&answered(&mut stream, self)).into_owned()
    }
}

/// Clients at work.
pub struct Load {
    stop: Arc<AtomicBool>,
    clients: Vec<JoinHandle<Vec<Duration>>>,
}

impl Load {
    /// So many clients, which think so long after each answer.
    pub fn start(clients: usize, thinks: Duration, request: &Request) -> Load {
        let stop = Arc::new(AtomicBool::new(false));
        let client = |number: usize| {
            let (stop, request) = (stop.clone(), request.clone());
            std::thread::spawn(move || {
                std::thread::sleep(thinks.mul_f64(number as f64 / clients as f64));
                client(&request, thinks, &stop)
            })
        };
        let clients = (0..clients).map(client).collect();
        Load { stop, clients }
    }

    /// Ends them and says how long their requests took.
    pub fn end(mut self) -> Latencies {
        self.stop.store(true, Ordering::Relaxed);
        let clients = self.clients.drain(..);
        let mut all: Vec<Duration> =
            clients.flat_map(|client| client.join().expect("a client")).collect();
        all.sort();
        assert!(!all.is_empty(), "no request was answered");
        Latencies(all)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn client(request: &Request, thinks: Duration, stop: &AtomicBool) -> Vec<Duration> {
    let mut took = Vec::new();
    let mut stream = None;
    while !stop.load(Ordering::Relaxed) {
        let began = Instant::now();
        let mut connection = stream.take().unwrap_or_else(|| connect(request.port));
        if answered(&mut connection, request).is_empty() {
            // A server that closes a connection after so many requests.
            continue;
        }
        took.push(began.elapsed());
        if !matches!(request.answer, Answer::Closed) {
            stream = Some(connection);
        }
        std::thread::sleep(thinks);
    }
    took
}

fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

fn answered(stream: &mut TcpStream, request: &Request) -> Vec<u8> {
    let mut answer = Vec::new();
    if stream.write_all(request.next().as_bytes()).is_err() {
        return answer;
    }
    let mut buffer = vec![0; 65_536];
    while !is_whole(&answer, request.answer) {
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => break,
            Ok(length) => answer.extend_from_slice(&buffer[..length]),
        }
    }
    answer
}

fn is_whole(answer: &[u8], how: Answer) -> bool {
    match how {
        Answer::Closed => false,
        Answer::Ends(end) => answer.ends_with(end.as_bytes()),
        Answer::Http => {
            let Some(end) = answer.windows(4).position(|four| four == b"\r\n\r\n") else {
                return false;
            };
            let head = String::from_utf8_lossy(&answer[..end]).to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            answer.len() >= end + 4 + length.map_or(0, |length| length.trim().parse().unwrap())
        }
    }
}

/// How long requests took, shortest first.
pub struct Latencies(Vec<Duration>);

impl Latencies {
    pub fn quantile(&self, part: f64) -> Duration {
        self.0[((self.0.len() - 1) as f64 * part) as usize]
    }
}

impl std::fmt::Display for Latencies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ms = |part| self.quantile(part).as_secs_f64() * 1e3;
        write!(f, "{} requests, p50 {:.1} ms, p99 {:.1} ms", self.0.len(), ms(0.5), ms(0.99))
    }
}
