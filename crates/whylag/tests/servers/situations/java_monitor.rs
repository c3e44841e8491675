//! A monitor of Java whose holder sleeps.

use crate::load::{Load, Request};
use crate::situation::{Situation, Truth};
use crate::stage::Stage;
use std::time::Duration;

pub static SITUATION: Situation = Situation {
    name: "java_monitor",
    software: "Java HttpServer",
    version: &["java", "-Dsun.net.httpserver.nodelay=true", "--version"],
    needs: &["javac"],
    what: "8 clients; each request sleeps for 20 ms in a synchronized block",
    accepted: &[
        ("turn-taking", "one at a time has what the others wait for"),
        ("futex-convoy", "a lock in user space that is handed from waiter to waiter"),
    ],
    play,
};

const SERVER: &str = r#"
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
            answer(exchange, "ok\n");
        });
        server.start();
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

fn play(stage: &mut Stage) -> Truth {
    let port = stage.port();
    stage.built(&["javac", "Server.java"], "Server.java", SERVER);
    let words = [
        "java",
        "-Dsun.net.httpserver.nodelay=true",
        "-cp",
        ".",
        "Server",
        &port.to_string(),
        "monitor",
    ];
    let server = stage.server(&words, port);
    let load = Load::start(8, Duration::from_millis(10), &Request::get(port, "/"));
    let blocked_s = || {
        let answer = Request::get(port, "/blocked").ask();
        answer.lines().last().unwrap().trim().parse::<f64>().unwrap() / 1e3
    };
    // The compiler is busy at first.
    std::thread::sleep(Duration::from_secs(2));
    stage.warm_up();
    let before = blocked_s();
    stage.record(&server);
    let lost_s = blocked_s() - before;
    let text = format!(
        "ThreadMXBean.getBlockedTime: {lost_s:.1} s; the holder is in Thread.sleep; {}",
        load.end()
    );
    Truth { text, lost_s }
}
