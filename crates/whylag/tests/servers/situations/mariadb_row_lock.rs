//! A row that a transaction keeps locked while it sleeps.

use crate::databases::MariaDb;
use crate::peers::Repeated;
use crate::situation::{Situation, Truth};
use crate::stage::Stage;
use std::time::Duration;

pub static SITUATION: Situation = Situation {
    name: "mariadb_row_lock",
    software: "MariaDB",
    version: &["mariadbd", "--version"],
    needs: &["mariadb-slap", "mariadb-install-db", "mariadb"],
    what: "6 clients update one row; a transaction locks it and sleeps for 100 ms in SLEEP(), every 120 ms",
    accepted: &[
        ("turn-taking", "one at a time has what the others wait for"),
        ("futex-convoy", "a lock in user space that is handed from waiter to waiter"),
    ],
    play,
};

fn play(stage: &mut Stage) -> Truth {
    let database = MariaDb::start(stage, &[]);
    let mut keeper = database.session(stage);
    let _keeper = Repeated::start(move || {
        keeper.say("BEGIN; UPDATE counter SET n = n + 1 WHERE id = 1; DO SLEEP(0.1); COMMIT;");
        std::thread::sleep(Duration::from_millis(120));
    });
    let _load = database.load(stage, 6, "UPDATE bench.counter SET n = n + 1 WHERE id = 1");
    stage.warm_up();
    let before = database.status(stage, "Innodb_row_lock_time");
    stage.record(&database.server);
    let lost_s = (database.status(stage, "Innodb_row_lock_time") - before) / 1e3;
    Truth {
        text: format!("Innodb_row_lock_time: {lost_s:.1} s, for a row whose holder is in SLEEP()"),
        lost_s,
    }
}
