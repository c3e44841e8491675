//! The traces of all processes of a recording.

use std::collections::{BTreeMap, VecDeque};
use std::io;

use model::{Messages, TraceState};
use trace::reader::{ReadError, TraceFile};

use crate::budget::Budget;
use crate::follower::is_alive;
use crate::room::Room;
use crate::{Follower, Look, guarded};

/// Processes in which a trace is looked for at a time: each costs a thread that asks.
const ASKED: usize = 16;

/// How often traces are looked at, ns: what is not read in time is overwritten.
const LOOK_NS: u64 = 20_000_000;

/// A process without a trace is asked again after one part in so many of the time since it was met: most
/// that trace begin to when they start. After so long at most, ns, and so long for each process, because
/// a question costs some 100 us. Of one that begins later the histograms are whole all the same.
const PART_OF_TIME: u64 = 4;
const LONGEST_REST_NS: u64 = 4_000_000_000;
const REST_OF_EACH_NS: u64 = 6_000_000;

/// Traces that are followed at a time.
const FOLLOWED: usize = 128;

/// Memory for what the histograms of all traces have counted, bytes, and of one. A program whose 16
/// threads have two flows each takes some 500 kB.
const MEMORY: usize = 64 << 20;
const MEMORY_OF_ONE: usize = 16 << 20;

/// All traces together may take one part in so many of the time of a CPU: whoever writes one decides
/// how much there is to read. Beyond it each has its share of that, and is not looked at when it has
/// spent it; what it overwrites meanwhile is counted as lost.
const PART_OF_CPU: u64 = 10;

/// So often it is said in a recording that a trace is not read, and why: whoever writes one decides
/// how often it is another reason.
const REFUSALS: usize = 100;

/// Histograms are read once a second.
const EVERY_NS: u64 = 1_000_000_000;

/// Follows the traces of processes, also of those that begin to trace later.
pub struct Watched {
    followers: Vec<Followed>,
    /// Processes without a trace, the one to be looked at next first.
    asked: VecDeque<Asked>,
    /// Why a process's trace is not read: reported once.
    refused: BTreeMap<u32, String>,
    unreported: Vec<(u32, String)>,
    /// Reasons so far.
    refusals: usize,
    programs: u32,
    started_ns: u64,
    abandoned: Vec<TraceFile>,
    /// For slow messages, and for the sample of the others.
    room: [Room; 2],
    budget: Budget,
}

/// A trace, and what it may cost.
struct Followed {
    follower: Follower,
    budget: Budget,
}

/// A process without a trace.
#[derive(Clone, Copy)]
struct Asked {
    tgid: u32,
    /// The user named it by its pid, so disturbing it a little is accepted.
    is_named: bool,
    times: u32,
    /// 0: it has not been asked yet.
    first_ns: u64,
    next_ns: u64,
}

impl Asked {
    /// It is asked at this moment, and again after `longest_ns` at most.
    fn is_asked(&mut self, now_ns: u64, longest_ns: u64) {
        if self.first_ns == 0 {
            self.first_ns = now_ns;
        }
        let rest_ns = now_ns.saturating_sub(self.first_ns) / PART_OF_TIME;
        self.next_ns = now_ns + rest_ns.clamp(LOOK_NS, longest_ns);
        self.times = self.times.wrapping_add(1);
    }
}

/// Every so many times a process is looked at thoroughly.
const THOROUGH: u32 = 8;

impl Watched {
    /// Messages that end from `started_ns` on are shown.
    pub fn new(started_ns: u64) -> Watched {
        Watched {
            followers: Vec::new(),
            asked: VecDeque::new(),
            refused: BTreeMap::new(),
            unreported: Vec::new(),
            refusals: 0,
            programs: 0,
            started_ns,
            abandoned: Vec::new(),
            room: [Room::of_all(), Room::of_all()],
            budget: Budget::new(started_ns),
        }
    }

    /// Also follows this process, `is_named` if the user named it.
    pub fn add(&mut self, tgid: u32, is_named: bool) {
        let is_known = self.asked.iter().any(|known| known.tgid == tgid)
            || self.followers.iter().any(|of| of.follower.program().tgid == tgid);
        if !is_known {
            self.asked.push_front(Asked { tgid, is_named, times: 0, first_ns: 0, next_ns: 0 });
        }
    }

