//! Web servers in the languages that have one, each with a fault that it can be asked for.

use crate::load::Request;
use crate::process::Process;
use crate::stage::Stage;

/// `/waited` has runtime/metrics' seconds of waits for mutexes, `/collected` those of CPU time for the
/// garbage collector, without what idle CPUs gave; in mode `slow` each request holds a mutex for
/// 15 ms, in mode `garbage` it replaces 4,000 of 400,000 kept objects.
const GO: &str = r#"
package main

import (
	"fmt"
	"net/http"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

type object struct {
	next *object
	text [40]byte
}

var lock sync.Mutex
var kept []*object
var count int

// 0 where this Go does not have it.
func seconds(name string) float64 {
	samples := []metrics.Sample{{Name: name}}
	metrics.Read(samples)
	if samples[0].Value.Kind() == metrics.KindFloat64 {
		return samples[0].Value.Float64()
	}
	return 0
}

func replace(n int) {
	for i := 0; i < n; i++ {
		count++
		kept[count%len(kept)] = &object{next: &object{}}
	}
}

func main() {
	mode := append(os.Args, "")[2]
	http.HandleFunc("/waited", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%f\n", seconds("/sync/mutex/wait/total:seconds"))
	})
	http.HandleFunc("/collected", func(w http.ResponseWriter, r *http.Request) {
		idle := seconds("/cpu/classes/gc/mark/idle:cpu-seconds")
		fmt.Fprintf(w, "%f\n", seconds("/cpu/classes/gc/total:cpu-seconds")-idle)
	})
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		lock.Lock()
		if mode == "slow" {
			time.Sleep(15 * time.Millisecond)
		}
		if mode == "garbage" {
			replace(4000)
		}
		lock.Unlock()
		fmt.Fprintln(w, "ok")
	})
	if mode == "garbage" {
		debug.SetGCPercent(10)
		kept = make([]*object, 400000)
		replace(len(kept))
	}
	http.ListenAndServe("127.0.0.1:"+os.Args[1], nil)
}
"#;

/// `/delay` has the loop's own figures; in mode `sync` every 10th request computes.
const NODE: &str = r#"
const http = require('http'), crypto = require('crypto');
const { monitorEventLoopDelay, performance } = require('perf_hooks');
const delay = monitorEventLoopDelay({ resolution: 5 });
delay.enable();
let count = 0, blocked = 0;
http.createServer((request, response) => {
  if (request.url === '/delay')
    return response.end(JSON.stringify({ blocked, max: delay.max / 1e6, p50: delay.percentile(50) / 1e6 }) + '\n');
  if (process.argv[3] === 'sync' && ++count % 10 === 0) {
    const began = performance.now();
    crypto.pbkdf2Sync('secret', 'salt', 120000, 64, 'sha512');
    blocked += (performance.now() - began) / 1e3;
  }
  response.end('ok\n');
}).listen(+process.argv[2], '127.0.0.1');
"#;

/// `/blocked` has the time that threads have waited for monitors; mode `monitor` sleeps in one, mode
/// `garbage` makes garbage.
const JAVA: &str = r#"
import com.sun.net.httpserver.*;
import java.lang.management.*;
import java.net.InetSocketAddress;
import java.util.*;
import java.util.concurrent.Executors;

public class Server {
    static final Object lock = new Object();
    static final Map<Integer, byte[]> kept = new HashMap<>();
    static int count;

