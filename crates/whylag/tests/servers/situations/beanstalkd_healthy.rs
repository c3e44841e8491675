//! beanstalkd with a journal that is not synced, under a light load.

use crate::load::Load;
use crate::servers::{beanstalkd, beanstalkd_put};
use crate::situation::{Situation, Truth};
use crate::stage::Stage;
use std::time::Duration;

pub static SITUATION: Situation = Situation {
    name: "beanstalkd_healthy",
    software: "beanstalkd",
    version: &["beanstalkd", "-v"],
    needs: &[],
    what: "8 clients put 1,600 jobs a second; the journal is never synced",
    accepted: &[],
    play,
};

fn play(stage: &mut Stage) -> Truth {
    let (server, port) = beanstalkd(stage, &["-F"]);
    let load = Load::start(8, Duration::from_millis(5), &beanstalkd_put(port));
    stage.warm_up();
    stage.record(&server);
    Truth::healthy(load.end().to_string())
}