    /// The lowest threshold of the flows that are followed, ns.
    pub fn lowest_threshold_ns(&self) -> Option<u64> {
        let flows = self.followers.iter().flat_map(|of| &of.follower.program().flows);
        flows.map(|flow| flow.threshold_ns).min()
    }

    /// True if a trace of this process is followed.
    pub fn traces(&self, tgid: u32) -> bool {
        self.followers.iter().any(|of| of.follower.program().tgid == tgid)
    }

    /// Reasons why traces are not read, of those that are new.
    pub fn take_refusals(&mut self) -> Vec<(u32, String)> {
        std::mem::take(&mut self.unreported)
    }

    /// What is new at this moment, of all.
    pub fn look(&mut self, now_ns: u64) -> Messages {
        self.ask(now_ns);
        let mut messages = Messages::default();
        let mut index = 0;
        while index < self.followers.len() {
            if !self.has_budget(index, now_ns) || self.look_at(index, now_ns, &mut messages) {
                index += 1;
            }
        }
        messages
    }

    /// How long the next look may be put off at this moment, ns.
    pub fn rest_ns(&self, now_ns: u64) -> u64 {
        if !self.followers.is_empty() {
            return LOOK_NS;
        }
        let next_ns = self.asked.iter().map(|asked| asked.next_ns).min();
        let rest = next_ns.map_or(LONGEST_REST_NS, |next_ns| next_ns.saturating_sub(now_ns));
        rest.clamp(LOOK_NS, LONGEST_REST_NS)
    }

    fn has_budget(&mut self, index: usize, now_ns: u64) -> bool {
        let share = PART_OF_CPU * self.followers.len() as u64;
        let own = self.followers[index].budget.has(now_ns, share);
        self.budget.has(now_ns, PART_OF_CPU) || own
    }

    /// Looks at one trace; false if it is followed no more.
    fn look_at(&mut self, index: usize, now_ns: u64, messages: &mut Messages) -> bool {
        let began_ns = clock::thread_cpu_ns();
        let left = self.memory_left();
        let Followed { follower, budget } = &mut self.followers[index];
        follower.keep_within(MEMORY_OF_ONE.min(follower.memory() + left));
        let looked = follower.look(now_ns);
        let has_turned = follower.has_turned();
        // A program that ends removes its file; one that is killed leaves it.
        let has_ended = has_turned && !follower.is_writing();
        let took_ns = clock::thread_cpu_ns().saturating_sub(began_ns);
        budget.spend(took_ns);
        self.budget.spend(took_ns);
        if has_turned && looked.is_ok() && !has_ended {
            messages.programs.push(follower.program().clone());
        }
        match looked {
            Err(why) => self.end(index, Some(&why), now_ns, messages),
            Ok(look) => {
                self.take(look, now_ns, messages);
                if !has_ended {
                    return true;
                }
                self.end(index, None, now_ns, messages);
            }
        }
        false
    }

    /// What is left of the memory for all traces.
    fn memory_left(&self) -> usize {
        let taken: usize = self.followers.iter().map(|of| of.follower.memory()).sum();
        MEMORY.saturating_sub(taken)
    }

    /// Takes of what is new as much as there is room for.
    fn take(&mut self, mut look: Look, now_ns: u64, messages: &mut Messages) {
        look.slow.retain(|_| self.room[0].take(now_ns));
        look.fast.retain(|_| self.room[1].take(now_ns));
        messages.slow.extend(look.slow);
        messages.fast.extend(look.fast);
        messages.seconds.extend(look.seconds);
    }

    /// The rest, when the recording ends.
    pub fn finish(&mut self, now_ns: u64) -> Messages {
        let mut messages = Messages::default();
        while !self.followers.is_empty() {
            self.end(0, None, now_ns, &mut messages);
        }
        messages
    }

    /// Traces that crashed programs left and that were read from the beginning to the end: to be
    /// removed once all of that is stored.
    pub fn take_abandoned(&mut self) -> Vec<TraceFile> {
        std::mem::take(&mut self.abandoned)
    }

