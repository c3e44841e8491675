//! The same gRPC server with a thread for each client.

use super::python_grpc_pool_full::{served, waited};
use crate::situation::{Situation, Truth};
use crate::stage::Stage;

pub static SITUATION: Situation = Situation {
    name: "python_grpc_healthy",
    software: "gRPC in Python",
    version: &["/usr/bin/python3", "-c", "import grpc; print(grpc.__version__)"],
    needs: &["/usr/lib/python3/dist-packages/grpc/__init__.py"],
    what: "8 clients of a gRPC server whose handlers take 20 ms each on a ThreadPoolExecutor of 12",
    accepted: &[],
    play,
};

fn play(stage: &mut Stage) -> Truth {
    let (server, _clients) = served(stage, 12);
    stage.warm_up();
    let (requests, waited_s) = waited(&stage.record(&server));
    Truth::healthy(format!("{requests} requests waited {waited_s:.2} s for a thread"))
}