    public static void main(String[] arguments) throws Exception {
        String mode = arguments[1];
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        threads.setThreadContentionMonitoringEnabled(true);
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(arguments[0])), 64);
        server.setExecutor(Executors.newFixedThreadPool(12));
        if (mode.equals("garbage"))
            for (int i = 0; i < 200000; i++) kept.put(i, new byte[150]);
        if (mode.equals("counted"))
            new Thread(Server::report, "report").start();
        server.createContext("/", exchange -> {
            if (exchange.getRequestURI().getPath().equals("/blocked")) {
                long ms = 0;
                for (ThreadInfo info : threads.getThreadInfo(threads.getAllThreadIds()))
                    if (info != null) ms += info.getBlockedTime();
                answer(exchange, ms + "\n");
                return;
            }
            if (mode.equals("monitor"))
                synchronized (lock) { sleep(20); }
            if (mode.equals("garbage"))
                for (int i = 0; i < 8000; i++)
                    synchronized (kept) { kept.put(count++ % 200000, new byte[150]); }
            if (mode.equals("counted"))
                for (int i = 0; i < 16; i++) latest = new byte[4096];
            answer(exchange, "ok\n");
        });
        server.start();
    }

    static byte[] latest;
    static final int[] cells = new int[65536];
    static int total;

    static void report() {
        for (;;) {
            total += sum();
            sleep(30);
        }
    }

    static int sum() {
        int sum = 0;
        for (int i = 0; i < 200000000; i++) sum += cells[i & 65535] ^ i;
        return sum;
    }

    static void sleep(int ms) {
        try { Thread.sleep(ms); } catch (InterruptedException e) { }
    }

    static void answer(HttpExchange exchange, String text) throws java.io.IOException {
        exchange.sendResponseHeaders(200, text.length());
        exchange.getResponseBody().write(text.getBytes());
        exchange.close();
    }
}
"#;

/// A thread for each connection. The line `waited` has the seconds that threads have waited for the
/// mutex; in mode `mutex` each other line sleeps for 5 ms in it.
const RUBY: &str = r#"
require 'socket'

LOCK = Mutex.new
sleeps = ARGV[1] == 'mutex'
waited = 0.0
now = -> { Process.clock_gettime(Process::CLOCK_MONOTONIC) }
server = TCPServer.new('127.0.0.1', ARGV[0].to_i)
loop do
  client = server.accept
  client.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1)
  Thread.new do
    while (line = client.gets)
      next client.puts(waited) if line.chomp == 'waited'
      began = now.call
      LOCK.synchronize do
        waited += now.call - began
        sleep 0.005 if sleeps
      end
      client.puts('ok')
    end
  end
end
"#;

/// A task for each connection. The line `waited` has the seconds that tasks have waited for the mutex,
/// or have blocked their thread, by the mode.
const TOKIO: &str = r#"
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;

static LOCK: Mutex<()> = Mutex::const_new(());
static WAITED_NS: AtomicU64 = AtomicU64::new(0);

fn add(began: Instant) {
    WAITED_NS.fetch_add(began.elapsed().as_nanos() as u64, Relaxed);
}

async fn handle(mode: &str) {
    let began = Instant::now();
    if mode == "blocking" {
        std::thread::sleep(Duration::from_millis(10));
        return add(began);
    }
    let _guard = LOCK.lock().await;
    add(began);
    if mode == "mutex" {
        tokio::time::sleep(Duration::from_millis(15)).await;
    }
}

async fn serve(stream: TcpStream, mode: String) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    while stream.read_line(&mut line).await? > 0 {
        let answer = match line.trim() {
            "waited" => format!("{}\n", WAITED_NS.load(Relaxed) as f64 / 1e9),
            _ => {
                handle(&mode).await;
                "ok\n".to_owned()
            }
        };
        stream.get_mut().write_all(answer.as_bytes()).await?;
        line.clear();
    }
    Ok(())
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let listener = TcpListener::bind(format!("127.0.0.1:{}", arguments[1])).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        tokio::spawn(serve(stream, arguments[2].clone()));
    }
}
"#;

const TOKIO_MANIFEST: &str = r#"
[package]
name = "tokio-server"
version = "0.0.0"
edition = "2024"

[dependencies]
tokio = { version = "1", features = ["io-util", "macros", "net", "rt-multi-thread", "sync", "time"] }

[workspace]
"#;

