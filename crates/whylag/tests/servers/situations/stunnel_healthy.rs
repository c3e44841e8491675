//! TLS in front of a server, and a second one in front of its clients.

use crate::load::{Load, Request};
use crate::servers::redis;
use crate::situation::{Situation, Truth};
use crate::stage::Stage;
use std::time::Duration;

pub static SITUATION: Situation = Situation {
    name: "stunnel_healthy",
    software: "stunnel",
    version: &["stunnel", "-version"],
    needs: &["redis-server", "openssl"],
    what: "8 clients ask Redis through TLS, over connections that stay",
    accepted: &[],
    play,
};

fn play(stage: &mut Stage) -> Truth {
    let (_origin, origin) = redis(stage, &[]);
    let [key, certificate] = ["key.pem", "certificate.pem"].map(|name| stage.path(name));
    let line = format!(
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -keyout {key} -out {certificate}"
    );
    stage.run(&crate::process::words(&line));
    let inner = stage.port();
    let text = format!(
        "foreground = yes\npid =\n[tls]\naccept = 127.0.0.1:{inner}\nconnect = 127.0.0.1:{origin}\n\
         cert = {certificate}\nkey = {key}\n"
    );
    let configuration = stage.file("server.conf", &text);
    let server = stage.server(&["stunnel", &configuration], inner);
    let port = stage.port();
    let text = format!(
        "foreground = yes\npid =\n[plain]\nclient = yes\naccept = 127.0.0.1:{port}\nconnect = 127.0.0.1:{inner}\n"
    );
    let configuration = stage.file("client.conf", &text);
    let _front = stage.server(&["stunnel", &configuration], port);
    let load = Load::start(8, Duration::from_millis(10), &Request::line(port, "PING", "+PONG\r\n"));
    stage.warm_up();
    stage.record(&server);
    Truth::healthy(load.end().to_string())
}
