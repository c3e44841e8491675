//! Waits by trying again: sleeps of a thread's own choice between a call that was refused and the
//! same call again.

use model::{Account, Accounts, Blocked, Retry};

use crate::case::Case;
use crate::cause::Claim;
use crate::causes::scripts;
use crate::text::{counted, duration, mean};

/// In which a thread sleeps that tries again.
pub(crate) const SLEEP: Account = Account::Blocked(Blocked::TimerSleep);

/// The process, with those of its name (the workers of a server), sleeps between tries rather than of
/// its own choice: of each single sleep it is not known.
pub(crate) fn sleeps_between_tries(case: &Case, tgid: u32) -> bool {
    let name = case.run.comm(tgid);
    let is_fellow = |other: u32| other == tgid || case.run.comm(other) == name;
    let tries = case.run.sums.retries.iter().filter(|retry| retry.account == SLEEP);
    let tries = tries.filter(|retry| is_fellow(retry.tgid));
    let between = tries.map(|retry| retry.ns).fold(0, u64::saturating_add);
    let sleepers = case.processes().filter(|(other, _)| is_fellow(*other));
    let asleep = sleepers.map(|(_, accounts)| accounts.get(SLEEP)).fold(0, u64::saturating_add);
    between > 0 && between >= asleep / 2
}

/// All tries of one kind.
#[derive(Default)]
pub(crate) struct Tries {
    /// The process that waited longest so.
    pub process: u32,
    /// Sleeps.
    pub count: u64,
    pub ns: u64,
    max_ns: u64,
    /// Those that got it in the end.
    pub won_ns: u64,
    lost: Accounts,
    /// The longest.
    main: Option<Retry>,
}

impl Tries {
    /// Those that `is_one` accepts.
    pub(crate) fn of(case: &Case, is_one: impl Fn(&Retry) -> bool) -> Self {
        let mut tries = Tries::default();
        let mut longest = 0;
        let of_scripts = scripts::retries(case.run);
        let all = case.run.sums.retries.iter().chain(&of_scripts);
        for retry in all.filter(|retry| is_one(retry)) {
            tries.count = tries.count.saturating_add(retry.count);
            tries.ns = tries.ns.saturating_add(retry.ns);
            tries.won_ns = tries.won_ns.saturating_add(retry.won_ns);
            tries.max_ns = tries.max_ns.max(retry.max_ns);
            tries.lost.add(retry.account, retry.ns);
            if retry.ns > longest {
                longest = retry.ns;
                tries.process = retry.tgid;
                tries.main = Some(retry.clone());
            }
        }
        tries
    }

    /// With which error the longest were refused.
    pub(crate) fn errno(&self) -> i32 {
        self.main.as_ref().map_or(0, |retry| retry.errno)
    }

    /// The path or address of the longest, if they were for one and it is known.
    pub(crate) fn name(&self) -> Option<&str> {
        self.main.as_ref()?.name.as_deref()
    }

    /// Inode of the file or pipe of the longest.
    pub(crate) fn inode(&self) -> u64 {
        self.main.as_ref().map_or(0, |retry| retry.object)
    }

    /// Of which object the longest were, if that is known.
    fn object(&self, what: &str) -> Option<String> {
        match (self.name(), &self.main) {
            (Some(name), _) => Some(name.to_owned()),
            (None, Some(retry)) if retry.object != 0 && !retry.is_by_name() => {
                Some(format!("the {what} with inode {}", retry.object))
            }
            _ => None,
        }
    }

    /// The sleeps look like the thread's own; the refusals show that they are not. `after` says what was
    /// refused, `what` it is about, and `source` how it was seen.
    pub(crate) fn add_to(&self, claim: &mut Claim, after: &str, what: &str, source: &str) {
        if self.ns == 0 {
            return;
        }
        claim.takes_idle = true;
        claim.lost.merge(&self.lost);
        claim.waits = claim.waits.saturating_add(self.count);
        claim.saw(
            format!(
                "{} after {after}, {} asleep in all, mean {}, longest {}{}",
                counted(self.count, "sleep"),
                duration(self.ns),
                mean(self.ns, self.count),
                duration(self.max_ns),
                self.object(what).map_or(String::new(), |object| format!("; most for {object}"))
            ),
            source,
        );
    }
}
