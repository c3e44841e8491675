//! What a cause is, and what it says of a run.
//!
//! A cause is claimed only with its evidence, and says which look-alikes it excludes, and by which
//! datum. The causes themselves are in `causes/`, listed in [`crate::catalogue`].

use model::{Accounts, Evidence, Link, RecorderPart, RequestCost, Role, RuledOut, Turns, part_of};

use crate::case::Case;
pub use crate::causes::ids::Id;
use crate::judge::LEAST_OF_REQUESTS;

/// A cause of the catalogue.
pub struct Cause {
    /// Stable name, as in `Finding::cause`.
    pub id: Id,
    /// One line for people, true of every run that has it.
    pub title: &'static str,
    /// What to do about it.
    pub fix: &'static str,
    /// A command that produces it.
    pub reproduce: &'static str,
    /// What has to be recorded for it to be seen. Where some of that is missing in a run, nothing
    /// follows from its not being claimed.
    pub needs: Needs,
    /// Other causes of the catalogue that look the same, each pair in one of its two causes; all of
    /// a cause's are given by [`crate::catalogue::look_alikes`]. Pairs of which each excludes the
    /// other by a datum of its own, whatever the run, are not here.
    pub look_alikes: &'static [LookAlike],
    /// True if it says only what threads waited for (a CPU, a lock): it gets what no mechanism
    /// claims.
    pub symptom: bool,
    /// Looks for it.
    pub(crate) examine: fn(&Case) -> Verdict,
}

/// What has to be recorded. `judge/needs.rs` holds it against what the causes read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// Parts of the recorder.
    pub parts: &'static [RecorderPart],
    /// Names of the kernel's functions, by which it knows where in the kernel time was spent.
    pub kernel_symbols: bool,
    /// Histograms, which say how often something was done. On hosts with many CPUs not all values
    /// find one.
    pub histograms: bool,
}

impl Needs {
    /// Nothing that can be missing.
    pub const NONE: Needs = Needs::parts(&[]);

    /// These parts of the recorder.
    pub const fn parts(parts: &'static [RecorderPart]) -> Needs {
        Needs { parts, kernel_symbols: false, histograms: false }
    }

    /// The same, and names of the kernel's functions.
    #[must_use]
    pub const fn and_kernel_symbols(self) -> Needs {
        Needs { kernel_symbols: true, ..self }
    }

    /// The same, and how often things were done.
    #[must_use]
    pub const fn and_histograms(self) -> Needs {
        Needs { histograms: true, ..self }
    }
}

/// Another cause that shows the same symptom.
pub struct LookAlike {
    /// The other cause.
    pub cause: Id,
    /// One measurement that decides between the two: `to tell them apart, ...`.
    pub tell_apart: &'static str,
    /// True if a finding of the other has to exclude this cause, too. It does not where the other
    /// is proven by an account or a kernel stack that this cause never has.
    pub mutual: bool,
}

/// A claim, or the evidence that was not there.
pub(crate) type Verdict = Result<Claim, Absent>;

/// Why a cause is not claimed: what was looked for and what was seen instead.
#[derive(Debug)]
pub(crate) struct Absent(pub String);

/// A cause says that it took this time.
#[derive(Debug)]
pub(crate) struct Claim {
    /// One line for people, with this run's names.
    pub title: String,
    /// What to do about it here, if not what is said of the cause.
    pub fix: Option<&'static str>,
    /// The lost time it explains.
    pub lost: Accounts,
    /// The part of the lateness of ticks that it explains instead, if timers were measured.
    pub late: Option<LatePart>,
    /// CPU time of those whose answers were waited for, where they were on a CPU for most of it.
    pub peers_work: Accounts,
    /// How many waits the time is made of.
    pub waits: u64,
    /// Packets that were lost through it, too: these alone make it worth naming.
    pub dropped: u64,
    /// Its waits look like waiting for work, and it proves that they are not.
    pub takes_idle: bool,
    /// What it takes of requests, where it knows that itself.
    pub requests: Option<OfRequests>,
    /// The longest single stall, for causes that strike once; otherwise 0.
    pub longest_ns: u64,
    /// Each of its waits keeps a thread from all that it serves, as those for a device do: short ones are no
    /// price of a wake-up.
    pub is_stall: bool,
    /// It takes a quarter or more of what threads of a real-time policy wanted: these have little to do, and that
    /// at once, so it is no small part of all threads' time.
    pub is_urgent: bool,
    /// It strikes after the answer was given to the kernel: requests as sockets show them end before.
    pub after_answers: bool,
    /// Time in which a whole process stood still, however many of its threads had something to do.
    pub stood_still_ns: u64,
    /// From mechanism to trigger; the engine puts the symptom in front.
    pub chain: Vec<Link>,
    /// What was seen.
    pub evidence: Vec<Evidence>,
    /// Of threads that go one at a time: their turns.
    pub turns: Option<Turns>,
    /// It is about want of a CPU on a host whose CPUs were idle for most of the time.
    pub spare_cpus: bool,
    /// Short waits for a CPU while others were idle: where the scheduler puts whom it wakes.
    pub of_placement: bool,
    /// Look-alikes excluded by a datum of this cause; the engine adds those of the catalogue.
    pub ruled_out: Vec<RuledOut>,
    /// Other explanations that are no cause of the catalogue, and the data that exclude them.
    pub excluded: Vec<Exclusion>,
    /// What could not be seen.
    pub doubts: Vec<Doubt>,
}

