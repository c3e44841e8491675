-- A run that came from a file: JSON, where it comes from.
ALTER TABLE runs ADD COLUMN origin TEXT;
-- While a run is being imported: JSON, the process that does it. Nobody else sees the run.
ALTER TABLE runs ADD COLUMN importer TEXT;
