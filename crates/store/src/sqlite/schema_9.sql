-- What users call their runs, and what a run says in figures: many runs are compared without loading
-- each of them whole.
ALTER TABLE runs ADD COLUMN labels TEXT NOT NULL DEFAULT '{}';
ALTER TABLE runs ADD COLUMN figures TEXT;
