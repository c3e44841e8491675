-- What a frame's call instruction calls: `sched_yield@plt`.
ALTER TABLE frames ADD COLUMN after_call TEXT;

-- Sockets of the target.
CREATE TABLE queue_seconds (
    run      INTEGER NOT NULL,
    start_ns INTEGER NOT NULL,
    inode    INTEGER NOT NULL,
    detail   TEXT    NOT NULL                    -- JSON: the socket, its queues, drops
) STRICT;
CREATE INDEX queue_seconds_by_time ON queue_seconds (run, start_ns);

CREATE TABLE drops (
    run      INTEGER NOT NULL,
    first_ns INTEGER NOT NULL,
    count    INTEGER NOT NULL,
    detail   TEXT    NOT NULL                    -- JSON: the socket, the reason, the times
) STRICT;
CREATE INDEX drops_by_time ON drops (run, first_ns);

-- When programs had a CPU, watched or not.
CREATE TABLE presences (
    run      INTEGER NOT NULL,
    start_ns INTEGER NOT NULL,                   -- begin of the second
    tgid     INTEGER NOT NULL,
    comm     TEXT    NOT NULL,
    pieces   TEXT    NOT NULL                    -- JSON: ranges of pieces of 10 ms, [first, after last]
) STRICT;
CREATE INDEX presences_by_time ON presences (run, start_ns);

-- Waits for spinlocks, by who was in a call on another CPU when they ended.
CREATE TABLE beside (
    run          INTEGER NOT NULL,
    tgid         INTEGER NOT NULL,
    other_tgid   INTEGER NOT NULL,
    other_call   TEXT    NOT NULL,
    reads        TEXT    NOT NULL,               -- JSON: what it read
    kernel_stack INTEGER,                        -- of the waiter
    other_comm   TEXT    NOT NULL,
    count        INTEGER NOT NULL,
    ns           INTEGER NOT NULL,
    max_ns       INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX beside_of_run
    ON beside (run, tgid, other_tgid, other_call, reads, ifnull(kernel_stack, 0));
