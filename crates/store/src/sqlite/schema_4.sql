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
