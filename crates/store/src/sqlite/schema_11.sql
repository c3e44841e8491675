-- Where a function of an interpreter is in its source file: the line that runs, and its first.
ALTER TABLE frames ADD COLUMN line INTEGER;
ALTER TABLE frames ADD COLUMN first_line INTEGER;
