//! PostgreSQL and MariaDB.

use std::process::Stdio;
use std::time::Duration;

use crate::common::wait_until;
use crate::process::{Process, command};
use crate::stage::Stage;

pub struct Postgres {
    pub server: Process,
    pub port: String,
}

impl Postgres {
    /// A server with tables of pgbench of that scale.
    pub fn start(stage: &Stage, scale: u32, settings: &[&str]) -> Postgres {
        let data = stage.path("data");
        stage.run(&["initdb", "-D", &data, "-U", "bench", "-A", "trust", "-N"]);
        let port = stage.port();
        let number = port.to_string();
        let folder = stage.folder().to_str().unwrap();
        let mut words = vec!["postgres", "-D", &data, "-p", &number, "-k", folder];
        words.extend(
            ["listen_addresses=127.0.0.1", "log_line_prefix=%m %p "]
                .iter()
                .flat_map(|set| ["-c", set]),
        );
        words.extend(settings.iter().flat_map(|set| ["-c", *set]));
        let server = stage.server(&words, port);
        let postgres = Postgres { server, port: number };
        wait_until("PostgreSQL", || stage.read("log").contains("ready to accept"));
        postgres.bench(stage, &["-i", "-q", "-s", &scale.to_string()]).child.wait().unwrap();
        postgres.sql(stage, "CHECKPOINT");
        postgres
    }

    /// pgbench with these options, at work.
    pub fn bench(&self, stage: &Stage, options: &[&str]) -> Process {
        let words = ["pgbench", "-h", "127.0.0.1", "-p", &self.port, "-U", "bench", "-n"];
        stage.start(command(&[&words, options, &["postgres"]].concat()).stdin(Stdio::null()))
    }

    /// What a query answers.
    pub fn sql(&self, stage: &Stage, query: &str) -> String {
        let words =
            ["psql", "-h", "127.0.0.1", "-p", &self.port, "-U", "bench", "-XAt", "-c", query];
        stage.run(&[&words, ["postgres"].as_slice()].concat())
    }

    /// psql, which is told what to do line by line.
    pub fn session(&self, stage: &Stage) -> Process {
        let words = ["psql", "-h", "127.0.0.1", "-p", &self.port, "-U", "bench", "-Xq", "postgres"];
        stage.start(command(&words).stdin(Stdio::piped()))
    }
}

/// Waits for locks that PostgreSQL's log says have ended (log_lock_waits): how many, and seconds.
pub fn lock_waits(log: &str) -> (usize, f64) {
    let ended = log.lines().filter(|line| line.contains(" acquired "));
    let took = ended.filter_map(|line| line.split_once(" after ")?.1.split_once(" ms"));
    let took: Vec<f64> = took.map(|(ms, _)| ms.parse().unwrap()).collect();
    (took.len(), took.iter().sum::<f64>() / 1e3)
}

/// MariaDB, and how to reach it.
pub struct MariaDb {
    pub server: Process,
    socket: String,
}

impl MariaDb {
    pub fn start(stage: &Stage, settings: &[&str]) -> MariaDb {
        let data = format!("--datadir={}", stage.path("data"));
        stage.run(&[
            "mariadb-install-db",
            "--no-defaults",
            &data,
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
        ]);
        let socket = stage.path("socket");
        let (port, at) = (stage.port(), format!("--socket={socket}"));
        let number = format!("--port={port}");
        let words = ["mariadbd", "--no-defaults", "--bind-address=127.0.0.1", &data, &at, &number];
        let server = stage.server(&[&words, settings].concat(), port);
        let database = MariaDb { server, socket: at };
        wait_until("MariaDB", || std::path::Path::new(&socket).exists());
        std::thread::sleep(Duration::from_millis(200));
        database.sql(stage, "CREATE DATABASE bench; CREATE TABLE bench.counter (id INT PRIMARY KEY, n INT) ENGINE=InnoDB; INSERT INTO bench.counter VALUES (1, 0), (2, 0)");
        database
    }

    pub fn sql(&self, stage: &Stage, query: &str) -> String {
        stage.run(&["mariadb", "--no-defaults", &self.socket, "-uroot", "-N", "-e", query])
    }

    /// A number of SHOW GLOBAL STATUS.
    pub fn status(&self, stage: &Stage, name: &str) -> f64 {
        let row = self.sql(stage, &format!("SHOW GLOBAL STATUS LIKE '{name}'"));
        row.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    /// A client, which is told what to do line by line.
    pub fn session(&self, stage: &Stage) -> Process {
        let words = ["mariadb", "--no-defaults", &self.socket, "-uroot", "bench"];
        stage.start(command(&words).stdin(Stdio::piped()))
    }

    /// mysqlslap with so many clients that ask this again and again.
    pub fn load(&self, stage: &Stage, clients: u32, query: &str) -> Process {
        let clients = format!("--concurrency={clients}");
        let query = format!("--query={query}");
        let words = [
            "mariadb-slap",
            "--no-defaults",
            &self.socket,
            "-uroot",
            "--create-schema=bench",
            "--no-drop",
            &clients,
            "--number-of-queries=10000000",
            &query,
        ];
        stage.start(command(&words).stdin(Stdio::null()))
    }
}
