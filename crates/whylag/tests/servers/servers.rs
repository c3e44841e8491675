//! Servers that several situations need.

use crate::process::Process;
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
