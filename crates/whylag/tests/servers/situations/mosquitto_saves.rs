//! A broker that saves all its messages in its loop.

use crate::common::wait_until;
use crate::peers::Repeated;
use crate::process::command;
use crate::situation::{Situation, Truth};
use crate::stage::Stage;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Stdio;
use std::time::{Duration, Instant};

pub static SITUATION: Situation = Situation {
    name: "mosquitto_saves",
    software: "Mosquitto",
    version: &["mosquitto", "-h"],
    needs: &["mosquitto_pub", "mosquitto_sub"],
    what: "200 messages a second; the 100,000 retained ones are saved to a file at each 50th change (autosave_on_changes)",
    accepted: &[
        ("event-loop-blocked", "one thread reads all sockets, and something keeps it"),
        ("fsync-journal", "the sync waits for the file system's journal"),
        ("disk-sync", "asleep in fsync or fdatasync for the disk"),
    ],
    play,
};

/// Publishes so many retained messages over one connection, as MQTT 3.1.1 has them.
fn retain(port: u16, count: u32) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let connect = b"\x10\x0f\x00\x04MQTT\x04\x02\x00\x3c\x00\x03fil";
    stream.write_all(connect).unwrap();
    stream.read_exact(&mut [0; 4]).unwrap();
    for number in 0..count {
        let topic = format!("r/{number:08}");
        let mut packet = vec![0x31, (2 + topic.len() + 100) as u8, 0, topic.len() as u8];
        packet.extend_from_slice(topic.as_bytes());
        packet.extend_from_slice(&[b'-'; 100]);
        stream.write_all(&packet).unwrap();
    }
    // A ping is answered after all of them.
    stream.write_all(b"\xc0\x00").unwrap();
    stream.read_exact(&mut [0; 2]).unwrap();
}

/// SIGUSR1 has it save, too: until a ping is answered.
fn one_save_s(stage: &Stage, pid: u32) -> f64 {
    let log = stage.read("log").len();
    let began = Instant::now();
    let pid = rustix::process::Pid::from_raw(pid as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::USR1).unwrap();
    // The publisher is still at work: the next line that is not of the save comes after it.
    wait_until("a save", || {
        let text = stage.read("log").split_off(log);
        text.lines().skip_while(|line| !line.contains("Saving")).nth(1).is_some()
    });
    began.elapsed().as_secs_f64()
}

fn play(stage: &mut Stage) -> Truth {
    let port = stage.port();
    let folder = stage.folder().to_str().unwrap();
    let text = format!(
        "listener {port} 127.0.0.1\nallow_anonymous true\nlog_dest stdout\nlog_type all\n\
         persistence true\npersistence_location {folder}/\n"
    );
    let seldom = stage.file("seldom.conf", &text);
    let often = format!("{text}autosave_interval 50\nautosave_on_changes true\n");
    let often = stage.file("often.conf", &often);
    let number = port.to_string();
    let server = stage.server(&["mosquitto", "-c", &seldom], port);
    retain(port, 100_000);
    drop(server);
    let server = stage.server(&["mosquitto", "-c", &often], port);
    let mut publisher = stage.start(
        command(&["mosquitto_pub", "-p", &number, "-t", "load", "-r", "-l"]).stdin(Stdio::piped()),
    );
    let _subscriber =
        stage.start(command(&["mosquitto_sub", "-p", &number, "-t", "load"]).stdin(Stdio::null()));
    let _publisher = Repeated::start(move || {
        publisher.say("a message");
        std::thread::sleep(Duration::from_millis(5));
    });
    stage.warm_up();
    let logged = stage.record(&server);
    let saves = logged.lines().filter(|line| line.contains("Saving in-memory database")).count();
    // How long one takes: the next line of the log comes after it.
    let lost_s = saves as f64 * one_save_s(stage, server.pid());
    let text =
        format!("mosquitto's log: {saves} times it saved its database, {lost_s:.2} s together");
    Truth { text, lost_s }
}
