//! A mutex of Go whose holder sleeps.

use crate::load::{Load, Request};
use crate::situation::{Situation, Truth};
use crate::stage::Stage;
use std::time::Duration;

pub static SITUATION: Situation = Situation {
    name: "go_mutex",
    software: "Go net/http",
    version: &["go", "version"],
    needs: &[],
    what: "8 clients; each request holds a sync.Mutex for 15 ms of time.Sleep",
    accepted: &[
        ("turn-taking", "one at a time has what the others wait for"),
        ("futex-convoy", "a lock in user space that is handed from waiter to waiter"),
    ],
    play,
};

const SERVER: &str = r#"
package main

import (
	"fmt"
	"net/http"
	"os"
	"runtime/metrics"
	"sync"
	"time"
)

var lock sync.Mutex

func main() {
	http.HandleFunc("/waited", func(w http.ResponseWriter, r *http.Request) {
		samples := []metrics.Sample{{Name: "/sync/mutex/wait/total:seconds"}, {Name: "/cpu/classes/gc/pause:cpu-seconds"}}
		metrics.Read(samples)
		fmt.Fprintf(w, "%f %f\n", samples[0].Value.Float64(), samples[1].Value.Float64())
	})
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		lock.Lock()
		if len(os.Args) > 2 {
			time.Sleep(15 * time.Millisecond)
		}
		lock.Unlock()
		fmt.Fprintln(w, "ok")
	})
	http.ListenAndServe("127.0.0.1:"+os.Args[1], nil)
}
"#;

fn play(stage: &mut Stage) -> Truth {
    let port = stage.port();
    let server = stage.built(&["go", "build", "server.go"], "server.go", SERVER);
    let server = stage.server(&[server.to_str().unwrap(), &port.to_string(), "slow"], port);
    let load = Load::start(8, Duration::from_millis(10), &Request::get(port, "/"));
    let waited = || -> Vec<f64> {
        let answer = Request::get_once(port, "/waited").ask();
        answer.lines().last().unwrap().split(' ').map(|number| number.parse().unwrap()).collect()
    };
    stage.warm_up();
    let before = waited();
    stage.record(&server);
    let after = waited();
    let lost_s = after[0] - before[0];
    let text = format!("runtime/metrics /sync/mutex/wait/total: {lost_s:.1} s; {}", load.end());
    Truth { text, lost_s }
}
