-- Times are CLOCK_MONOTONIC nanoseconds of the recorded host, durations nanoseconds. Numbers of 64
-- bits (addresses, stack ids) are kept as signed integers. Accounts, metrics, kinds and system
-- calls are texts, as in JSON.

CREATE TABLE runs (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    started_unix_ns INTEGER NOT NULL,
    started_ns      INTEGER NOT NULL,
    target          TEXT    NOT NULL,            -- JSON
    follow          INTEGER NOT NULL,
    threshold_ns    INTEGER NOT NULL,
    sampled         INTEGER NOT NULL,
    recorder_pid    INTEGER NOT NULL,
    recorder_start  INTEGER,                     -- clock ticks since boot, of that process
    boot_id         TEXT,
    version         TEXT    NOT NULL,
    heartbeat_ns    INTEGER NOT NULL,
    outlier_count   INTEGER NOT NULL DEFAULT 0,
    event_count     INTEGER NOT NULL DEFAULT 0,
    ended_ns        INTEGER,
    exit_status     INTEGER,
    end_reason      TEXT
) STRICT;

CREATE TABLE facts (
    run    INTEGER NOT NULL,
    name   TEXT    NOT NULL,
    value  TEXT    NOT NULL,
    source TEXT    NOT NULL
) STRICT;
CREATE INDEX facts_by_run ON facts (run, name);

CREATE TABLE capabilities (
    run     INTEGER NOT NULL,
    part    TEXT    NOT NULL,
    "on"    INTEGER NOT NULL,
    because TEXT    NOT NULL,
    UNIQUE (run, part)
) STRICT;

CREATE TABLE processes (
    run      INTEGER NOT NULL,
    tgid     INTEGER NOT NULL,
    comm     TEXT    NOT NULL,
    exe      TEXT    NOT NULL,
    build_id TEXT    NOT NULL,
    watched  INTEGER NOT NULL,
    PRIMARY KEY (run, tgid)
) STRICT, WITHOUT ROWID;

CREATE TABLE threads (
    id           INTEGER PRIMARY KEY,
    run          INTEGER NOT NULL,
    tid          INTEGER NOT NULL,
    first_ns     INTEGER NOT NULL,
    tgid         INTEGER NOT NULL,
    comm         TEXT    NOT NULL,
    last_ns      INTEGER NOT NULL,
    alive        INTEGER NOT NULL,
    open         TEXT    NOT NULL,
    minor_faults INTEGER NOT NULL,
    major_faults INTEGER NOT NULL,
    sleeps       INTEGER NOT NULL,
    preemptions  INTEGER NOT NULL,
    migrations   INTEGER NOT NULL,
    realtime     INTEGER NOT NULL,
    UNIQUE (run, tid, first_ns)
) STRICT;

CREATE TABLE accounts (
    thread  INTEGER NOT NULL,                    -- threads.id
    account TEXT    NOT NULL,
    ns      INTEGER NOT NULL,
    PRIMARY KEY (thread, account)
) STRICT, WITHOUT ROWID;

CREATE TABLE seconds (
    run       INTEGER NOT NULL,
    start_ns  INTEGER NOT NULL,
    tgid      INTEGER NOT NULL,
    metric    TEXT    NOT NULL,
    precision INTEGER NOT NULL,
    sum       INTEGER NOT NULL,
    min       INTEGER NOT NULL,
    max       INTEGER NOT NULL,
    buckets   BLOB    NOT NULL                   -- deflated (index distance, count) varints
) STRICT;
CREATE INDEX seconds_by_time ON seconds (run, start_ns);

CREATE TABLE outliers (
    run          INTEGER NOT NULL,
    duration_ns  INTEGER NOT NULL,
    start_ns     INTEGER NOT NULL,
    kind         TEXT    NOT NULL,
    tid          INTEGER NOT NULL,
    tgid         INTEGER NOT NULL,
    comm         TEXT    NOT NULL,
    cpu          INTEGER NOT NULL,
    blocked      TEXT,
    object       INTEGER NOT NULL,
    kernel_stack INTEGER,
    user_stack   INTEGER,
    detail       TEXT    NOT NULL                -- JSON: system call, breakdown, who was involved
) STRICT;
CREATE INDEX outliers_by_length ON outliers (run, duration_ns DESC);

CREATE TABLE events (
    run     INTEGER NOT NULL,
    time_ns INTEGER NOT NULL,
    kind    TEXT    NOT NULL,
    tid     INTEGER NOT NULL,
    tgid    INTEGER NOT NULL,
    value   INTEGER NOT NULL,
    detail  TEXT    NOT NULL
) STRICT;
CREATE INDEX events_by_time ON events (run, time_ns);

CREATE TABLE stacks (
    id        INTEGER PRIMARY KEY,
    run       INTEGER NOT NULL,
    stack     INTEGER NOT NULL,
    space     TEXT    NOT NULL,
    truncated INTEGER NOT NULL,
    UNIQUE (run, stack)
) STRICT;

