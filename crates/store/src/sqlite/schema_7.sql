-- Space that the run takes in the file, as far as it is known: what its batches added.
ALTER TABLE runs ADD COLUMN bytes INTEGER;
