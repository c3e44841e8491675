//! A resolver whose upstream is slow.

use crate::situation::{Situation, Truth};
use crate::stage::Stage;

pub static SITUATION: Situation = Situation {
    name: "unbound_slow_upstream",
    software: "Unbound",
    version: &["unbound", "-V"],
    needs: &["unbound-control", "dnsperf", "/usr/bin/python3"],
    what: "dnsperf asks 100 different names a second; the server it forwards to takes 120 ms",
    accepted: &[("slow-peer", "questions wait for the answer of another process on this host")],
    play,
};

const UPSTREAM: &str = r#"
import socket, sys, threading, time

server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("127.0.0.1", int(sys.argv[1])))
tcp = socket.create_server(("127.0.0.1", int(sys.argv[1])))

def answer(query, address):
    time.sleep(0.12)
    # The question, and one address for a second.
    end = query.index(b"\0", 12) + 5
    head = query[:2] + b"\x84\x00\0\x01\0\x01\0\0\0\0"
    server.sendto(head + query[12:end] + b"\xc0\x0c\0\x01\0\x01\0\0\0\x01\0\x04\x7f\0\0\x01", address)

while True:
    query, address = server.recvfrom(4096)
    threading.Thread(target=answer, args=(query, address), daemon=True).start()
"#;

fn play(stage: &mut Stage) -> Truth {
    let (port, upstream) = (stage.port(), stage.port());
    let source = stage.file("upstream.py", UPSTREAM);
    let _upstream = stage.server(&["/usr/bin/python3", &source, &upstream.to_string()], upstream);
    let folder = stage.folder().to_str().unwrap();
    let text = format!(
        "server:\n interface: 127.0.0.1@{port}\n directory: \"{folder}\"\n chroot: \"\"\n username: \"\"\n pidfile: \"{folder}/pid\"\n\
          do-daemonize: no\n use-syslog: no\n do-not-query-localhost: no\n module-config: iterator\n\
         remote-control:\n control-enable: yes\n control-interface: {folder}/control\n control-use-cert: no\n\
         forward-zone:\n name: \".\"\n forward-addr: 127.0.0.1@{upstream}\n"
    );
    let configuration = stage.file("unbound.conf", &text);
    let server = stage.server(&["unbound", "-d", "-c", &configuration], port);
    let names: String = (0..2000).map(|number| format!("n{number}.bench A\n")).collect();
    let names = stage.file("names", &names);
    let line = format!("dnsperf -s 127.0.0.1 -p {port} -d {names} -c 4 -T 1 -Q 100 -l 60");
    let _load = stage.client(&line);
    stage.warm_up();
    stage.run(&["unbound-control", "-c", &configuration, "stats"]);
    stage.record(&server);
    let stats = stage.run(&["unbound-control", "-c", &configuration, "stats_noreset"]);
    let value = |key: &str| {
        let line = stats.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        line.unwrap_or_else(|| panic!("no {key}: {stats}")).parse::<f64>().unwrap()
    };
    let (count, average) = (value("total.num.recursivereplies"), value("total.recursion.time.avg"));
    let lost_s = count * average;
    let text = format!(
        "unbound-control: {count} recursive replies took {:.0} ms on average",
        average * 1e3
    );
    Truth { text, lost_s }
}
