//! A log that is sent and never answered.

use crate::peers::Repeated;
use crate::situation::{Situation, Truth};
use crate::stage::Stage;
use std::net::UdpSocket;
use std::process::Stdio;
use std::time::Duration;

use crate::common::wait_until;
use crate::process::command;

pub static SITUATION: Situation = Situation {
    name: "rsyslog_udp_healthy",
    software: "rsyslog",
    version: &["rsyslogd", "-v"],
    needs: &[],
    what: "200 lines a second arrive by UDP, which nobody answers, and go to a file",
    accepted: &[],
    play,
};

fn play(stage: &mut Stage) -> Truth {
    let port = stage.port();
    let folder = stage.folder().to_str().unwrap();
    let text = format!(
        "global(workDirectory=\"{folder}\")\nmodule(load=\"imudp\")\n\
         input(type=\"imudp\" address=\"127.0.0.1\" port=\"{port}\")\n\
         action(type=\"omfile\" file=\"{folder}/syslog\")\n"
    );
    let configuration = stage.file("rsyslog.conf", &text);
    let pid = stage.path("pid");
    let words = ["rsyslogd", "-n", "-f", &configuration, "-i", &pid];
    let server = stage.start(command(&words).stdin(Stdio::null()));
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(("127.0.0.1", port)).unwrap();
    wait_until("rsyslog", || {
        // It is refused until the server is there.
        let _ = socket.send(b"<14>test: begins");
        stage.read("syslog").contains("begins")
    });
    let _load = Repeated::start(move || {
        socket.send(b"<14>Jan  1 00:00:00 host test: a line of some length").unwrap();
        std::thread::sleep(Duration::from_millis(5));
    });
    stage.warm_up();
    let before = stage.read("syslog").lines().count();
    stage.record(&server);
    let lines = stage.read("syslog").lines().count() - before;
    Truth::healthy(format!("its file: {lines} lines came and were written"))
}
