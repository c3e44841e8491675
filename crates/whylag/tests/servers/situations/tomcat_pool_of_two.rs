//! A pool of connections that is smaller than the pool of threads.

use crate::load::{Load, Request};
use crate::situation::{Situation, Truth};
use crate::stage::Stage;
use std::time::Duration;

const JAR: &str = "/usr/share/java/tomcat10-embed-core.jar";
const ANNOTATIONS: &str = "/usr/share/java/tomcat10-annotations-api.jar";

pub static SITUATION: Situation = Situation {
    name: "tomcat_pool_of_two",
    software: "Tomcat",
    version: &["java", "-cp", JAR, "org.apache.catalina.util.ServerInfo"],
    needs: &["javac", JAR, ANNOTATIONS],
    what: "10 clients; each request takes one of two connections from a pool (ArrayBlockingQueue) and \
           sleeps for 30 ms with it",
    accepted: &[
        ("turn-taking", "two at a time have what the others wait for"),
        ("worker-pool-full", "both connections are busy, requests queue for them"),
        ("futex-convoy", "a lock in user space that is handed from waiter to waiter"),
    ],
    play,
};

const SERVER: &str = r#"
import jakarta.servlet.http.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.catalina.Context;
import org.apache.catalina.connector.Connector;
import org.apache.catalina.startup.Tomcat;

public class Pool extends HttpServlet {
    static final ArrayBlockingQueue<String> pool = new ArrayBlockingQueue<>(2);
    static final AtomicLong waited = new AtomicLong();

    public static void main(String[] arguments) throws Exception {
        pool.add("first");
        pool.add("second");
        Tomcat tomcat = new Tomcat();
        tomcat.setBaseDir(".");
        Connector connector = new Connector();
        connector.setPort(Integer.parseInt(arguments[0]));
        connector.setProperty("address", "127.0.0.1");
        connector.setProperty("maxKeepAliveRequests", "-1");
        tomcat.setConnector(connector);
        Context context = tomcat.addContext("", null);
        Tomcat.addServlet(context, "pool", new Pool());
        context.addServletMappingDecoded("/", "pool");
        tomcat.start();
        tomcat.getServer().await();
    }

    @Override
    protected void doGet(HttpServletRequest request, HttpServletResponse response) throws java.io.IOException {
        String text = "ok\n";
        if (request.getRequestURI().equals("/waited")) {
            text = waited.get() + "\n";
        } else {
            try {
                long began = System.nanoTime();
                String connection = pool.take();
                waited.addAndGet(System.nanoTime() - began);
                Thread.sleep(30);
                pool.put(connection);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }
        response.setContentLength(text.length());
        response.getWriter().write(text);
    }
}
"#;

fn play(stage: &mut Stage) -> Truth {
    let port = stage.port();
    stage.built(&["javac", "-cp", JAR, "Pool.java"], "Pool.java", SERVER);
    let classes = format!(".:{JAR}:{ANNOTATIONS}");
    let number = port.to_string();
    let server = stage.server(&["java", "-cp", &classes, "Pool", &number], port);
    for _ in 0..30 {
        Request::get(port, "/").ask();
    }
    let load = Load::start(10, Duration::from_millis(5), &Request::get(port, "/"));
    stage.warm_up();
    let before = waited_s(port);
    stage.record(&server);
    let lost_s = waited_s(port) - before;
    let text = format!("System.nanoTime: {lost_s:.1} s in take(), while two slept; {}", load.end());
    Truth { text, lost_s }
}

fn waited_s(port: u16) -> f64 {
    let answer = Request::get(port, "/waited").ask();
    answer.lines().last().unwrap().trim().parse::<f64>().unwrap() / 1e9
}
