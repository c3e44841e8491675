-- Messages of traced programs.
CREATE TABLE traced_programs (
    run     INTEGER NOT NULL,
    program INTEGER NOT NULL,
    detail  TEXT    NOT NULL,                    -- JSON: names, counts
    PRIMARY KEY (run, program)
) STRICT, WITHOUT ROWID;

CREATE TABLE message_seconds (
    run       INTEGER NOT NULL,
    start_ns  INTEGER NOT NULL,
    program   INTEGER NOT NULL,
    flow      INTEGER NOT NULL,
    metric    TEXT    NOT NULL,
    precision INTEGER NOT NULL,
    sum       INTEGER NOT NULL,
    min       INTEGER NOT NULL,
    max       INTEGER NOT NULL,
    buckets   BLOB    NOT NULL                   -- as in seconds
) STRICT;
CREATE INDEX message_seconds_by_time ON message_seconds (run, start_ns);

CREATE TABLE messages (
    run         INTEGER NOT NULL,
    program     INTEGER NOT NULL,
    flow        INTEGER NOT NULL,
    sample      INTEGER,                         -- place in the control group, NULL: slow
    t0_ns       INTEGER NOT NULL,
    duration_ns INTEGER NOT NULL,
    detail      TEXT    NOT NULL                 -- JSON: the message
) STRICT;
CREATE INDEX messages_by_length ON messages (run, duration_ns DESC) WHERE sample IS NULL;
-- A unique index takes any two NULLs for different: so many slow messages, one of each place.
CREATE UNIQUE INDEX messages_sampled ON messages (run, program, flow, sample);
