//! The sockets of a run.

use model::*;

use super::STARTED_NS;

/// A socket with something in its queue, and with packets lost.
pub fn sockets() -> Sockets {
    let socket = Socket {
        inode: u64::MAX,
        tgid: 7,
        fd: 3,
        kind: SocketKind::Udp,
        address: "127.0.0.1:9000".parse().unwrap(),
    };
    let receive = Depth { mean: 100, max: 212_992, max_ns: STARTED_NS + 7, limit: 212_992 };
    let queue = QueueSecond {
        start_ns: STARTED_NS,
        socket: socket.clone(),
        looks: 50,
        receive,
        send: Depth::default(),
        nagle_looks: 3,
        connecting: Some(Connecting { since_ns: STARTED_NS, last_ns: STARTED_NS + 40_000_000 }),
        drops: 887,
        resent: Resent {
            segments: 3,
            timeouts: vec![Timeout {
                at_ns: STARTED_NS + 3,
                kind: TimeoutKind::Retransmission,
                after_ns: 204_000_000,
            }],
        },
        blocked_sends: BlockedSends {
            refused: 9,
            waited: 1,
            waited_ns: 77,
            bursts_ns: vec![STARTED_NS + 4],
        },
        sent_last: Some(SentLast { sent_ns: STARTED_NS + 2, heard_ns: Some(STARTED_NS + 1) }),
    };
    let drops = Drops {
        socket,
        reason: "SOCKET_RCVBUFF".into(),
        filling_ns: STARTED_NS,
        first_ns: STARTED_NS + 5,
        last_ns: STARTED_NS + 9,
        count: 887,
        queued: 212_992,
        limit: 212_992,
    };
    Sockets { queues: vec![queue], drops: vec![drops] }
}
