-- Stacks that were unwound from copies of their top: of how many; and what that cost.
ALTER TABLE stacks ADD COLUMN copies INTEGER NOT NULL DEFAULT 0;
ALTER TABLE cost ADD COLUMN stack_copies INTEGER NOT NULL DEFAULT 0;
ALTER TABLE cost ADD COLUMN stacks_not_copied INTEGER NOT NULL DEFAULT 0;
