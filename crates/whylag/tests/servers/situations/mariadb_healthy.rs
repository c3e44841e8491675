//! MariaDB under one client's load.

use crate::databases::MariaDb;
use crate::peers::Repeated;
use crate::situation::{Situation, Truth};
use crate::stage::Stage;
use std::time::Duration;

pub static SITUATION: Situation = Situation {
    name: "mariadb_healthy",
    software: "MariaDB",
    version: &["mariadbd", "--version"],
    needs: &["mariadb", "mariadb-install-db"],
    what: "a client reads a row 200 times a second",
    accepted: &[],
    play,
};

fn play(stage: &mut Stage) -> Truth {
    let database = MariaDb::start(stage, &[]);
    let mut client = database.session(stage);
    let _client = Repeated::start(move || {
        client.say("SELECT n FROM counter WHERE id = 2;");
        std::thread::sleep(Duration::from_millis(5));
    });
    stage.warm_up();
    stage.record(&database.server);
    let waited = database.status(stage, "Innodb_row_lock_time");
    Truth::healthy(format!("Innodb_row_lock_time: {waited} ms"))
}
