//! Periodic timers: how late each intended tick came, and the law that the lateness follows.