CREATE TABLE frames (
    stack           INTEGER NOT NULL,            -- stacks.id
    depth           INTEGER NOT NULL,            -- innermost 0
    address         INTEGER NOT NULL,
    module          TEXT    NOT NULL,
    offset          INTEGER NOT NULL,
    symbol          TEXT,
    symbol_offset   INTEGER NOT NULL,
    unknown_because TEXT,
    PRIMARY KEY (stack, depth)
) STRICT, WITHOUT ROWID;

-- A unique index takes any two NULLs for different, hence the expressions.
CREATE TABLE stack_sums (
    run          INTEGER NOT NULL,
    tgid         INTEGER NOT NULL,
    account      TEXT    NOT NULL,
    kernel_stack INTEGER,
    user_stack   INTEGER,
    count        INTEGER NOT NULL,
    ns           INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX stack_sums_key
    ON stack_sums (run, tgid, account, ifnull(kernel_stack, ''), ifnull(user_stack, ''));

CREATE TABLE waits (
    run        INTEGER NOT NULL,
    tgid       INTEGER NOT NULL,
    account    TEXT    NOT NULL,
    object     INTEGER NOT NULL,
    waker_tgid INTEGER NOT NULL,
    waker_comm TEXT    NOT NULL,
    name       TEXT,
    count      INTEGER NOT NULL,
    ns         INTEGER NOT NULL,
    max_ns     INTEGER NOT NULL,
    by_waiter  INTEGER NOT NULL,
    lock_like  INTEGER NOT NULL,
    PRIMARY KEY (run, tgid, account, object, waker_tgid)
) STRICT, WITHOUT ROWID;

CREATE TABLE holds (
    run          INTEGER NOT NULL,
    tgid         INTEGER NOT NULL,
    waiter_write INTEGER NOT NULL,
    holder_tgid  INTEGER NOT NULL,
    holder_comm  TEXT    NOT NULL,
    holder_write INTEGER NOT NULL,
    holder_call  TEXT,
    count        INTEGER NOT NULL,
    ns           INTEGER NOT NULL,
    max_ns       INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX holds_key ON holds
    (run, tgid, waiter_write, holder_tgid, holder_comm, holder_write, ifnull(holder_call, ''));

CREATE TABLE runners (
    run         INTEGER NOT NULL,
    tgid        INTEGER NOT NULL,
    runner_tgid INTEGER NOT NULL,
    runner_comm TEXT    NOT NULL,
    realtime    INTEGER NOT NULL,                -- priority, 0: not real-time
    count       INTEGER NOT NULL,
    ns          INTEGER NOT NULL,
    PRIMARY KEY (run, tgid, runner_tgid, realtime)
) STRICT, WITHOUT ROWID;

CREATE TABLE paths (
    run          INTEGER NOT NULL,
    tgid         INTEGER NOT NULL,
    account      TEXT    NOT NULL,
    call         TEXT,
    kernel_stack INTEGER,
    user_stack   INTEGER,
    sampled      INTEGER NOT NULL,
    count        INTEGER NOT NULL,
    ns           INTEGER NOT NULL,
    max_ns       INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX paths_key ON paths
    (run, tgid, account, ifnull(call, ''), ifnull(kernel_stack, ''), ifnull(user_stack, ''),
     sampled);

CREATE TABLE call_errors (
    run   INTEGER NOT NULL,
    tgid  INTEGER NOT NULL,
    call  TEXT    NOT NULL,
    errno INTEGER NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (run, tgid, call, errno)
) STRICT, WITHOUT ROWID;

CREATE TABLE counters (
    run    INTEGER NOT NULL,
    name   TEXT    NOT NULL,
    source TEXT    NOT NULL,
    first  INTEGER NOT NULL,
    last   INTEGER NOT NULL,
    PRIMARY KEY (run, name, source)
) STRICT, WITHOUT ROWID;

CREATE TABLE cpus (
    run       INTEGER NOT NULL,
    cpu       INTEGER NOT NULL,
    idle_ns   INTEGER NOT NULL,
    busy_ns   INTEGER NOT NULL,
    stolen_ns INTEGER NOT NULL,
    PRIMARY KEY (run, cpu)
) STRICT, WITHOUT ROWID;

CREATE TABLE losses (
    run     INTEGER NOT NULL,
    time_ns INTEGER NOT NULL,
    kind    TEXT    NOT NULL,
    count   INTEGER NOT NULL
) STRICT;
CREATE INDEX losses_by_time ON losses (run, time_ns);

CREATE TABLE cost (
    run            INTEGER PRIMARY KEY,
    cpu_ns         INTEGER NOT NULL,
    bpf_ns         INTEGER NOT NULL,
    bpf_runs       INTEGER NOT NULL,
    events         INTEGER NOT NULL,
    ring_bytes     INTEGER NOT NULL,
    peak_rss_bytes INTEGER NOT NULL,
    attach_ns      INTEGER NOT NULL,
    probes         TEXT    NOT NULL              -- JSON
) STRICT;

CREATE TABLE findings (
    run     INTEGER NOT NULL,
    rank    INTEGER NOT NULL,                    -- leading 0
    cause   TEXT    NOT NULL,
    share   REAL    NOT NULL,
    finding TEXT    NOT NULL,                    -- JSON
    PRIMARY KEY (run, rank)
) STRICT, WITHOUT ROWID;
