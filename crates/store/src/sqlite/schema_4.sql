-- What a frame's call instruction calls: `sched_yield@plt`.
ALTER TABLE frames ADD COLUMN after_call TEXT;
