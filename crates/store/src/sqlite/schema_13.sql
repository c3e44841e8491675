-- A frame is stored once for the stacks that have it, not with each: of a busy server half of the store
-- was frames, and of 13 one was new.
ALTER TABLE frames RENAME TO frames_of_stacks;

CREATE TABLE frames (
    id              INTEGER PRIMARY KEY,
    run             INTEGER NOT NULL,
    address         INTEGER NOT NULL,
    module          TEXT    NOT NULL,
    offset          INTEGER NOT NULL,
    symbol          TEXT,
    symbol_offset   INTEGER NOT NULL,
    unknown_because TEXT,
    after_call      TEXT,                        -- what the call before it calls: `sched_yield@plt`
    line            INTEGER,                     -- of a function of an interpreter in its source file
    first_line      INTEGER
) STRICT;

INSERT INTO frames (run, address, module, offset, symbol, symbol_offset, unknown_because,
                    after_call, line, first_line)
SELECT DISTINCT stacks.run, of.address, of.module, of.offset, of.symbol, of.symbol_offset,
                of.unknown_because, of.after_call, of.line, of.first_line
FROM frames_of_stacks of JOIN stacks ON stacks.id = of.stack;

-- frames.id from the innermost on, JSON.
ALTER TABLE stacks ADD COLUMN frames TEXT NOT NULL DEFAULT '[]';

CREATE INDEX frames_of_run ON frames (run, address);
UPDATE stacks SET frames = (
    SELECT json_group_array(id) FROM (
        SELECT frames.id
        FROM frames_of_stacks of JOIN frames
          ON frames.run = stacks.run AND frames.address = of.address
             AND frames.module = of.module AND frames.offset = of.offset
             AND frames.symbol IS of.symbol AND frames.symbol_offset = of.symbol_offset
             AND frames.unknown_because IS of.unknown_because
             AND frames.after_call IS of.after_call
             AND frames.line IS of.line AND frames.first_line IS of.first_line
        WHERE of.stack = stacks.id ORDER BY of.depth));
DROP INDEX frames_of_run;
CREATE INDEX frames_of_run ON frames (run);

DROP TABLE frames_of_stacks;