/// A server of Go's net/http, and its port.
pub fn go(stage: &Stage, arguments: &[&str]) -> (Process, u16) {
    let port = stage.port();
    let server = stage.built(&["go", "build", "server.go"], "server.go", GO);
    let number = port.to_string();
    let words = [&[server.to_str().unwrap(), &number], arguments].concat();
    (stage.server(&words, port), port)
}

/// Seconds that goroutines have waited for mutexes.
pub fn go_waited_s(port: u16) -> f64 {
    Request::get_once(port, "/waited").ask().lines().last().unwrap().parse().unwrap()
}

/// Seconds of CPU time that Go's collector says it has taken, without those of idle CPUs.
pub fn go_collected_s(port: u16) -> f64 {
    Request::get_once(port, "/collected").ask().lines().last().unwrap().parse().unwrap()
}

/// A server of Node's http, and its port.
pub fn node(stage: &Stage, mode: &str) -> (Process, u16) {
    let port = stage.port();
    let source = stage.file("server.js", NODE);
    (stage.server(&["node", &source, &port.to_string(), mode], port), port)
}

/// What Node says of its event loop: seconds blocked by the fault, and the longest and the median
/// delay in ms.
pub fn node_delay(port: u16) -> [f64; 3] {
    let answer = Request::get_once(port, "/delay").ask();
    let delay: serde_json::Value = serde_json::from_str(answer.lines().last().unwrap()).unwrap();
    ["blocked", "max", "p50"].map(|key| delay[key].as_f64().unwrap())
}

/// A server of Java's HttpServer after its compiler has warmed up a little, and its port.
pub fn java(stage: &Stage, options: &[&str], mode: &str) -> (Process, u16) {
    let port = stage.port();
    stage.built(&["javac", "Server.java"], "Server.java", JAVA);
    let number = port.to_string();
    let all = ["java", "-Dsun.net.httpserver.nodelay=true", "-cp", "."];
    let words = [&all, options, &["Server", &number, mode]].concat();
    let server = stage.server(&words, port);
    for _ in 0..100 {
        Request::get(port, "/").ask();
    }
    (server, port)
}

/// Seconds that Java's threads have waited for monitors.
pub fn java_blocked_s(port: u16) -> f64 {
    let answer = Request::get(port, "/blocked").ask();
    answer.lines().last().unwrap().trim().parse::<f64>().unwrap() / 1e3
}

/// A server of Ruby's threads that answers lines, and its port.
pub fn ruby(stage: &Stage, mode: &str) -> (Process, u16) {
    let port = stage.port();
    let source = stage.file("server.rb", RUBY);
    (stage.server(&["ruby", &source, &port.to_string(), mode], port), port)
}

/// Seconds that Ruby's threads have waited for the mutex.
pub fn ruby_waited_s(port: u16) -> f64 {
    Request::line(port, "waited", "\n").ask().trim().parse().unwrap()
}

/// A server of tokio with two threads that answers lines, and its port.
pub fn tokio(stage: &Stage, mode: &str) -> (Process, u16) {
    let port = stage.port();
    stage.file("Cargo.toml", TOKIO_MANIFEST);
    std::fs::create_dir(stage.path("src")).unwrap();
    // What was built is kept for the next situation.
    let target = concat!(env!("CARGO_TARGET_TMPDIR"), "/tokio-server");
    let build = ["cargo", "build", "--quiet", "--target-dir", target];
    stage.built(&build, "src/main.rs", TOKIO);
    let server = stage.path("tokio-server");
    std::fs::copy(format!("{target}/debug/tokio-server"), &server).unwrap();
    (stage.server(&[&server, &port.to_string(), mode], port), port)
}

/// Seconds that tokio's tasks have waited for the mutex, or have blocked their thread.
pub fn tokio_waited_s(port: u16) -> f64 {
    Request::line(port, "waited", "\n").ask().trim().parse().unwrap()
}
