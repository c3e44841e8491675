//! All children of the pool sleep in a request.

use crate::load::{Load, Request};
use crate::servers::nginx;
use crate::situation::{Situation, Truth};
use crate::stage::Stage;
use std::time::Duration;

pub static SITUATION: Situation = Situation {
    name: "php_fpm_children_full",
    software: "PHP-FPM",
    version: &["php-fpm8.2", "-v"],
    needs: &["nginx"],
    what: "10 clients, 2 children (pm.max_children), each request sleeps for 40 ms; nginx in front",
    accepted: &[(
        "worker-pool-full",
        "all children are busy, requests queue in the listening socket",
    )],
    play,
};

fn play(stage: &mut Stage) -> Truth {
    let port = stage.port();
    let folder = stage.folder().to_str().unwrap();
    stage.file("slow.php", "<?php usleep(40000); echo 'ok';");
    let text = format!(
        "[global]\nerror_log = {folder}/error\npid = {folder}/pid\n[www]\nlisten = 127.0.0.1:{port}\npm = static\n\
         pm.max_children = 2\npm.status_path = /status\naccess.log = {folder}/access\naccess.format = \"%{{mili}}d\"\n"
    );
    let configuration = stage.file("fpm.conf", &text);
    let server = stage.server(&["php-fpm8.2", "-F", "-n", "-y", &configuration], port);
    let fast_cgi = format!(
        "location / {{ fastcgi_pass 127.0.0.1:{port}; fastcgi_param SCRIPT_FILENAME {folder}$uri; \
         fastcgi_param SCRIPT_NAME $uri; fastcgi_param REQUEST_METHOD GET; }}"
    );
    let (_nginx, front) = nginx(stage, 1, "", &fast_cgi);
    let load = Load::start(10, Duration::from_millis(5), &Request::get_once(front, "/slow.php"));
    stage.warm_up();
    let before = stage.read("access").lines().count();
    stage.record(&server);
    let status = Request::get_once(front, "/status").ask();
    let access = stage.read("access");
    let took: f64 =
        access.lines().skip(before).map(|line| line.parse::<f64>().unwrap_or(0.0) / 1e3).sum();
    let queue = status.lines().find(|line| line.starts_with("max listen queue:")).unwrap_or("?");
    let text = format!(
        "access log: 2 children were busy for {took:.1} s; status: {queue}; {}",
        load.end()
    );
    Truth { text, lost_s: took }
}
