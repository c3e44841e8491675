-- Sums since the start of a run, of all kinds in one table.
CREATE TABLE sums (
    id    INTEGER PRIMARY KEY,                   -- the order in which they came
    run   INTEGER NOT NULL,
    kind  TEXT    NOT NULL,                      -- the table in model's Sums
    key   TEXT    NOT NULL,                      -- JSON: what it is the sum of
    value TEXT    NOT NULL,                      -- JSON: all of it
    UNIQUE (run, kind, key)
) STRICT;

INSERT INTO sums (run, kind, key, value)
SELECT run, 'stack_sums',
       printf('[%u,%s,%s,%s]', tgid, account, kernel, user),
       printf('{"tgid":%u,"account":%s,"kernel":%s,"user":%s,"count":%u,"ns":%u}',
              tgid, account, kernel, user, count, ns)
FROM (SELECT run, tgid, json_quote(account) AS account,
             iif(kernel_stack IS NULL, 'null', printf('%u', kernel_stack)) AS kernel,
             iif(user_stack IS NULL, 'null', printf('%u', user_stack)) AS user,
             count, ns
      FROM stack_sums ORDER BY run, stack_sums.ns DESC, rowid);
DROP TABLE stack_sums;

INSERT INTO sums (run, kind, key, value)
SELECT run, 'waits',
       printf('[%u,%s,%u,%u]', tgid, json_quote(account), object, waker_tgid),
       printf('{"tgid":%u,"account":%s,"object":%u,"name":%s,"waker_tgid":%u,"waker_comm":%s,'
              || '"count":%u,"ns":%u,"max_ns":%u,"by_waiter":%u,"lock_like":%u}',
              tgid, json_quote(account), object, json_quote(name), waker_tgid,
              json_quote(waker_comm), count, ns, max_ns, by_waiter, lock_like)
FROM waits ORDER BY run, ns DESC, tgid, account, object, waker_tgid;
DROP TABLE waits;

INSERT INTO sums (run, kind, key, value)
SELECT run, 'holds',
       printf('[%u,%s,[%u,%s,%s,%s]]', tgid, waiter_write, holder_tgid, comm, holder_write, call),
       printf('{"tgid":%u,"waiter_write":%s,"holder_tgid":%u,"holder_comm":%s,"holder_write":%s,'
              || '"holder_call":%s,"count":%u,"ns":%u,"max_ns":%u}',
              tgid, waiter_write, holder_tgid, comm, holder_write, call, count, ns, max_ns)
FROM (SELECT run, tgid, iif(waiter_write, 'true', 'false') AS waiter_write, holder_tgid,
             json_quote(holder_comm) AS comm, iif(holder_write, 'true', 'false') AS holder_write,
             json_quote(holder_call) AS call, count, ns, max_ns
      FROM holds ORDER BY run, holds.ns DESC, rowid);
DROP TABLE holds;

INSERT INTO sums (run, kind, key, value)
SELECT run, 'runners',
       printf('[%u,%u,%u]', tgid, runner_tgid, realtime),
       printf('{"tgid":%u,"runner_tgid":%u,"runner_comm":%s,"realtime":%u,"count":%u,"ns":%u}',
              tgid, runner_tgid, json_quote(runner_comm), realtime, count, ns)
FROM runners ORDER BY run, ns DESC, tgid, runner_tgid, realtime;
DROP TABLE runners;

INSERT INTO sums (run, kind, key, value)
SELECT run, 'paths',
       printf('[%u,%s,%s,[%s,%s],%s]', tgid, account, call, kernel, user, sampled),
       printf('{"tgid":%u,"account":%s,"call":%s,"kernel":%s,"user":%s,"sampled":%s,'
              || '"count":%u,"ns":%u,"max_ns":%u}',
              tgid, account, call, kernel, user, sampled, count, ns, max_ns)
FROM (SELECT run, tgid, json_quote(account) AS account, json_quote(call) AS call,
             iif(kernel_stack IS NULL, 'null', printf('%u', kernel_stack)) AS kernel,
             iif(user_stack IS NULL, 'null', printf('%u', user_stack)) AS user,
             iif(sampled, 'true', 'false') AS sampled, count, ns, max_ns
      FROM paths ORDER BY run, paths.ns DESC, rowid);
DROP TABLE paths;

INSERT INTO sums (run, kind, key, value)
SELECT run, 'beside',
       printf('[%u,%u,%s,%s,%s]', tgid, other_tgid, call, reads, kernel),
       printf('{"tgid":%u,"other_tgid":%u,"other_comm":%s,"other_call":%s,"reads":%s,'
              || '"kernel":%s,"count":%u,"ns":%u,"max_ns":%u}',
              tgid, other_tgid, comm, call, reads, kernel, count, ns, max_ns)
FROM (SELECT run, tgid, other_tgid, json_quote(other_comm) AS comm,
             json_quote(other_call) AS call, reads,
             iif(kernel_stack IS NULL, 'null', printf('%u', kernel_stack)) AS kernel,
             count, ns, max_ns
      FROM beside ORDER BY run, beside.ns DESC, rowid);
DROP TABLE beside;

INSERT INTO sums (run, kind, key, value)
SELECT run, 'call_errors',
       printf('[%u,%s,%d]', tgid, json_quote(call), errno),
       printf('{"tgid":%u,"call":%s,"errno":%d,"count":%u}', tgid, json_quote(call), errno, count)
FROM call_errors ORDER BY run, count DESC, tgid, call, errno;
DROP TABLE call_errors;

INSERT INTO sums (run, kind, key, value)
SELECT run, 'counters',
       printf('[%s,%s]', json_quote(name), json_quote(source)),
       printf('{"name":%s,"source":%s,"first":%u,"last":%u}',
              json_quote(name), json_quote(source), first, last)
FROM counters ORDER BY run, name, source;
DROP TABLE counters;

INSERT INTO sums (run, kind, key, value)
SELECT run, 'cpus',
       cpu,
       printf('{"cpu":%u,"idle_ns":%u,"busy_ns":%u,"stolen_ns":%u}',
              cpu, idle_ns, busy_ns, stolen_ns)
FROM cpus ORDER BY run, cpu;
DROP TABLE cpus;
