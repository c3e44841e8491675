-- What benchmarks and timer tests measured, whole: nothing selects within it.
CREATE TABLE results (
    run    INTEGER NOT NULL,
    source TEXT    NOT NULL,                     -- 'bench', 'jitter'
    result TEXT    NOT NULL,                     -- JSON
    PRIMARY KEY (run, source)
) STRICT, WITHOUT ROWID;
