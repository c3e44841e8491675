-- Ticks of timer tests, a piece at a time; those of runs of before are in `results`, with the rest.
CREATE TABLE ticks (
    run    INTEGER NOT NULL,
    series INTEGER NOT NULL,                     -- place among those of the run, from 0
    ticks  TEXT    NOT NULL                      -- JSON
) STRICT;
CREATE INDEX ticks_of_run ON ticks (run);
