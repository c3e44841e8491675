//! A broker under a light load.

use crate::peers::Repeated;
use crate::process::command;
use crate::situation::{Situation, Truth};
use crate::stage::Stage;
use std::process::Stdio;
use std::time::Duration;

pub static SITUATION: Situation = Situation {
    name: "mosquitto_healthy",
    software: "Mosquitto",
    version: &["mosquitto", "-h"],
    needs: &["mosquitto_pub", "mosquitto_sub"],
    what: "200 messages a second from one client to another",
    accepted: &[],
    play,
};

fn play(stage: &mut Stage) -> Truth {
    let port = stage.port();
    let text = format!(
        "listener {port} 127.0.0.1\nallow_anonymous true\nlog_dest stdout\nlog_type error\n"
    );
    let configuration = stage.file("mosquitto.conf", &text);
    let server = stage.server(&["mosquitto", "-c", &configuration], port);
    let number = port.to_string();
    let mut publisher = stage.start(
        command(&["mosquitto_pub", "-p", &number, "-t", "load", "-l"]).stdin(Stdio::piped()),
    );
    let _subscriber =
        stage.start(command(&["mosquitto_sub", "-p", &number, "-t", "load"]).stdin(Stdio::null()));
    let _publisher = Repeated::start(move || {
        publisher.say("a message");
        std::thread::sleep(Duration::from_millis(5));
    });
    stage.warm_up();
    let logged = stage.record(&server);
    Truth::healthy(format!(
        "{} lines of errors in its log",
        logged.lines().filter(|line| *line != "a message").count()
    ))
}