    fn ask(&mut self, now_ns: u64) {
        let longest_ns = LONGEST_REST_NS.max(self.asked.len() as u64 * REST_OF_EACH_NS);
        let mut left = ASKED;
        for _ in 0..self.asked.len() {
            let Some(mut asked) = self.asked.pop_front() else { return };
            if left == 0 || asked.next_ns > now_ns {
                self.asked.push_back(asked);
                continue;
            }
            left -= 1;
            let tgid = asked.tgid;
            let thorough = asked.is_named && asked.times.is_multiple_of(THOROUGH);
            asked.is_asked(now_ns, longest_ns);
            let found = match guarded::of_process(tgid, thorough) {
                Ok(found) => found,
                // It is not asked again.
                Err(error) => {
                    let is_said = asked.is_named || error.kind() == io::ErrorKind::TimedOut;
                    if is_said && is_alive(tgid) {
                        self.refuse(tgid, error.to_string());
                    }
                    continue;
                }
            };
            match found {
                Ok(None) => self.asked.push_back(asked),
                Ok(Some(file)) => self.follow(tgid, file),
                Err(ReadError::System { .. }) if !is_alive(tgid) => {}
                Err(why) => {
                    self.refuse(tgid, why.to_string());
                    self.asked.push_back(asked);
                }
            }
        }
    }

    fn follow(&mut self, tgid: u32, mut file: TraceFile) {
        if self.followers.len() >= FOLLOWED {
            let why = format!("{FOLLOWED} traces are followed already");
            return self.refuse(tgid, why);
        }
        file.reader.keep_within(MEMORY_OF_ONE.min(self.memory_left()));
        match Follower::new(file, tgid, self.programs, self.started_ns, EVERY_NS) {
            Ok(follower) => {
                self.programs += 1;
                let budget = Budget::new(self.started_ns);
                self.followers.push(Followed { follower, budget });
            }
            Err(why) => self.refuse(tgid, why.to_string()),
        }
    }

    fn refuse(&mut self, tgid: u32, why: String) {
        if self.refusals > REFUSALS || self.refused.get(&tgid) == Some(&why) {
            return;
        }
        self.refusals += 1;
        let shown = match self.refusals > REFUSALS {
            true => format!("{why}; no further reason is shown in this recording"),
            false => why.clone(),
        };
        self.unreported.push((tgid, shown));
        self.refused.insert(tgid, why);
    }

    /// Follows one no more.
    fn end(&mut self, index: usize, why: Option<&ReadError>, now_ns: u64, into: &mut Messages) {
        let Followed { mut follower, .. } = self.followers.swap_remove(index);
        let tgid = follower.program().tgid;
        let ended = match why {
            None => follower.last_look().and_then(|look| {
                self.take(look, now_ns, into);
                follower.unfinished(now_ns).map(|_| ())
            }),
            Some(_) => Ok(()),
        };
        if let Some(why) = why.or(ended.as_ref().err()) {
            follower.refuse(why);
            self.refuse(tgid, why.to_string());
        }
        into.programs.push(follower.program().clone());
        if follower.program().state == TraceState::Crashed
            && follower.program().refused.is_empty()
            && follower.is_whole()
        {
            self.abandoned.push(follower.into_file());
        }
        // After an exec it may trace again.
        if why.is_none() && is_alive(tgid) {
            self.add(tgid, false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_without_a_trace_is_asked_ever_less_often() {
        const S: u64 = 1_000_000_000;
        let mut asked = Asked { tgid: 1, is_named: false, times: 0, first_ns: 0, next_ns: 0 };
        let mut rest = |now_ns, longest_ns| {
            asked.is_asked(now_ns, longest_ns);
            asked.next_ns - now_ns
        };
        assert_eq!(rest(100 * S, S), LOOK_NS, "it may begin at once");
        assert_eq!(rest(102 * S, S), S / 2);
        assert_eq!(rest(150 * S, S), S, "of a few");
        assert_eq!(rest(150 * S, 3 * S), 3 * S, "of many");

        let mut watched = Watched::new(0);
        assert_eq!(watched.rest_ns(S), LONGEST_REST_NS, "there is nobody to ask");
        watched.add(1, false);
        assert_eq!(watched.rest_ns(S), LOOK_NS, "it was never asked");
    }

    #[test]
    fn a_program_that_always_has_another_reason_is_told_of_so_often_and_no_more() {
        let mut watched = Watched::new(0);
        let mut shown = Vec::new();
        for number in 0..10_000u32 {
            watched.refuse(number % 7, format!("reason {}", number / 14));
            shown.extend(watched.take_refusals());
        }
        assert_eq!(shown.len(), REFUSALS + 1);
        assert!(shown.pop().unwrap().1.contains("no further reason"));
        assert!(!shown.iter().any(|(_, why)| why.contains("no further")), "{shown:?}");
        assert!(watched.refused.len() <= 7);
    }
}