/// What a cause takes of requests.
#[derive(Clone, Debug)]
pub(crate) struct OfRequests {
    /// Of the slowest.
    pub slowest: RequestCost,
    /// The part of the time of all requests of the port or process, 0 to 1.
    pub of_all: f64,
}

impl OfRequests {
    /// It takes enough of them to be named.
    pub(crate) fn is_felt(&self) -> bool {
        self.slowest.share().max(self.of_all) >= LEAST_OF_REQUESTS
    }

    /// Of the time that was claimed only `left` is left: others have the rest of the requests, too.
    pub(crate) fn cut(&mut self, left: u64, claimed: u64) {
        if left < claimed {
            self.slowest.ns = part_of(self.slowest.ns, left, claimed);
            self.of_all *= left as f64 / claimed as f64;
        }
    }
}

/// Another explanation, and the datum that excludes it if it was recorded.
#[derive(Debug)]
pub(crate) struct Exclusion {
    pub what: String,
    pub because: String,
    /// What the datum rests on, beyond what the claim itself needs.
    pub needs: Needs,
}

/// A part of the lateness of ticks: nobody lost it on an account of a thread.
#[derive(Debug)]
pub(crate) struct LatePart {
    /// 0 to 1.
    pub share: f64,
    /// The same, summed over the ticks.
    pub ns: u64,
    /// Confidence in the claim, 0 to 1.
    pub confidence: f64,
    /// Why it is no higher.
    pub doubts: Vec<String>,
}

/// A reason for less confidence.
#[derive(Debug)]
pub(crate) struct Doubt {
    /// What confidence is multiplied by, above 0 and below 1.
    pub factor: f64,
    /// The reason.
    pub text: String,
}

impl Claim {
    pub(crate) fn new(title: String, lost: Accounts, waits: u64) -> Self {
        Claim {
            title,
            fix: None,
            lost,
            late: None,
            peers_work: Accounts::new(),
            waits,
            dropped: 0,
            takes_idle: false,
            requests: None,
            longest_ns: 0,
            is_stall: false,
            is_urgent: false,
            after_answers: false,
            stood_still_ns: 0,
            chain: Vec::new(),
            evidence: Vec::new(),
            turns: None,
            spare_cpus: false,
            of_placement: false,
            ruled_out: Vec::new(),
            excluded: Vec::new(),
            doubts: Vec::new(),
        }
    }

    /// The time it explains: lost by threads, or the lateness of ticks.
    pub(crate) fn lost_ns(&self) -> u64 {
        self.late.as_ref().map_or_else(|| self.lost.total(), |late| late.ns)
    }

    /// Adds the mechanism to the chain.
    pub(crate) fn mechanism(&mut self, text: String) {
        self.chain.push(Link { role: Role::Mechanism, cause: None, text });
    }

    /// Adds the trigger to the chain.
    pub(crate) fn trigger(&mut self, text: String) {
        self.chain.push(Link { role: Role::Trigger, cause: None, text });
    }

    /// Adds another cause of the catalogue to the chain.
    pub(crate) fn caused_by(&mut self, role: Role, cause: Id, text: String) {
        self.chain.push(Link { role, cause: Some(cause.to_string()), text });
    }

    /// Adds evidence.
    pub(crate) fn saw(&mut self, text: String, source: &str) {
        self.evidence.push(Evidence { text, source: source.to_owned() });
    }

    /// Adds evidence if there is some.
    pub(crate) fn saw_if(&mut self, text: Option<String>, source: &str) {
        if let Some(text) = text {
            self.saw(text, source);
        }
    }

    /// Excludes another cause of the catalogue.
    pub(crate) fn rule_out(&mut self, cause: Id, because: String) {
        self.ruled_out.push(RuledOut { cause: cause.to_string(), because });
    }

    /// Excludes what is no cause of the catalogue, in plain words: `not WHAT: because`.
    pub(crate) fn exclude(&mut self, what: &str, because: String) {
        self.exclude_by(Needs::NONE, what, because);
    }

    /// The same, by a datum that needs more to be recorded than the claim itself.
    pub(crate) fn exclude_by(&mut self, needs: Needs, what: &str, because: String) {
        self.excluded.push(Exclusion { what: what.to_owned(), because, needs });
    }

    /// Lowers the confidence.
    pub(crate) fn doubt(&mut self, factor: f64, text: &str) {
        self.doubts.push(Doubt { factor, text: text.to_owned() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_that_is_cut_takes_as_much_less_of_the_requests() {
        let slowest = RequestCost { at: None, with: 8, of: 10, ns: 600, total_ns: 1_000 };
        let mut of = OfRequests { slowest, of_all: 0.5 };
        of.cut(50, 50);
        assert_eq!((of.slowest.ns, of.of_all), (600, 0.5));
        of.cut(20, 50);
        assert_eq!((of.slowest.ns, of.of_all), (240, 0.2));
    }
}
