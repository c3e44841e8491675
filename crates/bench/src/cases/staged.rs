//! Work whose operation needs something each time that is not timed.

use rustix::io::Errno;

use crate::Work;

/// `before`, untimed, makes of `state` what the timed `operate` uses up.
pub fn staged<S>(
    state: S,
    before: impl FnMut(&mut S) -> Result<(), Errno>,
    operate: impl FnMut(&mut S) -> Result<(), Errno>,
) -> impl Work {
    Staged { state, before, operate, repeatable: false }
}

/// The same, where `before` makes enough for three operations: what it makes need not be for one
/// operation only, and so the harness can time two together.
pub fn staged_for_three<S>(
    state: S,
    before: impl FnMut(&mut S) -> Result<(), Errno>,
    operate: impl FnMut(&mut S) -> Result<(), Errno>,
) -> impl Work {
    Staged { state, before, operate, repeatable: true }
}

struct Staged<S, B, O> {
    state: S,
    before: B,
    operate: O,
    repeatable: bool,
}

impl<S, B, O> Work for Staged<S, B, O>
where
    B: FnMut(&mut S) -> Result<(), Errno>,
    O: FnMut(&mut S) -> Result<(), Errno>,
{
    fn before(&mut self) -> Result<(), Errno> {
        (self.before)(&mut self.state)
    }

    #[inline]
    fn operate(&mut self) -> Result<(), Errno> {
        (self.operate)(&mut self.state)
    }

    fn is_repeatable(&self) -> bool {
        self.repeatable
    }
}
