//! All threads of the server wait for a slow backend.

use crate::load::{Load, Request};
use crate::peers::slow_backend;
use crate::situation::{Situation, Truth};
use crate::stage::Stage;
use std::time::Duration;

pub static SITUATION: Situation = Situation {
    name: "apache_workers_full",
    software: "Apache",
    version: &["apache2", "-v"],
    needs: &["/usr/bin/python3"],
    what: "12 clients, 3 threads (MaxRequestWorkers), mod_proxy to a backend that takes 60 ms",
    accepted: &[
        ("worker-pool-full", "all workers are busy, requests queue"),
        ("slow-peer", "what each of them waits for is another process' answer"),
    ],
    play,
};

fn play(stage: &mut Stage) -> Truth {
    let (_backend, backend) = slow_backend(stage, 60);
    let port = stage.port();
    let folder = stage.folder().to_str().unwrap();
    let modules = ["mpm_worker", "proxy", "proxy_http", "authz_core"];
    let modules = modules
        .map(|name| format!("LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so\n"))
        .concat();
    let text = format!(
        "{modules}ServerName localhost\nListen 127.0.0.1:{port}\nPidFile {folder}/pid\nMutex fcntl:{folder}\n\
         ErrorLog {folder}/error\nLogFormat \"%D\" took\nCustomLog {folder}/access took\nDefaultRuntimeDir {folder}\n\
         StartServers 1\nServerLimit 1\nThreadsPerChild 3\nThreadLimit 3\nMaxRequestWorkers 3\nMinSpareThreads 1\nMaxSpareThreads 3\n\
         ProxyPass / http://127.0.0.1:{backend}/\n"
    );
    let configuration = stage.file("apache.conf", &text);
    let server =
        stage.server(&["apache2", "-D", "FOREGROUND", "-d", folder, "-f", &configuration], port);
    let load = Load::start(12, Duration::from_millis(5), &Request::get_once(port, "/"));
    stage.warm_up();
    let before = stage.read("access").lines().count();
    stage.record(&server);
    let access = stage.read("access");
    let took: Vec<f64> =
        access.lines().skip(before).map(|line| line.parse::<f64>().unwrap() / 1e6).collect();
    let full = stage.read("error").lines().any(|line| line.contains("MaxRequestWorkers"));
    let lost_s = took.iter().sum::<f64>();
    let text = format!(
        "access log: {} requests were worked on for {lost_s:.1} s by 3 threads (error log says MaxRequestWorkers was reached: {full}), while {}",
        took.len(),
        load.end()
    );
    Truth { text, lost_s }
}
