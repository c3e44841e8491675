-- What `prove` said, as JSON, and which runs it was said of.
CREATE TABLE proofs (
    id    INTEGER PRIMARY KEY AUTOINCREMENT,
    proof TEXT    NOT NULL
);

CREATE TABLE proof_runs (
    run   INTEGER NOT NULL,
    proof INTEGER NOT NULL,
    PRIMARY KEY (run, proof)
) WITHOUT ROWID;
