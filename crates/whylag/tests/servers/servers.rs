//! Servers that several situations need.

use std::process::Stdio;

use crate::load::Request;
use crate::process::{Process, command};
use crate::stage::Stage;

/// nginx with so many workers, as its master process, and its port; `times` is a log format.
pub fn nginx(stage: &Stage, workers: u32, http: &str, server: &str) -> (Process, u16) {
    let port = stage.port();
    let folder = stage.folder().to_str().unwrap();
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let temporary = temporary.map(|kind| format!("{kind}_temp_path {folder}/{kind};")).join(" ");
    let text = format!(
        "daemon off; worker_processes {workers}; pid {folder}/nginx.pid; error_log {folder}/error;
        events {{ worker_connections 256; }}
        http {{
            {temporary} access_log off; keepalive_requests 1000000;
            log_format times '$request_time $upstream_response_time $request';
            {http}
            server {{ listen 127.0.0.1:{port}; root {folder}; {server} }}
        }}"
    );
    let configuration = stage.file("nginx.conf", &text);
    let words = ["nginx", "-e", &stage.path("error"), "-p", folder, "-c", &configuration];
    (stage.server(&words, port), port)
}

/// Redis with these options, and its port.
pub fn redis(stage: &Stage, options: &[&str]) -> (Process, u16) {
    let port = stage.port();
    let number = port.to_string();
    let folder = stage.folder().to_str().unwrap();
    let words = ["redis-server", "--bind", "127.0.0.1", "--port", &number, "--save", "", "--dir"];
    (stage.server(&[&words, [folder].as_slice(), options].concat(), port), port)
}

pub fn redis_cli(stage: &Stage, port: u16, words: &[&str]) -> String {
    stage.run(&[&["redis-cli", "-p", &port.to_string()], words].concat())
}

/// HAProxy in front of that server line, and its port; its log has its timers.
pub fn haproxy(stage: &Stage, server: &str) -> (Process, u16) {
    let port = stage.port();
    let text = format!(
        "global\n log stdout format raw local0\n maxconn 100\ndefaults\n mode http\n log global\n \
         option httplog\n timeout connect 5s\n timeout client 30s\n timeout server 30s\n timeout queue 30s\n\
         listen all\n bind 127.0.0.1:{port}\n {server}\n"
    );
    let configuration = stage.file("haproxy.cfg", &text);
    (stage.server(&["haproxy", "-db", "-f", &configuration], port), port)
}

/// TR/Tw/Tc/Tr/Ta of each request of HAProxy's log, in ms.
pub fn haproxy_times(log: &str) -> Vec<Vec<f64>> {
    let times = log.split_ascii_whitespace().filter(|word| word.split('/').count() == 5);
    let times = times.map(|word| word.split('/').map(str::parse).collect::<Result<_, _>>());
    times.flatten().collect()
}

/// lighttpd with the folder's files, among them `hello`, and its port.
pub fn lighttpd(stage: &Stage) -> (Process, u16) {
    let port = stage.port();
    stage.file("hello", "hello\n");
    let folder = stage.folder().to_str().unwrap();
    let text = format!(
        "server.document-root = \"{folder}\"\nserver.port = {port}\nserver.bind = \"127.0.0.1\"\n\
         server.max-keep-alive-requests = 0\n"
    );
    let configuration = stage.file("lighttpd.conf", &text);
    (stage.server(&["lighttpd", "-D", "-f", &configuration], port), port)
}

/// beanstalkd with a journal and these options, and its port.
pub fn beanstalkd(stage: &Stage, options: &[&str]) -> (Process, u16) {
    let port = stage.port();
    let number = port.to_string();
    let folder = stage.folder().to_str().unwrap();
    let words = ["beanstalkd", "-l", "127.0.0.1", "-p", &number, "-b", folder];
    (stage.server(&[&words, options].concat(), port), port)
}

/// A job of a few bytes for beanstalkd.
pub fn beanstalkd_put(port: u16) -> Request {
    Request::line(port, "put 0 0 60 5\r\nhello", "\r\n")
}

/// Varnish in front of that port of loopback with this VCL, and its port.
pub fn varnish(stage: &Stage, backend: u16, vcl: &str) -> (Process, u16) {
    let port = stage.port();
    let text = format!(
        "vcl 4.1;\nbackend origin {{ .host = \"127.0.0.1\"; .port = \"{backend}\"; }}\n{vcl}\n"
    );
    let configuration = stage.file("varnish.vcl", &text);
    let listen = format!("127.0.0.1:{port}");
    let words =
        ["varnishd", "-F", "-n", &stage.path("varnish"), "-a", &listen, "-f", &configuration];
    let memory = ["-j", "none", "-s", "malloc,16m", "-p", "vsl_space=4M"];
    (stage.server(&[&words, memory.as_slice()].concat(), port), port)
}

/// Writes how long each request of Varnish waits for its first byte, in seconds, to the file `times`.
pub fn varnish_times(stage: &Stage) -> Process {
    let (folder, file) = (stage.path("varnish"), stage.path("times"));
    let format = "%{Varnish:time_firstbyte}x";
    let words = ["varnishncsa", "-n", &folder, "-w", &file, "-F", format];
    stage.start(command(&words).stdin(Stdio::null()))
}

/// A counter of varnishstat.
pub fn varnish_counter(stage: &Stage, name: &str) -> u64 {
    let row = stage.run(&["varnishstat", "-n", &stage.path("varnish"), "-1", "-f", name]);
    row.split_whitespace().nth(1).unwrap().parse().unwrap()
}
